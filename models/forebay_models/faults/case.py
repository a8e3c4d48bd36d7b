"""One scene, in which one process is killed at one point, and the judgement of what came of it."""

import itertools
import time
from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from forebay import BlockingReplayBuffer
from forebay_spec.properties import INVARIANTS
from forebay_spec.state import State, has_something

from forebay_models.describe import describe
from forebay_models.faults.accounts import settle
from forebay_models.faults.crew import START, Member, Wrong, until, whoever_speaks
from forebay_models.faults.expected import Node, Planned, Search
from forebay_models.faults.hands import Asleep, Done, Given, Task, act
from forebay_models.faults.kills import Kill
from forebay_models.faults.ledgers import Image, Watch, make_buffer
from forebay_models.faults.points import ASLEEP, Point, Reached
from forebay_models.faults.program import OK, Did, Op, ops_of
from forebay_models.faults.scenarios import FINDER, OTHERS, VICTIM, Scenario
from forebay_models.faults.stage import Stage, drain

LONG: Final = 3600.0
"""Seconds; who naps so long wakes only when woken."""

SHORT: Final = 0.02
_QUIET: Final = 0.001


@dataclass(frozen=True)
class Ran:
    """What a run came to: the points of victim and finder, and whether all kills fell."""

    points: tuple[Reached, ...]
    finder_points: tuple[Reached, ...]
    reached: bool


class Case:
    """One run of a scenario.

    Args:
        stage: the processes that live through all runs.
        scenario: the scenario.
        method: how the victim is started.
        kill: where.
        fault: the planted fault, or nothing.
    """

    def __init__(
        self, stage: Stage, scenario: Scenario, method: str, kill: Kill, fault: str = ""
    ) -> None:
        self._stage = stage
        self._patience = stage.crew.patience
        self._scenario = scenario
        self._method = method
        self._kill = kill
        self._fault = fault
        self._numbers = itertools.count(1)
        self._did: dict[str, list[Did]] = defaultdict(list)
        self._told: dict[str, list[Op]] = defaultdict(list)
        self._open: Counter[str] = Counter()
        self._written: dict[str, list[tuple[int, ...]]] = defaultdict(list)
        self._help = deque(scenario.help)
        self._points: tuple[Reached, ...] = ()
        self._finder_points: tuple[Reached, ...] = ()

    def run(self) -> Ran:
        """Run it.

        Raises:
            Wrong: somebody is stuck, or something is lost, doubled, or not what was specified.
        """
        scenario, kill = self._scenario, self._kill
        buffer = make_buffer(scenario.bounds)
        self._names: dict[int, str] = {}
        self._watch = Watch(buffer, scenario.bounds, self._names)
        members = {name: self._stage.others[name] for name in OTHERS}
        members[VICTIM] = self._start(VICTIM, buffer)
        nap, pause = (SHORT, SHORT) if kill.natural else (SHORT if scenario.naps else LONG, LONG)
        for member in self._stage.others.values():
            member.tell(Given(buffer, nap, pause))
        self._members = members
        self._names.update({member.pid: name for name, member in members.items()})
        for name, program in scenario.setup:
            self._tell(name, program)
            self._hear_out(name)
        for name, program in scenario.waiting:
            self._begin_waiting(name, program)
        self._quiet()
        before = self._watch.state(self._watch.image())
        base = {name: len(did) for name, did in self._did.items()}
        fell = self._play_victim()
        self._quiet()
        image = self._watch.image()
        heard = {name: len(did) for name, did in self._did.items()}
        if fell:
            self._fell()
        else:
            self._stage.crew.kill(members.pop(VICTIM))
        found = self._find(buffer) if fell else kill.finder is None
        self._go_on()
        self._look()
        self._judge(before, base, image, heard, fell)
        self._settle_accounts(fell)
        return Ran(self._points, self._finder_points, fell == (kill.point is not None) and found)

    def _start(self, name: str, buffer: BlockingReplayBuffer) -> Member:
        given = Given(buffer, LONG, LONG)
        member = self._stage.crew.start(name, self._method, act, self._fault, given)
        member.says(START)
        return member

    def _tell(self, name: str, program: str, **more: object) -> None:
        ops = ops_of(program)
        numbers = [
            next(self._numbers) for op in ops if op.kind == "extend" for _ in range(op.sizes[0])
        ]
        self._told[name] += ops
        left = iter(numbers)
        for op in ops:
            if op.kind == "extend":
                self._written[name].append(tuple(itertools.islice(left, op.sizes[0])))
        self._open[name] += 1
        self._members[name].tell(Task(ops, tuple(numbers), **more))  # type: ignore[arg-type]  # the fields of a task

    def _hear(self, name: str, said: object) -> None:
        if isinstance(said, Did):
            self._did[name].append(said)
        elif isinstance(said, Done):
            self._open[name] -= 1
            if name == VICTIM:
                self._points = said.reached

    def _hear_out(self, name: str) -> None:
        """Hear a process until it has done what it was told to."""
        patience = START if name == VICTIM else self._patience
        while self._open[name]:
            self._hear(name, self._members[name].says(patience))

    def _begin_waiting(self, name: str, program: str) -> bool:
        """Begin a program and go on when it is done, or waits; tell whether it waits."""
        busy = self._watch.busy()
        self._tell(name, program)
        member = self._members[name]

        def settled() -> bool:
            while self._open[name] and member.line.poll():
                self._hear(name, member.says())
            return not self._open[name] or (self._watch.busy() > busy and member.sleeps())

        until(settled, f"{name} waits, or has done {program!r}", self._patience)
        return bool(self._open[name])

    def _quiet(self) -> None:
        """Wait until nobody changes anything: all sleep, and the ledger stays as it is."""
        last = [b""]

        def still() -> bool:
            for name in OTHERS:
                while self._members[name].line.poll():
                    self._hear(name, self._members[name].says())
            now = self._watch.bytes()
            same, last[0] = now == last[0], now
            time.sleep(_QUIET)
            return same and all(member.sleeps() for member in self._members.values())

        if not self._kill.natural:
            until(still, "all others sleep", self._patience)

    def _play_victim(self) -> bool:
        """Let the victim do its program; True if it has come to where it is to be killed."""
        self._tell(VICTIM, self._scenario.victim, armed=True, stop=self._kill.point)
        victim = self._members[VICTIM]
        while self._open[VICTIM]:
            said = victim.says(START)
            self._hear(VICTIM, said)
            if isinstance(said, Point):
                if said.label == ASLEEP:
                    until(victim.sleeps, "the victim sleeps", self._patience)
                return True
            if isinstance(said, Asleep):
                until(victim.sleeps, "the victim sleeps", self._patience)
                while self._help and self._begin_waiting(*self._help.popleft()):
                    pass
        return False

    def _fell(self) -> None:
        self._stage.crew.kill(self._members.pop(VICTIM))

    def _find(self, buffer: BlockingReplayBuffer) -> bool:
        """Let somebody look for the dead; True unless it should have been killed and was not."""
        kill = self._kill
        if kill.natural:
            return True
        if kill.finder is None:
            self._look()
            return True
        finder = self._start(FINDER, buffer)
        finder.tell(Task(armed=True, stop=kill.finder, look=True))
        said = finder.says(START)
        if isinstance(said, Done):
            self._finder_points = said.reached
        self._stage.crew.kill(finder)
        self._look()
        return isinstance(said, Point)

    def _look(self) -> None:
        """Let a process that lives look for the dead."""
        scout = self._stage.others[FINDER]
        scout.tell(Task(look=True))
        scout.says()

    def _go_on(self) -> None:
        """Let all others do what is left, side by side."""
        for name, program in (*self._help, *self._scenario.after):
            self._tell(name, program)
        give_up = time.monotonic() + self._patience
        while open_ones := [self._members[name] for name in OTHERS if self._open[name]]:
            speaking = whoever_speaks(open_ones, max(0.0, give_up - time.monotonic()))
            for member in speaking:
                self._hear(member.name, member.says())
            if not speaking:
                names = ", ".join(member.name for member in open_ones)
                raise Wrong(f"stuck for {self._patience:g} s after the kill: {names}")

    def _judge(
        self,
        before: State,
        base: dict[str, int],
        image: Image,
        heard: dict[str, int],
        fell: bool,
    ) -> None:
        """Compare the ledger with the specification, and look for what is left of the dead."""
        living = {member.pid for member in self._stage.others.values()}
        if left := self._watch.leftovers(living):
            raise Wrong("; ".join(left))
        end = self._watch.state(self._watch.image())
        for invariant in INVARIANTS.values():
            if not invariant.predicate(self._scenario.bounds, end):
                raise Wrong(f"{invariant.name} does not hold afterwards\n{_text(end)}")
        recoveries, deaths = self._watch.image().scalar("RECOVERIES"), int(fell)
        if recoveries > deaths + (self._kill.finder is not None):
            raise Wrong(f"{recoveries} recoveries are counted, after {deaths} deaths")
        if not self._scenario.judged:
            return
        programs = {
            name: tuple(self._planned(name, base.get(name, 0))) for name in (VICTIM, *OTHERS)
        }
        search = Search(self._scenario, programs)
        nodes = search.reachable([search.start(before)])
        if not fell:
            ends = {node.state for node in nodes if search.is_over(node)}
        else:
            there = self._when_killed(search, nodes, image, heard, base)
            after = search.without_victim()
            reached = after.reachable(after.killed(there))
            ends = {node.state for node in reached if after.is_over(node)}
        if end not in ends:
            raise Wrong(
                "the ledger is not what the specification says\n"
                f"seen:\n{_text(end)}\nexpected, one of:\n"
                + "\nor:\n".join(_text(state) for state in sorted(ends, key=repr)[:3])
            )

    def _when_killed(
        self,
        search: Search,
        nodes: Iterable[Node],
        image: Image,
        heard: Mapping[str, int],
        base: Mapping[str, int],
    ) -> list[Node]:
        """Return where the victim may have been when it was killed.

        What it left in the ledger says that, but where others went on meanwhile.
        """
        seen = [heard.get(name, 0) - base.get(name, 0) for name in search.actors]
        if self._kill.natural:
            victim = search.actors.index(VICTIM)
            return [node for node in nodes if node.done[victim] >= seen[victim]]
        left = self._watch.state(image)
        there = [
            node
            for node in nodes
            if node.state == left
            and all(done >= told for done, told in zip(node.done, seen, strict=True))
        ]
        if not there:
            raise Wrong(f"no step of the specification leads to what the dead left\n{_text(left)}")
        if has_something(left, VICTIM) and not self._watch.image().scalar("RECOVERIES"):
            raise Wrong("the dead had something, and no recovery was counted")
        return there

    def _planned(self, name: str, base: int) -> Iterator[Planned]:
        """Yield the calls of an actor since the victim began, and how they ended."""
        did = self._did[name]
        for index, op in enumerate(self._told[name]):
            if index >= base:
                yield Planned(op, did[index].outcome if index < len(did) else None)

    def _settle_accounts(self, fell: bool) -> None:
        """Take all records that are left out, and see where each of them has gone."""
        scenario = self._scenario
        deserted = bool(self._watch.image().scalar("REGISTERED"))
        for drained in drain(self._stage.others[FINDER], scenario.capacity, deserted):
            self._did[FINDER].append(drained)
        image = self._watch.image()
        self._check_words(image, deserted, fell)
        for name in ("FILLING", "PINNED", "SAMPLEABLE", "BATCHES", "LEASES"):
            if value := image.scalar(name):
                raise Wrong(f"{name} is {value} when all is taken out")
        settle(
            uses=scenario.uses,
            did=self._did,
            died_with=self._died_with(),
            delivered=image.scalar("DELIVERED"),
            admitted=image.scalar("ADMITTED"),
            dropped=image.scalar("DROPPED"),
        )

    def _died_with(self) -> tuple[int, ...]:
        """Return the batch that the victim was writing, or was to write next."""
        ended = sum(did.op.kind == "extend" for did in self._did[VICTIM])
        return next(iter(self._written[VICTIM][ended:]), ())

    def _check_words(self, image: Image, deserted: bool, fell: bool) -> None:
        """See whether readers are told what became of the producers that had registered."""
        if not deserted:
            return
        told = next(did.outcome for did in self._did[FINDER] if did.outcome != OK)
        left = any(did.op.kind == "leave" for did in self._did[VICTIM])
        expected = ("ShutDown",) if left or not fell else ("PeerLost", "ShutDown")
        if image.scalar("LOST_PRODUCERS"):
            expected = ("PeerLost",)
        if told not in expected:
            raise Wrong(f"readers are told {told} where {' or '.join(expected)} is right")


def _text(state: State) -> str:
    return "\n".join(f"  {name} = {text}" for name, text in describe(state).items())
