"""Where batches that were drawn ahead are in a buffer, and where in a state.

The tensors of such a batch are at home where the storage gathers them, on the host or on its
device, but for those that a transform has put elsewhere. In a state all that were at home are on
the host: so a state takes no memory of a device, and can be loaded where there is none. Whoever
loads it has them at home again, wherever that is there, and the others stay where they are.

What a device has to copy goes to the queue of the stream that is current for the calling thread, as
all that it does. A state has to be there when it is returned, so there the host waits; a batch that
is loaded has an event instead, for whoever is handed it.
"""

from collections.abc import Sequence
from itertools import count
from typing import Final, NamedTuple

import torch

from forebay._arrays import stand_in
from forebay._checked import refuse
from forebay._hand_over import streams_of
from forebay._payloads import copy_of
from forebay._staging import Freight, Staging
from forebay._state import Saved
from forebay._storage import Storage
from forebay._streams import Event, Streams

Pairs = list[tuple[torch.Tensor, torch.Tensor]]
"""Tensors to be copied, and what into."""


class Arrived(NamedTuple):
    """Batches that are at home.

    Attributes:
        batches: as they will be handed out.
        event: what whoever uses one of them has to wait for on its device, if anything.
    """

    batches: list[object]
    event: Event | None


class Home:
    """The home of the batches of a storage.

    Args:
        storage: where the records are.
    """

    def __init__(self, storage: Storage) -> None:
        self._streams: Final = streams_of(storage)

    def saved(self, batch: object) -> Saved:
        """Return a copy of a batch for a state."""
        numbers, elsewhere = count(), []
        pairs: Pairs = []

        def of_tensor(tensor: torch.Tensor) -> torch.Tensor:
            number = next(numbers)
            if not self._is_home(tensor):
                elsewhere.append(number)
            elif self._streams is not None:
                here = torch.empty(tensor.shape, dtype=tensor.dtype, device="cpu")
                pairs.append((tensor, here.detach()))
                return here
            return tensor.clone()

        copied = copy_of(batch, of_tensor)
        if self._streams is not None:
            _fetch(self._streams, pairs)
        return Saved(copied, elsewhere)

    def arrived(self, saved: Sequence[Saved], *, owned: bool) -> Arrived:
        """Return batches of a state at home; `owned` says that they are nobody else's.

        Raises:
            CheckpointError: one of them has no such tensors as are said to be elsewhere.
            MemoryError: there is not so much memory on the device.
        """
        streams = self._streams
        if streams is None and owned and not any(elsewhere for _, elsewhere in saved):
            return Arrived([batch for batch, _ in saved], None)
        batches = [self._brought(each, number) for number, each in enumerate(saved)]
        event = None if streams is None else streams.record(streams.current())
        return Arrived(batches, event)

    def _brought(self, saved: Saved, place: int) -> object:
        streams, numbers, pairs = self._streams, count(), Pairs()

        def of_tensor(tensor: torch.Tensor) -> torch.Tensor:
            stays = next(numbers) in saved.elsewhere or tensor.device.type != "cpu"
            if streams is None or stays or not _is_plain(tensor):
                return tensor.clone()
            there = streams.empty(tensor.shape, tensor.dtype)
            pairs.append((tensor, there.detach()))
            return there

        copied, found = copy_of(saved.batch, of_tensor), next(numbers)
        if saved.elsewhere and saved.elsewhere[-1] >= found:
            where = f"prefetched.batches[{place}].elsewhere"
            refuse(where, f"numbers of the {found} tensors of the batch", saved.elsewhere[-1])
        if streams is not None:
            _bring(streams, pairs)
        return copied

    def _is_home(self, tensor: torch.Tensor) -> bool:
        if self._streams is None:
            return tensor.device.type == "cpu"
        return _is_plain(tensor) and self._streams.holds(tensor)


def _is_plain(tensor: torch.Tensor) -> bool:
    """Tell whether a tensor is no more than its elements."""
    dense = type(tensor) is torch.Tensor and tensor.layout is torch.strided and not tensor.is_nested
    return dense and stand_in(tensor.dtype) is not None


def _fetch(streams: Streams, pairs: Pairs) -> None:
    """Copy tensors of the device to the host, which waits for them."""
    stream, pieces = streams.current(), _pieces(streams, pairs)
    for (source, _), piece in zip(pairs, pieces, strict=True):
        if source.numel():
            streams.copy(stream, source, piece)
    if pairs:
        streams.synchronize(streams.record(stream))
    for (_, target), piece in zip(pairs, pieces, strict=True):
        target.copy_(piece)


def _bring(streams: Streams, pairs: Pairs) -> None:
    """Queue copies of tensors of the host to the device."""
    stream, pieces = streams.current(), _pieces(streams, pairs)
    for (source, target), piece in zip(pairs, pieces, strict=True):
        if source.numel():
            piece.copy_(source)
            streams.copy(stream, piece, target)


def _pieces(streams: Streams, pairs: Pairs) -> list[torch.Tensor]:
    """Return a tensor of staging memory for each pair, of the same dtype and shape."""
    freight = Freight(Staging(streams), [source.nbytes for source, _ in pairs])
    return [
        piece.view(source.dtype).view(source.shape)
        for (source, _), piece in zip(pairs, freight.pieces(freight.memory), strict=True)
    ]
