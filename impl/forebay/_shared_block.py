"""A block of memory that processes share and that nothing outlives.

The memory is anonymous (`memfd_create`): it has no name in the file system, so it goes when the
last process that has it goes, however that ends, and there is nothing to clean up. It is reserved
in full at construction, after a look at what is free, so that no later store can fail for want of
memory; and its size is sealed, so that no process can cut it short under another. A block takes one
descriptor in each process. It stays mapped while any view of it lives.

How a block travels:

- a forked child inherits the mapping;
- as an argument of a process that is being spawned, the descriptor itself travels;
- pickled otherwise, for a queue or by hand, the block becomes a handle and never a copy: whoever
  loads it opens the sender's descriptor through `/proc`, which works for processes of the same user
  while the sender lives, and compares device, inode and size. A process that has the block already
  gets the very same one.
"""

import os
import weakref
from collections.abc import Callable
from ctypes import c_ubyte
from functools import partial
from math import prod
from multiprocessing import context, reduction
from typing import Any, Final, TypeVar

import numpy as np
import numpy.typing as npt

from forebay import _native as native
from forebay._errors import PeerLost
from forebay._memory import Free, demand_memory, free_memory

Number = TypeVar("Number", bound=np.generic)
Identity = tuple[int, int, int]
"""Device, inode and size in bytes of a block's memory."""

ALIGNMENT: Final = 64
"""Views begin at multiples of this many bytes: a cache line, and every number's size divides it."""


class SharedBlock:
    """Shared memory of a fixed size, full of zeros at first.

    Args:
        nbytes: how many bytes, at least 1.
        free: says what memory is free.

    Raises:
        NotImplementedError: this system cannot share buffers between processes.
        MemoryError: so much memory is not free.
    """

    def __init__(self, nbytes: int, *, free: Callable[[], Free] = free_memory) -> None:
        native.demand_linux()
        if nbytes < 1:
            raise ValueError(f"a block of shared memory has at least 1 byte, got {nbytes}")
        demand_memory(nbytes, free())
        self._hold(_reserve(nbytes))

    @classmethod
    def _adopt(cls, opened: native.Owned) -> "SharedBlock":
        """Return the block of a descriptor, which is this function's from now on."""
        known = _known.get(_identity(os.fstat(opened[0])))
        if known is not None:
            opened.close()
            return known
        block = cls.__new__(cls)
        block._hold(opened)
        return block

    def _hold(self, opened: native.Owned) -> None:
        self._opened = opened
        self._descriptor = opened[0]
        self._identity = _identity(os.fstat(self._descriptor))
        opened.give_back = partial(_close_if_of, self._identity)
        self.nbytes = self._identity[2]
        self._memory: Any = _mapping(self._descriptor, self.nbytes)
        _known[self._identity] = self

    @property
    def identity(self) -> Identity:
        """What all blocks of the same memory have in common, and no others at the same time."""
        return self._identity

    def array(
        self, dtype: type[Number] | np.dtype[Number], shape: tuple[int, ...], offset: int
    ) -> npt.NDArray[Number]:
        """Return an array of this dtype and shape that lies `offset` bytes from the start."""
        kind = np.dtype(dtype)
        memory = self._checked(offset, prod(shape) * kind.itemsize)
        return np.ndarray(shape, kind, buffer=memory, offset=offset)

    def cells(self, code: str, count: int, offset: int) -> memoryview:
        """Return `count` numbers of a format of the module `struct`, read as Python's own.

        One cell of up to 8 bytes is read or stored as one access to memory.
        """
        size = count * np.dtype(code).itemsize
        memory = memoryview(self._checked(offset, size))
        return memory[offset : offset + size].cast(code)  # type: ignore[call-overload, no-any-return]  # any format may be named

    def address(self, offset: int) -> int:
        """Return where a byte is in this process; it stays there while any view lives."""
        return int(self._checked(offset, 1).ctypes.data) + offset

    def close(self) -> None:
        """Give up the descriptor now; the memory stays mapped while views of it live."""
        _known.pop(self._identity, None)
        self._memory = None
        self._opened.close()

    def _checked(self, offset: int, size: int) -> Any:
        if self._memory is None:
            raise ValueError("this block of shared memory is closed")
        if offset % ALIGNMENT:
            raise ValueError(f"a view begins at a multiple of {ALIGNMENT} bytes, not at {offset}")
        if offset < 0 or offset + size > self.nbytes:
            raise ValueError(
                f"{size} bytes from {offset} on are not within a block of {self.nbytes}"
            )
        return self._memory

    def __reduce__(self) -> tuple[Callable[..., "SharedBlock"], tuple[object, ...]]:
        if self._memory is None:
            raise ValueError("this block of shared memory is closed")
        if not _is_of(self._identity, self._descriptor):
            raise RuntimeError(
                "this process has closed the descriptor of its shared buffer, as programs do that "
                "become daemons, so the buffer cannot go from here to other processes; keep the "
                "descriptors of /memfd:forebay open, or hand the buffer on before they are closed"
            )
        starting: Any = context.get_spawning_popen()
        # A descriptor can travel to a new process once; a second handle finds it like any other.
        if starting is not None and self._descriptor not in getattr(starting, "_fds", ()):
            return _receive, (reduction.DupFd(self._descriptor),)
        return _reach, (os.getpid(), self._descriptor, self._identity)


_known: "weakref.WeakValueDictionary[Identity, SharedBlock]" = weakref.WeakValueDictionary()
"""The blocks of this process that are not closed."""


def _reserve(nbytes: int) -> native.Owned:
    """Return the descriptor of so much fresh memory, all of it reserved."""
    import fcntl

    opened = native.Owned(os.close)
    flags = os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING
    descriptor = opened.take(os.memfd_create, "forebay", flags)
    try:
        os.posix_fallocate(descriptor, 0, nbytes)
        seals = fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL
        fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, seals)
    except OSError as error:
        opened.close()
        raise MemoryError(f"reserving {nbytes} bytes of shared memory failed: {error}") from error
    return opened


def _mapping(descriptor: int, nbytes: int) -> npt.NDArray[np.uint8]:
    """Return the mapped memory, which is unmapped when nobody has a view of it.

    All views are of an array of numpy: what that keeps is not seen by the collector of cycles, so
    the memory is not unmapped before other finalizers of the same cycle, which may use views.
    """
    mapping = native.map_shared(descriptor, nbytes)
    memory: Any = (c_ubyte * nbytes).from_address(mapping[0])
    memory.mapping = mapping
    return np.frombuffer(memory, np.uint8)


def _identity(status: os.stat_result) -> Identity:
    return status.st_dev, status.st_ino, status.st_size


def _is_of(identity: Identity, descriptor: int) -> bool:
    """Say whether a descriptor is this memory's, and not closed, nor of another file by now.

    A program that becomes a daemon closes all descriptors, whoever has opened them.
    """
    try:
        return _identity(os.fstat(descriptor)) == identity
    except OSError:
        return False


def _close_if_of(identity: Identity, descriptor: int) -> None:
    if _is_of(identity, descriptor):
        os.close(descriptor)


def _receive(travelled: Any) -> SharedBlock:
    """Rebuild a block in the process that is being spawned."""
    opened = native.Owned(os.close)
    os.set_inheritable(opened.take(travelled.detach), False)
    return SharedBlock._adopt(opened)


def _reach(owner: int, number: int, identity: Identity) -> SharedBlock:
    """Find a block again, by the descriptor of the process that pickled it.

    Raises:
        PeerLost: that process or its descriptor is gone, or it belongs to another user.
    """
    known = _known.get(identity)
    if known is not None:
        return known
    path = f"/proc/{owner}/fd/{number}"
    opened = native.Owned(os.close)
    try:
        # Looked at before it is opened: by now it may be anything, and opening may have effects.
        if _identity(os.stat(path)) == identity:
            opened.take(os.open, path, os.O_RDWR | os.O_CLOEXEC)
    except (FileNotFoundError, ProcessLookupError, PermissionError) as error:
        raise PeerLost(_UNREACHABLE.format(owner)) from error
    if not opened or not _is_of(identity, opened[0]):
        opened.close()
        raise PeerLost(_UNREACHABLE.format(owner))
    return SharedBlock._adopt(opened)


_UNREACHABLE: Final = (
    "a pickled shared buffer is a handle, which can be loaded while the process that pickled it "
    "(here process {}) lives and has the buffer, by processes of the same user; hand the buffer "
    "to a process as an argument when it is started instead"
)
