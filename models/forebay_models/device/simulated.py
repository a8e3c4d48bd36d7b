"""The port to a device, on host memory: what is queued runs when an adversary says so.

An operation that is queued has not happened. Memory holds what was there before, until the
operation is run: by whoever drives the device (`step`, `advance`, `finish`), or while the host
waits for an event. Streams and events are all the order there is, as on a device, and the memory of
a tensor that nobody knows any more is in use again as early as a caching allocator may do that.

So that mistakes show, each block of memory has a twin in which every operation is carried out at
once when it is queued. The twin is exactly what a device without queues would hold: it follows the
order in which the host has queued things, which is the order of the ledger, and knows nothing of
streams and events. `look` queues a use of a tensor, and when that runs and the memory does not hold
what the twin held when it was queued, that is a fault: the use came too early, saw half a copy, or
something that was written there since.

New memory is filled with garbage by an operation in the queue of its stream, which stands for what
the last owner of that memory may still have there. So work of another stream in new memory has to
wait for that stream. Staging memory has no twin, since the host writes there unseen: a copy to the
device takes for the twin what is there when it is queued.

No signal handler runs in the middle of a call of a device. Here one could, and what it queued would
stand in another order in the twins than in the queues: interrupt who calls the device, not itself.

Nothing is random but the choices of the adversary: equal calls on devices of equal seeds give equal
runs.
"""

import threading
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from math import prod
from typing import Any, Final

import torch
from forebay._arrays import Array
from forebay._streams import Event, Stream

from forebay_models.device.adversary import Adversary
from forebay_models.device.currents import Currents
from forebay_models.device.memory import Block, Memory
from forebay_models.device.queues import (
    GARBAGE,
    Copy,
    Fill,
    Look,
    Operation,
    Raw,
    Rows,
    SimulatedEvent,
    SimulatedStream,
    Wait,
)


class SimulatedDevice:
    """One simulated device; see `Streams` for what a storage wants of it.

    Args:
        seed: of the adversary.
        memory: the number of bytes of the device, or None for no limit.
        apart: whether each thread begins with a current stream of its own, instead of the common
            one.

    Attributes:
        faults: what uses of memory have seen that was not promised, a sentence each.
        on_queued: is called with a stream after something was queued in it, if it is set.
        wait_on_host: is called with an event that is not complete, and returns when it is. If it is
            not set, the adversary runs operations until then.
    """

    def __init__(self, seed: int = 0, *, memory: int | None = None, apart: bool = False) -> None:
        self.faults: Final[list[str]] = []
        self.on_queued: Callable[[SimulatedStream], None] | None = None
        self.wait_on_host: Callable[[SimulatedEvent], None] | None = None
        self._lock = threading.RLock()
        self._adversary = Adversary(seed)
        self._memory = Memory(memory)
        self._itself = object()
        self._streams = Currents(self._itself, apart=apart)

    @property
    def device(self) -> torch.device:
        """Where the tensors of the device are: in host memory, to be sure."""
        return torch.device("cpu")

    def holds(self, tensor: torch.Tensor) -> bool:
        """Tell whether a tensor is in the memory of the device."""
        with self._lock:
            found = self._memory.find(tensor)
            return found is not None and found[0].twin is not None

    def stream(self, name: str) -> SimulatedStream:
        """Return the stream of that name, the same one each time."""
        return self._streams.named(name)

    def current(self) -> SimulatedStream:
        """Return the stream to which the calling thread's work goes."""
        return self._streams.current()

    def own(self) -> SimulatedStream:
        """Return a stream for the calling thread's work aside, the same one each time."""
        return self._streams.own()

    def on(self, stream: Stream) -> AbstractContextManager[object]:
        """Let the calling thread's work go to a stream within a block."""
        return self._streams.on(self._checked(stream))

    def empty(self, shape: Sequence[int], dtype: torch.dtype) -> torch.Tensor:
        """Return new memory of the device, full of garbage; see `Streams.empty`."""
        stream = self.current()
        block, tensor = self._lend(shape, dtype, stream, quiet=False)
        nbytes = tensor.numel() * tensor.itemsize
        if nbytes:
            with self._lock:
                assert block.twin is not None
                block.twin[:nbytes].fill(GARBAGE)
                self._push(stream, Fill(block.real[:nbytes]))
            self._tell(stream)
        return tensor

    def tensor(self, values: torch.Tensor) -> torch.Tensor:
        """Return a tensor of the device for the current stream that holds these values already."""
        block, tensor = self._lend(values.shape, values.dtype, self.current(), quiet=True)
        tensor.copy_(values.detach())
        assert block.twin is not None
        block.twin[:] = block.real
        return tensor

    def staging(self, nbytes: int) -> torch.Tensor:
        """Return new host memory, uint8[nbytes], that copies may use, full of garbage."""
        with self._lock:
            self._memory.collect()
            block = self._memory.staging(nbytes)
            return self._memory.tensor(block, (nbytes,), torch.uint8)

    def copy(self, stream: Stream, source: torch.Tensor, target: torch.Tensor) -> None:
        """Queue a copy of a tensor into another of the same shape, converted to its dtype."""
        queue = self._checked(stream)
        if source.shape != target.shape:
            raise ValueError(
                f"a copy is between tensors of one shape, got {tuple(source.shape)} "
                f"to be copied into {tuple(target.shape)}"
            )
        with self._lock:
            source_real, source_twin = self._memory.staged_views(source, "a source")
            target_real, target_twin = self._memory.staged_views(target, "a target")
            if source_twin is None and target_twin is None:
                raise TypeError("a copy begins or ends on the device, this one does neither")
            if not source.numel():
                return
            lazy = source.is_conj() or source.is_neg()
            as_is = source.dtype is target.dtype and not lazy
            if target_twin is not None:
                now = source_real if source_twin is None else source_twin
                _assign(
                    target_twin if as_is else elements(target_twin, target.dtype),
                    now if as_is else _like(source, elements(now, source.dtype)),
                )
            operation = (
                Copy(source_real, target_real)
                if as_is
                else Copy(
                    _like(source, elements(source_real, source.dtype)),
                    elements(target_real, target.dtype),
                )
            )
            self._push(queue, operation)
        self._tell(queue)

    def put(
        self, stream: Stream, rows: torch.Tensor, slots: torch.Tensor, column: torch.Tensor
    ) -> None:
        """Queue a copy of `rows[i]` into `column[slots[i]]`."""
        self._rows(stream, rows, slots, column, out=False)

    def take(
        self, stream: Stream, column: torch.Tensor, slots: torch.Tensor, rows: torch.Tensor
    ) -> None:
        """Queue a copy of `column[slots[i]]` into `rows[i]`."""
        self._rows(stream, rows, slots, column, out=True)

    def record(self, stream: Stream) -> SimulatedEvent:
        """Return a new event: all that is in the queue of a stream now."""
        queue = self._checked(stream)
        return SimulatedEvent(queue, queue.queued)

    def wait(self, stream: Stream, event: Event) -> None:
        """Let what is queued in a stream from now on run after an event.

        Nothing is queued where that is so anyway.
        """
        queue, event = self._checked(stream), self._event(event)
        if event.stream is not queue and not event.over:
            with self._lock:
                self._push(queue, Wait(event))
            self._tell(queue)

    def over(self, event: Event) -> bool:
        """Tell whether all that an event stands for has run."""
        return self._event(event).over

    def synchronize(self, event: Event) -> None:
        """Wait on the host until all that an event stands for has run; see `wait_on_host`."""
        event = self._event(event)
        if event.over:
            return
        (self.wait_on_host or self.run_until)(event)
        if not event.over:
            raise AssertionError(f"the host went on before {event}")

    def keep(self, tensor: torch.Tensor, stream: Stream) -> None:
        """Keep a tensor's memory, once nobody knows it, until a stream has done its work."""
        queue = self._checked(stream)
        with self._lock:
            self._memory.keep(tensor, queue)

    def promised(self, tensor: torch.Tensor) -> torch.Tensor:
        """Return what a tensor of the device would hold if nothing ever waited in a queue."""
        with self._lock:
            return elements(self._memory.views(tensor, "a tensor")[1].copy(), tensor.dtype)

    def contents(self) -> bytes:
        """Return all that is in the memory of the device."""
        with self._lock:
            return self._memory.contents()

    def look(self, tensor: torch.Tensor, name: str) -> None:
        """Queue a use of a tensor on the current stream.

        It is a fault if it sees anything else than what `promised` says now.
        """
        stream = self.current()
        with self._lock:
            real, twin = self._memory.views(tensor, "a tensor to look at")
            self._push(stream, Look(real, twin.copy(), name, stream))
        self._tell(stream)

    def runnable(self) -> list[SimulatedStream]:
        """Return the streams that can go on, in the order in which they were made."""
        with self._lock:
            return [stream for stream in self._streams.all if stream.ready()]

    def step(self, stream: Stream) -> bool:
        """Carry out the next step of a stream, and tell whether there was one that could be."""
        queue = self._checked(stream)
        with self._lock:
            if not queue.ready():
                return False
            queue.step(self.faults)
            return True

    def advance(self, most: int) -> int:
        """Carry out some steps, up to `most`, and return how many; the adversary chooses all."""
        with self._lock:
            steps = self._adversary.begin(most)
            for done in range(steps):
                streams = self.runnable()
                if not streams:
                    return done
                self._adversary.pick(streams).step(self.faults)
            return steps

    def finish(self) -> None:
        """Carry out all that is queued, in an order of the adversary's.

        Raises:
            AssertionError: some of it never can be; names the streams.
        """
        with self._lock:
            self._adversary.begin()
            while streams := self.runnable():
                self._adversary.pick(streams).step(self.faults)
            if left := self.left():
                raise AssertionError(left)

    def left(self) -> str:
        """Return in words what of all that was queued has not run; nothing if all has."""
        stuck = [stream for stream in self._streams.all if stream.operations]
        return "; ".join(f"{it} is stuck at: {it.operations[0]}" for it in stuck)

    def run_until(self, event: SimulatedEvent) -> None:
        """Carry out steps that the adversary chooses until an event is complete.

        Raises:
            AssertionError: it never will be.
        """
        with self._lock:
            self._adversary.begin()
            elsewhere = self._adversary.elsewhere()
            while not event.over:
                stream = self._adversary.pick_for(event, self.runnable(), elsewhere)
                if stream is None:
                    raise AssertionError(f"nothing that is queued leads to {event}")
                stream.step(self.faults)

    def _lend(
        self, shape: Sequence[int], dtype: torch.dtype, stream: SimulatedStream, *, quiet: bool
    ) -> tuple[Block, torch.Tensor]:
        """Return a block for a stream, and the tensor that is in it."""
        while True:
            with self._lock:
                self._memory.collect()
                block = self._memory.lend(prod(shape) * dtype.itemsize, stream, quiet=quiet)
                if isinstance(block, Block):
                    return block, self._memory.tensor(block, shape, dtype)
            self.synchronize(block)

    def _rows(
        self,
        stream: Stream,
        rows: torch.Tensor,
        slots: torch.Tensor,
        column: torch.Tensor,
        *,
        out: bool,
    ) -> None:
        queue = self._checked(stream)
        if slots.dtype is not torch.int64 and slots.dtype is not torch.int32:
            raise TypeError(f"slots are int64 or int32, got {slots.dtype}")
        if rows.dtype is not column.dtype:
            raise TypeError(f"rows of {rows.dtype} do not go with a column of {column.dtype}")
        shape = slots.shape + column.shape[1:]
        if slots.dim() != 1 or rows.shape != shape:
            raise ValueError(
                f"{tuple(slots.shape)} slots of a column {tuple(column.shape)} are rows "
                f"{tuple(shape)}, got {tuple(rows.shape)}"
            )
        with self._lock:
            real_rows, twin_rows = self._memory.views(rows, "a tensor of rows")
            real_slots, twin_slots = self._memory.views(slots, "a tensor of slots")
            real_column, twin_column = self._memory.views(column, "a column")
            if not rows.numel():
                return
            if out:
                twin_rows[...] = twin_column[twin_slots]
            else:
                twin_column[twin_slots] = twin_rows
            self._push(queue, Rows(real_rows, real_slots, real_column, out=out))
        self._tell(queue)

    def _push(self, stream: SimulatedStream, operation: Operation) -> None:
        """Queue an operation; with the lock."""
        self._memory.collect()
        stream.push(operation)

    def _tell(self, stream: SimulatedStream) -> None:
        """Say that something was queued; without the lock."""
        if self.on_queued is not None:
            self.on_queued(stream)

    def _checked(self, stream: Stream) -> SimulatedStream:
        if not isinstance(stream, SimulatedStream) or stream.owner is not self._itself:
            raise TypeError(f"{stream!r} is no stream of this device")
        return stream

    def _event(self, event: Event) -> SimulatedEvent:
        if not isinstance(event, SimulatedEvent) or event.stream.owner is not self._itself:
            raise TypeError(f"{event!r} is no event of this device")
        return event


def elements(words: Array, dtype: torch.dtype) -> torch.Tensor:
    """Return words of memory as the elements of a dtype that they are."""
    return torch.from_numpy(words).view(dtype)


def _like(tensor: torch.Tensor, found: torch.Tensor) -> torch.Tensor:
    """Return the elements of a tensor as they look: some are conjugated or negated on the way."""
    found = found.conj() if tensor.is_conj() else found
    return torch._neg_view(found) if tensor.is_neg() else found


def _assign(target: Raw, source: Raw) -> None:
    """Copy between arrays, or between tensors."""
    into: Any = target
    into[...] = source
