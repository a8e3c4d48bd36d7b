"""The blocking, consuming replay buffer, as its users see it."""

from collections.abc import Iterator
from typing import Literal

from forebay._base import Batch
from forebay._errors import MutualWait, SampleTimeout, ShutDown
from forebay._layout import MOST_USES, Limits
from forebay._monitor import Monitor
from forebay._read_write import ReadWriteBase
from forebay._samplers import ORDERS, Order, Sampling
from forebay._storage import Storage
from forebay._tickets import Kind
from forebay._trace import Trace
from forebay._transforms import Transform
from forebay._validate import request_sizes, whole_number


class BlockingReplayBuffer(ReadWriteBase):
    """A bounded buffer whose records are used up, and whose producers wait instead of overwriting.

    Safe for any number of threads. A record is one row; a batch is what one call writes or reads.
    A batch is written wholly or not at all, and becomes visible at once.

    Args:
        storage: where the records are; its capacity is the buffer's.
        batch_size: how many records a reader asks for unless it says otherwise.
        consume_after_n_samples: how often a record is sampled before it leaves.
        order: `"fifo"` samples the oldest records first, `"random"` uniformly, each record at most
            once in a batch.
        prefetch: how many batches of `batch_size` are drawn and gathered ahead, by threads of the
            buffer; each process and each handle that was pickled has its own. Calls of that size
            get them, oldest first, before anything else.
        transform: applied to every batch that is sampled.
        write_transform: applied to every batch before it is written; None for nothing. Unless
            given, it is the `inv` of `transform` where that has one.
        seed: seeds the random order; equal seeds and equal calls give equal batches.
        stall_warning: seconds after which a waiting call is logged, once, or None for never.
        dim_extend: the dimension of a written batch that counts its records; see the storage.
        limits: how many calls, tokens and held records there may be.
        trace: where every action is written down, to be judged by `forebay check trace`; None for
            nowhere.
        monitor: what calls wait with; for tests and schedulers.

    Raises:
        TypeError, ValueError, NotImplementedError: an argument or a combination of arguments is not
            supported; the message says what to use instead.
    """

    def __init__(
        self,
        storage: Storage,
        *,
        batch_size: int | None = None,
        consume_after_n_samples: int = 1,
        order: Order = "fifo",
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
        super().__init__(
            storage,
            _sampling(order, consume_after_n_samples),
            batch_size=batch_size,
            prefetch=prefetch,
            transform=transform,
            write_transform=write_transform,
            seed=seed,
            stall_warning=stall_warning,
            dim_extend=dim_extend,
            limits=limits,
            trace=trace,
            monitor=monitor,
        )

    def __iter__(self) -> Iterator[Batch]:
        """Sample batches until the buffer is closed and empty; the last one may be short."""
        request_sizes(None, None, self._batch_size, self.capacity)
        return self._batches()

    def available(self, batch_size: int | None = None) -> Iterator[Batch]:
        """Sample batches without waiting until nothing is left now; the last one may be short."""
        k, _ = request_sizes(batch_size, None, self._batch_size, self.capacity)
        return self._leftovers(k)

    def _batches(self) -> Iterator[Batch]:
        while True:
            try:
                batch = self.sample()
            except ShutDown:
                return
            yield batch

    def _leftovers(self, k: int) -> Iterator[Batch]:
        while True:
            call = self._request(Kind.PLAIN, k, 1, 0.0, None, advisory=True)
            try:
                batch = self._core.read(call, self._gather, self._prefetcher)
            except (SampleTimeout, ShutDown, MutualWait):
                return
            yield batch


def _sampling(order: Order, consume_after_n_samples: int) -> Sampling:
    """Return how the buffer samples, if it can.

    Raises:
        TypeError, ValueError: it cannot; the message says what to use instead.
    """
    if consume_after_n_samples is None:
        raise ValueError(
            "consume_after_n_samples=None means that records are never used up; use "
            "ReplayBuffer for that, which overwrites the oldest records"
        )
    uses = whole_number("consume_after_n_samples", consume_after_n_samples, 1, MOST_USES)
    if order not in ORDERS:
        raise ValueError(
            f"order must be 'fifo' or 'random', got {order!r}; use ReplayBuffer to sample with "
            f"replacement or in epochs, which overwrites the oldest records"
        )
    return Sampling(order, uses)
