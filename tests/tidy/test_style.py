"""Rules of style that no linter knows, so that they hold without anybody watching.

Each rule is a function that returns what breaks it; the tests say that nothing does, and that each
rule does find a planted offence.
"""

import ast
import inspect
import re
from collections.abc import Callable
from pathlib import Path

import forebay
import pytest

ROOT = Path(__file__).parents[2]
ROOMS = ("impl", "spec", "models")
OTHERS = ("tests", "docs", "tla", "examples", "benchmarks", ".ci")
LONGEST = 400
TEXT = {".py", ".md", ".toml", ".txt", ".tla", ".cfg", ".yml", ".svg", ".typed", ".json", ""}
# Written in pieces, so that this file does not break its own rules.
LATER = re.compile(r"\b(?:{})\b".format("|".join(["TO" + "DO", "FIX" + "ME", "X" * 3])))
MACHINE_PATH = re.compile(r"(?<![\w.<])/(?:home|root|Users|work|mnt)/\w")
UNEXPLAINED = re.compile(r"#\s*type:\s*ignore(?:\[[\w, -]+\])?\s*$")


def committed() -> list[Path]:
    """Return the files at the top and everything in the folders that hold the project."""
    found = [path for path in ROOT.iterdir() if path.is_file()]
    for folder in (*ROOMS, *OTHERS):
        found += [path for path in (ROOT / folder).rglob("*") if path.is_file()]
    return sorted(path for path in found if "__pycache__" not in path.parts)


FILES = [path for path in committed() if path.suffix in TEXT]
PYTHON = [path for path in FILES if path.suffix == ".py"]
SOURCES = [path for path in PYTHON if path.relative_to(ROOT).parts[0] in ROOMS]


def name(path: Path) -> str:
    return str(path.relative_to(ROOT))


def too_long(text: str) -> list[str]:
    """Files of the source rooms stay readable in one sitting."""
    lines = text.count("\n")
    return [f"{lines} lines, {LONGEST} at most"] if lines > LONGEST else []


def postponed(text: str) -> list[str]:
    """Work that is not done belongs into an issue, not into a comment."""
    return LATER.findall(text)


def machine_paths(text: str) -> list[str]:
    """A path of somebody's machine works nowhere else."""
    return MACHINE_PATH.findall(text)


def untidy_ends(text: str) -> list[str]:
    """Lines end without blanks, files with one newline."""
    found = [f"line {i}" for i, line in enumerate(text.split("\n"), 1) if line != line.rstrip()]
    if text and (not text.endswith("\n") or text.endswith("\n\n")):
        found.append("end of file")
    return found


def unexplained_ignores(text: str) -> list[str]:
    """An ignored type error says why, in the same line."""
    return [line.strip() for line in text.splitlines() if UNEXPLAINED.search(line)]


def undocumented(text: str) -> list[str]:
    """Every module says what it is for; public functions and classes of a module what they do."""
    tree = ast.parse(text)
    found = [] if not tree.body or ast.get_docstring(tree) else ["the module"]
    for node in tree.body:
        if not isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        overload = any("overload" in ast.unparse(part) for part in node.decorator_list)
        if not node.name.startswith("_") and not overload and not ast.get_docstring(node):
            found.append(node.name)
    return found


RULES: list[tuple[Callable[[str], list[str]], list[Path], str]] = [
    (too_long, SOURCES, "x = 1\n" * (LONGEST + 1)),
    (postponed, FILES, "# {}: finish\n".format("TO" + "DO")),
    (machine_paths, FILES, "see {}somebody/notes\n".format("/ho" + "me/")),
    (untidy_ends, FILES, "x = 1" + " \n"),
    (unexplained_ignores, PYTHON, "x = f()  # type: {}[misc]\n".format("ig" + "nore")),
    (undocumented, SOURCES, '"""Doc."""\n\n\ndef f() -> None:\n    pass\n'),
]


@pytest.mark.parametrize(("rule", "files"), [(rule, files) for rule, files, _ in RULES])
def test_nothing_breaks_the_rule(rule: Callable[[str], list[str]], files: list[Path]) -> None:
    assert files
    found = {name(path): rule(path.read_text(encoding="utf-8")) for path in files}
    assert {file: offences for file, offences in found.items() if offences} == {}


@pytest.mark.parametrize(("rule", "offence"), [(rule, offence) for rule, _, offence in RULES])
def test_the_rule_finds_an_offence(rule: Callable[[str], list[str]], offence: str) -> None:
    assert len(rule(offence)) == 1


def test_everything_that_users_touch_is_documented() -> None:
    bare = []
    for exported in forebay.__all__:
        item = getattr(forebay, exported)
        members = inspect.getmembers(item, callable) if inspect.isclass(item) else []
        properties = inspect.getmembers(item, lambda member: isinstance(member, property))
        named = [(exported, item), *((f"{exported}.{n}", m) for n, m in members + properties)]
        bare += [n for n, m in named if "._" not in n and not inspect.getdoc(m)]
    assert forebay.__all__
    assert bare == []


def test_every_room_is_looked_at() -> None:
    assert {path.relative_to(ROOT).parts[0] for path in SOURCES} == set(ROOMS)
