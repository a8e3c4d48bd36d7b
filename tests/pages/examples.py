"""Counterexamples to show: a small one with texts that would break a page, and a large one."""

from typing import Final

from forebay_models.counterexample import Counterexample, Row
from forebay_models.describe import describe
from forebay_spec.actions import Machine, actor_of
from forebay_spec.bounds import Bounds, Request

NASTY: Final = """</script><img src=x onerror="document.title='broken'">&amp;'"\u2028{{ 7*7 }}"""
START: Final = {"slots[0]": "free", "slots[1]": "free", "holds": "-", "note": NASTY}
LIVE: Final = {**START, "slots[0]": "live stamp=1"}
DRAWN: Final = {**LIVE, "slots[0]": "live uses=1 pins=1 stamp=1", "holds": "c1 plain (0)"}
TWICE: Final = {**DRAWN, "slots[0]": "live uses=2 pins=1 stamp=1"}
LESS: Final = {name: text for name, text in LIVE.items() if name != "note"}

SMALL: Final = Counterexample(
    name=f"stateful {NASTY}",
    setting=f"small: C=2 {NASTY}",
    rows=(
        Row(label="initially", state=START),
        Row(label="Arrive(p1,1)", actor="p1", notes=(NASTY,), state=LIVE),
        Row(label="Close(draining)", state=LESS),
        Row(label=f"Ask({NASTY})", actor="c1", notes=("(late)",)),
    ),
    what=(f"UseBound is violated: {NASTY}", "and something else"),
    token="forebay1.abc-_.0123456789ab",
    expected=(LESS, DRAWN),
    seen=TWICE,
)


def large(slots: int = 64, steps: int = 300) -> Counterexample:
    """Return a path of a large buffer, each step being the first that moves something on."""
    bounds = Bounds(
        name="large",
        capacity=slots,
        uses=3,
        producers=("p1", "p2", "p3"),
        readers=("c1", "c2", "c3"),
        write_sizes=(7, 20),
        requests=(Request("plain", 9, 4), Request("lease", 16, 1)),
    )
    machine = Machine(bounds)
    state = machine.initial()
    rows = [Row(label="initially", state=describe(state))]
    for number in range(steps):
        labels = machine.labels(state)
        label = labels[number * 7 % len(labels)]
        actor = actor_of(state, label)
        state = machine.apply(state, label)[0]
        rows.append(Row(label=str(label), actor=actor, state=describe(state)))
    return Counterexample(
        name="explore large",
        setting=bounds.line(),
        rows=tuple(rows),
        what=("Bounded is violated: No batch is larger.",),
    )
