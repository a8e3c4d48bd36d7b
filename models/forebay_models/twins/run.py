"""Runs programs until there are enough, the time is up, or twins part; then the failure shrinks.

Equal seeds give equal programs in equal order. The number of a round goes into its seed, so that
hypothesis begins anew now and then and does not look at the same corner all the time. It is told
how many programs are wanted, since a tenth of them are small ones. The samplers take turns.
"""

import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Final

from hypothesis import HealthCheck, Phase, Verbosity, given, seed, settings
from hypothesis.errors import FlakyFailure
from hypothesis.strategies import SearchStrategy

from forebay_models.campaign.session import Enough
from forebay_models.counterexample import Counterexample
from forebay_models.device.prompt import without_device
from forebay_models.outcome import Outcome, Verdict
from forebay_models.tables import text_table
from forebay_models.targets import Target
from forebay_models.twins.judge import Counts, Parted, judge
from forebay_models.twins.program import CAPACITY, CONSUMING, SAMPLERS, Place, Program, programs

SHRINKING: Final = 10.0
"""Seconds for which a failure is shrunk at most."""

DEMANDING: Final = 40
"""From so many runs on, all kinds of twins must have been there."""

_ROUND: Final = 25
_SPAWNED: Final = 100
_SPREAD: Final = 1_000_003
_USUAL: Final[tuple[Place, ...]] = ("here", "here", "forkserver")
_SLOW: Final[tuple[Place, ...]] = ("spawn",)


@dataclass
class Search:
    """One search; what it has found is in it afterwards."""

    name: str
    runs: int
    seconds: float | None
    fault: str = ""
    tell: Callable[[str], None] = lambda text: None
    done: int = 0
    counts: Counts = field(default_factory=Counts)
    failure: Counterexample | None = None
    flaky: bool = False
    end: SystemExit | None = None
    _began: float = field(default_factory=time.monotonic)
    _failed_at: float = 0.0
    _limit: int = 0

    @property
    def elapsed(self) -> float:
        """Seconds since it began."""
        return time.monotonic() - self._began

    @property
    def over(self) -> bool:
        """Whether there is no time left, or something was found."""
        late = self.seconds is not None and self.elapsed >= self.seconds
        return late or self.failure is not None

    def go(self, drawn: SearchStrategy[Program], more: int, number: int) -> None:
        """Run so many programs more; each round has the next number."""
        self._limit = self.done + more
        while self.done < self._limit and not self.over:
            self._round(drawn, number)
            number += 1

    def _round(self, drawn: SearchStrategy[Program], number: int) -> None:
        @seed(number)
        @settings(
            max_examples=min(_ROUND, self._limit - self.done),
            database=None,
            deadline=None,
            phases=(Phase.generate, Phase.shrink),
            print_blob=False,
            report_multiple_bugs=False,
            suppress_health_check=list(HealthCheck),
            verbosity=Verbosity.quiet,
        )
        @given(program=drawn)
        def attempt(program: Program) -> None:
            self._attempt(program)

        try:
            with suppress(Enough, Parted):
                attempt()
        except FlakyFailure:
            if self.failure is None:
                raise
            self.flaky = True
        if self.end is not None:
            raise self.end

    def _attempt(self, program: Program) -> None:
        if self.failure is not None:
            if time.monotonic() - self._failed_at > SHRINKING:
                raise Enough
        elif self.done >= self._limit or self.over:
            raise Enough
        else:
            self.done += 1
            self.tell(f"{self.done:,} of {self.runs:,} runs, {self.counts.steps:,} steps compared")
        counts = self.counts if self.failure is None else Counts()
        try:
            judge(program, self.name, counts, self.fault)
        except Parted as parted:
            self._keep(parted.failure)
            raise
        except SystemExit as end:
            # A request to end, from a signal; hypothesis would take it for a failure.
            self.end = end
            raise Enough from end

    def _keep(self, failure: Counterexample) -> None:
        if self.failure is None:
            self._failed_at = time.monotonic()
        if self.failure is None or len(failure.rows) <= len(self.failure.rows):
            self.failure = failure


def run_programs(
    target: Target,
    *,
    runs: int,
    seconds: float | None,
    seed_number: int,
    fault: str = "",
    tell: Callable[[str], None] = lambda text: None,
) -> Outcome:
    """Run programs and return what has come out: half of them of buffers that overwrite.

    Args:
        target: whose storages the originals have.
        runs: how many are wanted; fewer are inconclusive.
        seconds: after which no other is begun, or None for no limit.
        seed_number: of all random choices.
        fault: the name of a planted fault, or nothing.
        tell: is told how far it has come.
    """
    name = f"twins {target.value}"
    if (cannot := without_device(target, name)) is not None:
        return cannot
    began = time.monotonic()
    search = Search(name, runs, seconds, fault, tell)
    first = seed_number * _SPREAD
    slow = _shares(runs // _SPAWNED)
    usual = {sampler: share - slow[sampler] for sampler, share in _shares(runs).items()}
    for done in range(0, max(usual.values()), _ROUND):
        for sampler, share in usual.items():
            more = max(0, min(_ROUND, share - done))
            search.go(programs(target, _USUAL, sampler), more, first + done)
    for sampler, share in slow.items():
        search.go(programs(target, _SLOW, sampler), share, first + _SPREAD // 2)
    repeat = f"forebay campaign twins --target {target.value} --seed {seed_number} --runs {runs}"
    if fault:
        repeat += f" --plant {fault}"
    verdict, detail = _verdict(search, repeat)
    counts = search.counts
    return Outcome(
        name=search.name,
        verdict=verdict,
        bounds=(
            f"C=3..{CAPACITY} N=1..3 D=0..4 B=1..3, both orders; as many runs that overwrite, by"
            " every sampler; one user, calls that do not wait; one or two saves;"
            f" {runs // _SPAWNED} runs with spawned twins; seed {seed_number}"
        ),
        figures={
            "runs": search.done,
            "exact twins": counts.exact,
            "with batches drawn ahead": counts.queued,
            "overwriting": counts.overwriting,
            "in the middle of an epoch": counts.midway,
            "with epochs that began": counts.renewed,
            "with records overwritten": counts.evicted,
            "with open leases": counts.leased,
            "accounted twins": counts.accounted,
            "in new processes": counts.elsewhere,
            "in another storage": counts.crossed,
            "steps compared": counts.steps,
        },
        seconds=time.monotonic() - began,
        detail=detail,
        counterexample=search.failure,
    )


def _shares(runs: int) -> dict[str, int]:
    """Return how many runs are of each sampler: half of them of those that overwrite."""
    parts = [3 if sampler in CONSUMING else 2 for sampler in SAMPLERS]
    ends = [runs * end // sum(parts) for end in accumulate(parts)]
    pairs = zip(SAMPLERS, [0, *ends], ends, strict=False)
    return {sampler: end - start for sampler, start, end in pairs}


def _verdict(search: Search, repeat: str) -> tuple[Verdict, str]:
    if search.failure is not None:
        flaky = "\nit does not fail every time" if search.flaky else ""
        return Verdict.VIOLATED, f"{search.failure.as_text()}{flaky}\n\nto repeat: {repeat}"
    counts = search.counts
    table = "\n\n".join(
        text_table([head, "twins"], [[name, f"{times:,}"] for name, times in sorted(found.items())])
        for head, found in (("saved by", counts.ways), ("exact, sampled by", counts.samplers))
    )
    if search.done < search.runs:
        only = f"only {search.done} of {search.runs} runs; give it more time"
        return Verdict.INCONCLUSIVE, f"{table}\n\n{only}"
    if search.runs >= DEMANDING and (absent := _absent(counts)):
        what = f"no exact twin {', nor one '.join(absent)}; give it more runs or another seed"
        return Verdict.INCONCLUSIVE, f"{table}\n\n{what}"
    return Verdict.HOLDS, table


def _absent(counts: Counts) -> list[str]:
    """Return which kinds of exact twins there should have been."""
    facts = {
        **{f"sampled by {sampler}": counts.samplers[sampler] for sampler in SAMPLERS},
        "with batches drawn ahead": counts.queued,
        "saved in the middle of an epoch": counts.midway,
        "in which an epoch began": counts.renewed,
        "with records overwritten": counts.evicted,
        "saved with open leases": counts.leased,
    }
    return [fact for fact, times in facts.items() if not times]
