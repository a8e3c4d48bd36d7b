"""Charts of results, as PNG files: goals, costs by batch size, and growth."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from benchmarks.channels import FASTER_FIFO, MP_QUEUE, RAY, TORCH_QUEUE
from benchmarks.peers import CLONES, COPY, RANDOM, TORCHRL
from benchmarks.results import Document, Row
from benchmarks.threads import POLLED
from benchmarks.timing import OURS

PREFIX: Final = "performance-"
DPI: Final = 110
MARKS: Final = "osD^vXP*"
MET, MISSED, LINE = "#2a7f62", "#c8553d", "#444444"
COLOURS: Final[Mapping[str, str]] = {
    OURS: "#1f5fa8",
    RANDOM: "#6aaee0",
    COPY: "#888888",
    TORCHRL: "#d1495b",
    POLLED: "#d1495b",
    CLONES: "#e09f3e",
    MP_QUEUE: "#e09f3e",
    TORCH_QUEUE: "#d1495b",
    FASTER_FIFO: "#2a9d8f",
    RAY: "#8d5a97",
}
"""The colours of contenders, which are the same in all charts; others get what comes next."""


def distance(row: Row) -> float:
    """Return how many times its goal a figure is, above 1 where the goal is met."""
    assert row.goal is not None
    assert row.judged is not None
    at_least = row.goal.side == "at least"
    return row.judged / row.goal.value if at_least else row.goal.value / max(row.judged, 1e-9)


def goals(document: Document) -> Figure | None:
    """Return a bar for each goal: how far it is passed or missed."""
    rows = [row for row in document.rows if row.met is not None][::-1]
    if not rows:
        return None
    figure = Figure(figsize=(9.5, 1.2 + 0.27 * len(rows)), layout="constrained")
    axes = figure.subplots()
    names = [
        f"{row.case}  {row.size}" + ("" if row.who == OURS else f" ({row.who[9:]})") for row in rows
    ]
    values = [distance(row) for row in rows]
    colours = [MET if row.met else MISSED for row in rows]
    # On a logarithmic axis bars begin where the goal is.
    axes.barh(names, [value - 1 for value in values], left=1, color=colours, height=0.7)
    axes.axvline(1, color=LINE, linewidth=1)
    axes.set_xscale("log")
    axes.set_xlim(min(0.5, *values) * 0.8, max(2.0, *values) * 1.25)
    axes.set_xlabel("median over its goal (1: just met; to the right: better)")
    axes.set_title("How far goals are passed or missed")
    axes.tick_params(axis="y", labelsize=8)
    axes.margins(y=0.01)
    _grid(axes, "x")
    return figure


def _lines(axes: Axes, lines: Mapping[str, Mapping[float, float]]) -> None:
    for mark, (name, points) in zip(MARKS * 4, lines.items(), strict=False):
        xs = sorted(points)
        ys = [points[x] for x in xs]
        axes.plot(xs, ys, marker=mark, markersize=5, label=name, color=COLOURS.get(name))
    axes.set_xscale("symlog" if any(0 in points for points in lines.values()) else "log", base=2)
    axes.set_yscale("log")
    _grid(axes, "both")
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.16), ncols=2, fontsize=7, frameon=False)


def _grid(axes: Axes, axis: str) -> None:
    axes.grid(axis=axis, color="#dddddd", linewidth=0.6)  # type: ignore[arg-type]  # one of its literals
    axes.set_axisbelow(True)


def by_name(rows: Sequence[Row]) -> dict[str, dict[float, float]]:
    """Return a line of medians for each of ours and each peer in some rows."""
    lines: dict[str, dict[float, float]] = {}
    for row in rows:
        if row.x is None:
            continue
        lines.setdefault(row.who, {})[row.x] = row.ours.median
        if row.theirs is not None:
            lines.setdefault(row.peer, {})[row.x] = row.theirs.median
    return lines


def _batches(document: Document, case: str, title: str) -> Figure | None:
    curves = list(dict.fromkeys(row.curve for row in document.of(case) if row.curve))
    if not curves:
        return None
    figure = Figure(figsize=(4.2 * len(curves) + 1.2, 4.8), layout="constrained")
    for axes, curve in zip(figure.subplots(1, len(curves), squeeze=False)[0], curves, strict=True):
        _lines(axes, by_name([row for row in document.of(case) if row.curve == curve]))
        if len(curves) > 1:
            axes.set_title(f"records: {curve}")
        axes.set_xlabel("records in a batch")
        axes.set_ylabel("microseconds for a write and a draw")
    figure.suptitle(title)
    return figure


def one_thread(document: Document) -> Figure | None:
    """Return the cost of a cycle in one thread by batch size."""
    return _batches(document, "P1", "Write and draw in one thread, capacity 4096 half full")


def two_threads(document: Document) -> Figure | None:
    """Return the cost of a hand-over between threads by batch size."""
    return _batches(document, "P4", "From one thread to another")


def two_processes(document: Document) -> Figure | None:
    """Return the cost of a hand-over between processes by batch size."""
    return _batches(document, "P5", "From one process to another")


def growth(document: Document) -> Figure | None:
    """Return the cost of each call along each axis, one panel an axis."""
    rows = document.of("growth")
    axes_names = list(dict.fromkeys(row.curve.split(":")[0] for row in rows))
    if not axes_names:
        return None
    figure = Figure(figsize=(10, 4.4 * -(-len(axes_names) // 2)), layout="constrained")
    panels = figure.subplots(-(-len(axes_names) // 2), 2, squeeze=False).flat
    for panel, name in zip(panels, axes_names, strict=False):
        lines: dict[str, dict[float, float]] = {}
        for row in rows:
            axis, _, call = row.curve.partition(": ")
            if axis == name and row.x is not None:
                line = call if row.who == OURS else f"{call} (shared)"
                lines.setdefault(line, {})[row.x] = row.ours.median
        _lines(panel, lines)
        panel.set_xlabel(
            {
                "capacity": "slots of the buffer",
                "batch": "records in a batch",
                "leaves": "leaves of a record",
                "waiters": "threads that wait meanwhile",
            }[name]
        )
        panel.set_ylabel("microseconds for one call")
    for panel in list(panels)[len(axes_names) :]:
        panel.set_axis_off()
    figure.suptitle("What a call costs as things grow")
    return figure


CHARTS: Final[Mapping[str, Callable[[Document], Figure | None]]] = {
    "goals": goals,
    "one-thread": one_thread,
    "two-threads": two_threads,
    "two-processes": two_processes,
    "growth": growth,
}


def draw(document: Document, folder: Path) -> list[Path]:
    """Draw every chart that there are results for, and return the files."""
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for name, chart in CHARTS.items():
        figure = chart(document)
        if figure is not None:
            path = folder / f"{PREFIX}{name}.png"
            figure.savefig(path, dpi=DPI, facecolor="white")
            written.append(path)
    return written
