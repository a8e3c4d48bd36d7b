"""Links between pages lead somewhere: the file exists, and the heading in it too."""

import re
import unicodedata
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
LINK = re.compile(r"(?<!`)\[[^\]\[]*\]\(([^)\s]+)\)")


def anchors(page: Path) -> set[str]:
    """Return the anchors of a page's headings, made as the site makes them."""
    found = set()
    for heading in re.findall(r"^#{1,6} (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE):
        plain = unicodedata.normalize("NFKD", heading.replace("`", "")).encode("ascii", "ignore")
        word = re.sub(r"[^\w\s-]", "", plain.decode()).strip().lower()
        found.add(re.sub(r"[-\s]+", "-", word))
    return found


def broken(page: Path, text: str) -> list[str]:
    """Return the links of a page that lead nowhere; links to other sites are not followed."""
    found = []
    for link in LINK.findall(text):
        if re.match(r"[a-z]+:", link):
            continue
        name, _, anchor = link.partition("#")
        target = (page.parent / name).resolve() if name else page
        anchored = not anchor or target.suffix != ".md" or anchor in anchors(target)
        if not target.is_file() or not anchored:
            found.append(link)
    return found


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    assert broken(page, page.read_text(encoding="utf-8")) == []


def test_a_broken_link_is_noticed() -> None:
    page = ROOT / "docs/index.md"
    text = "[a](no-such-page.md) [b](proved.md#no-such-heading) [c](proved.md) [d](https://x.org)"
    assert broken(page, text) == ["no-such-page.md", "proved.md#no-such-heading"]


def test_every_page_is_in_the_navigation() -> None:
    navigation = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    pages = [page.relative_to(ROOT / "docs").as_posix() for page in PAGES[1:]]
    assert [page for page in pages if f": {page}\n" not in navigation] == []
