"""The page of one counterexample: a timeline of the actors, and the state after each step.

A state is known by the texts of `describe`. Those of slots are taken apart here, so that the page
can show them as cells; whatever is no slot of a buffer is shown by its name and text. Of each step
only what it changes goes into the page, which keeps hundreds of steps small.
"""

import re
from typing import Final

from forebay_models.counterexample import Counterexample, Described
from forebay_models.documents import Json
from forebay_models.pages import render
from forebay_models.tables import OUTSIDE

_SLOT: Final = re.compile(
    r"(?P<phase>free|filling|live|dropped)"
    r"(?: uses=(?P<uses>\d+))?(?: pins=(?P<pins>\d+))?(?: stamp=(?P<stamp>\d+))?"
)
_NAME: Final = re.compile(r"slots\[(\d+)\]")


def failure_page(failure: Counterexample) -> str:
    """Return a counterexample as one self-contained HTML page; `#step=3` shows it at step 3."""
    return render("failure.html", {"view": view(failure)})


def view(failure: Counterexample) -> dict[str, object]:
    """Return what the template of a viewer asks for."""
    lanes = lanes_of(failure)
    return {
        "name": failure.name,
        "setting": failure.setting,
        "what": failure.what,
        "token": failure.token,
        "lanes": lanes,
        "rows": [
            {"label": row.label, "lane": _lane(row.actor, number, lanes)}
            for number, row in enumerate(failure.rows)
        ],
        "text": failure.as_text(),
        "data": data_of(failure),
    }


def lanes_of(failure: Counterexample) -> list[str]:
    """Return the actors in the order of their first step; "outside" for steps of none of them."""
    actors = [row.actor or OUTSIDE for row in failure.rows[1:]]
    return list(dict.fromkeys(actors)) or [OUTSIDE]


def data_of(failure: Counterexample) -> dict[str, Json]:
    """Return what the script of the page needs: each step with what it changes."""
    steps: list[Json] = []
    before: Described = {}
    for number, row in enumerate(failure.rows):
        state = row.state
        if state is None and number == len(failure.rows) - 1:
            state = failure.seen
        steps.append(
            {
                "label": row.label,
                "actor": row.actor,
                "notes": list(row.notes),
                "known": state is not None,
                "set": {} if state is None else _set(before, state),
                "gone": [] if state is None else [name for name in before if name not in state],
            }
        )
        before = before if state is None else state
    return {
        "steps": steps,
        "comparison": _comparison(failure),
        "others": max(0, len(failure.expected) - 1),
        "seen": failure.seen is not None,
    }


def slot_of(name: str, text: str) -> dict[str, Json] | None:
    """Return a slot's phase and figures, or None for a variable that is no slot of a buffer."""
    found = _SLOT.fullmatch(text)
    if not _NAME.fullmatch(name) or found is None:
        return None
    figures: dict[str, Json] = {key: int(found[key] or 0) for key in ("uses", "pins", "stamp")}
    return {"phase": found["phase"], **figures}


def _lane(actor: str | None, number: int, lanes: list[str]) -> int:
    """Return the column of a step; the initial state stands in the first."""
    if number == 0 and actor is None:
        return 0
    return lanes.index(actor or OUTSIDE) if (actor or OUTSIDE) in lanes else 0


def _set(before: Described, after: Described) -> dict[str, Json]:
    """Return the variables that a step sets, each with its text, and its parts if it is a slot."""
    return {
        name: {"text": text, "slot": slot_of(name, text)}
        for name, text in after.items()
        if before.get(name) != text
    }


def _comparison(failure: Counterexample) -> list[Json]:
    """Return each variable that should have changed, or is not as expected, at the last step."""
    expected = failure.nearest()
    if expected is None:
        return []
    states = [row.state for row in failure.rows if row.state is not None]
    before = states[-1] if states else {}
    seen = failure.seen
    return [
        {
            "name": name,
            "before": before.get(name, "-"),
            "expected": text,
            "seen": None if seen is None else seen.get(name, "-"),
            "same": seen is None or seen.get(name) == text,
        }
        for name, text in expected.items()
        if before.get(name) != text or (seen is not None and seen.get(name) != text)
    ]
