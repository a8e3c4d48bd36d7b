"""A buffer on threads with its records on a device, of which each actor has a stream of its own.

What is drawn ahead is gathered on a stream of the driver's, in the place of a pool. Half of the
batches that are written come from the host, and are scribbled over as soon as the write has
returned or raised; the others are on the device, where the next write has their memory again.

`SimulatedAdapter` lets the device run a few operations after each step, chosen by an adversary. The
numbers of the records that a reader has in hands are those that the device will have in them; that
they are there when the reader uses them is looked at by an operation in the reader's stream, which
runs whenever the adversary wants, maybe long after others have written into the same slots.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from random import Random
from typing import Final, cast

import torch
from forebay._device_storage import DeviceStorage
from forebay._streams import Stream
from forebay_spec.actions import Label
from forebay_spec.bounds import Bounds

from forebay_models.adapters.adapter import USUAL, Mismatch, Observation
from forebay_models.adapters.local import LocalAdapter
from forebay_models.adapters.records import TORN, Stepped, batch_of
from forebay_models.device.simulated import SimulatedDevice
from forebay_models.stepping.board import PATIENCE, Calls, Stop
from forebay_models.stepping.worker import Hands
from forebay_models.targets import StorageKind

PACES: Final = (0, 0, 2, 12, 1_000_000)
"""How many steps the device takes at most after each one of the buffer; one of them for a while."""

CHANGE: Final = 0.125
"""How often the pace is drawn anew."""

LOADER: Final = "loader"
"""Whose stream puts in some of the batches that actors write."""

TOLD: Final = 3
"""So many faults of a device are told; the others follow from them."""


class DeviceAdapter(LocalAdapter):
    """Drives one buffer over a storage on a device; see `LocalAdapter`."""

    def __init__(
        self,
        bounds: Bounds,
        storage: StorageKind,
        seed: int = 0,
        *,
        patience: float = PATIENCE,
        hands: Hands | None = None,
    ) -> None:
        self._random = Random(seed)
        super().__init__(bounds, storage, seed, patience=patience, hands=hands)

    def _stream_of(self, owner: str | None) -> Stream:
        """Return the stream of an actor, or for None that on which batches are drawn ahead."""
        raise NotImplementedError

    def _put_in(self, columns: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        """Return a batch on the device, by work on the current stream."""
        raise NotImplementedError

    def _empty_storage(self) -> Stepped:
        storage = super()._empty_storage()
        assert isinstance(storage, DeviceStorage)
        self._streams = storage.streams
        return storage

    def _on_stream_of(self, owner: str | None) -> AbstractContextManager[object]:
        return self._streams.on(self._stream_of(owner))

    def _start(self, name: str, call: Calls, stops: frozenset[str]) -> Stop:
        def on_stream() -> object:
            with self._on_stream_of(name):
                return call()

        return super()._start(name, on_stream, stops)

    @contextmanager
    def _written(self, numbers: Sequence[int]) -> Iterator[object]:
        columns = columns_of(batch_of(self._storage, numbers))
        if self._random.random() < 0.5:
            yield (
                self._put_in_aside(columns)
                if self._random.random() < 0.5
                else self._put_in(columns)
            )
            return
        try:
            yield columns
        finally:
            for column in columns.values():
                column.fill_(TORN)

    def _put_in_aside(self, columns: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        """Return a batch that another stream puts in, for which the current one waits."""
        streams, aside = self._streams, self._stream_of(LOADER)
        with streams.on(aside):
            batch = self._put_in(columns)
        streams.wait(streams.current(), streams.record(aside))
        return batch


class SimulatedAdapter(DeviceAdapter):
    """Drives one buffer over a simulated device; see `DeviceAdapter`."""

    def _empty_storage(self) -> Stepped:
        self._pace = self._random.choice(PACES)
        return super()._empty_storage()

    def apply(self, label: Label, manner: str = USUAL) -> Observation:
        """Take one step, and let the device take some; see `Adapter.apply`."""
        seen = super().apply(label, manner)
        if self._random.random() < CHANGE:
            self._pace = self._random.choice(PACES)
        self._device.advance(self._pace)
        self._check()
        return seen

    def close(self) -> None:
        """End all calls and threads, and all that is queued; see `Adapter.close`."""
        try:
            self._finish()
        finally:
            super().close()
        self._finish()

    @property
    def _device(self) -> SimulatedDevice:
        assert isinstance(self._streams, SimulatedDevice)
        return self._streams

    def _stream_of(self, owner: str | None) -> Stream:
        return self._device.own() if owner is None else self._device.stream(owner)

    def _put_in(self, columns: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        """Return a batch that is not there yet, as if the stream had still to work it out."""
        device, batch = self._device, {}
        for name, column in columns.items():
            batch[name] = device.empty(column.shape, column.dtype)
            device.copy(device.current(), device.tensor(column), batch[name])
        return batch

    def _numbers_in(self, owner: str | None, batch: object) -> tuple[int, ...]:
        device, columns = self._device, columns_of(batch)
        with self._on_stream_of(owner):
            there = [name for name, column in columns.items() if device.holds(column)]
            for name in there:
                device.look(columns[name], f"{name} of {owner or 'what is drawn ahead'}")
        promised = {name: device.promised(columns[name]) for name in there}
        return super()._numbers_in(owner, {**columns, **promised})

    def _finish(self) -> None:
        self._device.finish()
        self._check()

    def _check(self) -> None:
        if self._device.faults:
            raise Mismatch("; ".join(self._device.faults[:TOLD]))


class CudaAdapter(DeviceAdapter):
    """Drives one buffer over a CUDA device; see `DeviceAdapter`."""

    def _stream_of(self, owner: str | None) -> Stream:
        if owner is None:
            return self._streams.own()
        if owner not in self._actors:
            stream = torch.cuda.Stream(self._streams.device)  # type: ignore[no-untyped-call]  # torch's own
            self._actors[owner] = stream
        return self._actors[owner]

    def _empty_storage(self) -> Stepped:
        self._actors: dict[str, Stream] = {}
        return super()._empty_storage()

    def _put_in(self, columns: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        return {name: column.to(self._streams.device) for name, column in columns.items()}

    def _numbers_in(self, owner: str | None, batch: object) -> tuple[int, ...]:
        with self._on_stream_of(owner):
            return super()._numbers_in(owner, batch)


def columns_of(batch: object) -> dict[str, torch.Tensor]:
    """Return the leaves of a batch of records."""
    return dict(cast(Mapping[str, torch.Tensor], batch).items())
