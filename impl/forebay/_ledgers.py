"""Which ledger a buffer has, by how it samples."""

from forebay._layout import Layout, Limits
from forebay._ledger import Ledger
from forebay._overwriting import OverwritingLedger
from forebay._samplers import Sampler, Sampling
from forebay._trace import NO_TRACE, Tracer


def make_ledger(
    capacity: int,
    sampling: Sampling | Sampler,
    key: tuple[int, int],
    limits: Limits,
    trace: Tracer = NO_TRACE,
    layout: Layout | None = None,
    prepared: bool = False,
) -> Ledger:
    """Return a ledger; see `Ledger` and `OverwritingLedger`, which has no trace."""
    if not isinstance(sampling, Sampling):
        return OverwritingLedger(capacity, sampling, key, limits, layout, prepared)
    uses, fifo = sampling.consume_after_n_samples, sampling.order == "fifo"
    return Ledger(capacity, uses, fifo, key, limits, trace, layout, prepared)
