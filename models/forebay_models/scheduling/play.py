"""One run: a fresh buffer, the programs of a scenario on its players, and the oracle beside it."""

import gc
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from typing import Final, NamedTuple

from forebay import BlockingReplayBuffer, Lease, Limits
from forebay import _layout as at
from forebay._threads import thread_number
from forebay_spec.actions import Label
from forebay_spec.state import State

from forebay_models.adapters.abstraction import state_of
from forebay_models.device.simulated import SimulatedDevice
from forebay_models.scheduling.device import (
    DeviceNumbers,
    StreamPlayers,
    on_cuda,
    on_simulated,
    players_of,
)
from forebay_models.scheduling.monitor import ENTER, LOCKED_OUT, ScheduledMonitor
from forebay_models.scheduling.oracle import COUNTED, Memory, Oracle, Planted
from forebay_models.scheduling.scenario import MOST, TOKENS, Op, Scenario
from forebay_models.scheduling.stage import Failure, Kind, Stage, Status, Stuck
from forebay_models.scheduling.storage import NumberStorage
from forebay_models.scheduling.strategies import Strategy

SECONDS: Final = 1000.0
"""The timeout of calls that may expire; time passes only where that is chosen."""

_LIMITS: Final = Limits(calls=4 * MOST, tokens=TOKENS)
"""Small tables, so that a buffer is made and looked at quickly."""

TIME_IS_UP: Final = "its time is up"
FOR_NOTHING: Final = "wakes for no reason"
RETURNED: Final = "returned"
ANCHORS: Final = frozenset({"arriving", "asking", "woken", "admitted", "drawn", RETURNED})
"""Points at which a thread knows nothing but what the ledger says too: what it has lived through
before makes no difference to what it will do."""

_FORGET: Final = 50_000
"""Ledgers that are remembered at most."""


class Slice(NamedTuple):
    """What one player did between two choice points."""

    actor: str
    label: str
    step: Label | None
    state: State


class Run(NamedTuple):
    """How a run went: what was chosen, what happened, and what was wrong, if anything was."""

    choices: tuple[int, ...]
    slices: tuple[Slice, ...]
    failure: Failure | None
    pruned: bool = False


class Theatre:
    """Runs one scenario again and again; use it as a context manager, which ends the threads.

    Args:
        scenario: what is run.
    """

    def __init__(self, scenario: Scenario) -> None:
        self.scenario = scenario
        self._memory = Memory(scenario)
        self._states: dict[bytes, State] = {}
        self._players = players_of(scenario)
        self._stage = Stage(self._players)
        self._numbers: dict[int, str] = {}

    def __enter__(self) -> "Theatre":
        return self

    def __exit__(self, *error: object) -> None:
        self._stage.__exit__(*error)

    def run(self, strategy: Strategy) -> Run:
        """Run the scenario once, as the strategy says."""
        stage = self._stage
        if len(self._states) > _FORGET:
            self._states.clear()
        performance = _Performance(
            self.scenario, stage, self._memory, numbers=self._numbers, states=self._states
        )
        enabled = gc.isenabled()
        gc.disable()  # finalisers would run wherever the collector happens to
        try:
            stage.run(
                performance.programs(),
                lambda options: strategy.pick(options, performance.digest),
                performance,
                idle=len(self._players) - len(self.scenario.actors),
            )
        except Stuck as stuck:
            # Its threads hang where nobody can reach them; they are left, and new ones made.
            self._stage = Stage(self._players)
            stage.failure = stuck
        finally:
            performance.retire()
            if enabled:
                gc.enable()
        failure = stage.failure
        if failure is None and not stage.pruned:
            failure = performance.judge_end()
        return Run(tuple(stage.choices), tuple(performance.slices), failure, stage.pruned)


class _Performance:
    """The buffer of one run and what its players do with it."""

    def __init__(
        self,
        scenario: Scenario,
        stage: Stage,
        memory: Memory,
        *,
        numbers: dict[int, str],
        states: dict[bytes, State],
    ) -> None:
        self._scenario = scenario
        self._stage = stage
        self._memory = memory
        self._numbers = numbers
        self._states = states
        self._counts: dict[str, int] = {}
        self._monitor = monitor = ScheduledMonitor(stage)
        self._streams: StreamPlayers | None = None
        self._storage = self._make_storage()
        self._buffer = BlockingReplayBuffer(
            self._storage,
            consume_after_n_samples=scenario.uses,
            order=scenario.order,
            transform=self._transform,
            write_transform=None,
            seed=0,
            stall_warning=None,
            limits=_LIMITS,
            monitor=monitor,
        )
        self._ledger = self._buffer._core.ledger
        self._tokens = {name: self._buffer.cancel_token() for name in scenario.bounds.tokens}
        rows = {name: token.row_for(self._buffer._core) for name, token in self._tokens.items()}
        self._token_names = {row: name for name, row in rows.items() if row is not None}
        self._leases: dict[str, list[Lease[object]]] = {name: [] for name in scenario.actors}
        self._raising = [False] * len(scenario.actors)
        self._oracle = Oracle(scenario, memory)
        self._outcomes: list[tuple[object, BaseException | None]]
        self._outcomes = [(None, None)] * len(scenario.actors)
        self._sections = [False] * len(scenario.actors)
        self._raw = self._look()
        self.slices: list[Slice] = []
        self._shared = hash(self._raw)
        self._lived = [0] * len(scenario.actors)
        self._done = [0] * len(scenario.actors)

    def _make_storage(self) -> NumberStorage | DeviceNumbers:
        capacity, copied = self._scenario.capacity, self._raise_if_planted
        if self._scenario.storage == "numbers":
            return NumberStorage(capacity, self._monitor.point, copied)
        if self._scenario.storage == "cuda":
            return on_cuda(capacity, copied)
        device = SimulatedDevice()
        self._streams = StreamPlayers(self._stage, self._scenario.actors, device)
        return on_simulated(capacity, device, copied)

    def programs(self) -> list[Callable[[], None]]:
        """Return what each player does."""

        def program(index: int, actor: str, ops: Sequence[Op]) -> Callable[[], None]:
            def play() -> None:
                self._numbers[thread_number()] = actor
                with self._on_stream_of(actor):
                    for number, op in enumerate(ops):
                        self._call(index, actor, number, op)

            return play

        actors = zip(self._scenario.actors, self._scenario.ops, strict=True)
        programs = [program(index, actor, ops) for index, (actor, ops) in enumerate(actors)]
        return programs if self._streams is None else programs + self._streams.programs()

    def _on_stream_of(self, actor: str) -> AbstractContextManager[object]:
        """Let an actor, in its thread, work on a stream of its own within a block."""
        if self._streams is not None:
            return self._streams.on(actor)
        if isinstance(self._storage, DeviceNumbers):
            streams = self._storage.streams
            return streams.on(streams.own())
        return nullcontext()

    def slice_ends(self, player: int, label: str) -> None:
        """Judge what a player did since its last choice point."""
        if player >= len(self._scenario.actors):
            self._stream_ran(player, label)
            return
        actor = self._scenario.actors[player]
        section = self._sections[player] and label != LOCKED_OUT
        self._sections[player] = label in (ENTER, LOCKED_OUT)
        # What a slice does depends on what its thread has lived through and on what it finds.
        self._lived[player] = hash((self._lived[player], label, self._shared))
        if label in ANCHORS:
            self._done[player] += label == RETURNED
            self._lived[player] = hash((self._done[player], label))
        raw = self._look()
        after = self._oracle.state
        if raw != self._raw:
            self._raw = raw
            after = self._read(raw)
        self._shared = self._digest_shared(raw)
        expired = self._stage.players[player].ahead > 0
        try:
            step = self._oracle.slice(actor, section, expired, after)
        except Failure:
            self.slices.append(Slice(actor, label, None, after))
            raise
        self.slices.append(Slice(actor, label, step, after))
        if label == RETURNED:  # before anybody else goes on, and before the run can be cut short
            self._oracle.ends(actor, *self._outcomes[player])

    def _stream_ran(self, player: int, label: str) -> None:
        """Note what a stream has done, which is no step of the specification."""
        name = self._stage.players[player].name
        self.slices.append(Slice(name, label, None, self._oracle.state))
        self._shared = self._digest_shared(self._raw)

    def _digest_shared(self, raw: bytes) -> int:
        """Return a number for all that players share; `raw` is the ledger."""
        storage = self._storage
        numbers = tuple(storage.numbers) if isinstance(storage, NumberStorage) else ()
        queued = 0 if self._streams is None else self._streams.digest()
        return hash((raw, self._monitor.digest(), numbers, queued))

    def sleep_ends(self, player: int, kind: Kind) -> None:
        """Note that a player's sleep ends by itself."""
        label = TIME_IS_UP if kind is Kind.EXPIRE else FOR_NOTHING
        self.slices.append(Slice(self._scenario.actors[player], label, None, self._oracle.state))

    def retire(self) -> None:
        """Let go of the stage, which is for the next run, and of leases that were not ended."""
        self._monitor.retire()
        for leases in self._leases.values():
            for lease in leases:
                with suppress(Exception):
                    lease.release()

    def run_ends(self) -> None:
        """Note the counters, before what is unwound is counted too."""
        cells = self._ledger.cells
        self._counts = {name: cells[getattr(at, name.upper())] for name in COUNTED}

    def digest(self) -> int:
        """Return a number for where the run is: equal choices lead on equally from equal places."""
        stage = self._stage
        players = [(player.status, player.ahead) for player in stage.players]
        holder = stage.holder.index if stage.holder else None
        me = stage.current.index if stage.current else None
        core = self._buffer._core
        left = (len(core._left), core.failure is None)
        expected = self._oracle.digest()
        return hash((tuple(self._lived), self._shared, expected, tuple(players), holder, me, left))

    def judge_end(self) -> Failure | None:
        """Judge who did not come to an end; to be asked when the run is over."""
        unfinished = {
            player.name: player.timeout
            for player in self._stage.players[: len(self._scenario.actors)]
            if player.status is not Status.DONE
        }
        try:
            self._oracle.check_end(unfinished)
            self._oracle.check_counts(self._counts)
            if self._streams is not None:
                self._streams.check_end()
        except Failure as failure:
            return failure
        return None

    def _look(self) -> bytes:
        """Return everything in the ledger that decides how things go on: all but the counters."""
        block = self._ledger.layout.block
        return block[: at.ADMITTED].tobytes() + block[at.LAST_DELIVERY + 1 :].tobytes()

    def _read(self, raw: bytes) -> State:
        """Return the ledger as a state of the specification."""
        state = self._states.get(raw)
        if state is None:
            try:
                state = state_of(
                    self._ledger,
                    lambda number: self._numbers.get(number, f"?{number}"),
                    self._token_names,
                    self._scenario.bounds,
                )
            except Exception as error:
                raise Failure(f"the ledger contradicts itself: {error!r}") from error
            state = self._states[raw] = self._memory.state(state)
        return state

    def _call(self, index: int, actor: str, number: int, op: Op) -> None:
        """Make one call and have its outcome judged."""
        self._oracle.begins(actor, op)
        self._raising[index] = op.manner == "raises"
        self._stage.players[index].ahead = float(op.manner == "at-once")
        value: object = None
        error: BaseException | None = None
        try:
            value = self._make(index, actor, number, op)
        except Failure:
            raise
        except Exception as raised:
            error = raised
        self._outcomes[index] = (value, error)
        self._stage.reach(RETURNED)

    def _make(self, index: int, actor: str, number: int, op: Op) -> object:
        buffer = self._buffer
        seconds = {"timed": SECONDS, "at-once": 0.0}.get(op.manner)
        token = self._scenario.bounds.token(actor)
        event = None if token is None else self._tokens[token]
        if op.kind == "extend":
            first = 100 * (index + 1) + 10 * number
            numbers = list(range(first, first + op.sizes[0]))
            self._oracle.writes(actor, tuple(numbers))
            slots = buffer.extend(numbers, timeout=seconds, cancel_event=event)
            return tuple(slots.tolist()), ()
        if op.kind == "sample":
            k, m = op.sizes
            found = buffer.sample(
                k, return_info=True, at_least=m, timeout=seconds, cancel_event=event
            )
            batch, info = found
            return tuple(info["index"].tolist()), tuple(batch)
        if op.kind == "lease":
            k, m = op.sizes
            lease = buffer.lease(k, at_least=m, timeout=seconds, cancel_event=event)
            self._leases[actor].append(lease)
            return tuple(lease.index.tolist()), tuple(lease.batch)
        if op.kind == "set":
            self._tokens[op.word].set()
        elif op.kind == "shutdown":
            buffer.shutdown(immediate=op.word == "stopped")
        elif op.kind == "empty":
            buffer.empty()
        elif self._leases[actor]:
            lease = self._leases[actor][0]
            (lease.commit if op.kind == "commit" else lease.release)()
            self._leases[actor].remove(lease)
        return None

    def _transform(self, batch: object) -> object:
        self._raise_if_planted()
        return batch

    def _raise_if_planted(self) -> None:
        me = self._stage.current
        if me is not None and self._raising[me.index]:
            raise Planted("something raises inside the call")
