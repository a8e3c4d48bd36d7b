"""The Python in the documentation runs, as it stands on the page.

Blocks of the README and of the tutorial are one programme each, run in order. In a how-to every
block stands alone, so that it can be copied alone.
"""

import re
import threading
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)
PROGRAMMES = [ROOT / "README.md", ROOT / "docs/tutorial.md"]
HOW_TOS = sorted((ROOT / "docs/how-to").glob("*.md"))


def blocks(page: Path) -> list[tuple[int, str]]:
    """Return (line in the page, code) of each block."""
    text = page.read_text(encoding="utf-8")
    return [(text.count("\n", 0, match.start(1)), match[1]) for match in BLOCK.finditer(text)]


def run(page: Path, line: int, code: str, names: dict[str, object]) -> None:
    """Run a block so that a traceback names the page and the line in it."""
    exec(compile("\n" * line + code, str(page), "exec"), names)


@pytest.mark.timeout(60)
@pytest.mark.parametrize("page", PROGRAMMES, ids=lambda page: page.stem)
def test_a_page_runs_as_one_programme(page: Path) -> None:
    found = blocks(page)
    assert found
    names: dict[str, object] = {"__name__": "snippet"}
    before = threading.active_count()
    for line, code in found:
        run(page, line, code, names)
    for thread in threading.enumerate():
        if thread.name == "forebay-prefetch":  # of a buffer that is drained: it ends by itself
            thread.join(30)
    assert threading.active_count() == before, "the page leaves a thread behind"


@pytest.mark.timeout(120)  # some start processes
@pytest.mark.parametrize(
    ("page", "line", "code"),
    [(page, line, code) for page in HOW_TOS for line, code in blocks(page)],
    ids=lambda value: value.stem if isinstance(value, Path) else None,
)
def test_a_block_of_a_how_to_runs_alone(
    page: Path, line: int, code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # where a block may write
    assert "assert " in code, "an example shows its result"
    run(page, line, code, {"__name__": "snippet"})
