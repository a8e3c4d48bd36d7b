"""A real browser without a window: loads a page from disk and says what became of it."""

import os
import re
import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome")
VARIABLE = "FOREBAY_CHROMIUM"
SECONDS = 120


def browser() -> str:
    """Return the path of a browser; skip the test with a reason where there is none."""
    named = os.environ.get(VARIABLE)
    if named:
        if shutil.which(named) is None:
            pytest.fail(f"{VARIABLE} is {named!r}, which cannot be run")
        return named
    for name in NAMES:
        found = shutil.which(name)
        if found is not None:
            return found
    pytest.skip(
        f"NO BROWSER: none of {', '.join(NAMES)} is on the path, so nobody looks at the pages; "
        f"install chromium or name one with {VARIABLE}"
    )


def loaded(page: Path, fragment: str = "", *, script: str = "") -> "Dom":
    """Load a page, with more script at its end if some is given, and return its document.

    Whatever the page writes to the console makes the test fail: an error in a script would.
    """
    if script:
        text = page.read_text(encoding="utf-8")
        page = page.with_name(f"scripted-{page.name}")
        page.write_text(text.replace("</body>", f"<script>{script}</script></body>"), "utf-8")
    done = _run(page, fragment, "--dump-dom", "--virtual-time-budget=2000")
    said = [line for line in done.stderr.splitlines() if ":CONSOLE" in line]
    assert said == []
    return Dom(done.stdout)


def screenshot(page: Path, fragment: str, picture: Path) -> None:
    """Take a picture of a page."""
    _run(page, fragment, f"--screenshot={picture}", "--window-size=1280,1000")


def _run(page: Path, fragment: str, *options: str) -> subprocess.CompletedProcess[str]:
    # A browser of its own for each page, so that tests do not meet in one profile.
    return subprocess.run(
        [
            browser(),
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--enable-logging=stderr",
            f"--user-data-dir={page.parent / 'profile'}",
            *options,
            f"{page.as_uri()}{fragment}",
        ],
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=True,
    )


class Element:
    """An element of a document: its name, attributes, children and texts in order."""

    def __init__(self, name: str, attributes: dict[str, str]) -> None:
        self.name = name
        self.attributes = attributes
        self.parts: list[Element | str] = []

    @property
    def text(self) -> str:
        """All texts inside, with single blanks."""
        return re.sub(r"\s+", " ", self._raw()).strip()

    def _raw(self) -> str:
        return "".join(part if isinstance(part, str) else part._raw() for part in self.parts)

    @property
    def classes(self) -> set[str]:
        """The classes of the element."""
        return set(self.attributes.get("class", "").split())

    def all(self, name: str = "", kind: str = "") -> "list[Element]":
        """Return the elements inside of a name, of a class, or of both."""
        found = []
        for part in self.parts:
            if isinstance(part, Element):
                if name in ("", part.name) and (not kind or kind in part.classes):
                    found.append(part)
                found += part.all(name, kind)
        return found

    def one(self, name: str = "", kind: str = "") -> "Element":
        """Return the only element of a name and class."""
        (found,) = self.all(name, kind)
        return found


_VOID = {"meta", "input", "br", "link", "img", "hr"}


class Dom(HTMLParser, Element):
    """A parsed document; elements have to be closed in the order in which they were opened."""

    def __init__(self, text: str) -> None:
        HTMLParser.__init__(self, convert_charrefs=True)
        Element.__init__(self, "document", {})
        self._open: list[Element] = [self]
        self.feed(text)
        self.close()
        assert self._open == [self], f"not closed: {[it.name for it in self._open[1:]]}"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        element = Element(tag, {name: value or "" for name, value in attrs})
        self._open[-1].parts.append(element)
        if tag not in _VOID:
            self._open.append(element)

    def handle_endtag(self, tag: str) -> None:
        assert self._open[-1].name == tag, f"{tag} closes {self._open[-1].name}"
        self._open.pop()

    def handle_data(self, data: str) -> None:
        self._open[-1].parts.append(data)
