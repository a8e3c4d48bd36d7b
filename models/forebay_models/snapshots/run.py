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
from forebay_models.device.prompt import without_device
from forebay_models.mutants.resumes import planted_in_resumes
from forebay_models.outcome import Outcome, Verdict
from forebay_models.snapshots.restored import wrong_when_restored
from forebay_models.snapshots.ring_judge import RingJudge, judge_of
from forebay_models.snapshots.round import Failed, Round, Snapshot
from forebay_models.snapshots.setting import Setting, setting_of
from forebay_models.targets import Target

ROUND: Final = 50
"""Snapshots of a round; every second round is of a buffer that overwrites."""

DEMANDING: Final = 300
"""From so many snapshots on, all that is judged must have been there."""

RESTORED: Final = 10
"""One snapshot of so many is restored and taken out; some of those were dumped."""

OVERWRITING: Final = "of buffers that overwrite"
EVICTED: Final = "with records overwritten"
AHEAD: Final = "with batches drawn ahead there"
MIDWAY: Final = "in the middle of an epoch"
RENEWED: Final = "with only new records"
FACTS: Final = (OVERWRITING, EVICTED, AHEAD, MIDWAY, RENEWED)

_SWITCHING: Final = 1e-4


@dataclass
class Search:
    """What was looked at, and what was found; `facts` counts snapshots of which one holds."""

    snapshots: int = 0
    rounds: int = 0
    records: int = 0
    ahead: int = 0
    restored: int = 0
    calls: int = 0
    failure: Counterexample | None = None
    facts: Counter[str] = field(default_factory=Counter)

    def count(self, setting: Setting, snapshot: Snapshot) -> None:
        """Count a snapshot."""
        state = snapshot.state
        live, ahead = len(state["records"]["slots"]), len(state["prefetched"]["batches"])
        self.snapshots += 1
        self.records += live
        self.ahead += ahead
        if setting.overwrites:
            self.facts[OVERWRITING] += 1
            self.facts[EVICTED] += state["counters"]["evicted"] > 0
            self.facts[AHEAD] += ahead > 0
            self.facts[MIDWAY] += 0 < len(state["sampler"]["dense"]) < live


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
        target: threads, of which the records are on the host or on a device, or processes that
            share the buffer.
        count: how many are wanted; fewer are inconclusive.
        seconds: after which no other round is begun, or None for no limit.
        seed: of the settings; who comes first is open.
        fault: the name of a planted fault, or nothing.
        tell: is told how far it has come.
    """
    name = f"snapshots {target.value}"
    if (cannot := without_device(target, name)) is not None:
        return cannot
    began, search = time.monotonic(), Search()
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
            "C=16..48 N=1..3 D=0..4 B=1..4, both orders; as many rounds that overwrite, by every"
            " sampler; 1 or 2 writers and 1 to 3 readers, "
            f"{'processes' if target is Target.SHARED else 'threads'}; seed {seed}"
        ),
        figures={
            "snapshots": search.snapshots,
            **{fact: search.facts[fact] for fact in FACTS},
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
        judge = judge_of(setting, evidence)
        if evidence.wrong:
            return evidence.wrong[:1]
        for number, snapshot in enumerate(evidence.snapshots, 1):
            wrong = judge.wrong(snapshot)
            search.count(setting, snapshot)
            if not wrong and number % RESTORED == 0:
                search.restored += 1
                on_host = search.restored % 2 == 0
                wrong = wrong_when_restored(setting, snapshot, on_host=on_host)
            if wrong:
                return [f"snapshot {number} of round {search.rounds}:", *wrong]
        if isinstance(judge, RingJudge):
            search.facts[RENEWED] += judge.renewed
        search.calls += sum(evidence.snapshots[-1].after[1:]) if evidence.snapshots else 0
    return []


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
    absent = [fact for fact in FACTS if not search.facts[fact]]
    if count >= DEMANDING and absent:
        return Verdict.INCONCLUSIVE, f"no snapshot {', nor one '.join(absent)}; take more of them"
    return Verdict.HOLDS, ""
