"""A state of `forebay_spec` as short texts, one for each thing that can change by itself."""

from forebay_spec.state import Saved, Slot, State


def describe(state: State) -> dict[str, str]:
    """Return the variables of a state by name; each slot counts as a variable.

    Nothing is left out, so two states are equal if and only if their descriptions are.
    """
    lines = {f"slots[{number}]": _slot(slot) for number, slot in enumerate(state.slots)}
    lines["free"] = f"{_numbers(state.free)}, {state.fresh} of them fresh"
    lines["filling"] = "; ".join(f"{actor}: {_numbers(slots)}" for actor, slots in state.filling)
    lines["tickets"] = "; ".join(
        f"{ticket.actor} {ticket.kind} {ticket.n}" + (f" or {ticket.m}" * (ticket.m != ticket.n))
        for ticket in state.tickets
    )
    lines["holds"] = "; ".join(
        f"{hold.owner} {hold.kind} {_numbers(hold.slots)} aged {_numbers(hold.stamps)} {hold.state}"
        for hold in state.holds
    )
    lines["closing"] = state.closing.name.lower()
    lines["cancelled"] = " ".join(sorted(state.cancelled))
    lines["dead"] = " ".join(sorted(state.dead))
    stage, actor, slots = state.boundary
    if stage != "none":
        lines["boundary"] = f"{stage} for {actor}" + f", {_numbers(slots)} to copy" * bool(slots)
    else:
        lines["boundary"] = ""
    lines["saved"] = "" if state.saved is None else _saved(state.saved)
    if state.left:  # only a buffer that has epochs ever says something of it
        lines["left"] = _numbers(tuple(sorted(state.left)))
    return {name: text or "-" for name, text in lines.items()}


def _saved(saved: Saved) -> str:
    return "; ".join(
        [
            *map(_slot, saved.slots),
            f"free {_numbers(saved.free)}, {saved.fresh} of them fresh",
            *(f"queue {_numbers(slots)} aged {_numbers(ages)}" for slots, ages in saved.queue),
            *[f"left {_numbers(tuple(sorted(saved.left)))}"] * bool(saved.left),
        ]
    )


def _slot(slot: Slot) -> str:
    return slot.phase.name.lower() + "".join(
        f" {name}={value}"
        for name, value in (("uses", slot.uses), ("pins", slot.pins), ("stamp", slot.stamp))
        if value
    )


def _numbers(slots: tuple[int, ...]) -> str:
    return "(" + " ".join(map(str, slots)) + ")"
