"""What is true of the steps of captures and restores.

`CaptureComplete` says anew, slot by slot and from the state before alone, what a snapshot has to
have; it shares nothing with the effect that makes one.
"""

from forebay_spec.actions import Label
from forebay_spec.boundary import queue_of
from forebay_spec.bounds import Bounds
from forebay_spec.kernel import Closing, Phase
from forebay_spec.state import NO_BOUNDARY, NOTHING, Hold, Saved, State, pinned_by

_LIVE = Phase.LIVE


def capture_complete(bounds: Bounds, before: State, label: Label, after: State) -> bool:
    """A snapshot has every record that was there, and the queue of the process, all gathered."""
    if label.name != "Capture":
        return True
    saved, process = after.saved, bounds.process(str(label.args[0]))
    if saved is None or after != before._replace(saved=saved, boundary=after.boundary):
        return False
    kept = [hold for hold in before.holds if _stays(hold, process)]
    given_back = [hold for hold in before.holds if not _stays(hold, process)]
    ages_due, ages = _ages_due(bounds, before, kept, given_back), _ages(saved)
    return (
        not any(_gathers_for(bounds, hold, process) for hold in before.holds)
        and [slots for slots, _ in saved.queue] == [hold.slots for hold in kept]
        and all(
            (old.phase == _LIVE) == (new.phase == _LIVE)
            and new.pins == sum(number in pinned_by(bounds, hold) for hold in kept)
            and new.uses == _uses_due(bounds, before, number, given_back)
            for number, (old, new) in enumerate(zip(before.slots, saved.slots, strict=True))
        )
        and (not bounds.aged or _same_order(ages_due, ages))
        and saved.left == _left_due(bounds, before, given_back)
    )


def _stays(hold: Hold, process: str) -> bool:
    return (hold.kind, hold.owner, hold.state) == ("prefetched", process, "ready")


def _gathers_for(bounds: Bounds, hold: Hold, process: str) -> bool:
    owner = hold.owner if hold.kind == "prefetched" else bounds.process(hold.owner)
    return hold.state == "gathering" and owner == process


def _uses_due(bounds: Bounds, before: State, number: int, given_back: list[Hold]) -> int:
    slot = before.slots[number]
    if slot.phase != _LIVE or bounds.overwriting:
        return 0
    return slot.uses - sum(number in hold.slots for hold in given_back)


def _ages_due(bounds: Bounds, before: State, kept: list[Hold], given_back: list[Hold]) -> list[int]:
    """Return the ages of the live records, in slot order, then those that the queue remembers."""
    ages = {n: slot.stamp for n, slot in enumerate(before.slots) if slot.phase == _LIVE}
    for hold in () if bounds.overwriting else given_back:
        for number, remembered in zip(hold.slots, hold.stamps, strict=True):
            if number in ages:
                ages[number] = min(ages[number], remembered)
    return [*ages.values(), *(stamp for hold in kept for stamp in hold.stamps)]


def _left_due(bounds: Bounds, before: State, given_back: list[Hold]) -> frozenset[int]:
    """Return what is left of the epoch when the holds that remember ages have given back theirs."""
    if bounds.order != "epochs":
        return NOTHING
    back = {
        number
        for hold in given_back
        for number, remembered in zip(hold.slots, hold.stamps, strict=True)
        if remembered and before.slots[number].phase == _LIVE
    }
    return before.left | back


def _ages(saved: Saved) -> list[int]:
    live = [slot.stamp for slot in saved.slots if slot.phase == _LIVE]
    return [*live, *(stamp for _, stamps in saved.queue for stamp in stamps)]


def _same_order(ages: list[int], others: list[int]) -> bool:
    """Tell whether two lists of ages say the same of what is older than what, and what is none."""

    def ranks(listed: list[int]) -> list[int]:
        ordered = sorted(set(listed))
        return [ordered.index(age) for age in listed]

    return ranks([0, *ages]) == ranks([0, *others])


def reject_unchanged(bounds: Bounds, before: State, label: Label, after: State) -> bool:
    """A restore that is rejected has changed nothing."""
    return label.name != "Reject" or after == before._replace(boundary=NO_BOUNDARY)


def continuation(bounds: Bounds, before: State, label: Label, after: State) -> bool:
    """A restore makes the buffer what the snapshot says, and leaves those alone who wait."""
    if label.name != "Restore":
        return True
    saved = before.saved
    return saved is not None and after == before._replace(
        slots=saved.slots,
        free=saved.free,
        fresh=saved.fresh,
        holds=queue_of(saved, bounds.process(str(label.args[0]))),
        boundary=NO_BOUNDARY,
        left=saved.left,
    )


def dead_loader(bounds: Bounds, before: State, label: Label, after: State) -> bool:
    """Who died while it loaded leaves a buffer that is stopped and has no records."""
    lost = label.name == "Recover" and before.boundary[:2] == ("loading", label.args[0])
    return not lost or (
        after.closing == Closing.STOPPED and all(slot.phase != _LIVE for slot in after.slots)
    )
