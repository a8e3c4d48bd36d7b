"""Every decision of the buffer, as pure functions of ints, bools and IntEnums.

The library calls these functions for its decisions, the Python specification calls them for its
guards, and CrossHair confirms their contracts over all paths (`forebay check kernel`), so what is
proved here is what is shipped. Contracts are written in PEP 316 style, in the docstrings.

Nothing here knows of time, threads or tensors. Sizes are in records.
"""

from enum import IntEnum


class Phase(IntEnum):
    """What a slot holds."""

    FREE = 0
    FILLING = 1
    LIVE = 2
    DROPPED = 3


class Closing(IntEnum):
    """How far a buffer has been closed; it only moves to larger values."""

    OPEN = 0
    DRAINING = 1
    STOPPED = 2


class Verdict(IntEnum):
    """What a call gets at its first critical section and whenever it wakes."""

    WAIT = 0
    SERVE = 1
    SHUT_DOWN = 2
    CANCELLED = 3
    MUTUAL_WAIT = 4
    TIMEOUT = 5


def writer_verdict(
    closing: Closing,
    cancelled: bool,
    head: bool,
    n: int,
    free: int,
    held_off: bool,
    victim: bool,
    expired: bool,
) -> Verdict:
    """Decide what a writer of n records gets while `free` slots are free.

    `head`: no other writer waits in front of it. `victim`: it must give way, see `mutual_wait` and
    `never_fits`. `expired`: its deadline has passed. `held_off`: a restore is under way.

    pre: n >= 1 and free >= 0
    post: (_ == Verdict.SHUT_DOWN) == (closing != Closing.OPEN)
    post: (_ == Verdict.CANCELLED) == (closing == Closing.OPEN and cancelled)
    post: _ != Verdict.SERVE or (head and n <= free and not held_off and not cancelled)
    post: _ != Verdict.WAIT or not (expired or victim or cancelled)
    post: _ != Verdict.TIMEOUT or expired
    post: _ != Verdict.MUTUAL_WAIT or victim
    """
    if closing != Closing.OPEN:
        return Verdict.SHUT_DOWN
    if cancelled:
        return Verdict.CANCELLED
    if head and n <= free and not held_off:
        return Verdict.SERVE
    if victim:
        return Verdict.MUTUAL_WAIT
    if expired:
        return Verdict.TIMEOUT
    return Verdict.WAIT


def least_rows(m: int, closing: Closing, filling: int) -> int:
    """Return how few records will do for a reader of at least m: one, once nothing more can come.

    pre: m >= 1 and filling >= 0
    post: 1 <= _ <= m
    post: _ == m or (closing == Closing.DRAINING and filling == 0)
    """
    if closing == Closing.DRAINING and filling == 0:
        return 1
    return m


def reader_verdict(
    closing: Closing,
    cancelled: bool,
    head: bool,
    queued: bool,
    m: int,
    sampleable: int,
    filling: int,
    held_off: bool,
    victim: bool,
    expired: bool,
) -> Verdict:
    """Decide what a reader of at least m records gets while `sampleable` records can be sampled.

    `queued`: its process has a batch of that size ready or on its way, which was drawn ahead.
    `filling` counts the slots that are being filled. `held_off`: a restore is under way, or its
    process is about to be captured. The other arguments are as for `writer_verdict`.

    pre: m >= 1 and sampleable >= 0 and filling >= 0
    post: _ == Verdict.SHUT_DOWN or closing != Closing.STOPPED
    post: _ != Verdict.SHUT_DOWN or closing != Closing.OPEN
    post: _ != Verdict.SHUT_DOWN or closing == Closing.STOPPED or sampleable + filling == 0
    post: _ != Verdict.SHUT_DOWN or closing == Closing.STOPPED or not (queued or held_off)
    post: (_ == Verdict.CANCELLED) == (closing != Closing.STOPPED and cancelled)
    post: _ != Verdict.SERVE or not (held_off or cancelled)
    post: _ != Verdict.SERVE or queued or (head and sampleable >= 1)
    post: _ != Verdict.SERVE or queued or sampleable >= m or closing == Closing.DRAINING
    post: _ != Verdict.SERVE or queued or sampleable >= m or filling == 0
    post: _ == Verdict.SERVE or not queued or held_off or cancelled or closing == Closing.STOPPED
    post: _ != Verdict.WAIT or not (expired or victim or cancelled)
    post: _ != Verdict.WAIT or held_off or closing == Closing.OPEN or sampleable + filling > 0
    post: _ != Verdict.TIMEOUT or expired
    post: _ != Verdict.MUTUAL_WAIT or victim
    """
    if closing == Closing.STOPPED:
        return Verdict.SHUT_DOWN
    if cancelled:
        return Verdict.CANCELLED
    if not held_off:
        if queued or (head and sampleable >= least_rows(m, closing, filling)):
            return Verdict.SERVE
        if closing == Closing.DRAINING and filling == 0 and sampleable == 0:
            return Verdict.SHUT_DOWN
    if victim:
        return Verdict.MUTUAL_WAIT
    if expired:
        return Verdict.TIMEOUT
    return Verdict.WAIT


def batch_rows(k: int, sampleable: int) -> int:
    """Return how many records a served reader of k gets.

    pre: k >= 1 and sampleable >= 1
    post: 1 <= _ <= k and _ <= sampleable
    post: _ == k or _ == sampleable
    """
    return k if k < sampleable else sampleable


def is_sampleable(phase: Phase, uses: int, limit: int) -> bool:
    """Tell whether a record may be drawn; `limit` is `consume_after_n_samples`.

    pre: limit >= 1 and 0 <= uses <= limit
    post: not _ or (phase == Phase.LIVE and uses < limit)
    """
    return phase == Phase.LIVE and uses < limit


def is_evictable(phase: Phase, pins: int, to_copy: bool) -> bool:
    """Tell whether a writer of an overwriting buffer may take a slot with its record.

    `to_copy`: a capture has still to copy the record.

    pre: pins >= 0
    post: _ == (phase == Phase.LIVE and pins == 0 and not to_copy)
    """
    return phase == Phase.LIVE and pins == 0 and not to_copy


def begins_epoch(k: int, left: int, drop_last: bool) -> bool:
    """Tell whether a draw of k begins an epoch anew, of which `left` records are left.

    `drop_last`: a batch that would be short is left out.

    pre: k >= 1 and left >= 0
    post: _ or left >= 1
    post: _ or left >= k or not drop_last
    post: not _ or left == 0 or (drop_last and left < k)
    """
    return left == 0 or (drop_last and left < k)


def becomes_free(phase: Phase, uses: int, limit: int, pins: int) -> bool:
    """Tell whether a slot that was just unpinned is free now: spent or dropped, and held by nobody.

    pre: limit >= 1 and 0 <= uses <= limit and pins >= 0
    post: not _ or pins == 0
    post: not _ or phase == Phase.DROPPED or (phase == Phase.LIVE and uses == limit)
    post: _ or pins > 0 or not (phase == Phase.LIVE and uses == limit)
    """
    if pins > 0:
        return False
    return phase == Phase.DROPPED or (phase == Phase.LIVE and uses == limit)


def returned_stamp(current: int, remembered: int) -> int:
    """Return the age of a returned record: the oldest that any hold on it remembers.

    post: _ <= current and _ <= remembered
    post: _ == current or _ == remembered
    """
    return current if current < remembered else remembered


def mutual_wait(
    closing: Closing,
    n: int,
    free: int,
    m: int,
    sampleable: int,
    filling: int,
    busy_holds: int,
    somebody_leaves: bool,
    boundary: bool,
) -> bool:
    """Tell whether the waiting calls can only wait for each other, for ever.

    n and m are what the head writer and the head reader wait for, 0 where nobody waits; a kind of
    call that does not wait counts as one that would come for a single record, since a smaller
    newcomer does not exist. `busy_holds` counts the holds whose owner can still go on: those that
    are neither a lease of an owner who waits nor a prefetched batch that is settled.
    `somebody_leaves`: a head has its flag set, or a waiting call can take a prefetched batch.
    `boundary`: a capture or a restore is in progress.

    pre: n >= 0 and m >= 0 and free >= 0 and sampleable >= 0 and filling >= 0 and busy_holds >= 0
    post: not _ or (closing == Closing.OPEN and filling == 0 and busy_holds == 0 and not boundary)
    post: not _ or not somebody_leaves
    post: not _ or n + m >= 1
    post: not _ or n == 0 or n > free
    post: not _ or m == 0 or m > sampleable
    post: not _ or n > 0 or free == 0
    post: not _ or m > 0 or sampleable == 0
    """
    if closing != Closing.OPEN or filling > 0 or busy_holds > 0 or somebody_leaves or boundary:
        return False
    if n == 0 and m == 0:
        return False
    return free < (n if n > 0 else 1) and sampleable < (m if m > 0 else 1)


def writer_gives_way(n: int, m: int, writer_ticket: int, reader_ticket: int) -> bool:
    """Tell which head is the victim of a mutual wait: the later one. True means the writer.

    Ticket numbers rise with arrival; the number of a kind that does not wait is not looked at.

    pre: n >= 0 and m >= 0 and n + m >= 1
    post: _ or m > 0
    post: not _ or n > 0
    post: n == 0 or m == 0 or _ == (writer_ticket > reader_ticket)
    """
    if n == 0:
        return False
    if m == 0:
        return True
    return writer_ticket > reader_ticket


def lease_blocks(phase: Phase, uses: int, limit: int, pins: int, own: int) -> bool:
    """Tell whether a thread's own leases keep a slot from being sampled until they end.

    `own` of the slot's `pins` belong to leases of that thread. Uses that others may still return do
    not count against the slot.

    pre: limit >= 1 and 0 <= uses <= limit and 0 <= own <= pins
    post: not _ or own >= 1
    post: not _ or phase == Phase.DROPPED or (phase == Phase.LIVE and uses == limit)
    post: not _ or phase == Phase.DROPPED or pins == own
    """
    if own == 0:
        return False
    if phase == Phase.DROPPED:
        return True
    return phase == Phase.LIVE and uses - (pins - own) == limit


def never_fits(rows: int, capacity: int, blocked: int) -> bool:
    """Tell whether a call for `rows` can never be served beside its own thread's leases.

    `blocked` counts the slots that those leases keep: for a writer every slot they hold, for a
    reader those for which `lease_blocks` holds.

    pre: 1 <= rows <= capacity and 0 <= blocked <= capacity
    post: _ == (blocked > capacity - rows)
    post: _ == False or blocked >= 1
    """
    return rows + blocked > capacity


def close_to(current: Closing, asked: Closing) -> Closing:
    """Return how far a buffer is closed after a request; it never opens again.

    post: _ >= current and _ >= asked
    post: _ == current or _ == asked
    """
    return asked if asked > current else current
