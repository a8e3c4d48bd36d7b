"""The operations on files that a checkpoint is made of, and nothing else.

Everything that writes or reads a checkpoint goes through these functions, looked up in this module
at each call. So whoever wants to see a crash or a full disk between any two of them replaces them
here.

A write is durable once `sync` has returned for its file, and a name - made, renamed or removed -
once `sync_directory` has returned for its directory. Nothing is assumed about the order in which
the rest reaches the disk. All errors are the operating system's.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager

# Linux writes no more than this in one call.
_MOST = 2**30


def make_directory(path: str) -> None:
    """Make a directory, with the permissions that the process's umask leaves."""
    os.mkdir(path)


def create(path: str) -> int:
    """Make a new file and return a descriptor to write to it."""
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)


def write(descriptor: int, data: memoryview, offset: int) -> None:
    """Write all bytes at an offset of a file."""
    while data.nbytes:
        done = os.pwrite(descriptor, data[:_MOST], offset)
        data, offset = data[done:], offset + done


def sync(descriptor: int) -> None:
    """Wait until the contents of a file are on the disk."""
    os.fsync(descriptor)


def close(descriptor: int) -> None:
    """Close a file."""
    os.close(descriptor)


def sync_directory(path: str) -> None:
    """Wait until the names in a directory are on the disk as they are now."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def rename(old: str, new: str) -> None:
    """Give a file another name in one step, in place of the file that has it."""
    os.replace(old, new)


def remove(path: str) -> None:
    """Remove a file."""
    os.unlink(path)


def names(path: str) -> list[str]:
    """Return the names in a directory."""
    return sorted(os.listdir(path))


def open_to_read(path: str) -> int:
    """Return a descriptor to read a file, which stays readable when its name is removed."""
    return os.open(path, os.O_RDONLY | os.O_CLOEXEC)


def read(descriptor: int, into: memoryview, offset: int) -> int:
    """Read bytes at an offset of a file until the view is full; return how many there were."""
    done = 0
    while done < into.nbytes:
        count = os.preadv(descriptor, [into[done : done + _MOST]], offset + done)
        if not count:
            break
        done += count
    return done


def size(descriptor: int) -> int:
    """Return the size of an open file, in bytes."""
    return os.fstat(descriptor).st_size


_locks: set[int] = set()


@contextmanager
def locked(path: str) -> Iterator[None]:
    """Hold the lock that a file stands for; wait for whoever has it.

    It ends with its process, however that ends. A child that is forked meanwhile lets go of its
    copy, which would otherwise keep the lock after its parent's death.
    """
    import fcntl

    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    _locks.add(descriptor)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        # Not only by the close, which would leave it to copies that a process on its way to
        # another program has.
        fcntl.flock(descriptor, fcntl.LOCK_UN)
        _locks.discard(descriptor)
        os.close(descriptor)


def _let_go() -> None:
    for descriptor in _locks:
        os.close(descriptor)
    _locks.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_let_go)
