"""Reads TLA+ values as TLC prints them, and writes them shorter.

TLC prints one value in several ways: fields of a record in any order, an empty sequence as `<<>>`
or `<< >>`. Values must therefore be parsed before they are compared. The parser accepts a text
only as a whole, so that a text cut in the wrong place is an error and never another value.
"""

import re
from collections.abc import Callable
from typing import TypeVar, Union

T = TypeVar("T")
Value = Union[int, str, bool, tuple["Value", ...], frozenset["Value"], "Function"]


class Function(dict[Value, Value]):
    """A record or function; equal to another with the same pairs, in whatever order. Not changed
    after it is made, so that it can be an element of a set."""

    def __hash__(self) -> int:  # type: ignore[override]  # dict is unhashable since it may change
        return hash(frozenset(self.items()))


class BadValue(ValueError):
    """A text is no TLA+ value, or of a kind that TLC prints for nothing we use."""


_TOKEN = re.compile(
    r'\s*(?:("(?:[^"\\]|\\.)*"|-?\d+|\w+|<<|>>|\|->|:>|@@|\.\.|[][{}(),])|(\S))', re.ASCII
)
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_ESCAPED = {"n": "\n", "t": "\t", "r": "\r", "f": "\f"}


def parse(text: str) -> Value:
    """Return the value that the text shows; sequences become tuples, model values strings.

    Raises:
        BadValue: The text is not exactly one value.
    """
    tokens: list[str] = []
    for found in _TOKEN.finditer(text):
        if found[2] is not None:
            raise BadValue(f"unexpected {found[2]!r} at {found.start(2)} in {_short(text)}")
        tokens.append(found[1])
    reader = _Reader(tokens, text)
    value = reader.value()
    if reader.at != len(tokens):
        raise BadValue(f"{tokens[reader.at]!r} after the end of the value {_short(text)}")
    return value


def unquote(text: str) -> str:
    """Return the text inside a printed string, its escapes undone."""
    if len(text) < 2 or text[0] != '"' or text[-1] != '"':
        raise BadValue(f"not a string: {_short(text)}")
    return _ESCAPE.sub(lambda found: _ESCAPED.get(found[1], found[1]), text[1:-1])


def show(value: Value) -> str:
    """Return the value in a short form for people: `[phase=live uses=1]`, `(p1, 2)`, `{a, b}`."""
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, Function):
        return "[" + " ".join(f"{show(key)}={show(item)}" for key, item in value.items()) + "]"
    if isinstance(value, tuple):
        return "(" + ", ".join(show(item) for item in value) + ")"
    if isinstance(value, frozenset):
        return "{" + ", ".join(sorted(show(item) for item in value)) + "}"
    return str(value)


class _Reader:
    """Recursive descent over the tokens; one method for each bracket."""

    def __init__(self, tokens: list[str], text: str) -> None:
        self.tokens = tokens
        self.text = text
        self.at = 0

    def take(self, expected: str | None = None) -> str:
        if self.at == len(self.tokens):
            raise BadValue(f"the value ends early: {_short(self.text)}")
        token = self.tokens[self.at]
        if expected is not None and token != expected:
            raise BadValue(f"expected {expected!r}, got {token!r} in {_short(self.text)}")
        self.at += 1
        return token

    def value(self) -> Value:
        token = self.take()
        if token == "<<":
            return tuple(self.items(">>", self.value))
        if token == "{":
            return frozenset(self.items("}", self.value))
        if token == "[":
            return Function(self.items("]", self.field))
        if token == "(":
            return self.function()
        if token[0] == '"':
            return unquote(token)
        if token[0].isdigit() or token[0] == "-":
            return self.number(int(token))
        if token in ("TRUE", "FALSE"):
            return token == "TRUE"
        if token[0].isalpha() or token[0] == "_":
            return token
        raise BadValue(f"unexpected {token!r} in {_short(self.text)}")

    def items(self, end: str, item: Callable[[], T]) -> list[T]:
        found: list[T] = []
        if self.tokens[self.at : self.at + 1] == [end]:
            self.at += 1
            return found
        while True:
            found.append(item())
            if self.take() == end:
                return found
            self.at -= 1
            self.take(",")

    def field(self) -> tuple[Value, Value]:
        name = self.take()
        self.take("|->")
        return name, self.value()

    def function(self) -> Function:
        pairs: list[tuple[Value, Value]] = []
        while True:
            key = self.value()
            self.take(":>")
            pairs.append((key, self.value()))
            if self.take() == ")":
                return Function(pairs)
            self.at -= 1
            self.take("@@")

    def number(self, first: int) -> Value:
        """An integer, or an interval, which is the set of its integers."""
        if self.tokens[self.at : self.at + 1] != [".."]:
            return first
        self.take("..")
        return frozenset(range(first, int(self.take()) + 1))


def _short(text: str) -> str:
    return text if len(text) <= 80 else f"{text[:77]}..."
