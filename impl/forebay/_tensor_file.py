"""Files of tensors in the safetensors format, written as their elements come.

Such a file is eight bytes with the length of a header, a header in JSON that gives each tensor's
dtype, shape and place, and the elements, little end first, without gaps. Lengths are known
beforehand, so records that come in chunks, a few rows of every leaf at a time, are written straight
to their places: one tensor a leaf, and never a second copy of all of them.

A dtype that safetensors lacks is stored with one more dimension at the end: real and imaginary
part, or the bytes.
"""

import json
import math
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Final, NamedTuple

import numpy as np
import torch

from forebay._arrays import Array, stand_in
from forebay._manifest import Damaged, Part
from forebay._parts import Reader, Stream

_TAGS: Final = {
    torch.bool: "BOOL",
    torch.uint8: "U8",
    torch.uint16: "U16",
    torch.uint32: "U32",
    torch.uint64: "U64",
    torch.int8: "I8",
    torch.int16: "I16",
    torch.int32: "I32",
    torch.int64: "I64",
    torch.float8_e4m3fn: "F8_E4M3",
    torch.float8_e4m3fnuz: "F8_E4M3FNUZ",
    torch.float8_e5m2: "F8_E5M2",
    torch.float8_e5m2fnuz: "F8_E5M2FNUZ",
    torch.float16: "F16",
    torch.bfloat16: "BF16",
    torch.float32: "F32",
    torch.float64: "F64",
    torch.complex64: "C64",
}
_SIZES: Final = {tag: dtype.itemsize for dtype, tag in _TAGS.items()}
_PAIRS: Final = {torch.complex32: "F16", torch.complex128: "F64"}
_METADATA = "__metadata__"


class Look(NamedTuple):
    """The dtype and shape of a tensor."""

    dtype: torch.dtype
    shape: tuple[int, ...]


class Stored(NamedTuple):
    """A tensor as a file has it: the dtype's name and the shape there, and its bytes."""

    tag: str
    shape: tuple[int, ...]
    data: Array


def can_store(dtype: torch.dtype) -> bool:
    """Tell whether elements of a dtype can be written."""
    return stand_in(dtype) is not None


def stored_as(look: Look) -> tuple[str, tuple[int, ...]]:
    """Return the name that safetensors has for a dtype, and the shape there."""
    if look.dtype in _TAGS:
        return _TAGS[look.dtype], look.shape
    if look.dtype in _PAIRS:
        return _PAIRS[look.dtype], (*look.shape, 2)
    return "U8", (*look.shape, look.dtype.itemsize)


class TensorFile:
    """A file that is being written; its header is there at once.

    Args:
        descriptor: of the new file.
        looks: the tensors by name.
        threads: sum up what is written.
    """

    def __init__(
        self, descriptor: int, looks: Mapping[str, Look], threads: ThreadPoolExecutor
    ) -> None:
        assert sys.byteorder == "little", "safetensors are little-endian"
        self._descriptor = descriptor
        self._threads = threads
        header, self._begins, self.size = _layout(looks)
        self._looks = looks
        self._header = self._stream(0)
        self._header.write(memoryview(header))

    def write_whole(self, arrays: Mapping[str, Iterable[Array]]) -> list[Part]:
        """Write each tensor, in pieces that follow each other, and return the file's parts.

        A piece is asked for when the one before it is written and summed up.
        """
        # In the order of their places, so that many small ones share a checksum.
        for name in sorted(arrays, key=self._begins.__getitem__):
            for array in arrays[name]:
                self._header.write(_bytes_of(array))
                self._header.settle()
        return self._header.finish()

    def write_rows(
        self, names: Sequence[str], length: int, chunks: Iterator[list[Array]]
    ) -> list[Part]:
        """Write tensors a few rows of each at a time, and return the file's parts.

        The next chunk is asked for when the one before it is written and summed up.

        Raises:
            ValueError: there are more or fewer rows than were announced.
        """
        streams = [self._stream(self._begins[name]) for name in names]
        left = length
        for columns in chunks:
            left -= len(columns[0]) if columns else 0
            if left < 0:
                break
            for stream, column in zip(streams, columns, strict=True):
                stream.write(_bytes_of(column))
            for stream in streams:
                stream.settle()
        if left:
            raise ValueError(f"expected {length} rows, got {length - left}")
        return [part for stream in (self._header, *streams) for part in stream.finish()]

    def _stream(self, offset: int) -> Stream:
        return Stream(self._descriptor, offset, self._threads)


def _layout(looks: Mapping[str, Look]) -> tuple[bytes, dict[str, int], int]:
    """Return the header with its length, where each tensor begins in the file, and its size."""
    entries, begins, end = {}, {}, 0
    # Large elements first keep all of them aligned.
    for name, look in sorted(looks.items(), key=lambda item: -item[1].dtype.itemsize):
        tag, shape = stored_as(look)
        begins[name] = end
        end += math.prod(shape) * _SIZES[tag]
        entries[name] = {"dtype": tag, "shape": shape, "data_offsets": (begins[name], end)}
    text = json.dumps(entries, separators=(",", ":")).encode("ascii")
    text += b" " * (-len(text) % 8)
    header = len(text).to_bytes(8, "little") + text
    return header, {n: len(header) + begin for n, begin in begins.items()}, len(header) + end


def _bytes_of(array: Array) -> memoryview:
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8).data


def read_tensors(reader: Reader, name: str) -> dict[str, Stored]:
    """Read a whole file, each tensor into memory of its own.

    Args:
        reader: of the file, at its beginning.
        name: the file's name, for messages.

    Raises:
        Damaged: the file is not what was written.
    """
    length = int.from_bytes(_take(reader, min(8, reader.left)), "little")
    if length > reader.left:
        raise Damaged(f"{name}: its header is said to have {length} bytes, which it has not")
    text = _take(reader, length)
    try:
        entries = _entries(json.loads(bytes(text)), reader.left)
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise Damaged(f"{name}: its header is not as the format asks: {error}") from error
    found = {}
    for key, (tag, shape, size) in entries.items():
        found[key] = Stored(tag, shape, np.empty(size, np.uint8))
        reader.read(found[key].data.data)
    reader.finish()
    return found


def _take(reader: Reader, size: int) -> memoryview:
    taken = memoryview(bytearray(size))
    reader.read(taken)
    return taken


def _entries(header: object, size: int) -> dict[str, tuple[str, tuple[int, ...], int]]:
    """Return dtype, shape and size of each tensor, in the order of their places.

    Raises:
        ValueError, KeyError, TypeError: they do not cover the elements one after the other.
    """
    if not isinstance(header, dict):
        raise TypeError("it is no table")
    places = {
        name: tuple(entry["data_offsets"]) for name, entry in header.items() if name != _METADATA
    }
    found, end = {}, 0
    for name, (begin, until) in sorted(places.items(), key=lambda item: item[1]):
        tag, shape = header[name]["dtype"], tuple(header[name]["shape"])
        if not all(type(number) is int and number >= 0 for number in (begin, until, *shape)):
            raise ValueError(f"{name!r} has places or sizes that are no whole numbers")
        if begin != end or until - begin != math.prod(shape) * _SIZES[tag]:
            raise ValueError(f"{name!r} has the bytes {begin} to {until}, which do not fit")
        found[name], end = (tag, shape, until - begin), until
    if end != size:
        raise ValueError(f"the tensors have {end} bytes, and the file {size}")
    return found
