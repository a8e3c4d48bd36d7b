"""The part of `forebay campaign faults` that is about the files of checkpoints.

Torch is imported inside the functions, so that `forebay --help` stays quick.
"""

import time
from collections.abc import Callable, Mapping
from typing import Final

from forebay_models.check_cli import Tier
from forebay_models.outcome import Figure, Outcome, Verdict
from forebay_models.progress import Observer

DUMPS: Final = "faults dumps"
DAMAGES: Final = "faults damages"
LOSSES: Final = {Tier.QUICK: 200, Tier.FULL: 5000}
"""Losses of power after each step of each tier, where there are more."""

RANDOM_DAMAGES: Final = {Tier.QUICK: 1000, Tier.FULL: 20_000}
"""Random damages of each tier."""


def run_files(
    *,
    tier: Tier,
    method: str,
    damages: int | None,
    seed: int,
    fault: str,
    observer: Observer,
) -> list[Outcome]:
    """Let dumps die, fail and lose power at every step, damage checkpoints, return the outcomes.

    Args:
        tier: how much of it is tried.
        method: how the processes are started that are killed.
        damages: random ones, or None for as many as the tier has.
        seed: of what is drawn.
        fault: the name of a fault to plant, or nothing.
        observer: is told how far it has come.
    """
    return [
        _run_dumps(tier, method, seed, fault, observer),
        _run_damages(
            tier, RANDOM_DAMAGES[tier] if damages is None else damages, seed, fault, observer
        ),
    ]


def _run_dumps(tier: Tier, method: str, seed: int, fault: str, observer: Observer) -> Outcome:
    from forebay_models.faults.files import SCENARIOS, Dumps

    dumps = Dumps(
        method=method,
        seed=seed,
        most=LOSSES[tier],
        fault=fault,
        tell=lambda text: observer.says(DUMPS, text),
    )
    losses = LOSSES[tier]
    return _judged(
        DUMPS,
        dumps.run,
        dumps.did,
        lambda: (
            f"every step of a dump in {len(SCENARIOS)} scenarios, killed by {method}; "
            + (
                "every combination of what was not synced"
                if dumps.every_loss
                else f"what was not synced in up to {losses:,} combinations after a step"
            )
            + f"; seed {seed}"
        ),
        f"--methods {method} --seed {seed}",
        fault,
        observer,
    )


def _run_damages(tier: Tier, damages: int, seed: int, fault: str, observer: Observer) -> Outcome:
    from forebay_models.faults.corruption import LARGE, SMALL, Damages

    every_bit = tier is Tier.FULL
    campaign = Damages(
        damages=damages,
        seed=seed,
        every_bit=every_bit,
        fault=fault,
        tell=lambda text: observer.says(DAMAGES, text),
    )
    return _judged(
        DAMAGES,
        campaign.run,
        campaign.did,
        lambda: (
            f"every {'bit' if every_bit else 'byte'} of {campaign.bytes:,} bytes with {SMALL}"
            f" records; {damages:,} damages of a checkpoint with {LARGE:,} records; seed {seed}"
        ),
        f"--damages {damages} --seed {seed}" + (" --tier full" if every_bit else ""),
        fault,
        observer,
    )


def _judged(
    name: str,
    run: Callable[[], None],
    did: Mapping[str, int],
    bounds: Callable[[], str],
    options: str,
    fault: str,
    observer: Observer,
) -> Outcome:
    """Run a campaign and return what has come out.

    Args:
        name: of the check.
        run: the campaign, which raises `Wrong`.
        did: what it has tried, by kinds.
        bounds: tells them in the end.
        options: of the command that repeats it.
        fault: the planted fault, or nothing.
        observer: is told of the beginning and the end.
    """
    from forebay_models.faults.crew import Wrong

    observer.begins(name)
    began = time.monotonic()
    verdict, detail = Verdict.HOLDS, ""
    try:
        run()
    except Wrong as error:
        plant = f" --plant {fault}" if fault else ""
        verdict = Verdict.VIOLATED
        detail = (
            f"{error}\n\nto repeat: forebay campaign faults --no-points --kills 0 {options}{plant}"
        )
    figures: dict[str, Figure] = dict(sorted(did.items()))
    outcome = Outcome(
        name=name,
        verdict=verdict,
        bounds=bounds(),
        figures=figures,
        seconds=time.monotonic() - began,
        detail=detail,
    )
    observer.ends(name, outcome)
    return outcome
