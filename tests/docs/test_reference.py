"""The reference has every name that the library exports, and no other."""

import re
from pathlib import Path

import forebay

PAGE = Path(__file__).parents[2] / "docs/reference/library.md"


def test_every_exported_name_is_in_the_reference_once() -> None:
    named = re.findall(r"^::: forebay\.(\w+)$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert sorted(named) == sorted(forebay.__all__)
