"""Takes rounds of snapshots until there are enough, one of them is wrong, or the time is up."""

import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final

from forebay_models.campaign.quiet import quiet_library
from forebay_models.counterexample import Counterexample
from forebay_models.mutants.resumes import planted_in_resumes
from forebay_models.outcome import Outcome, Verdict
from forebay_models.snapshots.judge import Judge, left_in
from forebay_models.snapshots.records import identities
from forebay_models.snapshots.round import Failed, Round, Snapshot
from forebay_models.snapshots.setting import Setting, setting_of
from forebay_models.targets import Target

ROUND: Final = 100
"""Snapshots of a round."""

RESTORED: Final = 10
"""One snapshot of so many is restored and taken out; some of those were dumped."""

_SWITCHING: Final = 1e-4


@dataclass
class Search:
    """What was looked at, and what was found."""

    snapshots: int = 0
    rounds: int = 0
    records: int = 0
    ahead: int = 0
    restored: int = 0
    calls: int = 0
    failure: Counterexample | None = None
    settings: Counter[str] = field(default_factory=Counter)


def run_rounds(
    target: Target,
    *,
    count: int,
    seconds: float | None,
    seed: int,
    fault: str = "",
    tell: Callable[[str], None] = lambda text: None,
) -> Outcome:
    """Take snapshots, judge each, and return what has come out.

    Args:
        target: threads, or processes that share the buffer.
        count: how many are wanted; fewer are inconclusive.
        seconds: after which no other round is begun, or None for no limit.
        seed: of the settings; who comes first is open.
        fault: the name of a planted fault, or nothing.
        tell: is told how far it has come.
    """
    began = time.monotonic()
    name, search = f"snapshots {target.value}", Search()
    with quiet_library(), _switching_often(), planted_in_resumes(fault):
        while search.snapshots < count and search.failure is None:
            if seconds is not None and time.monotonic() - began > seconds:
                break
            setting = setting_of(target, seed, search.rounds)
            wrong = _round(setting, min(ROUND, count - search.snapshots), seed, search)
            if wrong:
                search.failure = Counterexample(
                    name=name, setting=setting.line(), rows=(), what=tuple(wrong)
                )
            tell(f"{search.snapshots:,} of {count:,} snapshots, {search.calls:,} calls beside them")
    verdict, detail = _verdict(search, count)
    return Outcome(
        name=name,
        verdict=verdict,
        bounds=(
            "C=16..48 N=1..3 D=0..4 B=1..4, both orders; 1 or 2 writers and 1 to 3 readers, "
            f"{'processes' if target is Target.SHARED else 'threads'}; seed {seed}"
        ),
        figures={
            "snapshots": search.snapshots,
            "rounds": search.rounds,
            "records": search.records,
            "batches drawn ahead": search.ahead,
            "restored": search.restored,
            "calls beside them": search.calls,
        },
        seconds=time.monotonic() - began,
        detail=detail,
        counterexample=search.failure,
    )


def _round(setting: Setting, count: int, seed: int, search: Search) -> list[str]:
    """Take and judge one round; return what is wrong with the first snapshot that is wrong."""
    search.rounds += 1
    with tempfile.TemporaryDirectory() as directory:
        try:
            evidence = Round(setting, count, directory, seed + search.rounds).run()
        except Failed as failed:
            return [str(failed)]
        if evidence.wrong:
            return [f"a reader was given what is not whole: {evidence.wrong[0]}"]
        judge = Judge(setting, evidence)
        for number, snapshot in enumerate(evidence.snapshots, 1):
            wrong = judge.wrong(snapshot)
            search.snapshots += 1
            search.records += len(snapshot.state["records"]["slots"])
            search.ahead += len(snapshot.state["prefetched"]["batches"])
            if not wrong and number % RESTORED == 0:
                search.restored += 1
                wrong = _restored(setting, snapshot)
            if wrong:
                return [f"snapshot {number} of round {search.rounds}:", *wrong]
        search.calls += sum(evidence.snapshots[-1].after[1:]) if evidence.snapshots else 0
    return []


def _restored(setting: Setting, snapshot: Snapshot) -> list[str]:
    """Restore a snapshot into a new buffer, take everything out, and compare."""
    buffer = setting.make(seed=1)
    if snapshot.path:
        buffer.loads(snapshot.path, timeout=0)
    else:
        buffer.load_state_dict(snapshot.state, timeout=0)
    given: Counter[int] = Counter()
    for batch in buffer.available():
        found, torn = identities(batch)
        if torn:
            return torn
        given.update(found.tolist())
    records, left = left_in(snapshot.state, setting.uses)
    due = {
        record: times
        for record, times in zip(records.tolist(), left.tolist(), strict=True)
        if times
    }
    return [
        f"after a restore record {record} is given {given[record]} times instead of"
        f" {due.get(record, 0)}"
        for record in sorted(due.keys() | given.keys())
        if given[record] != due.get(record, 0)
    ][:3]


@contextmanager
def _switching_often() -> Iterator[None]:
    """Let threads take turns more often than usual."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(_SWITCHING)
    try:
        yield
    finally:
        sys.setswitchinterval(before)


def _verdict(search: Search, count: int) -> tuple[Verdict, str]:
    if search.failure is not None:
        advice = "the seed repeats the settings, but not who came first"
        return Verdict.VIOLATED, f"{search.failure.as_text()}\n\n{advice}"
    if search.snapshots < count:
        only = f"only {search.snapshots} of {count} snapshots; give it more time"
        return Verdict.INCONCLUSIVE, only
    return Verdict.HOLDS, ""
