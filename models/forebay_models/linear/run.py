"""Records and checks histories until there are enough, one fails, or the time is up."""

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, NamedTuple

from forebay_models.counterexample import Counterexample, Row
from forebay_models.device.prompt import without_device
from forebay_models.linear.check import LIMIT, search
from forebay_models.linear.history import History, Operation
from forebay_models.linear.lines import read, write
from forebay_models.linear.model import Model
from forebay_models.linear.processes import record_processes
from forebay_models.linear.record import PATIENCE, Recording, record
from forebay_models.linear.report import counterexample
from forebay_models.linear.workload import CAST, PROCESSES, Workload, workload
from forebay_models.outcome import Figure, Outcome, Verdict
from forebay_models.tables import text_table
from forebay_models.targets import Target

_BOUNDS: Final = (
    "C=2..6 N=1..3, both orders, {}, and an outsider; extend, sample, lease, commit, release, "
    "token, len, empty, shutdown; random runs, not exhaustive"
)


class Kit(NamedTuple):
    """How a target is run: what records its runs, and of whom they are."""

    record: Callable[[Workload, float], Recording]
    cast: str

    @property
    def bounds(self) -> str:
        """What is run, for an outcome."""
        return _BOUNDS.format(self.cast)


KITS: Final[Mapping[Target, Kit]] = {
    Target.LOCAL: Kit(record, f"both storages, {len(CAST)} threads"),
    Target.SHARED: Kit(
        record_processes, f"{len(PROCESSES)} processes, one or two of which are killed"
    ),
    Target.SIMULATED: Kit(record, f"on a simulated device, {len(CAST)} threads"),
    Target.CUDA: Kit(record, f"on a CUDA device, {len(CAST)} threads"),
}


@dataclass
class Tally:
    """What was checked so far."""

    histories: int = 0
    operations: int = 0
    points: int = 0
    longest: int = 0
    unsettled: int = 0
    kills: int = 0
    endings: Counter[tuple[str, str]] = field(default_factory=Counter)

    def add(self, history: History, points: int) -> None:
        """Count a history that was checked."""
        self.histories += 1
        self.operations += len(history.operations)
        self.points += points
        self.longest = max(self.longest, len(history.operations))
        self.kills += len(history.kills)
        self.endings.update((op.kind, op.ended) for op in history.operations)

    def figures(self) -> dict[str, Figure]:
        """Return the counts for an outcome; of kills where there are some."""
        figures: dict[str, Figure] = {
            "histories": self.histories,
            "operations": self.operations,
            "points": self.points,
            "longest": self.longest,
        }
        return figures | ({"kills": self.kills} if self.kills else {})

    def table(self) -> str:
        """Return how often each operation ended how."""
        rows = [
            [kind, ended, f"{count:,}"] for (kind, ended), count in sorted(self.endings.items())
        ]
        return text_table(["operation", "ended", "times"], rows)


def run_histories(
    target: Target = Target.LOCAL,
    *,
    seconds: float | None,
    seed: int,
    histories: int,
    limit: int = LIMIT,
    patience: float = PATIENCE,
    plan: Callable[[int, Target], Workload] = workload,
    keep: Path | None = None,
    tell: Callable[[str], None] = lambda text: None,
) -> Outcome:
    """Record histories of a buffer and check each.

    Args:
        target: the buffer on threads, its records on the host or on a device, or one that
            processes share.
        seconds: after which no other history is begun, or None for no limit.
        seed: the number of the first workload; the others follow.
        histories: how many are wanted; fewer are inconclusive.
        limit: of points visited in one history.
        patience: seconds after which a run is said to hang.
        plan: returns the workload of a number, for a target.
        keep: where to save a history that fails.
        tell: is told how far it has come.
    """
    name, kit = f"linear {target.value}", KITS[target]
    if (cannot := without_device(target, name)) is not None:
        return cannot
    began = time.monotonic()
    tally = Tally()
    failure: Counterexample | None = None
    while tally.histories < histories and failure is None:
        if seconds is not None and time.monotonic() - began > seconds:
            break
        recording = kit.record(plan(seed + tally.histories, target), patience)
        failure = _failure(name, recording, limit, tally)
        if failure is not None and keep is not None:
            write(recording.history, keep)
        tell(f"{tally.histories:,} of {histories:,} histories, {tally.operations:,} operations")
    verdict, detail = _verdict(failure, tally, histories, limit)
    return Outcome(
        name=name,
        verdict=verdict,
        bounds=kit.bounds,
        figures=tally.figures(),
        seconds=time.monotonic() - began,
        detail=detail,
        counterexample=failure,
    )


def check_history_file(path: Path, limit: int = LIMIT) -> Outcome:
    """Judge a history that was saved; one that cannot be read could not be run."""
    began = time.monotonic()
    name = f"history {path.name}"
    try:
        history = read(path)
    except (OSError, ValueError) as error:
        return Outcome(
            name=name,
            verdict=Verdict.COULD_NOT_RUN,
            bounds="one history",
            figures={},
            seconds=time.monotonic() - began,
            detail=f"{path} cannot be read as a history: {error}",
        )
    return judged(name, history, limit)


def judged(name: str, history: History, limit: int = LIMIT) -> Outcome:
    """Judge one history."""
    began = time.monotonic()
    model = Model(history)
    found = search(model, limit)
    failure = counterexample(name, model, found) if found.verdict == Verdict.VIOLATED else None
    detail = failure.as_text() if failure else ""
    if found.verdict == Verdict.INCONCLUSIVE:
        detail = f"not settled within {limit:,} points"
    tally = Tally()
    tally.add(history, found.visited)
    return Outcome(
        name=name,
        verdict=found.verdict,
        bounds=f"one history, {history.setting.line()}",
        figures=tally.figures(),
        seconds=time.monotonic() - began,
        detail=detail,
        counterexample=failure,
    )


def _failure(name: str, recording: Recording, limit: int, tally: Tally) -> Counterexample | None:
    """Judge a run, count it, and return what is wrong with it, if anything is."""
    history = recording.history
    killed = history.kills
    stuck = [op for op in history.operations if op.returned is None and op.actor not in killed]
    if recording.hang or recording.deaths or stuck:
        tally.add(history, 0)
        return _cut_short(name, recording, stuck)
    model = Model(history)
    found = search(model, limit)
    tally.add(history, found.visited)
    tally.unsettled += found.verdict == Verdict.INCONCLUSIVE
    return counterexample(name, model, found) if found.verdict == Verdict.VIOLATED else None


def _cut_short(name: str, recording: Recording, stuck: Sequence[Operation]) -> Counterexample:
    """Return a run that did not end as it should: by a hang, or without one of its actors.

    A search could not judge it: it lets a call that never returned do anything. Here everybody who
    is not killed is there to the end, so there is no such call but by a fault.
    """
    said = ("the buffer says of itself:", recording.hang) if recording.hang else ()
    calls = (
        "calls that have not returned:",
        *(f"- {op.line()}" for op in stuck),
    )
    return Counterexample(
        name=name,
        setting=recording.history.setting.line(),
        rows=tuple(Row(label=f"{op.kind}, never returned", actor=op.actor) for op in stuck),
        what=(
            "the run hangs: it did not end in time"
            if recording.hang
            else "the run ended, but not every actor came to the end of its work",
            *(f"this one died of an error: {death}" for death in recording.deaths),
            *(calls if stuck else ()),
            *said,
        ),
    )


def _verdict(
    failure: Counterexample | None, tally: Tally, wanted: int, limit: int
) -> tuple[Verdict, str]:
    """Return the verdict over all histories, and the detail."""
    if failure is not None:
        advice = (
            "the seed repeats what was asked for, but not who came first: save the history "
            "(--keep FILE) and judge it again with `forebay check history FILE`"
        )
        return Verdict.VIOLATED, f"{failure.as_text()}\n\n{advice}"
    table = tally.table()
    if tally.histories < wanted:
        only = f"only {tally.histories} of {wanted} histories; give it more time"
        return Verdict.INCONCLUSIVE, f"{table}\n\n{only}"
    if tally.unsettled:
        open_ones = f"{tally.unsettled} of the histories were not settled within {limit:,} points"
        return Verdict.INCONCLUSIVE, f"{table}\n\n{open_ones}"
    return Verdict.HOLDS, table
