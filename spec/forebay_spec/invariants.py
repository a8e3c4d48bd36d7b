"""What is true of every state: the predicates behind the state properties.

Each takes the bounds and a state. They look at nothing but the state, except the two about
deadlocks, which ask what could happen next and so need the actions of the machine that they judge.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from functools import cache, lru_cache
from typing import Final, get_args

from forebay_spec.actions import Action, Label
from forebay_spec.boundary import queue_of
from forebay_spec.bounds import Bounds
from forebay_spec.kernel import Closing, Phase
from forebay_spec.state import (
    FILLING_SLOT,
    FREE_SLOT,
    NO_BOUNDARY,
    Hold,
    HoldState,
    Saved,
    Stage,
    State,
    Ticket,
    has_something,
    initial,
    is_ready_lease,
    pinned_by,
)
from forebay_spec.verdicts import filling_slots, head_of, misfit

StatePredicate = Callable[[Bounds, State], bool]
Actions = Mapping[str, Action]
_LIVE: Final = Phase.LIVE
_DROPPED: Final = Phase.DROPPED


def type_ok(bounds: Bounds, state: State) -> bool:
    """Every variable has a value of its type, and they tell the same story."""
    return (
        _slots_ok(bounds, state)
        and _free_ok(bounds, state)
        and _filling_ok(bounds, state)
        and _tickets_ok(bounds, state)
        and _holds_ok(bounds, state)
        and _ages_ok(bounds, state)
        and (state.boundary == NO_BOUNDARY or _boundary_ok(bounds, state))
        and state.closing in Closing
        and state.cancelled <= frozenset(bounds.tokens)
        and (not state.dead or _dead_ok(bounds, state))
        and (not state.left or _left_ok(bounds, state))
    )


def _slots_ok(bounds: Bounds, state: State) -> bool:
    """Slots have values in range, and zeros where a value would mean nothing."""
    pins = Counter(number for hold in state.holds for number in pinned_by(bounds, hold))
    for number, slot in enumerate(state.slots):
        if (
            not 0 <= slot.uses <= (0 if bounds.overwriting else bounds.uses)
            or slot.pins != pins[number]
        ):
            return False
        if slot.phase == _DROPPED and (slot.uses, slot.stamp) != (0, 0):
            return False
        if slot.phase < _LIVE and slot not in (FREE_SLOT, FILLING_SLOT):
            return False
    return len(state.slots) == bounds.capacity


def _free_ok(bounds: Bounds, state: State) -> bool:
    """The free order has the free slots, and ends with those never used, in slot order."""
    free = [number for number, slot in enumerate(state.slots) if slot.phase == Phase.FREE]
    unused = tuple(range(bounds.capacity - state.fresh, bounds.capacity))
    return (
        sorted(state.free) == free
        and 0 <= state.fresh <= len(free)
        and state.free[len(free) - state.fresh :] == unused
    )


def _filling_ok(bounds: Bounds, state: State) -> bool:
    """Producers fill different slots, and these are the slots that are being filled."""
    owners = [owner for owner, _ in state.filling]
    named = sorted(number for _, slots in state.filling for number in slots)
    return (
        owners == sorted(set(owners))
        and set(owners) <= set(bounds.producers)
        and all(slots for _, slots in state.filling)
        and named == [n for n, slot in enumerate(state.slots) if slot.phase == Phase.FILLING]
    )


def _tickets_ok(bounds: Bounds, state: State) -> bool:
    """Those who wait made a call that they may make, and are in no other."""
    actors = {ticket.actor for ticket in state.tickets}
    return (
        len(actors) == len(state.tickets)
        and actors.isdisjoint(_busy(state))
        and all(_call_ok(bounds, ticket) for ticket in state.tickets)
    )


def _busy(state: State) -> list[str]:
    """Return who is in a call past its wait: once for each that it is in."""
    filling = [owner for owner, _ in state.filling]
    busy = [
        hold.owner for hold in state.holds if hold.kind != "prefetched" and not is_ready_lease(hold)
    ]
    return [*filling, *busy, state.boundary.actor] if state.boundary.actor else filling + busy


def _call_ok(bounds: Bounds, ticket: Ticket) -> bool:
    kind, actor, n, m = ticket
    if kind == "write":
        return actor in bounds.producers and n in bounds.write_sizes and m == n
    return actor in bounds.readers and (kind, n, m) in bounds.requests


def _holds_ok(bounds: Bounds, state: State) -> bool:
    """What a hold pins is there; beside its leases an actor is in one call."""
    return max(Counter(_busy(state)).values(), default=0) <= 1 and all(
        (_own_ok(bounds, hold) or _prefetched_ok(bounds, state, hold))
        and hold.state in get_args(HoldState)
        and len(hold.slots) == len(hold.stamps)
        and all(0 <= number < bounds.capacity for number in hold.slots)
        and all(state.slots[number].phase >= _LIVE for number in pinned_by(bounds, hold))
        for hold in state.holds
    )


def _own_ok(bounds: Bounds, hold: Hold) -> bool:
    return hold.owner in bounds.readers and hold.kind in ("plain", "lease")


def _prefetched_ok(bounds: Bounds, state: State, hold: Hold) -> bool:
    """A process has so many batches of the size; of a stale one every record is dropped."""
    ahead = sum(other.kind == "prefetched" and other.owner == hold.owner for other in state.holds)
    phases = {state.slots[number].phase for number in hold.slots}
    return (
        hold.kind == "prefetched"
        and hold.owner in bounds.processes
        and ahead <= bounds.prefetch
        and (
            len(hold.slots) == bounds.batch_size
            or (bounds.order == "epochs" and 1 <= len(hold.slots) < bounds.batch_size)
        )
        and (_DROPPED not in phases or (phases == {_DROPPED} and hold.state == "gathering"))
    )


def _boundary_ok(bounds: Bounds, state: State) -> bool:
    """Somebody is at a stage, and only a copy has slots: records that are there, each once."""
    stage, actor, slots = state.boundary
    return (
        actor in bounds.actors
        and stage in get_args(Stage)
        and stage != "none"
        and bool(slots) == (stage == "copying")
        and len(set(slots)) == len(slots)
        and all(state.slots[number].phase >= _LIVE for number in slots)
    )


def _dead_ok(bounds: Bounds, state: State) -> bool:
    """The dead are actors, and each of them has something left."""
    return all(x in bounds.actors and has_something(state, x) for x in state.dead)


def _left_ok(bounds: Bounds, state: State) -> bool:
    """Only an epoch has something left, and only records that are there."""
    return bounds.order == "epochs" and all(
        state.slots[number].phase == _LIVE for number in state.left
    )


def _ages_ok(bounds: Bounds, state: State) -> bool:
    """Ages are ranks from 1, different ones for different records; under random they are 0."""
    live = {n: slot.stamp for n, slot in enumerate(state.slots) if slot.phase == _LIVE}
    remembered = [
        (number, stamp)
        for hold in state.holds
        for number, stamp in zip(hold.slots, hold.stamps, strict=True)
    ]
    ages = {*live.values(), *(stamp for number, stamp in remembered if number in live)}
    if not bounds.aged:
        return ages <= {0}
    if bounds.overwriting:  # ages never change, and a hold may have forgotten them
        known = live if bounds.order == "epochs" else {}
        return sorted(live.values()) == list(range(1, len(live) + 1)) and all(
            stamp in (0, known.get(number)) for number, stamp in remembered
        )
    return (
        sorted(ages) == list(range(1, len(ages) + 1))
        and len(set(live.values())) == len(live)
        and all((stamp > 0) == (number in live) for number, stamp in remembered)
    )


def bounded(bounds: Bounds, state: State) -> bool:
    """Every slot is in one phase, and there are as many as the capacity says."""
    phases = Counter(slot.phase for slot in state.slots)
    batches = [slots for _, slots in state.filling] + [hold.slots for hold in state.holds]
    return sum(phases[phase] for phase in Phase) == bounds.capacity and all(
        len(batch) <= bounds.capacity for batch in batches
    )


def use_bound(bounds: Bounds, state: State) -> bool:
    """No record is drawn more often than it may be, and none stays that nobody needs."""
    return all(
        slot.uses <= bounds.uses
        and (
            slot.pins > 0
            or slot.phase < _LIVE
            or (slot.phase == _LIVE and slot.uses < bounds.uses)
            or number in state.boundary.slots
        )
        for number, slot in enumerate(state.slots)
    )


def distinct_rows(bounds: Bounds, state: State) -> bool:
    """No batch names a slot twice, but for those that are drawn with replacement."""
    batches = [slots for _, slots in state.filling]
    if bounds.order != "replacement":
        batches += [hold.slots for hold in state.holds]
    return all(len(set(batch)) == len(batch) for batch in batches)


def capture_atomic(bounds: Bounds, state: State) -> bool:
    """A snapshot is a state in which nothing is going on, but for its queue."""
    return state.saved is None or _is_a_state(bounds, state.saved)


@lru_cache(maxsize=1024)
def _is_a_state(bounds: Bounds, saved: Saved) -> bool:
    """Tell whether a snapshot is a state; many states have the same one."""
    state = initial(bounds)._replace(
        slots=saved.slots,
        free=saved.free,
        fresh=saved.fresh,
        holds=queue_of(saved, bounds.processes[0]),
        left=saved.left,
    )
    return all(says(bounds, state) for says in (type_ok, bounded, use_bound, distinct_rows))


_BUFFER_GOES_ON: Final = (
    *("Admit", "Draw", "Cancel", "Refuse", "Recall", "Recover"),
    *("Capture", "CaptureDone", "Load", "Restore", "Reject"),
)
_OWNERS_GO_ON: Final = ("Publish", "Ready", "Deliver", "Return")
_SERVED: Final = ("Admit", "Draw")


def _possible(
    actions: Actions, bounds: Bounds, state: State, names: tuple[str, ...]
) -> Iterator[Label]:
    """Yield the steps with these names that may happen."""
    for name in names:
        action = actions[name]
        for args in action.instances(bounds, state):
            if action.enabled(bounds, state, *args):
                yield Label(name, args)


def no_silent_deadlock(actions: Actions) -> StatePredicate:
    """Return the predicate that says: whoever waits can be helped, or is told that nobody can.

    A step of the buffer or of a busy actor helps, and so does a call that an idle actor could make
    and that would be served. A lease of an actor who waits ends by no step of its owner. That a
    queue may be flushed helps nobody.
    """

    @cache
    def happening(bounds: Bounds) -> tuple[str, ...]:
        return tuple(name for name in _BUFFER_GOES_ON if actions[name].within(bounds))

    def would_be_served(bounds: Bounds, state: State, call: Label) -> bool:
        return any(
            after.filling != state.filling or after.holds != state.holds
            for after in actions[call.name].apply(bounds, state, *call.args)
        )

    def goes_on(state: State, step: Label, who_wait: set[str]) -> bool:
        if step.name == "Publish":
            return True
        h = step.args[0]
        assert isinstance(h, int)
        hold = state.holds[h]
        if hold.kind == "prefetched":
            return step.name == "Ready"
        return hold.owner not in who_wait

    def holds(bounds: Bounds, state: State) -> bool:
        if not state.tickets:
            return True
        who_wait = {ticket.actor for ticket in state.tickets}
        return (
            any(True for _ in _possible(actions, bounds, state, happening(bounds)))
            or any(
                goes_on(state, step, who_wait)
                for step in _possible(actions, bounds, state, _OWNERS_GO_ON)
            )
            or any(
                would_be_served(bounds, state, call)
                for call in _possible(actions, bounds, state, ("Arrive", "Ask"))
            )
        )

    return holds


def no_false_deadlock(actions: Actions) -> StatePredicate:
    """Return the predicate that says: nobody is told of a mutual wait while something may help.

    An open buffer refuses a call for no other reason than a mutual wait or its own actor's leases;
    the latter is another matter. Only a lease whose owner waits ends by no step of its owner, and
    a prefetched batch can always be given back.
    """
    refuse = actions["Refuse"].enabled

    def may_help(bounds: Bounds, state: State) -> bool:
        who_wait = {ticket.actor for ticket in state.tickets}
        heads = (head_of(state, True), head_of(state, False))
        return (
            bool(state.dead)
            or filling_slots(state) > 0
            or state.boundary.stage != "none"
            or any(not is_ready_lease(hold) or hold.owner not in who_wait for hold in state.holds)
            or any(
                head is not None and bounds.token(head.actor) in state.cancelled for head in heads
            )
            or any(True for _ in _possible(actions, bounds, state, _SERVED))
        )

    def holds(bounds: Bounds, state: State) -> bool:
        return state.closing != Closing.OPEN or not any(
            refuse(bounds, state, ticket.actor)
            and not misfit(bounds, state, ticket)
            and may_help(bounds, state)
            for ticket in state.tickets
        )

    return holds


def no_mutual_wait(actions: Actions) -> StatePredicate:
    """Return the predicate that says: in an overwriting buffer no call gets MUTUAL_WAIT.

    An open buffer turns a call away for no other reason: one that waits is refused, and one that
    arrives changes nothing.
    """
    refuse = actions["Refuse"].enabled

    def turned_away(bounds: Bounds, state: State, call: Label) -> bool:
        return bounds.token(str(call.args[0])) not in state.cancelled and state in actions[
            call.name
        ].apply(bounds, state, *call.args)

    def holds(bounds: Bounds, state: State) -> bool:
        if not bounds.overwriting or state.closing != Closing.OPEN:
            return True
        return not any(refuse(bounds, state, ticket.actor) for ticket in state.tickets) and not any(
            turned_away(bounds, state, call)
            for call in _possible(actions, bounds, state, ("Arrive", "Ask"))
        )

    return holds
