"""The ordinary replay buffer, as its users see it: a ring that overwrites its oldest records."""

from collections.abc import Iterator
from typing import Literal

from forebay_spec.kernel import Closing, Verdict

from forebay._base import Batch
from forebay._errors import ShutDown
from forebay._layout import Limits
from forebay._monitor import Monitor
from forebay._read_write import ReadWriteBase
from forebay._samplers import RandomSampler, Sampler, checked_sampler
from forebay._storage import Storage
from forebay._tickets import Kind
from forebay._trace import Trace
from forebay._transforms import Transform
from forebay._validate import request_sizes


class ReplayBuffer(ReadWriteBase):
    """A bounded buffer that overwrites its oldest records, and whose samples use none up.

    Safe for any number of threads. A record is one row; a batch is what one call writes or reads.
    A batch is written wholly or not at all, and becomes visible at once. A writer waits only for
    records that are being gathered, written or saved; batches that were drawn ahead, and leases,
    are copies and keep none.

    Args:
        storage: where the records are; its capacity is the buffer's.
        sampler: `RandomSampler()` or `SamplerWithoutReplacement(drop_last=...)`.
        batch_size: how many records a reader asks for unless it says otherwise.
        prefetch: how many batches of `batch_size` are drawn and gathered ahead, by threads of the
            buffer; each process and each handle that was pickled has its own. Calls of that size
            get them, oldest first, before anything else. They have the records that were there
            when they were drawn.
        transform: applied to every batch that is sampled.
        write_transform: applied to every batch before it is written; None for nothing. Unless
            given, it is the `inv` of `transform` where that has one.
        seed: seeds the random choices; equal seeds and equal calls one after the other, without
            `prefetch`, give equal batches.
        stall_warning: seconds after which a waiting call is logged, once, or None for never.
        dim_extend: the dimension of a written batch that counts its records; see the storage.
        limits: how many calls, tokens and held records there may be.
        trace: not supported, since no judge of traces knows records that are overwritten.
        monitor: what calls wait with; for tests and schedulers.

    Raises:
        TypeError, ValueError, NotImplementedError: an argument or a combination of arguments is not
            supported; the message says what to use instead.
    """

    def __init__(
        self,
        storage: Storage,
        sampler: Sampler = RandomSampler(),  # noqa: B008  # nothing can change it
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
        sampler = checked_sampler(sampler)
        if trace is not None:
            raise NotImplementedError(
                "a trace does not tell of records that are overwritten; make the buffer without "
                "trace=, or trace a BlockingReplayBuffer"
            )
        super().__init__(
            storage,
            sampler,
            batch_size=batch_size,
            prefetch=prefetch,
            transform=transform,
            write_transform=write_transform,
            seed=seed,
            stall_warning=stall_warning,
            dim_extend=dim_extend,
            limits=limits,
            monitor=monitor,
        )

    def __iter__(self) -> Iterator[Batch]:
        """Sample batches until the buffer is closed, or all registered producers have ended.

        Records that are there then are not waited for: there would be no end to them.

        Raises:
            PeerLost: the buffer has failed, or a registered producer has.
        """
        request_sizes(None, None, self._batch_size, self.capacity)
        return self._batches()

    def _least(self, k: int) -> int:
        """Wait for one record, or for a whole batch where a short one would be left out."""
        drop_last = isinstance(self._sampling, Sampler) and self._sampling.drop_last
        return k if drop_last else 1

    def _batches(self) -> Iterator[Batch]:
        core = self._core
        while core.look(core.rules.closing_for_readers) is Closing.OPEN:
            try:
                batch = self.sample()
            except ShutDown:
                return
            yield batch
        error = core.error(self._request(Kind.PLAIN, None, None, None, None), Verdict.SHUT_DOWN)
        if not isinstance(error, ShutDown):
            raise error
