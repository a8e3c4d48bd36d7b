"""Both judges accept what a real buffer does, and nothing else."""

import json
import threading
from dataclasses import replace
from pathlib import Path
from typing import Final, Literal

import pytest
import typer
from forebay import BlockingReplayBuffer, ListStorage, Trace
from forebay_models.mutants.local import LOCAL_MUTANTS
from forebay_models.outcome import Outcome, Verdict
from forebay_models.progress import Quiet
from forebay_models.saved import SavedRun
from forebay_models.tlc.java import find_tools
from forebay_models.tlc.manifest import find_models
from forebay_models.trace_cli import Judges, run_trace
from forebay_models.trace_cli import trace as trace_command
from forebay_models.tracing.files import BadTrace, TraceFile, read_trace
from forebay_models.tracing.replay import replay
from forebay_models.tracing.setting import Unobserved, setting_of
from forebay_models.tracing.verdicts import agreement, outcome_of_tlc
from forebay_models.tracing.with_tlc import Followed, follow
from forebay_spec.events import Event, Header
from typer.testing import CliRunner

from tests.traces.mutations import CHANGES, mutations
from tests.traces.runs import JOINING, busy_run, run_threads

HEAD: Final = 400
"""So many events of a long trace are changed and judged again."""

FIFTY: Final = 50
ONE: Final = Header(capacity=1, uses=1, order="fifo")


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> TraceFile:
    return busy_run(tmp_path_factory.mktemp("traces") / "run.jsonl")


def followed_by_tlc(traces: list[TraceFile], unobserved: tuple[str, ...] = ()) -> list[Followed]:
    absent = [Unobserved.parse(text) for text in unobserved]
    settings = [setting_of(trace, absent) for trace in traces]
    return follow(settings, tools=find_tools(), models=find_models())


def written(trace: TraceFile, path: Path) -> Path:
    lines = [trace.header.to_line(), *(event.to_line() for event in trace.events)]
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


def judged(path: Path, judges: Judges = Judges.SPEC, *unobserved: str) -> list[Outcome]:
    return run_trace(path, judges=judges, unobserved=unobserved, observer=Quiet())


@pytest.mark.slow
@pytest.mark.parametrize(("order", "uses"), [("fifo", 1), ("fifo", 2), ("random", 2)])
def test_a_real_run_of_a_thousand_events_is_accepted_by_both(
    order: Literal["fifo", "random"], uses: int, tmp_path: Path
) -> None:
    trace = busy_run(tmp_path / "run.jsonl", order=order, uses=uses)
    assert len(trace.events) >= 1000
    outcomes = judged(tmp_path / "run.jsonl", Judges.BOTH)
    assert [(outcome.name, outcome.verdict) for outcome in outcomes] == [
        ("trace spec", Verdict.HOLDS),
        ("trace tlc", Verdict.HOLDS),
    ], "\n".join(outcome.detail for outcome in outcomes)
    assert all(outcome.figures["steps"] == len(trace.events) for outcome in outcomes)
    names = {(event.name, event.outcome) for event in trace.events}
    assert names >= {
        *(("Arrive", outcome) for outcome in ("SERVE", "WAIT", "TIMEOUT", "CANCELLED")),
        *((name, "DONE") for name in ("Admit", "Draw", "Ready", "Fail", "Deliver", "Return")),
        *(("Publish", "DONE"), ("SetCancel", "DONE"), ("Close", "DONE"), ("Empty", "DONE")),
        *(("Expire", "TIMEOUT"), ("Ask", "SHUT_DOWN")),
    }


@pytest.mark.slow
def test_fifty_wrong_traces_are_rejected_by_both_at_the_same_event(run: TraceFile) -> None:
    head = replace(run, events=run.events[:HEAD])
    wrong = mutations(head, FIFTY, seed=0)
    assert len({mutation.trace.events for mutation in wrong}) == FIFTY
    assert len({mutation.kind for mutation in wrong}) >= len(CHANGES) - 2
    by_spec = [replay(setting_of(mutation.trace)) for mutation in wrong]
    by_tlc = followed_by_tlc([head, *(mutation.trace for mutation in wrong)])
    assert by_tlc[0].judged == HEAD, "the true one is accepted in the same run"
    names = [f"{mutation.kind} at {mutation.place}" for mutation in wrong]
    accepted = [name for name, found in zip(names, by_spec, strict=True) if not found.rejected]
    assert accepted == []
    assert [found.judged for found in by_tlc[1:]] == [found.judged for found in by_spec]
    assert all(
        found.judged >= min(mutation.place, len(mutation.trace.events) - 1)
        for found, mutation in zip(by_spec, wrong, strict=True)
    ), "a trace is true up to where it was changed"


@pytest.mark.parametrize("kind", CHANGES)
def test_every_kind_of_change_is_rejected_wherever_it_is(kind: str, run: TraceFile) -> None:
    head = replace(run, events=run.events[:HEAD])
    wrong = [mutation for mutation in mutations(head, 10**6, seed=1) if mutation.kind == kind]
    found = [(mutation.place, replay(setting_of(mutation.trace))) for mutation in wrong[:25]]
    assert [place for place, replayed in found if not replayed.rejected] == []


def small_run(path: Path) -> TraceFile:
    """Two producers and two readers, in a buffer of three."""
    trace = Trace(path)
    buffer = BlockingReplayBuffer(ListStorage(3), batch_size=1, trace=trace)

    def write() -> None:
        for number in range(6):
            buffer.extend([0] * (1 + number % 2))

    begun = threading.Barrier(2, timeout=JOINING)

    def read() -> None:
        buffer.sample()
        begun.wait()  # else one of them may get everything
        for _ in buffer:
            pass

    run_threads(
        {"writer 1": write, "writer 2": write},
        {"reader 1": read, "reader 2": read},
        between=buffer.shutdown,
    )
    trace.flush()
    return read_trace(path)


@pytest.mark.slow
@pytest.mark.parametrize("absent", ["writer 1:write", "reader 1:plain"])
@pytest.mark.parametrize("every", [1, 2], ids=["all", "every second"])
def test_a_trace_without_the_events_of_one_actor_is_accepted(
    absent: str, every: int, tmp_path: Path
) -> None:
    trace = small_run(tmp_path / "run.jsonl")
    actor = absent.partition(":")[0]
    own = [number for number, event in enumerate(trace.events) if event.actor == actor]
    gone = set(own[::every])
    assert gone
    rest = tuple(event for number, event in enumerate(trace.events) if number not in gone)
    path = written(replace(trace, events=rest), tmp_path / "rest.jsonl")
    assert {outcome.verdict for outcome in judged(path)} == {Verdict.VIOLATED}
    outcomes = judged(path, Judges.BOTH, absent)
    assert [outcome.verdict for outcome in outcomes] == [Verdict.HOLDS] * 2, outcomes
    assert all(absent in outcome.bounds for outcome in outcomes)

    # A record that the others never got can come from the one who is missing; a slot that does
    # not exist, or a batch that was never drawn, cannot.
    wrong = [m for m in mutations(replace(trace, events=rest), 10**6, 0) if m.kind == "twice"]
    wrong = [m for m in wrong if rest[m.place].actor != actor][:3]
    assert len(wrong) == 3
    absents = [Unobserved.parse(absent)]
    assert all(replay(setting_of(m.trace, absents)).rejected for m in wrong)
    tlc = followed_by_tlc([m.trace for m in wrong], (absent,))
    assert all(
        found.judged < len(m.trace.events) and not found.gave_up
        for m, found in zip(wrong, tlc, strict=True)
    )


def test_too_many_possibilities_are_inconclusive(run: TraceFile, tmp_path: Path) -> None:
    """Whoever could have held any leases could have left the buffer in too many states."""
    rest = tuple(event for event in run.events[:60] if event.actor != "reader 0")
    path = written(replace(run, events=rest), tmp_path / "rest.jsonl")
    (outcome,) = judged(path, Judges.SPEC, "reader 0")
    assert outcome.verdict is Verdict.INCONCLUSIVE
    assert "states are possible" in outcome.detail
    assert "--unobserved 'NAME:write'" in outcome.detail
    setting = setting_of(replace(run, events=rest), [Unobserved(actor="reader 0")])
    partial = outcome_of_tlc(setting, Followed(5, 50_000, gave_up=True), 0.0)
    assert partial.verdict is Verdict.INCONCLUSIVE


def flagged(*events: Event) -> TraceFile:
    """Return a trace in which somebody waits with a token, in a full buffer of one."""
    first = (
        Event(name="Arrive", actor="a", args=(1,), outcome="SERVE", slots=(0,)),
        Event(name="Publish", actor="a", slots=(0,)),
    )
    return TraceFile(header=ONE, events=(*first, *events))


SET: Final = Event(name="SetCancel", args=("t",))
ARRIVES: Final = Event(name="Arrive", actor="b", args=(1,), outcome="WAIT", token="t")
TOLD: Final = Event(name="Arrive", actor="b", args=(1,), outcome="CANCELLED", token="t")
EXPIRES: Final = Event(name="Expire", actor="b", outcome="TIMEOUT")
CANCELLED: Final = Event(name="Cancel", actor="b", outcome="CANCELLED")
OTHER: Final = Event(name="Ask", actor="c", args=("plain", 1, 1), outcome="SERVE", slots=(0,))
READY: Final = Event(name="Ready", actor="c", args=(0,), slots=(0,))
CLOSES: Final = Event(name="Close", args=("draining",))


@pytest.mark.parametrize(
    ("events", "judged_events"),
    [
        ((SET, TOLD), 4),
        ((ARRIVES, SET, CANCELLED), 5),
        ((SET, ARRIVES, CANCELLED), 5),  # b was inside when the flag was stored
        ((OTHER, SET, READY, ARRIVES, CANCELLED), 7),  # Ready needs no section: b still was
        ((SET, ARRIVES, EXPIRES), 4),  # but then its next look must see it
        ((SET, CLOSES, ARRIVES), 4),  # the one inside was who closed
        ((SET, SET), 3),
        ((ARRIVES, CANCELLED, SET), 3),
    ],
    ids=str,
)
def test_a_flag_is_seen_at_once_or_after_whoever_is_inside(
    events: tuple[Event, ...], judged_events: int
) -> None:
    trace = flagged(*events)
    assert replay(setting_of(trace)).judged == judged_events
    assert replay(setting_of(trace)).rejected == (judged_events < len(trace.events))


@pytest.mark.slow
def test_tlc_has_the_same_rule_about_flags() -> None:
    whole = [
        (SET, TOLD),
        (ARRIVES, SET, CANCELLED),
        (SET, ARRIVES, CANCELLED),
        (OTHER, SET, READY, ARRIVES, CANCELLED),
        (SET, ARRIVES, EXPIRES),
        (SET, CLOSES, ARRIVES),
        (SET, SET),
        (ARRIVES, CANCELLED, SET),
    ]
    found = followed_by_tlc([flagged(*events) for events in whole])
    assert [followed.judged for followed in found] == [4, 5, 5, 7, 4, 4, 3, 3]


@pytest.mark.slow
def test_both_judges_know_what_exceptions_and_single_calls_leave_behind() -> None:
    fails = Event(name="Fail", actor="c", args=(0,), outcome="INTERRUPTED", slots=(0,))
    returns = Event(name="Return", actor="c", args=(0,), slots=(0,))
    leaves = Event(name="Expire", actor="b", outcome="INTERRUPTED")
    own = Event(name="SetCancel", actor="b", args=("b's own",))
    stopped = replace(TOLD, token="b's own")
    free = replace(ARRIVES, token=None)
    cases = {
        (OTHER, READY, fails, returns, ARRIVES, leaves, own, stopped, free): 11,
        (OTHER, READY, returns): 4,  # a batch that is ready is returned only if it is a lease
        (OTHER, fails): 3,  # this one failed, and was not ready before
        (leaves,): 2,  # nobody waits
        (ARRIVES, own, CANCELLED, free, CANCELLED): 6,  # the next call has no flag
    }
    assert [replay(setting_of(flagged(*events))).judged for events in cases] == [*cases.values()]
    found = followed_by_tlc([flagged(*events) for events in cases])
    assert [followed.judged for followed in found] == [*cases.values()]


OWN: Final = Event(name="SetCancel", actor="b", args=("b's own",))
BEGINS: Final = replace(TOLD, token="b's own")
FREE: Final = replace(ARRIVES, token=None)
LEAVES: Final = Event(name="Expire", actor="b", outcome="INTERRUPTED")


@pytest.mark.parametrize(
    ("events", "complaint"),
    [
        ((OWN, OTHER), "line 4: .*'b' neither waits nor begins it"),
        ((OWN, BEGINS, OWN, OTHER), "named elsewhere, too"),
        ((FREE, CANCELLED, OWN, CLOSES), "line 6: .*'b' neither waits nor begins it"),
        ((FREE, LEAVES, OWN, CLOSES), "line 6: .*'b' neither waits nor begins it"),
        ((ARRIVES, replace(OWN, args=("t",)), CANCELLED), "line 5: .*named elsewhere, too"),
        ((FREE, OWN, replace(OTHER, token="b's own"), CANCELLED), "named elsewhere, too"),
        ((FREE, OWN, replace(OWN, actor=None), CANCELLED), "named elsewhere, too"),
        ((OWN, READY, FREE), "line 4: .*'b' neither waits nor begins it"),
    ],
    ids=str,
)
def test_a_token_of_one_call_alone_belongs_to_a_call_and_to_nobody_else(
    events: tuple[Event, ...], complaint: str, tmp_path: Path
) -> None:
    with pytest.raises(BadTrace, match=complaint):
        setting_of(flagged(*events))
    (outcome,) = judged(written(flagged(*events), tmp_path / "trace.jsonl"))
    assert outcome.verdict is Verdict.COULD_NOT_RUN


@pytest.mark.parametrize(
    "events",
    [
        (OWN, BEGINS, FREE),
        (OTHER, OWN, READY, BEGINS),  # Ready needs no section
        (FREE, OWN, CANCELLED, FREE),
        (FREE, OTHER, OWN, CANCELLED),
        (FREE, OWN),
        (OWN,),  # the trace ends within the section that goes on with the call
    ],
    ids=str,
)
def test_a_call_with_a_token_of_its_own_is_accepted(events: tuple[Event, ...]) -> None:
    found = replay(setting_of(flagged(*events)))
    assert (found.judged, found.rejected) == (2 + len(events), False)


def test_the_calls_of_who_is_not_observed_may_have_tokens_of_their_own() -> None:
    trace = flagged(OWN, OTHER)
    assert replay(setting_of(trace, [Unobserved(actor="b")])).judged == len(trace.events)


def test_verdicts_about_a_trace_can_be_saved(tmp_path: Path) -> None:
    path = written(flagged(SET, TOLD), tmp_path / "trace.jsonl")
    file = tmp_path / "verdicts.json"
    app = typer.Typer()
    app.command()(trace_command)
    result = CliRunner().invoke(app, [str(path), "--with", "spec", "--save", str(file)])
    assert result.exit_code == 0, result.output
    content = json.loads(file.read_text(encoding="utf-8"))
    (outcome,) = SavedRun.from_json(content, source=file.name).outcomes
    assert (outcome.name, outcome.verdict) == ("trace spec", Verdict.HOLDS)


def test_a_rejected_trace_says_which_event_and_what_was_possible(tmp_path: Path) -> None:
    wrong = flagged(replace(ARRIVES, outcome="SERVE", slots=(0,)))
    (outcome,) = judged(written(wrong, tmp_path / "wrong.jsonl"))
    assert outcome.verdict is Verdict.VIOLATED
    assert outcome.counterexample is not None
    assert outcome.counterexample.what == (
        "line 4: Arrive(b,1) = SERVE, slots 0 is no step of the specification after the 2 events "
        "before it",
        "possible there: b's call comes to WAIT; steps of calls that are under way: none; "
        "a call of a, b",
    )
    labels = [row.label for row in outcome.counterexample.rows]
    assert labels == ["initially", "Arrive(a,1) = SERVE, slots 0", "Publish(a), slots 0"]
    assert outcome.detail == outcome.counterexample.as_text()


@pytest.mark.parametrize("fault", ["freed_first", "overwrite_sampleable", "barging_reader"])
def test_the_trace_of_a_faulty_library_is_rejected(fault: str, tmp_path: Path) -> None:
    with LOCAL_MUTANTS[fault].plant():
        busy_run(tmp_path / "run.jsonl")
    (outcome,) = judged(tmp_path / "run.jsonl")
    assert outcome.verdict is Verdict.VIOLATED


@pytest.mark.parametrize(
    ("events", "code"), [((SET, TOLD), 0), ((SET, EXPIRES), 1), (None, 2), ((), 3)], ids=str
)
def test_the_command_ends_with_the_code_of_its_verdict(
    events: tuple[Event, ...] | None, code: int, tmp_path: Path
) -> None:
    app = typer.Typer()
    app.command()(trace_command)
    path = tmp_path / "trace.jsonl"
    if events is not None:
        written(flagged(*events) if events else TraceFile(header=ONE, events=()), path)
    result = CliRunner().invoke(app, [str(path), "--with", "spec"])
    assert result.exit_code == code, result.output


def test_tlc_is_not_asked_about_large_buffers(tmp_path: Path) -> None:
    large = replace(flagged(SET, TOLD), header=replace(ONE, capacity=65))
    outcomes = judged(written(large, tmp_path / "trace.jsonl"), Judges.BOTH)
    assert [outcome.verdict for outcome in outcomes] == [Verdict.HOLDS, Verdict.COULD_NOT_RUN]
    assert "--with spec" in outcomes[1].detail


def test_no_event_is_no_verdict(tmp_path: Path) -> None:
    path = written(TraceFile(header=ONE, events=()), tmp_path / "nothing.jsonl")
    outcomes = judged(path, Judges.BOTH)
    assert [outcome.verdict for outcome in outcomes] == [Verdict.INCONCLUSIVE] * 2
    assert all("nothing was judged" in outcome.detail for outcome in outcomes)


def test_judges_that_disagree_are_a_violation(tmp_path: Path) -> None:
    setting = setting_of(flagged(SET, TOLD))
    (spec,) = judged(written(setting.trace, tmp_path / "trace.jsonl"))
    same = outcome_of_tlc(setting, Followed(4, 9), 0.0)
    assert agreement(spec, same) == []
    (outcome,) = agreement(spec, outcome_of_tlc(setting, Followed(3, 9), 0.0))
    assert outcome.verdict is Verdict.VIOLATED
    assert "follows 4 of 4 events, TLC 3" in outcome.detail
