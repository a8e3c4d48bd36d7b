"""`forebay inspect`: checks every byte of a checkpoint and shows what is in it.

Nothing is loaded: tensors are shown by dtype and shape, objects are not unpickled, and the modules
of tensorclasses need not be there. So a checkpoint of any size and from anywhere can be looked at.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from forebay_models.outcome import Verdict

if TYPE_CHECKING:
    from forebay._manifest import Manifest

_SHOWN = 8


def inspect(
    path: Annotated[
        Path, typer.Argument(help="The directory that buffer.dumps(PATH) wrote.", metavar="PATH")
    ],
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON document instead.")
    ] = False,
) -> None:
    """Check every byte of a checkpoint, and show what is in it.

    Shows the files with their sizes, and the state: how the buffer was made, its counters, the
    records with their schema, and the queue of batches that were drawn ahead.

    The exit code is 0 if the checkpoint is whole, 1 if it is damaged, and 2 if there is none, or
    one of a newer version.

    Example: `forebay inspect checkpoint`
    """
    from forebay import CheckpointError
    from forebay._checkpoint import examine
    from forebay._manifest import VERSION, Damaged

    try:
        manifest = examine(path)
    except (CheckpointError, OSError) as error:
        typer.echo(f"forebay inspect: {error}", err=True)
        damaged = isinstance(error.__cause__, Damaged)
        verdict = Verdict.VIOLATED if damaged else Verdict.COULD_NOT_RUN
        raise typer.Exit(int(verdict)) from error
    if as_json:
        files = {role: file._asdict() for role, file in manifest.files.items()}
        document = {"command": "inspect", "path": str(path), "version": VERSION}
        typer.echo(json.dumps({**document, **manifest._asdict(), "files": files}))
        return
    try:
        lines = list(described(path, manifest))
    except (LookupError, TypeError, ValueError, AttributeError, RecursionError) as error:
        typer.echo(f"forebay inspect: {path}: the state is not as the format asks", err=True)
        raise typer.Exit(int(Verdict.VIOLATED)) from error
    typer.echo("\n".join(lines))


def described(path: Path, manifest: "Manifest") -> Iterator[str]:
    """Yield the lines that describe a checkpoint which is whole."""
    from forebay._manifest import VERSION

    made_with = ", ".join(f"{name} {version}" for name, version in manifest.made_with.items())
    yield f"{path} is whole: version {VERSION}, made with {made_with}"
    yield ""
    width = max((len(file.name) for file in manifest.files.values()), default=0)
    for file in manifest.files.values():
        parts = f"{len(file.parts)} part{'s' if len(file.parts) != 1 else ''}"
        yield f"{file.name:<{width}}  {file.size:>15,} bytes in {parts} with the right checksum"
    yield ""
    yield from _lines("state", manifest.state, "")


def _lines(name: str, node: object, indent: str) -> Iterator[str]:
    """Yield the lines of a node of the state: its name and value, or its entries below."""
    entries, title = _opened(node)
    # As JSON has it, so that nothing in a checkpoint can give orders to a terminal.
    name = json.dumps(name)[1:-1]
    if entries is None:
        yield f"{indent}{name}: {title}"
        return
    yield f"{indent}{name}:{title and ' '}{title}"
    for key, entry in entries:
        yield from _lines(key, entry, indent + "  ")


def _opened(node: object) -> tuple[list[tuple[str, object]] | None, str]:
    """Return the entries of a node, or None, and what is written behind its name."""
    if isinstance(node, list):
        return _opened_list(node)
    if not isinstance(node, dict):
        return None, json.dumps(node)
    mark = next((key for key in node if key.startswith("$")), None)
    if mark is None:
        return (list(node.items()), "") if node else (None, "{}")
    value = node[mark]
    if mark in ("$tensor", "$array", "$scalar"):
        flags = [flag for flag in ("parameter", "requires_grad") if value.get(flag)]
        look = f"{value['dtype']}{value['shape']}"
        kind = [] if mark == "$tensor" else [mark[1:]]
        return None, " ".join([*kind, look, *flags])
    if mark == "$tensordict":
        return list(value["entries"].items()), f"TensorDict {value['batch_size']}"
    if mark == "$tensorclass":
        entries, title = _opened(value["content"])
        fields = [(key, field) for key, field in value["fields"].items() if field is not None]
        return (entries or []) + fields, f"{value['class']} {title}"
    if mark in ("$stack", "$nontensorstack"):
        return _numbered(value["items"], f"stacked on {value['dim']}, ")
    if mark == "$nontensor":
        return _opened(value["data"])
    if mark == "$tuple":
        return _opened_list(value)
    if mark in ("$dict", "$ordered"):
        return [(str(_opened(key)[1]), entry) for key, entry in value], ""
    if mark == "$object":
        return None, "a pickled object"
    return None, f"{value if mark != '$bytes' else 'bytes'}"


def _opened_list(items: Sequence[object]) -> tuple[list[tuple[str, object]] | None, str]:
    if any(isinstance(item, list | Mapping) for item in items):
        return _numbered(items, "")
    if len(items) <= _SHOWN:
        return None, json.dumps(items)
    return None, f"{json.dumps(items[:_SHOWN])} and {len(items) - _SHOWN} more"


def _numbered(items: Sequence[object], title: str) -> tuple[list[tuple[str, object]], str]:
    first = [(str(number), item) for number, item in enumerate(items[:_SHOWN])]
    rest = f", the first {_SHOWN} are shown" if len(items) > _SHOWN else ""
    return first, f"{title}{len(items)} entries{rest}"
