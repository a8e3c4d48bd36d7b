"""Shows outcomes: a table for people, one JSON document for programs.

Counterexamples come before the table, so that the verdicts are the last thing on the screen.
"""

import json
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from forebay_models.documents import Json
from forebay_models.outcome import Figure, Outcome, Verdict, worst

FORMAT: Final = 1
"""The version of the documents; another one is refused by those who read them."""

_COLOURS = {
    Verdict.HOLDS: "green",
    Verdict.VIOLATED: "bold red",
    Verdict.COULD_NOT_RUN: "magenta",
    Verdict.INCONCLUSIVE: "yellow",
}


def report(
    outcomes: Sequence[Outcome],
    *,
    command: str,
    as_json: bool,
    save: Path | None = None,
    took: float | None = None,
) -> Verdict:
    """Print the outcomes to standard output and return their verdict together.

    Args:
        outcomes: of the checks that were run.
        command: what was run, such as "check tlc"; it stands in the JSON document.
        as_json: print that document and nothing else.
        save: a file for the document, which `forebay report` turns into a page.
        took: the seconds of the whole command, shown with those of each kind if there are several.
    """
    verdict = worst(outcomes)
    if save is not None:
        save_document(document(outcomes, command=command), save)
    if as_json:
        print(json.dumps(document(outcomes, command=command), indent=2))
        return verdict
    for outcome in outcomes:
        if outcome.detail:
            print(f"{outcome.name}: {outcome.verdict.words}\n{outcome.detail}\n")
    _print_table(outcomes)
    if took is not None and len(seconds := _seconds_by_kind(outcomes)) > 1:
        shares = ", ".join(f"{kind} {spent:,.0f}" for kind, spent in seconds.most_common())
        print(f"took {took:,.0f} s; seconds by kind, several of which run at once: {shares}")
    return verdict


def document(outcomes: Sequence[Outcome], *, command: str) -> dict[str, Json]:
    """Return the outcomes as one JSON object: command, verdict, exit code, and each outcome."""
    verdict = worst(outcomes)
    return {
        "format": FORMAT,
        "command": command,
        "verdict": verdict.name.lower(),
        "exit_code": int(verdict),
        "outcomes": [outcome.as_json() for outcome in outcomes],
    }


def save_document(content: Json, file: Path) -> None:
    """Write a JSON document, so that the file is either the old one or the whole new one."""
    file.parent.mkdir(parents=True, exist_ok=True)
    unfinished = file.with_name(f"{file.name}.part")
    unfinished.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    unfinished.replace(file)


def _print_table(outcomes: Sequence[Outcome]) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("check", no_wrap=True)
    table.add_column("verdict", no_wrap=True)
    table.add_column("bounds", overflow="fold")
    table.add_column("figures", overflow="fold")
    table.add_column("seconds", justify="right", no_wrap=True)
    for outcome in outcomes:
        table.add_row(
            Text(outcome.name),
            Text(outcome.verdict.words, style=_COLOURS[outcome.verdict]),
            Text(outcome.bounds),
            Text(", ".join(figure_words(name, value) for name, value in outcome.figures.items())),
            f"{outcome.seconds:.1f}",
        )
    verdict = worst(outcomes)
    # Without a terminal the width would be 80 columns, too few for five of them.
    console = Console(width=None if sys.stdout.isatty() else 150)
    console.print(table)
    held = sum(outcome.verdict is Verdict.HOLDS for outcome in outcomes)
    sentence = f"{held} of {len(outcomes)} hold within the bounds named; verdict: {verdict.words}"
    console.print(Text(sentence, style=_COLOURS[verdict]))


def _seconds_by_kind(outcomes: Sequence[Outcome]) -> "Counter[str]":
    """Return the whole seconds of all checks of a kind, by the first word of their names."""
    kinds: Counter[str] = Counter()
    for outcome in outcomes:
        kinds[outcome.name.split()[0]] += round(outcome.seconds)
    return kinds


def figure_words(name: str, value: Figure) -> str:
    """Return a figure as it is shown to people."""
    if isinstance(value, str):
        return f"{name} {value}"
    return f"{value:,} {name}" if isinstance(value, int) else f"{value:.3g} {name}"
