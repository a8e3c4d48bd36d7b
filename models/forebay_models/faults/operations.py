"""What a dump does to the disk, step by step, for those who record it, stop it or make it fail.

The library has one module of file operations, `forebay._files`, and looks its functions up at each
call; here they are replaced for the length of a block.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Final, NamedTuple
from unittest.mock import patch

from forebay import _files

MAKE_PLACE: Final = "make place"
SYNC_PLACE: Final = "sync place"
SYNC_ENTRIES: Final = "sync entries"
CREATE: Final = "create"
WRITE: Final = "write"
SYNC: Final = "sync"
RENAME: Final = "rename"
REMOVE: Final = "remove"


class Step(NamedTuple):
    """One operation in the directory of a checkpoint.

    Attributes:
        kind: what is done.
        name: the file, by the name under which it was created; the old one of a rename.
        new: of a rename.
        data: what is written.
        offset: where, in bytes.
        descriptor: of the file that is written or synced.
    """

    kind: str
    name: str = ""
    new: str = ""
    data: bytes = b""
    offset: int = 0
    descriptor: int = -1

    def __str__(self) -> str:
        # The names of a generation are random; its role is what says where one is.
        return f"{self.kind} {self.name.partition('-')[0]}".strip()


class Watch:
    """Is told of every step, by its number from 0."""

    def before(self, number: int, step: Step) -> None:
        """The step comes next. What this raises is raised instead of the step."""

    def after(self, step: Step) -> None:
        """The step was done."""


class Recorder(Watch):
    """Writes all steps down."""

    def __init__(self) -> None:
        self.steps: list[Step] = []

    def after(self, step: Step) -> None:
        self.steps.append(step)


@contextmanager
def watched(path: str, watch: Watch) -> Iterator[None]:
    """Tell `watch` of all that is done to the checkpoint in the directory `path`."""
    made: dict[int, str] = {}
    count = 0

    def name(file: str) -> str:
        return os.path.basename(file)

    def through(step: Step, do: Callable[[], object]) -> object:
        nonlocal count
        number, count = count, count + 1
        watch.before(number, step)
        result = do()
        watch.after(step)
        return result

    def make_directory(file: str) -> None:
        through(Step(MAKE_PLACE), lambda: honest["make_directory"](file))

    def create(file: str) -> int:
        descriptor = through(Step(CREATE, name(file)), lambda: honest["create"](file))
        assert isinstance(descriptor, int)
        made[descriptor] = name(file)
        return descriptor

    def write(descriptor: int, data: memoryview, offset: int) -> None:
        step = Step(WRITE, made[descriptor], "", bytes(data), offset, descriptor)
        through(step, lambda: honest["write"](descriptor, data, offset))

    def sync(descriptor: int) -> None:
        step = Step(SYNC, made[descriptor], descriptor=descriptor)
        through(step, lambda: honest["sync"](descriptor))

    def sync_directory(file: str) -> None:
        here = os.path.realpath(file) == os.path.realpath(path)
        step = Step(SYNC_ENTRIES if here else SYNC_PLACE)
        through(step, lambda: honest["sync_directory"](file))

    def rename(old: str, new: str) -> None:
        through(Step(RENAME, name(old), name(new)), lambda: honest["rename"](old, new))

    def remove(file: str) -> None:
        through(Step(REMOVE, name(file)), lambda: honest["remove"](file))

    replaced = (make_directory, create, write, sync, sync_directory, rename, remove)
    honest: dict[str, Callable[..., object]] = {
        it.__name__: getattr(_files, it.__name__) for it in replaced
    }
    with ExitStack() as patches:
        for function in replaced:
            patches.enter_context(patch.object(_files, function.__name__, function))
        yield


@contextmanager
def nothing_synced() -> Iterator[None]:
    """Leave out all syncs, where it does not matter what a loss of power would do."""
    with (
        patch.object(_files, "sync", lambda descriptor: None),
        patch.object(_files, "sync_directory", lambda path: None),
    ):
        yield
