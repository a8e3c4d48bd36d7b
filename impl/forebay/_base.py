"""What a buffer is made of, and everything about it but reading and writing.

Construction refuses what the buffer cannot keep its promises with, and says what to use instead.
The names that TorchRL's collectors and trainers touch are here too, so that its users can swap the
class.
"""

from typing import Final, Literal, TypeAlias

import numpy as np
from forebay_spec.kernel import Closing
from tensordict import TensorDict

from forebay._calls import Call, Event
from forebay._core import Core
from forebay._describe import describe
from forebay._hand_over import streams_of
from forebay._layout import Limits
from forebay._ledgers import make_ledger
from forebay._monitor import Monitor, ThreadMonitor
from forebay._one_process import OneProcess, bind_to_process
from forebay._prefetch import Prefetcher
from forebay._producer import Producer
from forebay._samplers import Sampler, Sampling
from forebay._shared_core import Plan, make_core
from forebay._sizes import SizeWatch
from forebay._stats import BufferStats, take_stats
from forebay._storage import Claimed, Storage
from forebay._tickets import Kind
from forebay._tokens import CancelToken, new_token
from forebay._trace import NO_TRACE, Trace, Tracer
from forebay._transforms import Transform, Transforms
from forebay._validate import (
    checked_event,
    request_sizes,
    seconds_or_none,
    timeout_seconds,
    whole_number,
)

Batch: TypeAlias = TensorDict
"""What readers get: a TensorDict, the tensorclass that was written, or what a `ListStorage` gives.

Which of them is known only while a program runs, so type checkers see the commonest."""
PARTS: Final = frozenset(
    {
        "_batch_size",
        "_core",
        "_dim_extend",
        "_prefetcher",
        "_sampling",
        "_sizes",
        "_stall_warning",
        "_storage",
        "_transforms",
    }
)
"""The attributes of a buffer; what a subclass has besides is its own, and goes where it goes."""


class BufferBase(OneProcess):
    """A ledger, a storage, transforms, and the calls that look and steer.

    Args:
        storage: where the records are.
        sampling: how they are drawn, which decides what ledger it is.
    """

    def __init__(
        self,
        storage: Storage,
        sampling: Sampling | Sampler,
        *,
        batch_size: int | None = None,
        prefetch: int = 0,
        transform: Transform | None = None,
        write_transform: Transform | Literal["inverse"] | None = "inverse",
        seed: int | None = None,
        stall_warning: float | None = 30.0,
        dim_extend: int = 0,
        limits: Limits | None = None,
        trace: Trace | None = None,
        monitor: Monitor | None = None,
    ) -> None:
        if not all(hasattr(storage, name) for name in ("capacity", "check", "write", "read")):
            raise TypeError(
                f"a buffer keeps its records in a storage, such as TensorStorage(capacity), "
                f"SharedStorage(capacity, example=record) or ListStorage(capacity), got {storage!r}"
            )
        capacity = whole_number("the storage's capacity", storage.capacity, 1)
        if batch_size is not None:
            batch_size, _ = request_sizes(batch_size, None, None, capacity)
        if whole_number("prefetch", prefetch, 0) and batch_size is None:
            raise ValueError(
                f"prefetch={prefetch} draws whole batches ahead, so it needs a batch_size; give "
                f"both, or use prefetch=0"
            )
        if seed is not None:
            seed = whole_number("seed", seed, 0)
        words = np.random.SeedSequence(seed).generate_state(2, np.uint64).tolist()
        stall = seconds_or_none("stall_warning", stall_warning)
        if trace is not None and not isinstance(trace, Trace):
            raise TypeError(f"trace must be a Trace or None, got {trace!r}")
        if limits is not None and not isinstance(limits, Limits):
            raise TypeError(f"limits must be a Limits or None, got {limits!r}")
        if trace is not None and prefetch:
            raise NotImplementedError(
                "a trace does not tell of batches that are drawn ahead; trace with prefetch=0"
            )
        dim_extend = whole_number("dim_extend", dim_extend, 0)
        self._transforms = Transforms(transform, write_transform)
        limits = limits or Limits()
        key = (words[0], words[1])
        if getattr(storage, "shared", False):
            if trace is not None:
                raise NotImplementedError(
                    "a trace is of one process; trace a buffer over TensorStorage instead"
                )
            plan = Plan(capacity, sampling, limits, stall, owned=streams_of(storage) is not None)
            self._core: Core = make_core(plan, key, monitor)
            if isinstance(storage, Claimed):
                storage.claim()
        else:
            told: Tracer = NO_TRACE
            if trace is not None and isinstance(sampling, Sampling):
                order, uses = sampling
                told = trace.begin(capacity, uses, order)
            ledger = make_ledger(capacity, sampling, key, limits, told)
            self._core = Core(ledger, monitor or ThreadMonitor(), stall)
            bind_to_process(self._core)
        self._stall_warning = stall
        single_use = isinstance(sampling, Sampling) and sampling.consume_after_n_samples == 1
        self._sizes = SizeWatch(capacity, single_use)
        self._storage = storage
        self._batch_size = batch_size
        self._prefetcher: Prefetcher | None = None
        if batch_size is not None and prefetch:
            parts = (self._core, storage, self._transforms)
            self._prefetcher = Prefetcher(*parts, size=batch_size, depth=prefetch)
        self._sampling = sampling
        self._dim_extend = dim_extend

    def __len__(self) -> int:
        """Return how many records can be sampled."""
        return self.stats().sampleable

    def stats(self) -> BufferStats:
        """Return counts of what is there and what has happened, taken at one moment."""
        self._core.reclaim()
        return take_stats(self._core)

    def describe(self) -> str:
        """Return in words who waits, for how many records, and what holds them up."""
        self._core.reclaim()
        return describe(self._core)

    def cancel_token(self) -> CancelToken:
        """Return a new token that ends the calls that are given it as `cancel_event`.

        Raises:
            LimitReached: there are as many tokens as the limits allow.
        """
        return new_token(self._core)

    def producer(self) -> Producer:
        """Return a promise to write: `with buffer.producer():` around whatever writes.

        When somebody has promised and all who have are gone, readers get what is left and are then
        told so, by `ShutDown` or, if one of them died or failed, by `PeerLost`, instead of waiting.
        """
        return Producer(self._core)

    def empty(self, empty_write_count: bool = True) -> None:
        """Drop all records; those that a reader holds are its own still, but never come back.

        Args:
            empty_write_count: accepted for TorchRL's collectors; counts are never rewound.
        """
        self._core.demand_outside()
        self._core.reclaim()
        self._core.empty()

    def shutdown(self, immediate: bool = False) -> None:
        """Close the buffer: writers are refused, readers get what is left.

        Args:
            immediate: refuse readers too; the records stay where they are.
        """
        self._close(Closing.STOPPED if immediate else Closing.DRAINING)

    def fail(self, error: BaseException) -> None:
        """Close the buffer for good: every call, blocked or later, raises PeerLost from `error`."""
        if not isinstance(error, BaseException):
            raise TypeError(f"fail takes the exception that is the cause, got {error!r}")
        self._close(Closing.STOPPED, error)

    def _close(self, mode: Closing, error: BaseException | None = None) -> None:
        self._core.close(mode, error)
        if self._prefetcher is not None:
            self._prefetcher.rest()

    @property
    def capacity(self) -> int:
        """How many records there can be."""
        return self._core.ledger.capacity

    @property
    def batch_size(self) -> int | None:
        """How many records a reader asks for unless it says otherwise."""
        return self._batch_size

    @property
    def prefetch(self) -> int:
        """How many batches are drawn ahead at most."""
        return 0 if self._prefetcher is None else self._prefetcher.depth

    @property
    def storage(self) -> Storage:
        """Where the records are."""
        return self._storage

    @property
    def sampler(self) -> Sampling | Sampler:
        """How records are sampled."""
        return self._sampling

    @property
    def write_count(self) -> int:
        """How many records were written so far; exact, and never rewound."""
        return self.stats().admitted

    @property
    def shared(self) -> bool:
        """Whether other processes can use the buffer."""
        return self._core.peers.shared

    def _travels(self) -> bool:
        return self.shared

    def share(self) -> None:
        """Do nothing if other processes can use the buffer, which its storage decides.

        Raises:
            NotImplementedError: they cannot.
        """
        if not self.shared:
            raise NotImplementedError(
                f"a buffer over {type(self._storage).__name__} lives in one process; make it over "
                f"SharedStorage(capacity, example=record) to use it in several"
            )

    def append_transform(self, transform: Transform, *, invert: bool = False) -> None:
        """Add a transform behind those that samples go through.

        If it has an `inv`, batches go through that before the other write transforms. Batches that
        are gathered ahead are given back first, so that what is drawn next goes through it.

        Args:
            transform: a callable on batches.
            invert: samples go through `inv` and written batches through the transform itself.
        """
        if self._prefetcher is None:
            self._transforms.append(transform, invert=invert)
        else:
            with self._prefetcher.emptied():
                self._transforms.append(transform, invert=invert)

    def _call(
        self,
        kind: Kind,
        n: int,
        m: int,
        timeout: float | None,
        event: Event | None,
        actor: int | None = None,
    ) -> Call:
        """Return a call with checked arguments; its time runs from here on."""
        core = self._core
        core.demand_outside()
        seconds = timeout_seconds(timeout)
        event = checked_event(event)
        row = event.row_for(core) if isinstance(event, CancelToken) else None
        if actor is None:
            actor = core.thread_actor()
        call = Call(kind, actor, n, m, life=core.peers.life)
        call.since = now = core.monitor.clock()
        if seconds is not None:
            call.timeout, call.deadline = seconds, now + seconds
        if row is not None:
            call.token = row
        elif event is not None:
            call.event = event
        return call
