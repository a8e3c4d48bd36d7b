"""The error for each outcome of a call that was not served."""

from forebay_spec.kernel import Closing, Verdict

from forebay import _layout as at
from forebay._calls import Call
from forebay._errors import (
    AdmissionTimeout,
    Cancelled,
    LimitReached,
    MutualWait,
    PeerLost,
    SampleTimeout,
    ShutDown,
)
from forebay._failure import words_of
from forebay._ledger import Ledger
from forebay._tickets import Kind


def wanted(call: Call) -> str:
    """Say what a call wants."""
    if call.kind is Kind.WRITE:
        return f"a write of {_records(call.n)}"
    what = "a lease" if call.kind is Kind.LEASE else "a sample"
    if call.m == call.n:
        return f"{what} of {_records(call.n)}"
    return f"{what} of {call.m} to {_records(call.n)}"


def error_for(
    call: Call, verdict: Verdict, ledger: Ledger, failure: BaseException | None
) -> Exception:
    """Return the error that a call ends with, its cause set where there is one."""
    if verdict is Verdict.SHUT_DOWN:
        return _shut_down(call, ledger, failure)
    if verdict is Verdict.CANCELLED:
        return Cancelled(f"{wanted(call)} was cancelled before it was served; it had no effect")
    if verdict is Verdict.MUTUAL_WAIT:
        return _mutual_wait(call, ledger)
    if call.kind is Kind.WRITE:
        return AdmissionTimeout(
            f"{wanted(call)} was not admitted within {call.timeout} s; nothing was written"
        )
    return SampleTimeout(
        f"{wanted(call)} was not served within {call.timeout} s; nothing was consumed"
    )


def calls_limit(ledger: Ledger) -> LimitReached:
    """Return the error for a table of calls that is full."""
    return LimitReached(
        f"{ledger.limits.calls} calls wait, copy or hold a batch, which is the limit; construct "
        f"the buffer with limits=Limits(calls=...) to raise it"
    )


def held_limit(ledger: Ledger) -> LimitReached:
    """Return the error for a pool of held records that is full."""
    return LimitReached(
        f"batches would hold more than {ledger.layout.held} records at a time, counting a record "
        f"once for each batch, which is the limit; construct the buffer with "
        f"limits=Limits(held=...) to raise it"
    )


def _records(n: int) -> str:
    return "1 record" if n == 1 else f"{n} records"


def _shut_down(call: Call, ledger: Ledger, failure: BaseException | None) -> Exception:
    if failure is not None:
        failed = PeerLost(f"the buffer has failed: {words_of(failure)}")
        failed.__cause__ = failure
        return failed
    if call.kind is Kind.WRITE:
        return ShutDown(f"the buffer is closed; {wanted(call)} was refused")
    if ledger.closing is Closing.STOPPED:
        return ShutDown(f"the buffer was stopped; {wanted(call)} was refused, no record is lost")
    if ledger.closing is Closing.DRAINING:
        return ShutDown(f"the buffer is closed and nothing is left for {wanted(call)}")
    lost = ledger.cells[at.LOST_PRODUCERS]
    rest = "" if ledger.sampleable else f" and nothing is left for {wanted(call)}"
    gone = f"all registered producers are gone{rest}"
    if lost:
        return PeerLost(f"{gone}; {lost} of them died or failed in their block")
    return ShutDown(f"{gone}; all of them ended their blocks")


def _mutual_wait(call: Call, ledger: Ledger) -> MutualWait:
    capacity = ledger.capacity
    n, m = call.heads
    if call.m + call.blocked > capacity:
        return MutualWait(
            f"{wanted(call)} can never be served: leases of this thread keep {call.blocked} of "
            f"{capacity} slots; commit or release them first, or use a capacity of at least "
            f"{call.m + call.blocked}"
        )
    if n and m:
        return MutualWait(
            f"a writer of {_records(n)} and a reader of {_records(m)} wait for each other in a "
            f"capacity of {capacity}, so {wanted(call)} gave way; a capacity of "
            f"{n + m - 1} would do for these two"
        )
    return MutualWait(
        f"{wanted(call)} gave way: every slot is kept by leases of threads that wait themselves; "
        f"commit or release leases before waiting, or use a larger capacity than {capacity}"
    )
