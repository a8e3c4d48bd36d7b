"""The bounds are those of the page on the state machine, and impossible ones are refused."""

import re
from dataclasses import replace
from pathlib import Path

import pytest
from forebay_spec.bounds import FULL, QUICK, Bounds, Request, mutual_wait_bounds
from forebay_spec.kernel import Closing

PAGE = Path(__file__).parents[2] / "docs/state-machine.md"


def row(bounds: Bounds) -> list[str]:
    """Return bounds as the cells of a row of the documentation's table, features sorted."""
    actors: dict[str, list[str]] = {}
    for actor, token in bounds.token_of:
        actors.setdefault(token, []).append(actor)
    cells = [
        " ".join(bounds.producers),
        " ".join(bounds.readers),
        " ".join(map(str, bounds.write_sizes)),
        ", ".join(f"{kind} {k} {m}" for kind, k, m in bounds.requests),
        f"{bounds.prefetch} {bounds.batch_size}" if bounds.prefetch else "",
        ", ".join(f"{' '.join(names)}: {token}" for token, names in actors.items()),
        " ".join(sorted(bounds.features)),
        " ".join(mode.name.lower() for mode in bounds.closings),
    ]
    order = bounds.order + ", `DropLast`" * bounds.drop_last
    return [f"`{bounds.name}`", str(bounds.uses), order, *(cell or "-" for cell in cells)]


def documented() -> list[list[str]]:
    """Return the rows of the documentation's table of quick graphs, features sorted."""
    section = PAGE.read_text(encoding="utf-8").split("## The quick graphs")[1].split("\n## ")[0]
    rows = []
    for line in re.findall(r"^\| (`.*) \|$", section, re.MULTILINE):
        *cells, features, closings = (cell.strip() for cell in line.split("|"))
        rows.append([*cells, " ".join(sorted(features.split())), closings])
    return rows


def test_the_quick_graphs_are_those_of_the_documentation() -> None:
    assert documented() == [row(bounds) for bounds in QUICK.values()]
    assert {bounds.capacity for bounds in QUICK.values()} == {2}


def test_the_actors_of_one_process_are_those_of_the_documentation() -> None:
    section = PAGE.read_text(encoding="utf-8").split("## The quick graphs")[1]
    sentence = re.search(r"In ([^.]*) all actors are of one process, `(\w+)`", section)
    assert sentence is not None
    shared = dict.fromkeys(re.findall(r"`(\w+)`", sentence[1]), sentence[2])
    for name, bounds in QUICK.items():
        processes = (shared[name],) if name in shared else bounds.actors
        assert bounds.processes == processes
    assert len(shared) == 5


def test_the_full_graphs_have_the_same_themes_and_are_wider() -> None:
    assert set(FULL) - set(QUICK) == {"crash-two"}
    for name, bounds in QUICK.items():
        assert FULL[name].name == f"{name}-full"
        assert FULL[name].capacity == bounds.capacity + 1
    assert FULL["crash-two"].name == "crash-two-full"
    assert len(FULL["crash-two"].actors) == len(QUICK["crash"].actors) + 1


def test_the_graphs_about_mutual_waits_have_one_size_each() -> None:
    bounds = mutual_wait_bounds(5, 2, 3)
    assert (bounds.capacity, bounds.uses, bounds.write_sizes) == (5, 1, (2,))
    assert bounds.requests == (Request("plain", 3, 3),)
    assert (bounds.features, bounds.closings, bounds.token_of) == (frozenset(), (), ())


def test_actors_and_tokens_are_named_once() -> None:
    assert QUICK["leases"].actors == ("p1", "x1", "c1")
    assert QUICK["cancel"].tokens == ("t1",)
    assert QUICK["liveness"].token("p1") == "t1"
    assert QUICK["liveness"].token("p2") is None


def test_who_is_of_a_process_and_which_processes_read() -> None:
    bounds = QUICK["threads"]
    assert [bounds.process(x) for x in bounds.actors] == ["q1", "q1", "q1"]
    assert bounds.reading == ("q1",)
    assert QUICK["leases"].processes == ("p1", "x1", "c1")
    assert QUICK["leases"].reading == ("x1", "c1")


def test_bounds_fit_on_a_line() -> None:
    assert QUICK["copies"].line() == (
        "C=2 N=1 fifo; producers p1 write 2; readers c1 ask plain 1 1; "
        "processes p1:q1 c1:q1; D=2 B=1; Capture Empty"
    )
    assert QUICK["heals"].line() == (
        "C=2 N=1 fifo; producers p1 p2 write 1 2; readers c1 ask plain 1 1; Kill"
    )
    assert QUICK["cancel"].line() == (
        "C=2 N=1 fifo; producers p1 p2 write 1 2; readers c1 ask plain 1 1; "
        "tokens p1:t1 p2:t1 c1:t1; Empty Expire; close draining"
    )


def test_overwriting_bounds_say_so() -> None:
    assert QUICK["droplast"].line() == (
        "C=2 N=1 epochs drop last; producers p1 write 1 2; readers c1 ask plain 2 2, lease 1 1; "
        "Expire Fail; close draining"
    )
    overwriting = [name for name, bounds in QUICK.items() if bounds.overwriting]
    assert overwriting == ["ring", "epochs", "droplast", "resumed", "orphaned"]


def test_bounds_that_are_equal_are_so_in_a_table_too() -> None:
    again = mutual_wait_bounds(3, 1, 2)
    assert {mutual_wait_bounds(3, 1, 2): "found"}[again] == "found"
    assert replace(again, closings=(Closing.DRAINING,)) != again


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"capacity": 0}, "at least 1"),
        ({"order": "replacement", "uses": 2}, "uses no record up"),
        ({"order": "epochs", "uses": 2}, "uses no record up"),
        ({"order": "replacement", "drop_last": True}, "only an epoch"),
        ({"drop_last": True}, "only an epoch"),
        ({"uses": 0}, "at least 1"),
        ({"write_sizes": (3,)}, r"write sizes lie in 1\.\.2"),
        ({"write_sizes": (0,)}, r"write sizes lie in 1\.\.2"),
        ({"requests": (Request("plain", 1, 2),)}, "1 <= m <= k <= 2"),
        ({"features": frozenset({"Prefetch"})}, "Abandon"),
        ({"prefetch": -1}, r"1\.\.2 records"),
        ({"prefetch": 1, "batch_size": 3}, r"1\.\.2 records"),
        ({"batch_size": 0}, r"1\.\.2 records"),
        ({"process_of": (("c9", "q1"),)}, "only actors"),
        ({"process_of": (("c1", "p1"),)}, "unlike any actor"),
        (
            {"process_of": (("c1", "q1"),), "features": frozenset({"Kill"})},
            "a process of its own is killed",
        ),
    ],
)
def test_impossible_bounds_are_refused(wrong: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        replace(QUICK["writers"], **wrong)  # type: ignore[arg-type]  # wrong on purpose
