"""A counterexample is a table: who does what, and what that changes."""

from pathlib import Path

from forebay_models.counterexample import Counterexample
from forebay_models.tlc.messages import Report, TraceState
from forebay_models.tlc.trace import trace_shown

DATA = Path(__file__).parent / "data"
IDLE = '[phase |-> "free", uses |-> 0]'
LIVE = '[phase |-> "live", uses |-> 1]'


def counterexample(report: Report) -> str:
    """Return the trace of a report as text."""
    found = shown(report)
    return "" if found is None else found.as_text()


def shown(report: Report) -> Counterexample | None:
    return trace_shown(report, name="tlc toy", setting="", what=())


def state(
    number: int,
    action: str,
    *,
    slot: str = IDLE,
    filling: str = "<<>>",
    tickets: str = "<<>>",
    holds: str = "<<>>",
    closing: str = '"open"',
) -> TraceState:
    return TraceState(
        number,
        action,
        {
            "slots": f"( 0 :> {slot} )",
            "filling": f"[p1 |-> {filling}]",
            "tickets": tickets,
            "holds": holds,
            "closing": closing,
        },
    )


def hold(owner: str, phase: str) -> str:
    return f'[owner |-> "{owner}", state |-> "{phase}"]'


def test_actors_and_parameters_are_read_off_the_steps() -> None:
    ticket = '<<[kind |-> "plain", actor |-> "c1", n |-> 2, m |-> 1]>>'
    report = Report(
        trace=[
            state(1, "Initial predicate"),
            state(2, "Ask", tickets=ticket),
            state(3, "Arrive", tickets=ticket, filling="<<0>>"),
            state(4, "BugPublish", tickets=ticket, slot=LIVE),
            state(5, "Draw", slot=LIVE, holds=f"<<{hold('c1', 'gathering')}>>"),
            state(6, "Ready", slot=LIVE, holds=f"<<{hold('c1', 'ready')}>>"),
            state(7, "Close", slot=LIVE, holds=f"<<{hold('c1', 'ready')}>>", closing='"stopped"'),
            state(8, "Deliver", closing='"stopped"'),
        ]
    )
    golden = (DATA / "counterexample.txt").read_text(encoding="utf-8")
    assert counterexample(report) == golden.rstrip("\n")


def test_a_run_that_goes_on_for_ever_says_how() -> None:
    trace = [state(1, "Initial predicate"), state(2, "Arrive", filling="<<0>>")]
    assert counterexample(Report(trace=trace, loop=2)).endswith("and then nothing happens any more")
    assert counterexample(Report(trace=trace, loop=1, loop_action="Publish")).endswith(
        "then Publish leads back to the state after step 0, and so on for ever"
    )


def test_a_step_that_changes_nothing_says_so() -> None:
    report = Report(trace=[state(1, "Initial predicate"), state(2, "Ask")])
    assert counterexample(report).splitlines()[-1] == "1    | Ask       | (nothing changes)"


def test_a_value_that_cannot_be_read_is_shown_as_it_is() -> None:
    report = Report(trace=[TraceState(1, "Initial predicate", {"x": "a ~> b"})])
    assert counterexample(report).endswith("x = a ~> b")


def test_no_trace_makes_no_table() -> None:
    assert shown(Report()) is None


def buffer_state(
    number: int,
    action: str,
    phase: str,
    filling: str,
    free: str,
    dead: str = "{}",
    *,
    holds: str = "<<>>",
    boundary: str = "none of nobody",
    saved: bool = False,
) -> TraceState:
    """Return a whole state of a buffer of one slot."""
    slot = f'[stamp |-> 0, uses |-> 0, phase |-> "{phase}", pins |-> 0]'
    stage, _, actor = boundary.split()
    rest = "free |-> <<>>, fresh |-> 0, queue |-> <<>>, left |-> {}"
    snapshot = f"[slots |-> ( 0 :> {slot} ), {rest}]"
    return TraceState(
        number,
        action,
        {
            "slots": f"( 0 :> {slot} )",
            "free": free,
            "fresh": "0",
            "filling": f"[p1 |-> {filling}]",
            "tickets": "<<>>",
            "holds": holds,
            "closing": '"open"',
            "cancelled": "{}",
            "dead": dead,
            "boundary": f'[stage |-> "{stage}", actor |-> "{actor}", slots |-> <<>>]',
            "left": "{}",
            "saved": f"<<{snapshot}>>" if saved else "<<>>",
            "n": "1",
        },
    )


def test_states_of_a_buffer_are_shown_as_the_explorer_shows_them() -> None:
    trace = [
        buffer_state(1, "Initial predicate", "free", "<<>>", "<<0>>"),
        buffer_state(2, "Arrive", "filling", "<<0>>", "<<>>"),
    ]
    assert counterexample(Report(trace=trace)).splitlines()[2:] == [
        "0    | initially    | slots[0] = free",
        "     |              | free = (0), 0 of them fresh",
        "     |              | filling = -",
        "     |              | tickets = -",
        "     |              | holds = -",
        "     |              | closing = open",
        "     |              | cancelled = -",
        "     |              | dead = -",
        "     |              | boundary = -",
        "     |              | saved = -",
        "     |              | n = 1",
        "1    | Arrive(p1,1) | slots[0] = filling",
        "     |              | free = (), 0 of them fresh",
        "     |              | filling = p1: (0)",
    ]


def test_who_dies_and_who_is_recovered_is_named() -> None:
    trace = [
        buffer_state(1, "Initial predicate", "filling", "<<0>>", "<<>>"),
        buffer_state(2, "Kill", "filling", "<<0>>", "<<>>", '{"p1"}'),
        buffer_state(3, "Recover", "free", "<<>>", "<<0>>"),
    ]
    assert counterexample(Report(trace=trace)).splitlines()[-5:] == [
        "1    | Kill(p1)    | dead = p1",
        "2    | Recover(p1) | slots[0] = free",
        "     |             | free = (0), 0 of them fresh",
        "     |             | filling = -",
        "     |             | dead = -",
    ]


def test_who_captures_is_named_and_the_snapshot_is_shown() -> None:
    trace = [
        buffer_state(1, "Initial predicate", "live", "<<>>", "<<>>"),
        buffer_state(2, "CaptureAsk", "live", "<<>>", "<<>>", boundary="capturing of c1"),
        buffer_state(3, "Capture", "live", "<<>>", "<<>>", saved=True),
    ]
    assert counterexample(Report(trace=trace)).splitlines()[-3:] == [
        "1    | CaptureAsk(c1) | boundary = capturing for c1",
        "2    | Capture(c1)    | boundary = -",
        "     |                | saved = live; free (), 0 of them fresh",
    ]


def test_who_takes_a_batch_that_was_drawn_ahead_is_named() -> None:
    ahead = '[owner |-> "q1", kind |-> "prefetched", slots |-> <<0>>, stamps |-> <<1>>'
    own = ahead.replace("q1", "c1").replace("prefetched", "plain")
    trace = [
        buffer_state(1, "Initial predicate", "live", "<<>>", "<<>>"),
        buffer_state(
            2, "Refill", "live", "<<>>", "<<>>", holds=f'<<{ahead}, state |-> "gathering"]>>'
        ),
        buffer_state(3, "Ask", "live", "<<>>", "<<>>", holds=f'<<{own}, state |-> "gathering"]>>'),
    ]
    assert counterexample(Report(trace=trace)).splitlines()[-2:] == [
        "1    | Refill(q1) |         | holds = q1 prefetched (0) aged (1) gathering",
        "2    |            | Ask(c1) | holds = c1 plain (0) aged (1) gathering",
    ]


def test_a_faulty_state_that_is_none_of_a_buffer_is_shown_entry_by_entry() -> None:
    trace = [
        buffer_state(1, "Initial predicate", "free", "<<>>", "<<0>>"),
        buffer_state(2, "BugArrive", "torn", "<<0>>", "<<>>"),
    ]
    shown = counterexample(Report(trace=trace))
    assert "slots[0] = [stamp=0 uses=0 phase=torn pins=0]" in shown
