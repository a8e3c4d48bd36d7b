"""`forebay campaign cover`: takes every edge of the quick graphs on an implementation.

Torch is imported inside the command, so that `forebay --help` stays quick.
"""

from typing import Annotated, Final

import typer

from forebay_models.campaign_cli import (
    PlantOption,
    TargetOption,
    budget_seconds,
    known_fault,
)
from forebay_models.check_cli import JsonOption, SaveOption
from forebay_models.outcome import Outcome
from forebay_models.progress import Observer, bar
from forebay_models.targets import LOCAL, SCOPES, SHARED, Target
from forebay_models.verdicts import report

_GRAPHS: Final = ", ".join(dict.fromkeys([*LOCAL.graphs, *SHARED.graphs]))


def cover(
    target: TargetOption = Target.LOCAL,
    graph: Annotated[
        list[str] | None,
        typer.Option(help=f"A graph to cover; all of the target's unless given. One of {_GRAPHS}."),
    ] = None,
    budget: Annotated[
        str | None,
        typer.Option(help="End after that time, such as 60s, though edges are left."),
    ] = None,
    plant: PlantOption = None,
    as_json: JsonOption = False,
    save: SaveOption = None,
) -> None:
    """Take every edge of the quick graphs and compare the state after each step.

    It holds only once every edge was taken, which is a matter of some minutes on two cores.

    Example: `forebay campaign cover --target simulated --graph liveness`
    """
    graphs = [known_graph(target, name) for name in graph or ()]
    seconds = None if budget is None else budget_seconds(budget)
    fault = "" if plant is None else known_fault(plant, target)
    with bar() as observer:
        outcome = run_cover(target, graphs=graphs, seconds=seconds, fault=fault, observer=observer)
    raise typer.Exit(int(report([outcome], command="campaign cover", as_json=as_json, save=save)))


def run_cover(
    target: Target,
    *,
    graphs: list[str],
    seconds: float | None,
    fault: str = "",
    observer: Observer,
) -> Outcome:
    """Take every edge of the quick graphs and return the outcome.

    Args:
        target: what is driven.
        graphs: the names of the graphs; none means all.
        seconds: the budget, or None for as long as it takes.
        fault: the name of a fault to plant, or nothing.
        observer: is told how far it has come.
    """
    from forebay_models.cover.run import run_cover as run

    return run(target, graphs=graphs, seconds=seconds, fault=fault, observer=observer)


def known_graph(target: Target, name: str) -> str:
    """Return the name of a quick graph that a target can walk, or say which there are."""
    graphs = SCOPES[target].graphs
    if name not in graphs:
        raise typer.BadParameter(
            f"no graph of {target.value} is called {name!r}; there are: {', '.join(graphs)}",
            param_hint="--graph",
        )
    return name
