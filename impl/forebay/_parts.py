"""Bytes of files with their checksums: written and summed at once, read and checked at once.

A file is covered by parts, each with a CRC-32 of its own, so that streams which go to several
places of a file can be summed as they come, and large ones by several threads.

Why CRC-32: it finds every damage within four bytes that follow each other, any other but one in
four thousand million, and costs half of what SHA-256 does, which on one core is slower than a disk.
Neither tells who wrote a file. What holds the checksums, the manifest, has a SHA-256.
"""

import os
import zlib
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor

from forebay import _files
from forebay._manifest import Damaged, File, Part

_BLOCK = 2**21
# Shorter writes are summed on the spot, since a thread would take longer, and gathered to one part.
_SHORT = 2**17
_GATHERED = 2**20


def summing_threads() -> ThreadPoolExecutor:
    """Return threads that sum up bytes; leaving them as a context ends them."""
    return ThreadPoolExecutor(min(4, os.cpu_count() or 1), thread_name_prefix="forebay-checksum")


class Stream:
    """Bytes that are written one after the other from an offset of a file on.

    `settle` must be called before memory that was written is changed, and in the end.
    """

    def __init__(self, descriptor: int, offset: int, threads: ThreadPoolExecutor) -> None:
        self._descriptor = descriptor
        self._threads = threads
        self._offset = offset
        self._begin = offset
        self._sum = 0
        self._pending: list[tuple[int, int, Future[str]]] = []
        self._parts: list[Part] = []

    def write(self, data: memoryview) -> None:
        """Write bytes behind those that were written before."""
        for block in blocks(data):
            if block.nbytes < _SHORT:
                self._sum = zlib.crc32(block, self._sum)
                _files.write(self._descriptor, block, self._offset)
                self._offset += block.nbytes
                if self._offset - self._begin >= _GATHERED:
                    self._close_part()
                continue
            self._close_part()
            begin, end = self._offset, self._offset + block.nbytes
            self._pending.append((begin, end, _started(self._threads, block)))
            _files.write(self._descriptor, block, begin)
            self._offset = self._begin = end

    def settle(self) -> None:
        """Wait until all that was written is summed up."""
        for begin, end, checksum in self._pending:
            self._parts.append(Part(begin, end, checksum.result()))
        self._pending.clear()

    def finish(self) -> list[Part]:
        """Return the parts that cover what was written, in order."""
        self._close_part()
        self.settle()
        return sorted(self._parts)

    def _close_part(self) -> None:
        if self._offset > self._begin:
            self._parts.append(Part(self._begin, self._offset, _digits(self._sum)))
            self._sum = 0
            self._begin = self._offset


def blocks(data: memoryview) -> Iterator[memoryview]:
    """Yield bytes in pieces that several threads can share."""
    for begin in range(0, data.nbytes, _BLOCK):
        yield data[begin : begin + _BLOCK]


class Reader:
    """Reads a file from its first byte to its last, and checks it as it goes.

    Raises:
        Damaged: the file is longer or shorter than the manifest says.
    """

    def __init__(self, descriptor: int, file: File, threads: ThreadPoolExecutor) -> None:
        size = _files.size(descriptor)
        if size != file.size:
            raise Damaged(f"{file.name}: it has {size} bytes, and the manifest says {file.size}")
        self._descriptor = descriptor
        self._threads = threads
        self._file = file
        self._offset = 0
        self._next = 0
        self._read: list[tuple[int, memoryview]] = []
        self._pending: list[tuple[Part, Future[str]]] = []

    @property
    def left(self) -> int:
        """How many bytes were not read yet."""
        return self._file.size - self._offset

    def read(self, into: memoryview) -> None:
        """Fill a view with the next bytes; it must stay as it is until `finish`."""
        for block in blocks(into):
            count = _files.read(self._descriptor, block, self._offset)
            if count != block.nbytes:
                raise Damaged(f"{self._file.name}: it ends at byte {self._offset + count}")
            self._read.append((self._offset, block))
            self._offset += count
            self._check()

    def finish(self) -> None:
        """Wait until all that was read is checked.

        Raises:
            Damaged: a byte is not as it was written.
        """
        for part, checksum in self._pending:
            if checksum.result() != part.crc32:
                raise Damaged(
                    f"{self._file.name}: bytes {part.begin} to {part.end} are not what was "
                    f"written: their CRC-32 is {checksum.result()}, and the manifest says "
                    f"{part.crc32}"
                )
        self._pending.clear()

    def _check(self) -> None:
        """Begin to check the parts that were read to their ends."""
        parts = self._file.parts
        while self._next < len(parts) and parts[self._next].end <= self._offset:
            part = parts[self._next]
            self._next += 1
            self._pending.append(
                (part, _started(self._threads, *_cut(self._read, part.begin, part.end)))
            )
            self._read = [(at, it) for at, it in self._read if at + it.nbytes > part.end]


def _cut(read: Sequence[tuple[int, memoryview]], begin: int, end: int) -> list[memoryview]:
    """Return the pieces of memory that hold a range of bytes of the file."""
    return [
        block[max(begin - at, 0) : end - at]
        for at, block in read
        if at < end and at + block.nbytes > begin
    ]


def _started(threads: ThreadPoolExecutor, *pieces: memoryview) -> "Future[str]":
    """Begin to sum up bytes; while the interpreter ends, when threads take no work, do it here."""
    try:
        return threads.submit(_checksum, *pieces)
    except RuntimeError:
        done: Future[str] = Future()
        done.set_result(_checksum(*pieces))
        return done


def _checksum(*pieces: memoryview) -> str:
    value = 0
    for piece in pieces:
        value = zlib.crc32(piece, value)
    return _digits(value)


def _digits(value: int) -> str:
    return f"{value:08x}"
