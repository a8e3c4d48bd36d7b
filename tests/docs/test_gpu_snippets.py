"""The Python in the documentation that needs a GPU, in blocks of `py`, runs where there is one.

Elsewhere it is only read: it has to be Python, and what it takes from the library has to exist.
"""

import ast
import re
from pathlib import Path

import forebay
import pytest
import torch

from tests.docs.test_snippets import HOW_TOS, run

BLOCK = re.compile(r"^```py\n(.*?)^```$", re.DOTALL | re.MULTILINE)
BLOCKS = [
    (page, text.count("\n", 0, match.start(1)), match[1])
    for page in HOW_TOS
    for text in [page.read_text(encoding="utf-8")]
    for match in BLOCK.finditer(text)
]
each_block = pytest.mark.parametrize(
    ("page", "line", "code"),
    BLOCKS,
    ids=lambda value: value.stem if isinstance(value, Path) else None,
)


def unknown(code: str) -> list[str]:
    """Return the names that a block takes from the library, and that it does not export."""
    return [
        node.attr
        for node in ast.walk(ast.parse(code))
        if isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and node.value.id == "forebay"
        and node.attr not in forebay.__all__
    ]


@each_block
def test_a_block_shows_its_result_and_takes_what_there_is(page: Path, line: int, code: str) -> None:
    assert "assert " in code, "an example shows its result"
    assert unknown(code) == []


def test_a_name_that_the_library_does_not_have_is_noticed() -> None:
    assert unknown("forebay.TensorStorage(forebay.NoSuchName(4))") == ["NoSuchName"]


@pytest.mark.cuda
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@pytest.mark.timeout(120)
@each_block
def test_a_block_runs_on_a_gpu(page: Path, line: int, code: str) -> None:
    run(page, line, code, {"__name__": "snippet"})
