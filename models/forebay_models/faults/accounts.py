"""Where every record of a scenario has gone, by the numbers that the records carry."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from forebay_models.faults.crew import Wrong
from forebay_models.faults.program import OK, Did


def settle(
    *,
    uses: int,
    did: Mapping[str, Sequence[Did]],
    died_with: Iterable[int],
    delivered: int,
    admitted: int,
    dropped: int,
) -> None:
    """See that every record that was written was delivered as often as it may be, and no more.

    Args:
        uses: how often.
        did: the calls that ended.
        died_with: the batch that the dead was writing, if any.
        delivered, admitted, dropped: records, as the ledger counts.
    """
    ended = [it for calls in did.values() for it in calls if it.outcome == OK]
    written = {n for it in ended if it.op.kind == "extend" for n in it.numbers}
    received = Counter(n for it in ended if it.op.kind != "extend" for n in it.numbers)
    maybe = set(died_with)
    if torn := received.keys() - written - maybe:
        raise Wrong(f"records are received that nobody has written whole: {sorted(torn)}")
    if doubled := {n: times for n, times in received.items() if times > uses}:
        raise Wrong(f"records are received too often: {doubled}")
    there = written | (maybe if admitted > len(written) else set())
    if admitted != len(there):
        raise Wrong(f"the ledger has admitted {admitted} records, of {sorted(there)}")
    if came := maybe & received.keys() - there:
        raise Wrong(f"records of a batch that was not admitted are received: {sorted(came)}")
    missing = sum(uses - received[n] for n in there)
    unheard = delivered - sum(received.values())
    if not 0 <= missing - unheard <= dropped * uses:
        raise Wrong(
            f"{missing} uses of records are missing; {unheard} were delivered to who died"
            + (f", {dropped} records were dropped" if dropped else "")
        )
