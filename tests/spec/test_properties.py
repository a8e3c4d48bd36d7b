"""The registry has every property of the page, under its name, and each of them can be broken."""

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from forebay_spec.actions import ACTIONS, Action
from forebay_spec.bounds import Bounds
from forebay_spec.kernel import Phase
from forebay_spec.named import Fairness
from forebay_spec.properties import (
    INVARIANTS,
    LIVENESS,
    STEPS,
    WITNESSES,
    fair_choice,
    invariants,
)
from forebay_spec.state import FREE_SLOT, Hold, Slot, State, Ticket

from tests.spec.walking import label, on, roomy, walk

PAGE = (Path(__file__).parents[2] / "docs/state-machine.md").read_text(encoding="utf-8")
ONE = roomy()
TWO = roomy(uses=2)
ANY = roomy(order="random")


def rows(heading: str, pattern: str) -> list[tuple[str, ...]]:
    """Return what a pattern finds in the lines of a table under a heading."""
    section = PAGE.split(f"## {heading}\n")[1].split("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("| `")]
    return [match.groups() for line in lines if (match := re.match(pattern, line))]


def test_the_actions_are_those_of_the_documentation() -> None:
    assert [name for (name,) in rows("Actions", r"\| `(\w+)")] == list(ACTIONS)


@pytest.mark.parametrize(
    ("kind", "registry"), [("state", INVARIANTS), ("step", STEPS), ("liveness", LIVENESS)]
)
def test_the_properties_are_those_of_the_documentation(
    kind: str, registry: dict[str, object]
) -> None:
    table = rows("Invariants and other properties", r"\| `(\w+)` \| (\w+) \|")
    assert [name for name, of in table if of == kind] == list(registry)


def test_the_witnesses_are_those_of_the_documentation() -> None:
    paragraph = PAGE.split("**Witnesses**")[1].split("\n\n")[0]
    assert re.findall(r"`([A-Z][a-z]\w+)`", paragraph) == list(WITNESSES)


def test_every_entry_goes_by_its_name_and_says_a_sentence() -> None:
    for registry in (INVARIANTS, STEPS, LIVENESS, WITNESSES):
        for name, entry in registry.items():
            assert entry.name == name
            assert re.fullmatch(r"[A-Z][^\n]{20,}\.", entry.sentence), name


# What must not pass: a good state or step with one thing wrong.

GOOD = walk(TWO, "Arrive(p1,2)", "Publish(p1)", "Ask(c1,plain,1,1)", "Arrive(p2,1)", "Arrive(x1,1)")


def slots(state: State, number: int, slot: Slot) -> State:
    return state._replace(slots=(*state.slots[:number], slot, *state.slots[number + 1 :]))


def test_a_good_state_passes() -> None:
    assert GOOD.tickets == (Ticket("write", "x1", 1, 1),)
    assert [name for name, row in INVARIANTS.items() if not row.predicate(TWO, GOOD)] == []


@pytest.mark.parametrize(
    ("name", "bad"),
    [
        ("TypeOK", slots(GOOD, 1, Slot(Phase.LIVE, 0, 1, 1))),  # a pin that no hold has
        ("TypeOK", slots(GOOD, 1, Slot(Phase.LIVE, 0, 0, 9))),  # an age that is no rank
        ("TypeOK", slots(GOOD, 0, Slot(Phase.DROPPED, 1, 1, 0))),  # dropped and used
        ("TypeOK", slots(GOOD, 2, FREE_SLOT)),  # filling and not
        ("TypeOK", GOOD._replace(free=(1,))),  # free and live
        ("TypeOK", GOOD._replace(fresh=1)),
        ("TypeOK", GOOD._replace(filling=(*GOOD.filling, ("x1", ())))),  # nothing is filled
        ("TypeOK", GOOD._replace(filling=())),
        ("TypeOK", GOOD._replace(tickets=GOOD.tickets * 2)),  # two calls of one actor
        ("TypeOK", GOOD._replace(tickets=(Ticket("write", "p2", 1, 1),))),  # it fills already
        ("TypeOK", GOOD._replace(tickets=(Ticket("write", "c2", 1, 1),))),  # a reader writes
        ("TypeOK", GOOD._replace(tickets=(Ticket("plain", "c2", 3, 4),))),  # no such request
        ("TypeOK", GOOD._replace(holds=())),
        ("TypeOK", GOOD._replace(holds=(GOOD.holds[0]._replace(stamps=(3,)),))),
        ("TypeOK", GOOD._replace(holds=(GOOD.holds[0]._replace(owner="p1"),))),
        ("TypeOK", GOOD._replace(cancelled=frozenset({"t3"}))),
        ("TypeOK", GOOD._replace(dead=frozenset({"c2"}))),  # it has nothing
        ("TypeOK", GOOD._replace(dead=frozenset({"p3"}))),  # nobody
        ("Bounded", GOOD._replace(slots=GOOD.slots[:2])),
        ("Bounded", GOOD._replace(filling=(("p2", (2, 2, 2, 2)),))),
        ("UseBound", slots(GOOD, 0, Slot(Phase.LIVE, 3, 1, 2))),
        ("UseBound", slots(GOOD, 1, Slot(Phase.LIVE, 2, 0, 1))),  # spent and not held
        ("UseBound", slots(GOOD, 1, Slot(Phase.DROPPED, 0, 0, 0))),
        ("DistinctRows", GOOD._replace(filling=(("p2", (2, 2)),))),
        ("DistinctRows", GOOD._replace(holds=(GOOD.holds[0]._replace(slots=(0, 0)),))),
    ],
)
def test_a_state_with_one_thing_wrong_does_not(name: str, bad: State) -> None:
    assert not INVARIANTS[name].predicate(TWO, bad)


def test_a_deadlock_is_silent_when_nobody_says_so() -> None:
    small = roomy(capacity=2)
    state = walk(small, "Arrive(p1,2)", "Publish(p1)")
    state = on(small, state, "Ask(c1,lease,1,1)", "Ready(0)", "Ask(c2,lease,1,1)", "Ready(1)")
    state = on(small, state, "Ask(c1,plain,1,1)", "Ask(c2,plain,1,1)")
    assert INVARIANTS["NoSilentDeadlock"].predicate(small, state)
    mute = {**ACTIONS, "Refuse": ACTIONS["Admit"]}
    assert not invariants(mute)["NoSilentDeadlock"].predicate(small, state)


def test_nobody_waits_silently_while_a_newcomer_would_be_served() -> None:
    small = roomy(capacity=2)
    state = walk(small, "Ask(c1,plain,1,1)")
    mute = {**ACTIONS, "Refuse": ACTIONS["Admit"]}
    assert invariants(mute)["NoSilentDeadlock"].predicate(small, state)


def test_whoever_waits_for_the_dead_is_helped_by_recover() -> None:
    small = roomy(capacity=2)
    state = walk(small, "Arrive(p1,1)", "Arrive(p2,2)", "Kill(p1)")
    assert INVARIANTS["NoSilentDeadlock"].predicate(small, state)
    careless = {**ACTIONS, "Recover": ACTIONS["Admit"]}
    assert not invariants(careless)["NoSilentDeadlock"].predicate(small, state)


MUTUAL = (*("Arrive(p1,2)", "Publish(p1)", "Ask(c1,lease,1,1)", "Ready(0)"), "Ask(c2,plain,2,2)")


def refusing(*who: str) -> Mapping[str, Action]:
    """Return actions by which these actors are refused whenever they wait."""
    always = replace(ACTIONS["Refuse"], enabled=lambda bounds, state, x: x in who)
    return {**ACTIONS, "Refuse": always}


def told_wrongly(bounds: Bounds, state: State, *who: str) -> bool:
    """Tell whether it is wrong in a state to refuse these actors."""
    return not invariants(refusing(*who))["NoFalseDeadlock"].predicate(bounds, state)


def test_a_mutual_wait_may_be_told_when_nothing_can_help() -> None:
    small = roomy(capacity=2)
    stuck = on(small, walk(small, *MUTUAL), "Ask(c1,plain,1,1)")
    assert not told_wrongly(small, stuck, "c1", "c2")


@pytest.mark.parametrize(
    "story",
    [
        ("Arrive(p1,1)", "Ask(c1,plain,1,1)"),  # something is filling
        ("Ask(c1,plain,1,1)", "Arrive(p1,1)"),  # the same, and the reader came first
        MUTUAL,  # who has the lease does not wait
        (*MUTUAL[:3], "Ask(c2,plain,2,2)"),  # it gathers
        (*MUTUAL[:2], "Ask(x1,lease,1,1)", "Fail(0)", "Ask(c1,plain,2,2)"),  # a failed one
        ("Ask(c1,plain,1,1)", "Arrive(p1,1)", "Publish(p1)"),  # it would be served
        ("Ask(c1,plain,1,1)", "SetCancel(t1)"),  # the head is about to leave
        ("Ask(c1,plain,1,1)", "Ask(c2,plain,1,1)", "Kill(c2)"),  # somebody is dead
    ],
)
def test_a_mutual_wait_is_told_wrongly_while_something_may_help(story: tuple[str, ...]) -> None:
    small = roomy(capacity=2)
    state = walk(small, *story)
    waits = next(ticket.actor for ticket in state.tickets)
    assert told_wrongly(small, state, waits)
    assert not told_wrongly(small, state)
    assert not told_wrongly(small, on(small, state, "Close(draining)"), waits)


def test_a_call_that_never_fits_may_be_told_though_something_may_help() -> None:
    small = roomy(capacity=2)
    state = walk(small, *MUTUAL[:4], "Kill(c1)")
    state = state._replace(tickets=(Ticket("plain", "c1", 2, 2),), dead=frozenset({"c2"}))
    assert not told_wrongly(small, state, "c1")
    fits = state._replace(tickets=(Ticket("plain", "c1", 1, 1),))
    assert told_wrongly(small, fits, "c1")


# Steps: a story, the label of the step after it, and what a faulty buffer would make of it.
Change = Callable[[State], State]
TWO_LIVE = ("Arrive(p1,2)", "Publish(p1)")
LEASED = (*TWO_LIVE, "Ask(c1,lease,1,1)", "Ready(0)")
QUEUE = (*TWO_LIVE, "Arrive(p1,2)", "Arrive(p2,2)")
# The dead c1 has two leases and waits, c2 holds and p2 waits; x1, who lives, leases.
DEAD = (
    *("Arrive(p1,3)", "Publish(p1)", "Ask(c1,lease,1,1)", "Ready(0)", "Ask(x1,lease,2,2)"),
    *("Ready(1)", "Ask(c1,lease,2,2)", "Ready(2)", "Arrive(p2,1)", "Ask(c1,plain,3,3)"),
    "Kill(c1)",
)
DEAD_WRITER = ("Arrive(p2,1)", "Arrive(p1,2)", "Kill(p1)")

ASKED = ("Arrive(p1,1)", "Publish(p1)", "Ask(c1,plain,2,2)")


def held(state: State, owner: str, batch: tuple[int, ...]) -> State:
    """Return the state with one hold more, on these slots."""
    stamps = tuple(state.slots[number].stamp for number in batch)
    return state._replace(holds=(*state.holds, Hold(owner, "plain", batch, stamps, "gathering")))


def aged(state: State, stamps: tuple[int, ...]) -> State:
    """Return the state with other ages on the first slots."""
    for number, stamp in enumerate(stamps):
        state = slots(state, number, state.slots[number]._replace(stamp=stamp))
    return state


@pytest.mark.parametrize(
    ("name", "story", "text", "wrong"),
    [
        (
            "NoOverwrite",
            TWO_LIVE,
            "Arrive(p2,1)",
            lambda after: slots(after, 0, Slot(Phase.FILLING, 0, 0, 0)),
        ),
        ("NoOverwrite", TWO_LIVE, "Arrive(p2,1)", lambda after: slots(after, 0, FREE_SLOT)),
        ("NoOverwrite", LEASED, "Empty", lambda after: slots(after, 0, FREE_SLOT)),
        (
            "WholeBatches",
            ("Arrive(p1,2)",),
            "Publish(p1)",
            lambda after: slots(after, 1, Slot(Phase.FILLING, 0, 0, 0)),
        ),
        (
            "WholeBatches",
            ("Arrive(p1,2)",),
            "Close(draining)",
            lambda after: slots(after, 0, Slot(Phase.LIVE, 0, 0, 1)),
        ),
        (
            "Conservation",
            LEASED,
            "Return(0)",
            lambda after: slots(after, 0, after.slots[0]._replace(uses=2)),
        ),
        (
            "Conservation",
            LEASED,
            "Deliver(0)",
            lambda after: slots(after, 0, FREE_SLOT),  # one use is left
        ),
        (
            "Conservation",
            TWO_LIVE,
            "Close(draining)",
            lambda after: slots(after, 2, Slot(Phase.LIVE, 0, 0, 3)),
        ),
        (
            "Conservation",
            TWO_LIVE,
            "Close(draining)",
            lambda after: slots(after, 0, after.slots[0]._replace(uses=1)),
        ),
        ("LeavesNoTrace", QUEUE, "Expire(p2)", lambda after: after._replace(fresh=0)),
        ("LeavesNoTrace", QUEUE, "Expire(p2)", lambda after: after._replace(tickets=())),
        ("LeavesNoTrace", ("Arrive(p1,2)",), "Abandon(p1)", lambda a: a._replace(free=(0, 2))),
        ("LeavesNoTrace", ("Arrive(p1,2)",), "Abandon(p1)", lambda a: a._replace(free=(1, 0))),
        (
            "LeavesNoTrace",
            ("Close(stopped)",),
            "Arrive(p1,1)",
            lambda after: after._replace(cancelled=frozenset({"t1"})),
        ),
        ("LeavesNoTrace", LEASED, "Kill(c1)", lambda a: a._replace(holds=())),
        ("LeavesNoTrace", QUEUE, "Kill(p1)", lambda a: a._replace(tickets=a.tickets[1:])),
        ("LeavesNoTrace", QUEUE, "Kill(p1)", lambda a: a._replace(dead=frozenset({"p1", "p2"}))),
        ("Conservation", DEAD, "Recover(c1)", lambda a: slots(a, 0, Slot(Phase.LIVE, 1, 0, 1))),
        ("Conservation", DEAD, "Recover(c1)", lambda a: slots(a, 2, FREE_SLOT)),
        (
            "WholeBatches",
            DEAD_WRITER,
            "Recover(p1)",
            lambda after: slots(after, 1, Slot(Phase.LIVE, 0, 0, 1)),
        ),
        ("FifoOrder", DEAD, "Recover(c1)", lambda a: aged(a, (3, 2, 1))),
        ("RecoversTheDead", DEAD, "Recover(c1)", lambda a: a._replace(dead=frozenset({"c1"}))),
        ("RecoversTheDead", DEAD, "Recover(c1)", lambda a: a._replace(tickets=())),
        (
            "RecoversTheDead",
            DEAD,
            "Recover(c1)",
            lambda after: after._replace(tickets=(*after.tickets, Ticket("plain", "c1", 3, 3))),
        ),
        ("RecoversTheDead", DEAD, "Recover(c1)", lambda a: a._replace(holds=())),
        ("RecoversTheDead", DEAD, "Recover(c1)", lambda a: held(a, "c1", (0,))),
        (
            "RecoversTheDead",
            DEAD,
            "Recover(c1)",
            lambda a: a._replace(holds=(a.holds[0]._replace(state="failed"),)),
        ),
        (
            "RecoversTheDead",
            DEAD,
            "Recover(c1)",
            lambda a: a._replace(holds=(a.holds[0]._replace(stamps=a.holds[0].stamps[::-1]),)),
        ),
        ("RecoversTheDead", DEAD_WRITER, "Recover(p1)", lambda a: a._replace(filling=())),
        (
            "RecoversTheDead",
            DEAD_WRITER,
            "Recover(p1)",
            lambda after: after._replace(filling=(("p1", (1, 2)), *after.filling)),
        ),
        ("FifoAdmission", QUEUE, "Arrive(x1,1)", lambda a: a._replace(filling=(("x1", (2,)),))),
        ("FifoSampling", ASKED, "Ask(c2,plain,1,1)", lambda a: held(a, "c2", (0,))),
        ("FifoOrder", TWO_LIVE, "Close(draining)", lambda a: held(a, "c1", (1,))),
        ("FifoOrder", TWO_LIVE, "Close(draining)", lambda a: held(a, "c1", (1, 0))),
        ("FifoOrder", LEASED, "Return(0)", lambda a: aged(a, (2, 1))),
        ("FifoOrder", TWO_LIVE, "Close(draining)", lambda a: aged(a, (2, 1))),
        ("ServedWhole", TWO_LIVE, "Ask(c2,plain,3,3)", lambda a: held(a, "c2", (0, 1))),
        ("ServedWhole", ASKED, "Ask(c2,plain,1,1)", lambda a: held(a, "c2", (0, 1))),
    ],
)
def test_a_step_with_one_thing_wrong_does_not_pass(
    name: str, story: tuple[str, ...], text: str, wrong: Change
) -> None:
    before = walk(TWO, *story)
    after = on(TWO, before, text)
    holds = STEPS[name].predicate
    assert holds(TWO, before, label(text), after)
    assert not holds(TWO, before, label(text), wrong(after))


def test_a_short_draw_is_whole_once_draining_has_ended_what_could_come() -> None:
    call, holds = label("Ask(c1,plain,3,3)"), STEPS["ServedWhole"].predicate
    state = walk(TWO, *TWO_LIVE, "Close(draining)")
    assert holds(TWO, state, call, on(TWO, state, str(call)))
    state = walk(TWO, *TWO_LIVE, "Arrive(p1,1)", "Close(draining)")
    assert not holds(TWO, state, call, held(state, "c1", (0, 1)))


def test_records_at_random_have_no_order() -> None:
    before = walk(ANY, *TWO_LIVE)
    assert STEPS["FifoOrder"].predicate(ANY, before, label("Empty"), held(before, "c1", (1, 0)))


@pytest.mark.parametrize(
    ("fairness", "text", "expected"),
    [
        ("BufferGoesOn", "Deliver(0)", None),  # a lease ends when its caller likes
        ("BufferGoesOn", "Ready(1)", ("Ready", "c2")),
        ("BufferGoesOn", "Arrive(p1,1)", None),
        ("CallersGoOn", "Arrive(p1,1)", ("Arrive", "p1")),
        ("CallersGoOn", "Arrive(p1,2)", ("Arrive", "p1")),  # the same choice, whatever the size
        ("CallersGoOn", "Deliver(0)", None),
        ("CallersGoOn", "Fail(1)", None),
        ("CallersGoOn", "Close(draining)", None),
        ("CallersGoOn", "SetCancel(t1)", None),
        ("CallersGoOn", "Empty", None),
        ("CallersGoOn", "Kill(c2)", None),
        ("BufferGoesOn", "Recover(c1)", ("Recover", "c1")),
    ],
)
def test_what_goes_on_for_ever(
    fairness: Fairness, text: str, expected: tuple[str, str] | None
) -> None:
    state = walk(TWO, *LEASED, "Ask(c2,plain,1,1)")
    assert fair_choice(fairness, state, label(text)) == expected


def test_plain_holds_and_failed_ones_end_by_themselves() -> None:
    state = walk(TWO, *TWO_LIVE, "Ask(c1,plain,1,1)", "Ready(0)", "Ask(c2,lease,1,1)", "Fail(1)")
    assert fair_choice("BufferGoesOn", state, label("Deliver(0)")) == ("Deliver", "c1")
    assert fair_choice("BufferGoesOn", state, label("Return(1)")) == ("Return", "c2")


def test_who_is_owed_an_end() -> None:
    state = walk(TWO, "Ask(c1,plain,1,1)", "Ask(c2,plain,1,1)", "SetCancel(t1)")
    owed = {name: row.owed(TWO, state) for name, row in LIVENESS.items()}
    assert owed["EventuallyServed"] == {"c1", "c2"}
    assert owed["CancelEnds"] == {"c1"}
    assert owed["CloseEnds"] == frozenset()
    assert owed["KillHeals"] == {"c1", "c2"}
    filling = walk(TWO, "Ask(c1,plain,1,1)", "Arrive(p1,1)", "Kill(p1)")
    assert LIVENESS["KillHeals"].owed(TWO, filling) == {"c1", "p1"}
    assert LIVENESS["CloseEnds"].owed(TWO, on(TWO, state, "Close(draining)")) == {"c1", "c2"}
