"""Check that what the documentation names exists: files, tests, symbols, properties, commands.

Ledger and traceability are only worth something while the names in them are true. In their tables
every item in backticks is one of the kinds below, and anything else is reported, so that a typing
error cannot pass as prose.

- a path, `tla/ReplayBuffer.tla`: the file exists;
- a path and a name, `tests/x/test_y.py::test_z`: that file defines it (`Class.method` too);
- a dotted name, `forebay_spec.kernel.mutual_wait`: it can be imported;
- a property or witness, `NoOverwrite`: the specification registers it;
- a command, `forebay check tlc` or `make bench`: the command line or the Makefile has it;
- a fault planted in the library, its files or the specification, `mutant lost_wakeup`: it is
  registered.
"""

import ast
import importlib
import re
from collections.abc import Callable, Container, Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

from forebay_models.mutants.device import DEVICE_MUTANTS
from forebay_models.mutants.files import FILE_MUTANTS
from forebay_models.mutants.local import LOCAL_MUTANTS
from forebay_models.mutants.resumes import RESUME_MUTANTS, SNAPSHOT_MUTANTS
from forebay_models.mutants.shared import SHARED_MUTANTS
from forebay_models.mutants.shared_device import SHARED_DEVICE_MUTANTS
from forebay_models.mutants.spec import SPEC_MUTANTS
from forebay_spec.properties import INVARIANTS, LIVENESS, STEPS, WITNESSES

ROOT = Path(__file__).parents[2]
OPEN = re.compile(r"^open \((?P<reason>[a-z][^()]+)\)$")
CHECKS = ("kernel", "tlc", "explore", "agree", "trace", "history", "all")
CAMPAIGNS = (
    "stateful",
    "cover",
    "schedule",
    "linear",
    "faults",
    "twins",
    "snapshots",
    "mutants",
    "all",
)


PLANTED: tuple[Container[str], ...] = (
    LOCAL_MUTANTS,
    SHARED_MUTANTS,
    SHARED_DEVICE_MUTANTS,
    SPEC_MUTANTS,
    DEVICE_MUTANTS,
    FILE_MUTANTS,
    RESUME_MUTANTS,
    SNAPSHOT_MUTANTS,
)


class Row(NamedTuple):
    """One row of a table: its first cell and the others."""

    key: str
    cells: tuple[str, ...]


def table_rows(page: Path, key: str) -> list[Row]:
    """Return the rows of a page's tables whose first cell matches the regular expression `key`."""
    rows = []
    for line in page.read_text(encoding="utf-8").splitlines():
        if not line.startswith("|"):
            continue
        first, *others = (cell.strip() for cell in line.strip().strip("|").split("|"))
        if re.fullmatch(key, first):
            rows.append(Row(first, tuple(others)))
    return rows


def names_in(cell: str) -> list[str]:
    """Return the items in backticks."""
    return re.findall(r"`([^`]+)`", cell)


@cache
def properties() -> frozenset[str]:
    """Return every name that the specification registers."""
    return frozenset([*INVARIANTS, *STEPS, *LIVENESS, *WITNESSES])


@cache
def definitions(path: Path) -> frozenset[str]:
    """Return the names that a Python file defines: functions, classes, methods as Class.method."""

    def walk(nodes: list[ast.stmt], prefix: str) -> Iterator[str]:
        for node in nodes:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                yield prefix + node.name
            elif isinstance(node, ast.ClassDef):
                yield prefix + node.name
                yield from walk(node.body, f"{prefix}{node.name}.")

    return frozenset(walk(ast.parse(path.read_text(encoding="utf-8")).body, ""))


def importable(dotted: str) -> bool:
    """Tell whether a dotted name is a module of this project or something that hangs on one."""
    parts = dotted.split(".")
    for length in range(len(parts), 0, -1):
        try:
            found: object = importlib.import_module(".".join(parts[:length]))
        except ModuleNotFoundError:
            continue
        for part in parts[length:]:
            if not hasattr(found, part):
                return False
            found = getattr(found, part)
        return True
    return False


def _is_command(item: str) -> bool:
    words = item.split()
    if words[0] == "mutant":
        return any(words[1] in planted for planted in PLANTED)
    if words[:2] == ["forebay", "check"]:
        return len(words) > 2 and words[2] in CHECKS
    if words[:2] == ["forebay", "campaign"]:
        return len(words) > 2 and words[2] in CAMPAIGNS
    if words[0] == "make":
        targets = re.findall(r"^([a-z]+):.*##", (ROOT / "Makefile").read_text(), re.MULTILINE)
        return words[1] in targets
    if words[0] == "pytest":
        return all((ROOT / word.split("::")[0]).exists() for word in words[1:])
    if words[:2] == ["python", "-m"]:
        return (ROOT / (words[2].replace(".", "/") + ".py")).exists() or (
            ROOT / words[2] / "__main__.py"
        ).exists()
    return False


def _is_definition(item: str) -> bool:
    path, name = item.split("::", 1)
    file = ROOT / path
    if not file.is_file():
        return False
    if file.suffix == ".tla":
        return re.search(rf"^{re.escape(name)}(\(.*\))? ==", file.read_text(), re.M) is not None
    return name.replace("::", ".") in definitions(file)


def missing(item: str) -> bool:
    """Tell whether an item in backticks names something that does not exist."""
    kinds: list[tuple[bool, Callable[[str], bool]]] = [
        (" " in item, _is_command),
        ("::" in item, _is_definition),
        ("/" in item or item.endswith((".toml", ".txt")), lambda path: (ROOT / path).is_file()),
        (item.startswith("forebay") and "." in item, importable),
    ]
    for applies, exists in kinds:
        if applies:
            return not exists(item)
    return item not in properties()
