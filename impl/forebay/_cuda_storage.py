"""Records of fixed shape on a CUDA device: the storage over streams, with those of CUDA."""

from collections.abc import Callable
from functools import partial

import torch

from forebay._cuda import CudaStreams
from forebay._shared_device import ShareableStorage


class CudaStorage(ShareableStorage):
    """Slots for records of tensors with fixed shapes and dtypes, on a CUDA device.

    Any thread may write and read, on any stream: a call works on the stream that is current for
    its thread, and nothing waits for the whole device. Batches may come from the host or be on the
    device already; sampled ones are on the device, for the stream that is current where they are
    handed out.

    With `shared=True` a buffer over the storage can be handed to other processes, by the process
    that made the storage: as an argument when they are started by spawn or forkserver, or through a
    queue. They use the same memory, so all of them have to see the same devices. Between processes
    the host waits: a write returns when its copies have run, a sample when it is there. When the
    process that made the storage ends, however that happens, the records are gone, and all calls of
    all processes raise `PeerLost`. Such a storage belongs to one buffer.

    Args:
        capacity: the number of slots.
        device: the CUDA device; by default torch's current one.
        example: one record, in any form, whose schema is used; by default the first write's. Batch
            dimensions that it has belong to the record. With `shared=True` there has to be one.
        shared: whether other processes can use the buffer.

    Raises:
        TypeError: there is no example and `shared=True`.
        RuntimeError: torch finds no CUDA device.
        ValueError: this is not one of them.
        RecordMismatch: the example cannot be stored.
        MemoryError: there is no memory for the records; without an example the first write says so.
    """

    def __init__(
        self,
        capacity: int,
        *,
        device: torch.device | str = "cuda",
        example: object = None,
        shared: bool = False,
    ) -> None:
        super().__init__(capacity, streams=CudaStreams(device), example=example, shared=shared)

    def another(self) -> "Callable[[], CudaStorage]":
        """Return what makes an empty storage like this one."""
        return partial(CudaStorage, self._capacity, device=self.device)
