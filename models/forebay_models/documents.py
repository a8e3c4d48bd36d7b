"""Reads JSON documents strictly: what is missing, of another kind or not known is an error.

Saved results and replay tokens come back from disk and from people, perhaps from another version of
this program. A field that is silently dropped or made up would give a report that says something
else than what was found, so nothing is.
"""

from collections.abc import Mapping, Sequence
from typing import Final

Json = None | bool | int | float | str | Sequence["Json"] | Mapping[str, "Json"]

_KINDS: Final[Mapping[type, str]] = {
    type(None): "null",
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    str: "a text",
    list: "a list",
    dict: "an object",
}


class DocumentError(ValueError):
    """A document is not what it should be; the message says where, what was expected, what came."""


class Fields:
    """The fields of one object of a document, each to be taken once.

    Args:
        document: the object.
        what: its name for error messages, such as "outcome".
    """

    def __init__(self, document: object, what: str) -> None:
        if not isinstance(document, dict):
            raise DocumentError(f"{what}: expected an object, got {kind(document)}")
        self._fields: dict[str, object] = dict(document)
        self._what = what

    def names(self) -> tuple[str, ...]:
        """Return the names of the fields that were not taken yet."""
        return tuple(self._fields)

    def take(self, name: str) -> object:
        """Return a field of any kind."""
        if name not in self._fields:
            raise DocumentError(f"{self._what}: {name!r} is missing")
        return self._fields.pop(name)

    def text(self, name: str) -> str:
        """Return a field that is a text."""
        found = self.take(name)
        if not isinstance(found, str):
            raise self.error(name, "a text", found)
        return found

    def text_or_none(self, name: str) -> str | None:
        """Return a field that is a text or null."""
        found = self.take(name)
        if found is not None and not isinstance(found, str):
            raise self.error(name, "a text or null", found)
        return found

    def whole(self, name: str) -> int:
        """Return a field that is a whole number."""
        found = self.take(name)
        if not isinstance(found, int) or isinstance(found, bool):
            raise self.error(name, "a whole number", found)
        return found

    def flag(self, name: str) -> bool:
        """Return a field that is true or false."""
        found = self.take(name)
        if not isinstance(found, bool):
            raise self.error(name, "true or false", found)
        return found

    def number(self, name: str) -> float:
        """Return a field that is a number."""
        found = self.take(name)
        if not isinstance(found, int | float) or isinstance(found, bool):
            raise self.error(name, "a number", found)
        return float(found)

    def items(self, name: str) -> list[object]:
        """Return a field that is a list."""
        found = self.take(name)
        if not isinstance(found, list):
            raise self.error(name, "a list", found)
        return found

    def texts(self, name: str) -> tuple[str, ...]:
        """Return a field that is a list of texts."""
        return tuple(text(item, f"{self._what}: {name!r}") for item in self.items(name))

    def mapping(self, name: str) -> dict[str, object]:
        """Return a field that is an object."""
        found = self.take(name)
        if not isinstance(found, dict):
            raise self.error(name, "an object", found)
        return found

    def end(self) -> None:
        """Refuse the fields that nobody has taken."""
        if self._fields:
            raise DocumentError(f"{self._what}: nothing is known of {', '.join(self._fields)}")

    def error(self, name: str, expected: str, found: object) -> DocumentError:
        """Return the error that a field is of another kind than expected."""
        return DocumentError(f"{self._what}: {name!r} should be {expected}, got {kind(found)}")


def text(value: object, what: str) -> str:
    """Return a value that is a text."""
    if not isinstance(value, str):
        raise DocumentError(f"{what}: expected a text, got {kind(value)}")
    return value


def kind(value: object) -> str:
    """Return in words what kind of JSON a value is."""
    return _KINDS.get(type(value), type(value).__name__)
