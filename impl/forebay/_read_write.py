"""The calls that write and read, which all buffers have.

This module checks arguments, runs transforms and hands the rest on: storages copy, `_core` decides
and waits. What each call does in every case is the table "What callers see" of the design.
"""

from typing import Literal, overload

import torch

from forebay._aio import run
from forebay._base import Batch
from forebay._calls import Call, Event
from forebay._checkpointed import CheckpointBase
from forebay._hand_over import HandOver
from forebay._lease import Lease, as_index
from forebay._records import Rows
from forebay._schema import mismatch
from forebay._stores import Ints
from forebay._tickets import Kind
from forebay._validate import (
    checked_event,
    request_sizes,
    timeout_seconds,
    whole_number,
)
from forebay._writer import WhenClosed, Writer

Info = dict[str, torch.Tensor]


class ReadWriteBase(CheckpointBase):
    """Writing and reading, in all the ways that there are."""

    def extend(
        self,
        batch: object,
        *,
        timeout: float | None = None,
        cancel_event: Event | None = None,
        cast: bool = False,
    ) -> torch.Tensor:
        """Write a batch as a whole, waiting for room.

        Args:
            batch: records in any form that the storage takes, n of them. None is no batch, though a
                write transform may return it for nothing.
            timeout: seconds to wait at most; None or infinity for ever, 0 not at all.
            cancel_event: a token of `cancel_token()`, or anything with `is_set()`, which is polled.
            cast: allow values to be converted to the dtypes of the buffer's records.

        Returns:
            int64[n], the slots of the records; empty if there was nothing to write.

        Raises:
            AdmissionTimeout: there was no room within the timeout.
            Cancelled: `cancel_event` was set before there was room.
            ShutDown: the buffer is closed.
            MutualWait: the writer and a reader could only wait for each other; never in a
                `ReplayBuffer`.
            RecordMismatch: the records are not like those of this buffer.
            PeerLost: the buffer has failed.
            LimitReached: more calls at a time, or more records held at a time, than the limits say.
            ValueError: the batch is larger than the capacity.

        The batch is certainly absent after each of them.
        """
        call = self._call(Kind.WRITE, 1, 1, timeout, cancel_event)
        rows = self._rows(call, batch, cast)
        if rows is None:
            return torch.empty(0, dtype=torch.int64, device="cpu")
        self._core.write(call, lambda slots: self._storage.write(slots, rows))
        return as_index(call.slots)

    def add(
        self,
        record: object,
        *,
        timeout: float | None = None,
        cancel_event: Event | None = None,
    ) -> int | None:
        """Write one record. Raises what `extend` raises.

        Returns:
            Its slot; None if a write transform left nothing of it.
        """
        index = self.extend([record], timeout=timeout, cancel_event=cancel_event)
        return int(index[0]) if len(index) else None

    async def extend_async(
        self,
        batch: object,
        *,
        timeout: float | None = None,
        cancel_event: Event | None = None,
        cast: bool = False,
    ) -> torch.Tensor:
        """Write a batch as `extend` does, without blocking the event loop.

        If its task is cancelled, the batch is not written.
        """
        core = self._core
        call = self._call(Kind.WRITE, 1, 1, timeout, cancel_event, core.task_actor())

        def fill() -> None:
            rows = self._rows(call, batch, cast)
            if rows is not None:
                core.fill(call, lambda slots: self._storage.write(slots, rows))

        there = HandOver(self._storage).as_here(fill)
        await run(core, call, there, lambda: core.publish(call))
        return as_index(call.slots)

    def writer(
        self,
        *,
        timeout: float | None = None,
        cancel_event: Event | None = None,
        when_closed: WhenClosed = "raise",
    ) -> Writer:
        """Return a handle with these defaults, for code that calls a bare `extend(data)`.

        Args:
            timeout: as for `extend`.
            cancel_event: as for `extend`.
            when_closed: `"discard"` makes writes to a closed buffer give an empty index instead of
                raising `ShutDown`.
        """
        timeout_seconds(timeout)
        checked_event(cancel_event)
        if when_closed not in ("raise", "discard"):
            raise ValueError(f"when_closed must be 'raise' or 'discard', got {when_closed!r}")
        return Writer(self, timeout, cancel_event, when_closed)

    @overload
    def sample(
        self,
        batch_size: int | None = None,
        return_info: Literal[False] = False,
        *,
        at_least: int | None = None,
        timeout: float | None = None,
        cancel_event: Event | None = None,
    ) -> Batch: ...

    @overload
    def sample(
        self,
        batch_size: int | None,
        return_info: Literal[True],
        *,
        at_least: int | None = None,
        timeout: float | None = None,
        cancel_event: Event | None = None,
    ) -> tuple[Batch, Info]: ...

    @overload
    def sample(
        self,
        batch_size: int | None = None,
        *,
        return_info: Literal[True],
        at_least: int | None = None,
        timeout: float | None = None,
        cancel_event: Event | None = None,
    ) -> tuple[Batch, Info]: ...

    def sample(
        self,
        batch_size: int | None = None,
        return_info: bool = False,
        *,
        at_least: int | None = None,
        timeout: float | None = None,
        cancel_event: Event | None = None,
    ) -> Batch:
        """Draw records, waiting until there are enough.

        Args:
            batch_size: how many; the buffer's `batch_size` unless given.
            return_info: return `(batch, {"index": int64[rows]})`.
            at_least: take what is there as soon as there are this many; `batch_size` unless given,
                or in a `ReplayBuffer` 1, and with `drop_last` again `batch_size`.
            timeout: seconds to wait at most; None or infinity for ever, 0 not at all.
            cancel_event: a token of `cancel_token()`, or anything with `is_set()`, which is polled.

        Returns:
            A copy of the records, transformed. Fewer than asked for only with `at_least`, when the
            buffer is closed and these are the last, or when they are the last of an epoch.

        Raises:
            SampleTimeout: there were not enough records within the timeout.
            Cancelled: `cancel_event` was set before there were.
            ShutDown: the buffer is closed and nothing is left.
            MutualWait: the reader and a writer could only wait for each other; never in a
                `ReplayBuffer`.
            PeerLost: the buffer has failed.
            LimitReached: more calls at a time, or more records held at a time, than the limits say.
            ValueError: a size does not fit.

        Nothing was consumed after each of them, nor after an error of the transform.
        """
        call = self._request(Kind.PLAIN, batch_size, at_least, timeout, cancel_event)
        batch = self._core.read(call, self._gather, self._prefetcher)
        return (batch, {"index": as_index(call.slots)}) if return_info else batch

    async def sample_async(
        self,
        batch_size: int | None = None,
        *,
        at_least: int | None = None,
        timeout: float | None = None,
        cancel_event: Event | None = None,
    ) -> Batch:
        """Draw records as `sample` does, without blocking the event loop.

        If its task is cancelled, nothing is consumed.
        """
        core = self._core
        call = self._request(
            Kind.PLAIN, batch_size, at_least, timeout, cancel_event, core.task_actor()
        )

        def gather() -> Batch:
            return core.gather(call, self._gather, self._prefetcher)

        there = HandOver(self._storage).as_here(gather)
        return await run(core, call, there, lambda: core.deliver(call))

    def lease(
        self,
        batch_size: int | None = None,
        *,
        at_least: int | None = None,
        timeout: float | None = None,
        cancel_event: Event | None = None,
    ) -> Lease[Batch]:
        """Draw records that are consumed only when the lease is committed.

        `with buffer.lease() as batch:` commits at the end of the block and returns the records if
        it raises. Takes and raises what `sample` does.
        """
        call = self._request(Kind.LEASE, batch_size, at_least, timeout, cancel_event)
        try:
            batch = self._core.gather(call, self._gather, self._prefetcher)
            return Lease(self._core, call, batch)
        except BaseException:
            self._core.settle(call)
            raise

    def can_extend(self, rows: int = 1) -> bool:
        """Tell whether a write of `rows` records would be admitted at once."""
        n = whole_number("rows", rows, 1)
        return self._core.would_serve(self._call(Kind.WRITE, n, n, None, None))

    def can_sample(self, batch_size: int | None = None, *, at_least: int | None = None) -> bool:
        """Tell whether a sample of these sizes would be served at once, from the queue too."""
        call = self._request(Kind.PLAIN, batch_size, at_least, None, None, advisory=True)
        return self._core.would_serve(call)

    def wait_until_sampleable(
        self,
        rows: int | None = None,
        *,
        timeout: float | None = None,
        cancel_event: Event | None = None,
    ) -> bool:
        """Wait until `rows` records can be sampled, taking none and standing in nobody's way.

        Unless given, `rows` are as many as `sample()` waits for. A batch that was drawn ahead is as
        good, if `rows` is the buffer's `batch_size`.

        Returns:
            Whether there are; False means that the timeout has passed.

        Raises:
            Cancelled, ShutDown, PeerLost: as for `sample`.
        """
        call = self._request(Kind.PLAIN, rows, rows, timeout, cancel_event, advisory=True)
        return self._core.observe(call)

    def _request(
        self,
        kind: Kind,
        batch_size: int | None,
        at_least: int | None,
        timeout: float | None,
        event: Event | None,
        actor: int | None = None,
        advisory: bool = False,
    ) -> Call:
        """Return a reader's call with checked arguments; its sizes count unless it only asks."""
        k, m = request_sizes(batch_size, at_least, self._batch_size, self.capacity)
        if at_least is None:
            m = self._least(k)
        call = self._call(kind, k, m, timeout, event, actor)
        call.advisory = advisory
        if self._prefetcher is not None and k == self._prefetcher.size:
            call.queue = self._prefetcher.owner()
        if not advisory:
            self._sizes.read(k, m)
        return call

    def _least(self, k: int) -> int:
        """Return how many records a reader of k waits for unless it says otherwise."""
        return k

    def _rows(self, call: Call, batch: object, cast: bool) -> Rows | None:
        """Bring a batch into the storage's form and tell the call its size; None for no rows."""
        if batch is None:
            raise mismatch(["expected a batch of records, got None"])
        batch = self._transforms.write(batch)
        rows = None
        if batch is not None:
            rows = self._storage.check(batch, dim_extend=self._dim_extend, cast=cast)
        if rows is None or not len(rows):
            self._core.check(call)
            return None
        n = len(rows)
        if n > self.capacity:
            raise ValueError(
                f"a batch of {n} records is larger than the capacity of {self.capacity}; write "
                f"it in parts or use a larger storage"
            )
        self._sizes.write(n)
        call.n = call.m = n
        return rows

    def _gather(self, slots: Ints) -> Batch:
        """Copy records out and transform them."""
        return self._transforms.sample(self._storage.read(slots))
