"""Every requirement and every known fault is accounted for, by names that exist, or called open."""

from pathlib import Path

import pytest

from tests.docs.claims import OPEN, ROOT, Row, missing, names_in, table_rows

TRACEABILITY = ROOT / "docs/traceability.md"
LEDGER = ROOT / "docs/ledger.md"
REQUIREMENTS = [
    *(f"A{number}" for number in range(1, 14)),
    *(f"B{number}" for number in range(1, 15)),
    *(f"R{number}" for number in range(1, 11)),
    *(f"D{number}" for number in range(1, 6)),
]
FAULTS = [f"L{number:02d}" for number in range(1, 97)]
# Faults that concern threads alone, so that nothing may be open about them.
ON_THREADS = {
    *("L05", "L06", "L07", "L12", "L18", "L19", "L20"),
    *("L21", "L23", "L31", "L33", "L35", "L36", "L40"),
}


def requirement_rows() -> list[Row]:
    return table_rows(TRACEABILITY, r"[ABRD]\d+")


def ledger_rows() -> list[Row]:
    return table_rows(LEDGER, r"L\d+")


@pytest.mark.parametrize(
    ("page", "key", "expected"),
    [(TRACEABILITY, r"[ABRD]\d+", REQUIREMENTS), (LEDGER, r"L\d+", FAULTS)],
    ids=["requirements", "faults"],
)
def test_every_id_has_exactly_one_row(page: Path, key: str, expected: list[str]) -> None:
    assert [row.key for row in table_rows(page, key)] == expected


@pytest.mark.parametrize("row", requirement_rows(), ids=lambda row: row.key)
def test_a_requirement_names_what_exists(row: Row) -> None:
    assert len(row.cells) == 4, "text, model, code, test"
    text, *evidence = row.cells
    assert len(text) > 20
    assert [item for cell in evidence for item in names_in(cell) if missing(item)] == []


@pytest.mark.parametrize("row", requirement_rows(), ids=lambda row: row.key)
def test_a_requirement_is_shown_by_a_test_or_open(row: Row) -> None:
    shown_by = row.cells[3]
    assert names_in(shown_by) or OPEN.match(shown_by), shown_by


@pytest.mark.parametrize("row", ledger_rows(), ids=lambda row: row.key)
def test_a_fault_names_what_exists(row: Row) -> None:
    assert len(row.cells) == 6, "source, scenario, right behaviour, property, planted by, shown by"
    assert all(len(cell) > 3 for cell in row.cells[:3])
    assert [item for cell in row.cells[3:] for item in names_in(cell) if missing(item)] == []


@pytest.mark.parametrize("row", ledger_rows(), ids=lambda row: row.key)
def test_a_fault_is_shown_by_a_command_or_open(row: Row) -> None:
    shown_by = row.cells[5]
    assert names_in(shown_by) or OPEN.match(shown_by), shown_by


@pytest.mark.parametrize("row", ledger_rows(), ids=lambda row: row.key)
def test_a_fault_is_planted_somewhere_or_open(row: Row) -> None:
    planted_by = row.cells[4]
    assert names_in(planted_by) or OPEN.match(planted_by), planted_by


@pytest.mark.parametrize("row", ledger_rows(), ids=lambda row: row.key)
def test_a_fault_of_threads_is_not_open(row: Row) -> None:
    tests = [item for item in names_in(row.cells[5]) if item.startswith("tests/")]
    assert row.key not in ON_THREADS or tests


@pytest.mark.parametrize(
    "item",
    [
        "tla/NoSuchModule.tla",
        "tests/docs/test_traceability.py::test_that_does_not_exist",
        "forebay_spec.kernel.no_such_function",
        "NoSuchProperty",
        "forebay check nothing",
        "make nothing",
        "pytest tests/nothing.py",
        "python -m benchmarks.nothing",
        "mutant no_such_fault",
    ],
)
def test_a_wrong_name_is_noticed(item: str) -> None:
    assert missing(item)


@pytest.mark.parametrize(
    "item",
    [
        "docs/state-machine.md",
        "tests/docs/test_traceability.py::test_a_right_name_is_accepted",
        "forebay_spec.kernel.mutual_wait",
        "NoOverwrite",
        "forebay check kernel",
        "make verify",
        "python -m benchmarks",
        "mutant lost_wakeup",
    ],
)
def test_a_right_name_is_accepted(item: str) -> None:
    assert not missing(item)
