"""Explores the Python specification: each graph of a tier, liveness, and the mutual-wait bound."""

from collections.abc import Callable, Sequence

from forebay_models.explore.outcomes import (
    FOR_EVER,
    explore_outcome,
    liveness_outcome,
    mutual_wait_outcome,
    tier,
)
from forebay_models.outcome import Outcome, could_not_run
from forebay_models.progress import Observer, Quiet

Check = Callable[[Callable[[str], None]], Outcome]

MUTUAL_WAIT = "mutual-wait"


def check_explore(
    *, tier_name: str = "quick", names: Sequence[str] = (), observer: Observer | None = None
) -> list[Outcome]:
    """Explore the named graphs of a tier, or all of it, and return an outcome for each.

    Besides the graphs there are "for-ever", "captures-end" and "heals-for-ever", the liveness
    properties, and "mutual-wait", the bound.
    """
    observer = observer or Quiet()
    checks = _checks(tier_name)
    unknown = [name for name in names if name not in checks]
    if unknown:
        reason = f"nothing is called {', '.join(unknown)}; there are: {', '.join(checks)}"
        return [could_not_run("explore", reason)]
    wanted = {name: checks[name] for name in names or checks}
    observer.expects(len(wanted))
    outcomes = []
    for name, check in wanted.items():
        said = f"explore {name}"
        observer.begins(said)

        def progress(text: str, said: str = said) -> None:
            observer.says(said, text)

        outcome = check(progress)
        observer.ends(said, outcome)
        outcomes.append(outcome)
    return outcomes


def _checks(tier_name: str) -> dict[str, Check]:
    """Return every check of a tier by name."""

    def graph(name: str) -> Check:
        bounds = tier(tier_name)[name]
        return lambda progress: explore_outcome(bounds, progress=progress)

    def for_ever(theme: str) -> Check:
        bounds = tier(tier_name)[theme]
        return lambda progress: liveness_outcome(bounds, progress=progress)

    checks: dict[str, Check] = {name: graph(name) for name in tier(tier_name)}
    checks |= {name: for_ever(theme) for theme, name in FOR_EVER.items()}
    checks[MUTUAL_WAIT] = lambda progress: mutual_wait_outcome(progress=progress)
    return checks
