"""Histories as text: JSON lines, the setting first, then one operation a line in order of calls.

What is unknown or does not apply is left out. Such files come from disk and from people, so they
are read strictly: whatever is wrong is said with the number of its line, and nothing is made up.

Version 1 knew no kills. Files of it are read as they are.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, fields
from pathlib import Path
from typing import Final

from forebay_models.documents import DocumentError, Fields
from forebay_models.linear.history import History, Impossible, Operation, Setting

VERSION: Final = 2
READABLE: Final = (1, VERSION)


def as_lines(history: History) -> str:
    """Return a history as JSON lines."""
    head = {"history": VERSION, **asdict(history.setting)}
    lines = [_line(head), *map(operation_line, history.operations)]
    return "".join(line + "\n" for line in lines)


def operation_line(op: Operation) -> str:
    """Return an operation as one line."""
    return _line(_sparse(op))


def operation_from(line: str, place: int) -> Operation:
    """Read an operation from a line, which is said to be the `place`-th in errors."""
    return _operation(_fields(place, line))


def from_lines(text: str) -> History:
    """Read a history from JSON lines; `ValueError` says what is wrong with them, and where."""
    lines = [(place, line) for place, line in enumerate(text.splitlines(), 1) if line.strip()]
    if not lines:
        raise DocumentError("a history is lines of JSON objects, the setting first")
    (first, head), *rest = lines
    setting = _setting(_fields(first, head), first)
    operations = tuple(operation_from(line, place) for place, line in rest)
    try:
        return History(setting, operations)
    except Impossible as error:
        raise DocumentError(f"line {rest[error.place][0]}: {error}") from error


def write(history: History, path: Path) -> None:
    """Save a history as JSON lines."""
    path.write_text(as_lines(history), encoding="utf-8")


def read(path: Path) -> History:
    """Read a history that was saved; `ValueError` says what is wrong with it."""
    return from_lines(path.read_text(encoding="utf-8"))


_DEFAULTS: Final = {field.name: field.default for field in fields(Operation)}


def _line(fields: Mapping[str, object]) -> str:
    return json.dumps(fields, separators=(", ", ": "))


def _sparse(op: Operation) -> dict[str, object]:
    return {name: value for name, value in asdict(op).items() if value != _DEFAULTS[name]}


def _fields(place: int, line: str) -> Fields:
    """Return the fields of a line."""
    try:
        document: object = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise DocumentError(f"line {place}: this is not JSON: {error}") from error
    return Fields(document, f"line {place}")


def _numbers(found: Fields, name: str) -> tuple[int, ...]:
    """Return a field that is a list of whole numbers."""
    values = found.items(name)
    numbers = tuple(value for value in values if isinstance(value, int))
    if len(numbers) != len(values) or any(isinstance(value, bool) for value in values):
        raise found.error(name, "only whole numbers", values)
    return numbers


Reader = Callable[[Fields, str], object]
_SETTING: Final[Mapping[str, Reader]] = {
    "capacity": Fields.whole,
    "uses": Fields.whole,
    "order": Fields.text,
    "source": Fields.text,
}
_OPERATION: Final[Mapping[str, Reader]] = {
    "actor": Fields.text,
    "kind": Fields.text,
    "call": Fields.whole,
    "returned": Fields.whole,
    "ended": Fields.text,
    "n": Fields.whole,
    "m": Fields.whole,
    "waits": Fields.text,
    "records": _numbers,
    "slots": _numbers,
    "token": Fields.text,
    "lease": Fields.whole,
    "mode": Fields.text,
    "length": Fields.whole,
    "error": Fields.text,
    "victim": Fields.text,
}


def _setting(found: Fields, place: int) -> Setting:
    if "history" not in found.names() or found.take("history") not in READABLE:
        raise DocumentError(f'the first line of a history has "history": {VERSION} and the setting')
    values = _values(found, _SETTING, {"capacity"})
    try:
        return Setting(**values)  # type: ignore[arg-type]  # read as what they are
    except ValueError as error:
        raise DocumentError(f"line {place}: {error}") from error


def _operation(found: Fields) -> Operation:
    values = _values(found, _OPERATION, {"actor", "kind", "call"})
    return Operation(**values)  # type: ignore[arg-type]  # read as what they are


def _values(found: Fields, readers: Mapping[str, Reader], needed: set[str]) -> dict[str, object]:
    """Return the fields that there are; those that are needed must be."""
    wanted = needed.union(found.names())
    values = {name: reader(found, name) for name, reader in readers.items() if name in wanted}
    found.end()
    return values
