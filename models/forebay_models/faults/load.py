"""Processes under load, one of which is killed at a random moment, again and again.

In rounds: each has a buffer of its own, and at its end everything is taken out and every record
accounted for.
"""

import random
import time
from collections import Counter
from collections.abc import Callable
from typing import Final

from forebay_spec.bounds import Bounds, Order
from forebay_spec.properties import INVARIANTS

from forebay_models.faults.crew import START, Crew, Member, Wrong, crew, until
from forebay_models.faults.hands import PATIENCE, Given, Task, act
from forebay_models.faults.labour import Account, Job, block_for, labour, notes_in
from forebay_models.faults.ledgers import Image, Watch, make_buffer
from forebay_models.faults.program import OK
from forebay_models.faults.stage import PRELOAD, drain
from forebay_models.mutants.shared import planted_in_shared

WORKERS: Final = 5
ROUND: Final = 100
"""Kills in one round at most."""

CAPACITY: Final = 4
_NAP: Final = 0.02
_SOON: Final = 0.02
"""Seconds within which somebody is killed."""


class Load:
    """Random kills.

    Args:
        method: how processes are started.
        kills: how many are wanted, or None for as many as there is time for.
        seconds: the budget, or None for no limit.
        seed: of the choices.
        fault: the planted fault, or nothing.
        tell: is told how far it has come.
        patience: seconds in which somebody has to be served.
    """

    def __init__(
        self,
        *,
        method: str,
        kills: int | None,
        seconds: float | None,
        seed: int,
        fault: str,
        tell: Callable[[str], None],
        patience: float = PATIENCE,
    ) -> None:
        self._method = method
        self._wanted = kills
        self._end = None if seconds is None else time.monotonic() + seconds
        self._choice = random.Random(seed)
        self._fault = fault
        self._tell = tell
        self._patience = patience
        self._number = 0
        self.kills = 0
        self.served = 0
        self.cut_short = 0

    def run(self) -> None:
        """Kill until there were enough, or the time is over.

        Raises:
            Wrong: something is lost, doubled or stuck.
        """
        round_number = 0
        while not self._over():
            order: Order = "random" if round_number % 2 else "fifo"
            bounds = Bounds(
                name="faults under load",
                capacity=CAPACITY,
                uses=1 + round_number // 2 % 2,
                order=order,
                producers=(),
                readers=(),
                write_sizes=(),
                requests=(),
            )
            with planted_in_shared(self._fault), crew(PRELOAD, self._patience) as members:
                _Round(self, members, bounds).run()
            round_number += 1

    def _over(self) -> bool:
        enough = self._wanted is not None and self.kills >= self._wanted
        return enough or (self._end is not None and time.monotonic() > self._end)


class _Round:
    """One buffer, and the processes at it."""

    def __init__(self, load: Load, members: Crew, bounds: Bounds) -> None:
        self._load = load
        self._crew = members
        self._bounds = bounds
        self._buffer = make_buffer(bounds)
        self._given = Given(self._buffer, _NAP, _NAP)
        self._block = block_for(WORKERS)
        self._notes = [notes_in(self._block, place) for place in range(WORKERS)]
        self._account = Account([], [], [], [])

    def run(self) -> None:
        """Kill up to `ROUND` times, and settle the accounts."""
        load = self._load
        workers = [self._start(place) for place in range(WORKERS)]
        for _ in range(ROUND):
            if load._over():
                break
            place = self._await_somebody()
            time.sleep(load._choice.uniform(0.0, _SOON))
            if workers[place].process.is_alive():
                self._crew.kill(workers[place])
                load.kills += 1
            self._close(place)
            self._notes[place].clear()
            others = self._served()
            workers[place] = self._start(place)
            until(
                lambda others=others: self._served() > others,  # type: ignore[misc]  # of this kill
                f"somebody is served after {load.kills} kills",
                load._patience,
            )
            load._tell(f"{load.kills:,} random kills, {load.served:,} calls served")
        for note in self._notes:
            note.stop()
        give_up = time.monotonic() + load._patience
        for place, worker in enumerate(workers):
            worker.process.join(max(0.0, give_up - time.monotonic()))
            if worker.process.exitcode is None:
                raise Wrong(f"a process is stuck after {load.kills} kills")
            if worker.process.exitcode != 0:
                raise Wrong(f"a process has ended with {worker.process.exitcode}")
            self._close(place)
        self._settle()

    def _start(self, place: int) -> Member:
        load = self._load
        load._number += 1
        job = Job(self._given, self._block, place, load._number)
        return self._crew.start(f"worker {load._number}", load._method, labour, load._fault, job)

    def _close(self, place: int) -> None:
        """Keep what a process has noted, since it has ended."""
        account = self._notes[place].read()
        self._load.served += self._notes[place].done
        self._load.cut_short += bool(account.writing or account.receiving)
        self._account.add(account)

    def _served(self) -> int:
        return sum(note.done for note in self._notes)

    def _await_somebody(self) -> int:
        """Return the place of a process that has begun to work, at random."""
        give_up = time.monotonic() + START
        while True:
            begun = [place for place, note in enumerate(self._notes) if note.made]
            if begun:
                return self._load._choice.choice(begun)
            if time.monotonic() > give_up:
                raise Wrong(f"nobody begins to work after {self._load.kills} kills")
            time.sleep(0.0005)

    def _settle(self) -> None:
        """Look for what is left of the dead, take everything out, and compare."""
        names: dict[int, str] = {}
        watch = Watch(self._buffer, self._bounds, names)
        scout = self._crew.start("f", "fork", act, self._load._fault, self._given)
        scout.says(START)
        scout.tell(Task(look=True))
        scout.says(START)
        if left := watch.leftovers({scout.pid}):
            raise Wrong("; ".join(left))
        end = watch.state(watch.image())
        for invariant in INVARIANTS.values():
            if not invariant.predicate(self._bounds, end):
                raise Wrong(f"{invariant.name} does not hold after {self._load.kills} kills: {end}")
        for did in drain(scout, CAPACITY, False):
            if did.outcome == OK and did.numbers:
                self._account.received.append(did.numbers)
        self._crew.kill(scout)
        settle(self._account, watch.image(), self._bounds.uses)


def settle(account: Account, image: Image, uses: int) -> None:
    """See that each record was delivered as often as it may be, or died in somebody's hands.

    Args:
        account: what all processes have noted, and what was taken out in the end.
        image: the ledger.
        uses: how often a record may be delivered.

    Raises:
        Wrong: that is not so.
    """
    received = Counter(n for batch in account.received for n in batch)
    dying = Counter(n for batch in account.receiving for n in batch)
    there = {n for batch in account.written for n in batch}
    for batch in account.writing:
        seen = [n for n in batch if n in received or n in dying]
        if seen and len(seen) < len(batch):
            raise Wrong(f"of the batch {batch} that a killed process was writing, only {seen} came")
        there.update(seen)
    if torn := received.keys() - there:
        raise Wrong(f"records are received that nobody has written whole: {sorted(torn)}")
    admitted = image.scalar("ADMITTED")
    if admitted != len(there):
        raise Wrong(f"the ledger has admitted {admitted} records, and {len(there)} are known")
    missing = {n: uses - received[n] for n in there if received[n] != uses}
    if wrong := {n: times for n, times in missing.items() if not 0 <= times <= dying[n]}:
        raise Wrong(f"uses of records that are missing, or too many (below 0): {wrong}")
    for batch in account.receiving:
        sure = {missing.get(n, 0) for n in batch if dying[n] == 1}
        if len(sure) > 1:
            raise Wrong(f"the batch {batch} of a killed reader was delivered in part")
    unheard = image.scalar("DELIVERED") - sum(received.values())
    if sum(missing.values()) != unheard:
        raise Wrong(f"{sum(missing.values())} uses are missing, {unheard} went to the dead")
