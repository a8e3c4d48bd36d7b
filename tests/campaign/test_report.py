"""A failure is a table that says who did what, what was expected and what was seen."""

import pytest
from forebay_models.adapters.local import LocalAdapter
from forebay_models.campaign.driver import Divergence, Exercise
from forebay_models.campaign.replay import Move, shortened, walk
from forebay_models.campaign.report import RARE, exercise_table, outcome_of
from forebay_models.campaign.session import Session
from forebay_models.campaign.settings import Setting
from forebay_models.campaign.shown import counterexample_of
from forebay_models.explore.graph import explore
from forebay_models.mutants.local import LOCAL_MUTANTS
from forebay_models.outcome import Verdict
from forebay_models.runs.walk import WalkRun
from forebay_models.targets import LOCAL
from forebay_models.tokens import Token, read_token
from forebay_spec.actions import Label, Machine
from forebay_spec.bounds import QUICK, Bounds, Request
from forebay_spec.properties import WITNESSES

BOUNDS = Bounds(
    name="small",
    capacity=2,
    producers=("p1",),
    readers=("c1",),
    write_sizes=(1,),
    requests=(Request("plain", 1, 1),),
)
SHOWN_IN = {
    "BackInEpoch": "epochs",
    "KilledWhileLeasing": "crash",
    "LeaseMadeVoid": "restores",
    "RestoredLeft": "resumed",
    "RestoredWithQueue": "lost",
    "TakenByWaiting": "lost",
    "TakenFailed": "prefetch",
    "TooLateForEpoch": "epochs",
}
SETTING = Setting(BOUNDS, "tensor", 0)

GOLDEN = """\
small: C=2 N=1 fifo; producers p1 write 1; readers c1 ask plain 1 1; tensor storage, seed 0

step | p1           | c1                | state
-----+--------------+-------------------+-----------------------------
0    | initially    |                   | slots[0] = free
     |              |                   | slots[1] = free
     |              |                   | free = (0 1), 2 of them fresh
     |              |                   | filling = -
     |              |                   | tickets = -
     |              |                   | holds = -
     |              |                   | closing = open
     |              |                   | cancelled = -
     |              |                   | dead = -
     |              |                   | boundary = -
     |              |                   | saved = -
1    | Arrive(p1,1) |                   | slots[0] = filling
     |              |                   | free = (1), 1 of them fresh
     |              |                   | filling = p1: (0)
2    | Publish(p1)  |                   | slots[0] = live stamp=1
     |              |                   | filling = -
3    |              | Ask(c1,plain,1,1) | expected: slots[0] = live uses=1 pins=1 stamp=1
     |              |                   | expected: holds = c1 plain (0) aged (1) gathering
"""


def start(setting: Setting) -> LocalAdapter:
    return LocalAdapter(setting.bounds, setting.storage, setting.seed)


def failing(*extra: Label) -> Divergence:
    """Return the failure of a buffer that lets records be drawn once too often."""
    labels = (
        *extra,
        Label("Arrive", ("p1", 1)),
        Label("Publish", ("p1",)),
        Label("Ask", ("c1", "plain", 1, 1)),
    )
    with LOCAL_MUTANTS["use_count_off_by_one"].plant():
        failure = walk(start, SETTING, [Move(label) for label in labels])
    assert failure is not None
    return failure


def session_with(exercise: Exercise, failure: Divergence | None = None) -> Session:
    session = Session(start, seconds=None, examples=1)
    session.exercise = exercise
    if failure is not None:
        session.fail(failure)
    return session


def complete() -> Exercise:
    exercise = Exercise(examples=3, steps=70)
    exercise.actions.update(dict.fromkeys(LOCAL.actions, 2))
    exercise.witnesses.update(dict.fromkeys(LOCAL.witnesses, 1))
    return exercise


def test_a_failure_is_shown_step_by_step() -> None:
    lines = counterexample_of(failing(), name="stateful local").as_text().splitlines()
    golden = GOLDEN.splitlines()
    # The rule and the last cells are as wide as the widest line, which only the end shows.
    assert [line.replace("-", "") for line in lines[: len(golden)]] == [
        line.replace("-", "") for line in golden
    ]
    assert lines[len(golden)].split("| ")[-1].startswith("seen: slots[0] = live uses=1 pins=1")
    assert lines[-1] == "the state is not one that the specification allows"


def test_a_failure_is_shortened_to_what_it_needs() -> None:
    write = (Label("Arrive", ("p1", 1)), Label("Publish", ("p1",)))
    ask = Label("Ask", ("c1", "plain", 1, 1))
    path = [*write, ask, Label("Ready", (0,)), Label("Deliver", (0,)), write[0], ask, write[1]]
    with LOCAL_MUTANTS["lost_wakeup"].plant():
        failure = walk(start, SETTING, [Move(label) for label in path])
        assert failure is not None
        assert len(failure.steps) == len(path)
        shorter = shortened(start, failure, seconds=60.0)
    assert [step.label for step in shorter.steps] == [write[0], ask, write[1]]
    assert "lost wake-up: c1" in shorter.what[0]


def test_a_failure_gives_the_command_that_repeats_it() -> None:
    exercise = complete()
    exercise.examples = 17
    outcome = outcome_of(session_with(exercise, failing()), repeat="forebay campaign", steps=40)
    assert outcome.verdict is Verdict.VIOLATED
    assert "to repeat the search: forebay campaign --examples 17" in outcome.detail


def test_a_failure_is_an_outcome_with_a_counterexample_and_a_token_that_repeats_it() -> None:
    failure = failing()
    outcome = outcome_of(
        session_with(complete(), failure),
        repeat="",
        steps=40,
        fault="use_count_off_by_one",
    )
    found = outcome.counterexample
    assert found is not None
    assert outcome.detail.startswith(found.as_text())
    assert [(row.label, row.actor) for row in found.rows] == [
        ("initially", None),
        ("Arrive(p1,1)", "p1"),
        ("Publish(p1)", "p1"),
        ("Ask(c1,plain,1,1)", "c1"),
    ]
    assert (found.name, found.what) == ("stateful local", failure.what)
    assert found.nearest() == found.expected[0]
    assert found.seen != found.expected[0]
    again = read_token(found.token)
    assert again == Token(WalkRun.of(failure), "use_count_off_by_one")


def test_the_heat_of_a_campaign_says_in_which_states_each_action_was_taken() -> None:
    exercise = Exercise()
    path = [Move(step.label) for step in failing().steps]
    assert walk(start, SETTING, path, exercise=exercise) is None
    outcome = outcome_of(session_with(exercise), repeat="", steps=40)
    assert outcome.heat == {
        "Arrive": {"empty": 1},
        "Publish": {"filling": 1},
        "Ask": {"partly full": 1},
    }


def test_everything_exercised_and_nothing_found_holds() -> None:
    outcome = outcome_of(session_with(complete()), repeat="", steps=40)
    assert outcome.verdict is Verdict.HOLDS
    assert outcome.figures == {
        "examples": 3,
        "steps": 70,
        "actions": "25 of 25",
        "witnesses": "41 of 41",
        "edges": 0,
    }


def test_an_action_that_never_happened_is_a_failure_of_the_campaign() -> None:
    exercise = complete()
    del exercise.actions["Abandon"]
    outcome = outcome_of(session_with(exercise), repeat="", steps=40)
    assert outcome.verdict is Verdict.VIOLATED
    assert "a failure of the campaign: Abandon never happened" in outcome.detail


def test_a_witness_that_was_never_seen_leaves_the_verdict_open() -> None:
    exercise = complete()
    del exercise.witnesses["SmallBehindLarge"]
    outcome = outcome_of(session_with(exercise), repeat="", steps=40)
    assert outcome.verdict is Verdict.INCONCLUSIVE
    assert "never seen: SmallBehindLarge" in outcome.detail


def test_the_table_says_how_often_and_names_what_never_happened() -> None:
    exercise = complete()
    exercise.actions["Empty"] = 1234
    del exercise.witnesses["ShortByLeast"]
    rows = {
        tuple(cell.strip() for cell in line.split("|"))
        for line in exercise_table(exercise, LOCAL).splitlines()
    }
    assert ("action", "Empty", "1,234") in rows
    assert ("witness", "ShortByLeast", "never") in rows
    assert ("", "an exception ends the wait", "never") in rows


@pytest.mark.parametrize("name", sorted(RARE))
def test_a_rare_witness_is_not_demanded_of_walks_and_is_in_a_graph(name: str) -> None:
    exercise = complete()
    del exercise.witnesses[name]
    assert outcome_of(session_with(exercise), repeat="", steps=40).verdict is Verdict.HOLDS
    graph = explore(Machine(QUICK[SHOWN_IN[name]]))
    witness = WITNESSES[name].predicate
    assert any(
        witness(graph.bounds, graph.states[source], label, graph.states[target])
        for source, label, target in graph.edges
    )
