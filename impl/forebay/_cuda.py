"""The port to a CUDA device; the only place of the library that knows of CUDA.

A storage is given what `_streams.Streams` describes and asks for nothing else, so all else about it
runs without such a device too. What is used here is torch's: its streams and events, its caching
allocators of device and page-locked host memory, `Tensor.record_stream`, and the handles by which
`torch.multiprocessing` hands memory to other processes.
"""

import threading
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from math import prod
from typing import cast

import torch
from torch.multiprocessing.reductions import reduce_tensor

from forebay._streams import Event, Stream


class CudaStreams:
    """A CUDA device.

    Args:
        device: `"cuda"`, the current one, or one by its number, as in `"cuda:1"`.

    Raises:
        RuntimeError: torch finds no CUDA device.
        ValueError: this is not one of them.
    """

    def __init__(self, device: torch.device | str = "cuda") -> None:
        try:
            found = torch.device(device)
        except (RuntimeError, TypeError):  # torch knows no such device
            found = None
        if found is None or found.type != "cuda":
            raise ValueError(
                f"device must be a CUDA device such as 'cuda' or 'cuda:1', got {str(device)!r}; "
                f"for records on the host use TensorStorage or SharedStorage"
            )
        if not torch.cuda.is_available():
            built = torch.version.cuda
            build = f"torch was built for CUDA {built}" if built else "this torch is a CPU build"
            raise RuntimeError(
                f"torch finds no CUDA device ({build}); use TensorStorage or SharedStorage to keep "
                f"records on the host"
            )
        index = torch.cuda.current_device() if found.index is None else found.index
        count = torch.cuda.device_count()
        if index >= count:
            raise ValueError(
                f"device must be one of cuda:0 to cuda:{count - 1}, got {str(device)!r}"
            )
        self._device = torch.device("cuda", index)
        self._threads = threading.local()

    @property
    def device(self) -> torch.device:
        """The device, with its number."""
        return self._device

    def holds(self, tensor: torch.Tensor) -> bool:
        """Tell whether a tensor is on the device."""
        return tensor.device == self._device

    def current(self) -> torch.cuda.Stream:
        """Return torch's current stream of the calling thread."""
        return torch.cuda.current_stream(self._device)

    def own(self) -> torch.cuda.Stream:
        """Return a stream of torch's pool for the calling thread, the same one each time."""
        stream: torch.cuda.Stream | None = getattr(self._threads, "stream", None)
        if stream is None:
            stream = torch.cuda.Stream(self._device)  # type: ignore[no-untyped-call]  # torch's own
            self._threads.stream = stream
        return stream

    def on(self, stream: Stream) -> AbstractContextManager[object]:
        """Make a stream torch's current one within a block."""
        return torch.cuda.stream(_stream(stream))

    def empty(self, shape: Sequence[int], dtype: torch.dtype) -> torch.Tensor:
        """Return memory of torch's allocator; see `Streams.empty`."""
        try:
            # A tensor that is made in inference mode could be changed nowhere else.
            with torch.inference_mode(False):
                return torch.empty(tuple(shape), dtype=dtype, device=self._device)
        except torch.cuda.OutOfMemoryError as error:
            unused = torch.cuda.memory_reserved(self._device)
            unused -= torch.cuda.memory_allocated(self._device)
            free = torch.cuda.mem_get_info(self._device)[0] + unused
            needed = prod(shape) * dtype.itemsize
            raise MemoryError(
                f"{needed:,} bytes of memory of {self._device} are needed, and about {free:,} are "
                f"free; use a smaller capacity, or keep records on the host"
            ) from error

    def staging(self, nbytes: int) -> torch.Tensor:
        """Return page-locked memory of torch's allocator."""
        try:
            with torch.inference_mode(False):
                return torch.empty(nbytes, dtype=torch.uint8, device="cpu", pin_memory=True)
        except RuntimeError as error:
            raise MemoryError(
                f"{nbytes:,} bytes of page-locked host memory could not be had: {error}"
            ) from error

    def copy(self, stream: Stream, source: torch.Tensor, target: torch.Tensor) -> None:
        """Queue a copy; see `Streams.copy`."""
        with torch.cuda.stream(_stream(stream)):
            target.copy_(source, non_blocking=True)

    def put(
        self, stream: Stream, rows: torch.Tensor, slots: torch.Tensor, column: torch.Tensor
    ) -> None:
        """Queue a copy of `rows[i]` into `column[slots[i]]`."""
        with torch.cuda.stream(_stream(stream)):
            column.index_copy_(0, slots, rows)

    def take(
        self, stream: Stream, column: torch.Tensor, slots: torch.Tensor, rows: torch.Tensor
    ) -> None:
        """Queue a copy of `column[slots[i]]` into `rows[i]`."""
        with torch.cuda.stream(_stream(stream)):
            torch.index_select(column, 0, slots, out=rows)

    def record(self, stream: Stream) -> torch.cuda.Event:
        """Return a new event; a host that waits for it sleeps."""
        event = torch.cuda.Event(blocking=True)  # type: ignore[no-untyped-call]  # torch's own
        event.record(_stream(stream))
        return event

    def wait(self, stream: Stream, event: Event) -> None:
        """Let what is queued in a stream from now on run after an event."""
        _stream(stream).wait_event(_event(event))

    def over(self, event: Event) -> bool:
        """Tell whether all that an event stands for has run."""
        return bool(_event(event).query())  # type: ignore[no-untyped-call]  # torch's own

    def synchronize(self, event: Event) -> None:
        """Wait on the host for an event."""
        _event(event).synchronize()

    def keep(self, tensor: torch.Tensor, stream: Stream) -> None:
        """Tell the allocator of a stream that uses a tensor."""
        tensor.record_stream(_stream(stream))

    def share(self, tensor: torch.Tensor) -> object:
        """Return a handle of memory for another process, by CUDA IPC; see `SharingStreams.share`.

        Torch counts the processes that have the memory. A handle that nobody attaches to, or whose
        process is killed, counts for as long as this process lives.
        """
        return reduce_tensor(tensor)  # type: ignore[no-untyped-call]  # torch's own

    def attach(self, handle: object) -> torch.Tensor:
        """Return the memory of another process's tensor; both have to see the same devices."""
        rebuild, parts = cast(tuple[Callable[..., torch.Tensor], tuple[object, ...]], handle)
        with torch.inference_mode(False):
            return rebuild(*parts)

    def __reduce__(self) -> tuple[type["CudaStreams"], tuple[torch.device]]:
        return CudaStreams, (self._device,)


def _stream(stream: Stream) -> torch.cuda.Stream:
    assert isinstance(stream, torch.cuda.Stream), "streams of this port are torch's"
    return stream


def _event(event: Event) -> torch.cuda.Event:
    assert isinstance(event, torch.cuda.Event), "events of this port are torch's"
    return event
