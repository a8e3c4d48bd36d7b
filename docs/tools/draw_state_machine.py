"""Draw the life cycles of slots, calls and batches from the explored specification, as SVG.

A hand-drawn picture of a state machine is wrong as soon as the machine changes. Here the boxes are
placed by hand, for the eye, but every arrow and every label is found by exploring the quick graphs
without kills and projecting each step onto one slot, one call, one batch that is drawn ahead, or
onto the boundary. A projected state without a box is an error, so no picture can leave anything
out.

    python docs/tools/draw_state_machine.py [FOLDER]
"""

import sys
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple
from xml.sax.saxutils import escape

from forebay_models.explore.graph import explore
from forebay_models.targets import LOCAL
from forebay_spec.actions import Machine
from forebay_spec.bounds import Bounds
from forebay_spec.kernel import Phase, is_sampleable
from forebay_spec.state import Hold, State, Ticket, is_stale

FOLDER = Path(__file__).parent.parent / "assets"
BOX = (160, 46)
BOW = 48.0  # how far an arrow bends from the straight line, in pixels
STYLE = """<defs><marker id="tip" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="8"
 markerHeight="8" orient="auto"><path d="M0 0L10 5L0 10z" style="fill:#445"/></marker>
</defs><style>.paper{fill:#fff;stroke:none}rect{fill:#e8eef7;stroke:#35527d}
.way{fill:none;stroke:#445;marker-end:url(#tip)}
text{fill:#223}.halo{fill:none;stroke:#fff;stroke-width:4px}
.name{font-weight:bold;font-size:14px}</style>"""


class Place(NamedTuple):
    """Where the middle of a box stands."""

    x: int
    y: int


class Arrow(NamedTuple):
    """One way between two boxes and the actions that go it."""

    start: str
    end: str
    actions: tuple[str, ...]


SLOT_PLACES: Mapping[str, Place] = {
    "free": Place(110, 220),
    "filling": Place(110, 440),
    "sampleable": Place(450, 440),
    "sampleable, held": Place(850, 440),
    "spent, held": Place(850, 220),
    "dropped, held": Place(480, 50),
}

CALL = "the caller's code"
CALL_PLACES: Mapping[str, Place] = {
    CALL: Place(430, 230),
    "writer waits": Place(110, 70),
    "writer fills": Place(110, 400),
    "reader waits": Place(930, 60),
    "batch gathers": Place(930, 240),
    "batch is ready": Place(690, 340),
    "lease is held": Place(690, 440),
    "gather failed": Place(690, 540),
}


DRAWN_BY_NOBODY = "not drawn ahead"
TAKEN = "a call's batch"
AHEAD_PLACES: Mapping[str, Place] = {
    DRAWN_BY_NOBODY: Place(110, 260),
    "gathers": Place(480, 80),
    "ready": Place(630, 260),
    "failed": Place(480, 440),
    "stale, gathers": Place(110, 50),
    TAKEN: Place(950, 260),
}

BOUNDARY_PLACES: Mapping[str, Place] = {
    "none": Place(430, 200),
    "capturing": Place(110, 60),
    "copying": Place(110, 340),
    "restoring": Place(750, 60),
    "loading": Place(750, 340),
}


class Move(NamedTuple):
    """What one step does to one thing."""

    start: str
    end: str


def slot_name(bounds: Bounds, state: State, number: int) -> str:
    """Name what a slot is to a reader of the documentation."""
    slot = state.slots[number]
    held = ", held" if slot.pins or number in state.boundary.slots else ""
    if slot.phase == Phase.LIVE:
        sampleable = is_sampleable(slot.phase, slot.uses, bounds.uses)
        return ("sampleable" if sampleable else "spent") + held
    return slot.phase.name.lower() + held


def ticket_name(ticket: Ticket) -> str:
    """Name a waiting call."""
    return "writer waits" if ticket.kind == "write" else "reader waits"


def hold_name(hold: Hold) -> str:
    """Name what a drawn batch is doing; a lease that is ready is with its caller."""
    if hold.state == "gathering":
        return "batch gathers"
    if hold.state == "failed":
        return "gather failed"
    return "lease is held" if hold.kind == "lease" else "batch is ready"


def calls(state: State) -> Counter[tuple[str, str]]:
    """Count the calls that are under way and the batches that they have, as (actor, name)."""
    return Counter(
        [(ticket.actor, ticket_name(ticket)) for ticket in state.tickets]
        + [(actor, "writer fills") for actor, _ in state.filling]
        + [(hold.owner, hold_name(hold)) for hold in state.holds if hold.kind != "prefetched"]
    )


def ahead(state: State) -> Counter[tuple[str, str]]:
    """Count the batches that are drawn ahead, each as (process, name)."""
    return Counter(
        (hold.owner, "stale, gathers" if is_stale(state, hold) else _state_name(hold))
        for hold in state.holds
        if hold.kind == "prefetched"
    )


def _state_name(hold: Hold) -> str:
    return "gathers" if hold.state == "gathering" else hold.state


def slot_moves(bounds: Bounds, before: State, after: State) -> Iterator[Move]:
    """Yield what becomes of each slot that a step changes."""
    for number in range(len(before.slots)):
        move = Move(slot_name(bounds, before, number), slot_name(bounds, after, number))
        if move.start != move.end:
            yield move


def call_moves(before: State, after: State) -> Iterator[Move]:
    """Yield what becomes of the call that a step changes, or of all leases that a Load ends."""
    gone, come = changed(calls(before), calls(after))
    if gone and come:
        assert len(gone) == len(come) == 1, (gone, come)
        yield Move(gone[0], come[0])
    else:
        yield from (Move(name, CALL) for name in gone)
        yield from (Move(CALL, name) for name in come)


def ahead_moves(before: State, after: State) -> Iterator[Move]:
    """Yield what becomes of batches that are drawn ahead."""
    gone, come = changed(ahead(before), ahead(after))
    for stale in [name for name in come if name.startswith("stale")]:  # it gathered until now
        gone.remove("gathers")
        come.remove(stale)
        yield Move("gathers", stale)
    if gone and come:
        assert len(gone) == len(come) == 1, (gone, come)
        yield Move(gone[0], come[0])
    else:
        taken = bool(changed(calls(before), calls(after))[1])
        yield from (Move(name, TAKEN if taken else DRAWN_BY_NOBODY) for name in gone)
        yield from (Move(DRAWN_BY_NOBODY, name) for name in come)


def boundary_moves(before: State, after: State) -> Iterator[Move]:
    """Yield what becomes of the boundary."""
    if before.boundary.stage != after.boundary.stage:
        yield Move(before.boundary.stage, after.boundary.stage)


def changed(
    old: Counter[tuple[str, str]], new: Counter[tuple[str, str]]
) -> tuple[list[str], list[str]]:
    """Return the names of what has gone and of what has come."""
    return [name for _, name in (old - new).elements()], [
        name for _, name in (new - old).elements()
    ]


def arrows() -> tuple[list[Arrow], ...]:
    """Explore every quick graph without kills; return the arrows of each picture."""
    found: tuple[defaultdict[Move, set[str]], ...] = tuple(defaultdict(set) for _ in range(4))
    for bounds in LOCAL.graphs.values():
        graph = explore(Machine(bounds))
        for source, label, target in graph.edges:
            before, after = graph.states[source], graph.states[target]
            moves = (
                slot_moves(bounds, before, after),
                call_moves(before, after),
                ahead_moves(before, after),
                boundary_moves(before, after),
            )
            for ways, made in zip(found, moves, strict=True):
                for move in made:
                    ways[move].add(label.name)
    return tuple(
        [Arrow(move.start, move.end, tuple(sorted(names))) for move, names in sorted(ways.items())]
        for ways in found
    )


def edge_of_box(place: Place, toward: tuple[float, float]) -> tuple[float, float]:
    """Return where the line from the middle of a box to a point leaves the box."""
    dx, dy = toward[0] - place.x, toward[1] - place.y
    half_width, half_height = BOX[0] / 2 + 3, BOX[1] / 2 + 3
    scale = min(
        half_width / abs(dx) if dx else float("inf"), half_height / abs(dy) if dy else float("inf")
    )
    return place.x + dx * scale, place.y + dy * scale


def arrow_svg(arrow: Arrow, places: Mapping[str, Place]) -> str:
    """Return a curve with its label; it bows to one side, so that the way back stays apart."""
    start, end = places[arrow.start], places[arrow.end]
    length = ((end.x - start.x) ** 2 + (end.y - start.y) ** 2) ** 0.5
    normal = (start.y - end.y) / length, (end.x - start.x) / length
    middle = (start.x + end.x) / 2 - normal[0] * BOW, (start.y + end.y) / 2 - normal[1] * BOW
    (x1, y1), (x2, y2) = edge_of_box(start, middle), edge_of_box(end, middle)
    x, y = (x1 + 2 * middle[0] + x2) / 4, (y1 + 2 * middle[1] + y2) / 4
    first = y - 7 * (len(arrow.actions) - 1) + 4
    lines = "".join(
        f'<tspan x="{x:.0f}" y="{first + 14 * row:.0f}">{escape(name)}</tspan>'
        for row, name in enumerate(arrow.actions)
    )
    curve = f"M{x1:.0f} {y1:.0f} Q{middle[0]:.0f} {middle[1]:.0f} {x2:.0f} {y2:.0f}"
    return f'<path class="way" d="{curve}"/><text class="halo">{lines}</text><text>{lines}</text>'


def box_svg(name: str, place: Place) -> str:
    """Return one box."""
    width, height = BOX
    return (
        f'<rect x="{place.x - width // 2}" y="{place.y - height // 2}" width="{width}"'
        f' height="{height}" rx="8"/><text class="name" x="{place.x}" y="{place.y + 5}">'
        f"{escape(name)}</text>"
    )


def picture(title: str, places: Mapping[str, Place], found: list[Arrow]) -> str:
    """Return a whole SVG document; KeyError when an arrow ends at a state without a box."""
    width = max(place.x for place in places.values()) + BOX[0] // 2 + 35
    height = max(place.y for place in places.values()) + BOX[1] // 2 + 45
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}"'
        ' font-family="sans-serif" font-size="12" text-anchor="middle">',
        f"<title>{escape(title)}</title>",
        STYLE,
        f'<rect class="paper" width="{width}" height="{height}"/>',
        *(arrow_svg(arrow, places) for arrow in found),
        *(box_svg(name, place) for name, place in places.items()),
        "</svg>\n",
    ]
    return "\n".join(parts)


def pictures(
    slots: list[Arrow], called: list[Arrow], drawn: list[Arrow], stages: list[Arrow]
) -> dict[str, str]:
    """Return each picture by its file name."""
    return {
        "slot-life.svg": picture("The life of a slot", SLOT_PLACES, slots),
        "call-life.svg": picture("The life of a call", CALL_PLACES, called),
        "ahead-life.svg": picture("The life of a batch that is drawn ahead", AHEAD_PLACES, drawn),
        "boundary-life.svg": picture("Captures and restores", BOUNDARY_PLACES, stages),
    }


def main(argv: list[str]) -> int:
    """Write the pictures into the folder given, or where the site looks for them."""
    folder = Path(argv[0]) if argv else FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in pictures(*arrows()).items():
        (folder / name).write_text(text, encoding="utf-8")
        print(folder / name)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
