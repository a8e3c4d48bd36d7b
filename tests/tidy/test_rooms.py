"""Who may import whom: the proved kernel is shared, everything else stays in its room.

`spec` needs nothing but the standard library, so that it can be read and checked alone. `impl`
takes from `spec` only the kernel: were it to use the specification's state or actions, comparing
the two would prove nothing. `models` may import both. No modules import each other in a circle.
"""

import ast
import sys
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = {
    "forebay": ROOT / "impl/forebay",
    "forebay_spec": ROOT / "spec/forebay_spec",
    "forebay_models": ROOT / "models/forebay_models",
}
LIBRARY_MAY_IMPORT = {"torch", "tensordict", "numpy", "safetensors", "forebay"}
ON_DEMAND = {"forebay.torchrl": {"torchrl"}}


def module_name(package: str, file: Path) -> str:
    """Return the dotted name of a file of a package."""
    parts = file.relative_to(PACKAGES[package]).with_suffix("").parts
    return ".".join([package, *(part for part in parts if part != "__init__")])


def modules(package: str) -> dict[str, Path]:
    """Return a package's files by dotted name."""
    return {module_name(package, file): file for file in PACKAGES[package].rglob("*.py")}


def imported(module: str, text: str, *, package: bool, run_time_only: bool = False) -> set[str]:
    """Return the modules that a module imports, `from m import n` giving both m and m.n."""
    found = set()
    for node in _imports(ast.parse(text), run_time_only):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
            continue
        base = node.module or ""
        if node.level:
            parts = module.split(".") if package else module.split(".")[:-1]
            parents = parts[: len(parts) - node.level + 1]
            base = ".".join([*parents, base] if base else parents)
        found |= {base, *(f"{base}.{alias.name}" for alias in node.names)}
    return found


def _imports(tree: ast.AST, run_time_only: bool) -> Iterator[ast.Import | ast.ImportFrom]:
    """Yield imports; with `run_time_only` those that run when the module is loaded."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield node
        elif not (run_time_only and _runs_later(node)):
            yield from _imports(node, run_time_only)


def _runs_later(node: ast.AST) -> bool:
    """Tell whether a statement's body does not run when its module is loaded."""
    if isinstance(node, ast.If):
        return "TYPE_CHECKING" in ast.unparse(node.test)
    return isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)


def imports_of(package: str, *, run_time_only: bool = False) -> dict[str, set[str]]:
    """Return what each module of a package imports."""
    return {
        module: imported(
            module,
            file.read_text(encoding="utf-8"),
            package=file.name == "__init__.py",
            run_time_only=run_time_only,
        )
        for module, file in modules(package).items()
    }


def foreign(names: set[str], allowed: set[str]) -> set[str]:
    """Return those names whose first part is neither allowed nor of the standard library."""
    return {n for n in names if n.split(".")[0] not in allowed | set(sys.stdlib_module_names)}


def circle(imports: dict[str, set[str]]) -> list[str]:
    """Return modules that import each other in a circle, or nothing."""
    graph = {
        module: {name for name in names if name in imports and name != module}
        # A package's __init__ is loaded before its modules anyway.
        - {module.rsplit(".", 1)[0]}
        for module, names in imports.items()
    }
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        found: list[str] = error.args[1]
        return found
    return []


def test_the_specification_needs_the_standard_library_alone() -> None:
    found = {m: foreign(names, {"forebay_spec"}) for m, names in imports_of("forebay_spec").items()}
    assert {module: names for module, names in found.items() if names} == {}


def test_the_library_takes_only_the_kernel_from_the_specification() -> None:
    for module, names in imports_of("forebay").items():
        allowed = LIBRARY_MAY_IMPORT | {"forebay_spec"} | ON_DEMAND.get(module, set())
        assert foreign(names, allowed) == set(), module
        taken = {name for name in names if name.split(".")[0] == "forebay_spec"}
        beside = {name for name in taken if not name.startswith("forebay_spec.kernel")}
        assert beside <= ({"forebay_spec"} if "forebay_spec.kernel" in taken else set()), module
        assert not names & ON_DEMAND.keys(), f"{module} imports what users import by themselves"


@pytest.mark.parametrize("package", sorted(PACKAGES))
def test_no_modules_import_each_other_in_a_circle(package: str) -> None:
    assert circle(imports_of(package, run_time_only=True)) == []


def test_a_circle_is_noticed() -> None:
    assert sorted(set(circle({"p.a": {"p.b"}, "p.b": {"p.c"}, "p.c": {"p.a"}}))) == [
        "p.a",
        "p.b",
        "p.c",
    ]


def test_relative_and_absolute_imports_are_both_seen() -> None:
    text = "import numpy\nfrom . import b\nfrom ..q.c import d\nfrom p.e import f\n"
    assert imported("p.r.a", text, package=False) == {
        *("numpy", "p.r", "p.r.b", "p.q.c", "p.q.c.d", "p.e", "p.e.f")
    }


def test_a_foreign_import_is_noticed() -> None:
    assert foreign({"torch.nn", "ast", "forebay_spec.kernel"}, {"forebay_spec"}) == {"torch.nn"}
