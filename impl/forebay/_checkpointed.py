"""Saving a buffer and loading it again: one capture and one restore behind every way of doing it.

`state_dict` copies out, `dumps` writes the records straight from their slots, and pickling a buffer
of one process is construction with a state. Whatever comes back is checked before anything changes.
"""

import copy
import io
import os
from collections.abc import Callable, Mapping
from typing import Any, Protocol, SupportsIndex, TypeVar, runtime_checkable

import torch

from forebay._base import PARTS, BufferBase
from forebay._capture import Capture
from forebay._checked import checked
from forebay._checkpoint import read_checkpoint, write_checkpoint
from forebay._crossing import Crossing
from forebay._errors import CheckpointError, RecordMismatch
from forebay._homes import Home
from forebay._restore import Restore
from forebay._saved_rows import Columns, PinnedRows, Saving
from forebay._state import Settings, State, state_of
from forebay._storage import Storage
from forebay._transforms import Transforms
from forebay._validate import timeout_seconds

T = TypeVar("T")


@runtime_checkable
class Renewable(Protocol):
    """What a storage offers if another one like it can be made."""

    def another(self) -> Callable[[], Storage]:
        """Return what makes an empty storage like this one; it can be pickled."""


class CheckpointBase(BufferBase):
    """The calls that save and load."""

    def state_dict(self) -> State:
        """Return all that is needed to go on from here, as of one moment.

        Other threads and processes go on meanwhile; each record is kept from being overwritten
        until it is copied. The state is nobody else's: it does not change with the buffer. What is
        being written is not in it, nor is who waits or how far the buffer is closed. What others
        hold, leases too, counts as not drawn; batches drawn ahead by this handle are in it.

        Returns:
            A nested dict of ints, strings, lists and tensors, and of the objects that a
            `ListStorage` or a transform puts there; `load_state_dict` takes it. What a
            `ListStorage` does not copy on a read is not copied here either. Records and batches of
            a device are on the host, and can be loaded on either.

        Raises:
            RuntimeError: it is called inside another call of the buffer, as by a transform.
            TypeError: the storage cannot be saved.
            NotImplementedError: the buffer has a trace.
        """
        capture = self._capture()
        return _settled(capture, lambda: self._captured(capture, in_place=False))

    def load_state_dict(
        self, state_dict: Mapping[str, object], *, timeout: float | None = None
    ) -> None:
        """Put a state in the place of all that the buffer has; its values are copied.

        Waits until nothing is being written, gathered, saved or restored, while nobody new
        begins. Leases of before are void, batches drawn ahead are gone, and calls that wait go on
        waiting. The buffer stays as open or closed as it is.

        Args:
            state_dict: from a buffer of the same kind, capacity, order, number of uses or
                `drop_last`, and records.
                Without an entry `"prefetched"` nothing is drawn ahead afterwards.
            timeout: seconds to wait at most; None or infinity for ever.

        Raises:
            CheckpointError: the state does not fit, or the wait was too long; the buffer is
                untouched.
            RuntimeError: it is called inside another call of the buffer, as by a transform, or in
                an event loop that has to end an asynchronous one first.
        """
        self._take_over(state_dict, timeout, owned=False)

    def dumps(self, path: str | os.PathLike[str], *, allow_pickle: bool = False) -> None:
        """Write a checkpoint into a directory, in place of the one there; see `state_dict`.

        A crash at any moment leaves the old checkpoint or the new one, whole.

        Args:
            path: the directory; it is made if it is not there.
            allow_pickle: let Python objects, as of a `ListStorage`, be pickled.

        Raises:
            CheckpointError: something cannot be written in the format.
            OSError: it cannot be written.
        """
        capture = self._capture()

        def write() -> None:
            state = self._captured(capture, in_place=True)
            write_checkpoint(path, state, allow_pickle=allow_pickle)

        _settled(capture, write)

    def loads(
        self,
        path: str | os.PathLike[str],
        *,
        allow_pickle: bool = False,
        timeout: float | None = None,
    ) -> None:
        """Read a checkpoint and load it; see `load_state_dict`.

        Args:
            path: the directory that `dumps` wrote.
            allow_pickle: unpickle Python objects; only for files that you trust.
            timeout: as for `load_state_dict`.

        Raises:
            CheckpointError: it is damaged, newer, or does not fit; the buffer is untouched.
            OSError: it cannot be read.
        """
        self._check_outside()
        state = read_checkpoint(path, allow_pickle=allow_pickle)
        self._take_over(state, timeout, owned=True)

    def dump(self, path: str | os.PathLike[str]) -> None:
        """Write a checkpoint as `dumps` does; TorchRL's name."""
        self.dumps(path)

    def load(self, path: str | os.PathLike[str]) -> None:
        """Load a checkpoint as `loads` does; TorchRL's name."""
        self.loads(path)

    def __reduce_ex__(self, protocol: SupportsIndex) -> str | tuple[object, ...]:
        if self.shared:
            return super().__reduce_ex__(protocol)
        parts = self._parts()
        # A tensor of some dtypes cannot be pickled by itself, but all can be saved.
        saved = io.BytesIO()
        torch.save(self.state_dict(), saved)
        # As with any object, attributes are kept and a constructor of a subclass is not called.
        return _unpickled, (*parts, self._transforms, saved.getvalue()), self._more()

    def __deepcopy__(self, memo: dict[int, object]) -> "CheckpointBase":
        if self.shared:
            return copy.copy(self)  # another handle, as whatever travels is
        copied = memo[id(self)] = _made(*self._parts())
        transforms, more = copy.deepcopy((self._transforms, self._more()), memo)
        _fill(copied, transforms, self.state_dict())
        vars(copied).update(more)
        return copied

    def _more(self) -> dict[str, object]:
        """Return what a subclass, or whoever has the buffer, has put into it."""
        return {name: value for name, value in vars(self).items() if name not in PARTS}

    def _parts(self) -> "tuple[type[CheckpointBase], Callable[[], Storage], dict[str, Any]]":
        """Return what another buffer like this one is made of."""
        # A subclass may be made in another way, so that it has to say itself how.
        if "another" not in vars(type(self._storage)) or not isinstance(self._storage, Renewable):
            raise TypeError(
                f"a {type(self).__name__} over a {type(self._storage).__name__} can be neither "
                f"copied nor pickled, one over a TensorStorage, a ListStorage or a CudaStorage "
                f"can; make the buffer and load a state_dict instead"
            )
        options = {
            "batch_size": self._batch_size,
            "sampling": self._sampling,
            "prefetch": self.prefetch,
            "stall_warning": self._stall_warning,
            "dim_extend": self._dim_extend,
            "limits": self._core.ledger.limits,
        }
        return type(self), self._storage.another(), options

    def _settings(self) -> Settings:
        return Settings(self.capacity, self._sampling, self._batch_size, self.prefetch)

    def _saving(self) -> Saving:
        """Return the storage, which must be one whose records can be saved."""
        if not isinstance(self._storage, Saving):
            raise TypeError(
                f"the records of a {type(self._storage).__name__} can be neither saved nor "
                f"restored; use a TensorStorage, a SharedStorage or a ListStorage, or give it "
                f"begin_copy and accept as these have them"
            )
        return self._storage

    def _check_outside(self) -> None:
        """Raise in a transform, whose batch a capture or a restore would wait for."""
        if self._transforms.run_here():
            raise RuntimeError(
                "a buffer can be neither saved nor restored by one of its transforms, whose batch "
                "that would wait for; do it outside of the buffer's calls"
            )

    def _capture(self) -> Capture:
        self._check_outside()
        home = Home(self._storage)
        capture = Capture(self._core, self._transforms, self._prefetcher, home)
        self._saving()
        return capture

    def _captured(self, capture: Capture, *, in_place: bool) -> State:
        """Return the state of a capture, its records copied or, `in_place`, as a stream."""
        storage = self._saving()
        snapshot = capture.begin()
        length = len(snapshot.slots)
        data: object = None
        schema = storage.schema if isinstance(storage, Columns) else None
        if in_place and schema is not None and isinstance(storage, Columns):
            data = PinnedRows(storage, schema, length, capture.parts)
        else:
            copies = storage.begin_copy(length)
            if copies is not None:
                for part in capture.parts(copies.part):
                    copies.add(part)
                data = copies.data()
        return state_of(self._settings(), snapshot, data, capture.payloads(), capture.transforms)

    def _take_over(self, state: object, timeout: float | None, *, owned: bool) -> None:
        """Load a state; `owned` says that its values are nobody else's."""
        self._check_outside()
        seconds = timeout_seconds(timeout)
        settings, storage = self._settings(), self._saving()
        read = checked(state, settings)
        try:
            arrival = storage.accept(read.data, read.snapshot.slots)
        except RecordMismatch as error:
            raise CheckpointError(
                f"the checkpoint cannot be loaded, nothing changed: its records are not like "
                f"those of this buffer:\n  {error}\nforebay.read_records(path) reads them from a "
                f"file, to be extended into any buffer after whatever makes them fit"
            ) from error
        ahead = Home(self._storage).arrived(read.payloads, owned=owned)
        restore = Restore(self._core, self._transforms, self._prefetcher, read, arrival, ahead)
        _settled(restore, lambda: restore.run(seconds))


def _settled(crossing: Crossing, work: Callable[[], T]) -> T:
    """Do what a capture or a restore is for, and let go of the boundary in the end.

    Twice, since an interrupt may come before the first time has begun to look.
    """
    try:
        try:
            return work()
        finally:
            crossing.let_go()
    finally:
        crossing.let_go()


def _unpickled(
    kind: type[CheckpointBase],
    storage: Callable[[], Storage],
    options: dict[str, Any],
    transforms: Transforms,
    saved: bytes,
) -> CheckpointBase:
    """Return what a pickle holds, which runs code of whoever made it as all pickles do."""
    buffer = _made(kind, storage, options)
    _fill(buffer, transforms, torch.load(io.BytesIO(saved), weights_only=False))
    return buffer


def _made(
    kind: type[CheckpointBase], storage: Callable[[], Storage], options: dict[str, Any]
) -> CheckpointBase:
    """Return a new buffer of one process."""
    buffer = kind.__new__(kind)
    BufferBase.__init__(buffer, storage(), **options)
    return buffer


def _fill(buffer: CheckpointBase, transforms: Transforms, state: State) -> None:
    """Give a new buffer its transforms and a state that is nobody else's."""
    buffer._transforms.become(transforms)
    buffer._take_over(state, None, owned=True)
