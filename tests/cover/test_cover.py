"""A cover holds only when every edge was taken; whatever ends it early is said."""

import json
import multiprocessing
from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace

import pytest
import typer
from forebay_models.campaign.driver import Exercise
from forebay_models.cover import run as running
from forebay_models.cover import workers as working
from forebay_models.cover.edges import EdgeCoverage
from forebay_models.cover.run import Cover, conclude, run_cover
from forebay_models.cover.workers import Broken, Job, Progress, Size, Work, Workers
from forebay_models.cover_cli import cover, known_graph
from forebay_models.outcome import Outcome, Verdict
from forebay_models.progress import Quiet
from forebay_models.targets import LOCAL, Target
from forebay_spec.actions import Machine
from forebay_spec.bounds import QUICK

from tests.cover import odd_workers


@pytest.fixture
def forked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fork the workers off a server that has loaded everything, which is how they start at once.

    Without this they start as they do for whoever runs a cover, each loading everything itself.
    """
    multiprocessing.set_forkserver_preload(["tests.cover.odd_workers"])
    server = multiprocessing.get_context("forkserver")
    monkeypatch.setattr(
        working, "multiprocessing", SimpleNamespace(get_context=lambda method: server)
    )


def progress(edges: bytes) -> Progress:
    return Progress("liveness", edges, b"\1\1", Exercise(steps=4, examples=1))


def test_a_cover_holds_when_the_workers_together_have_taken_every_edge() -> None:
    cover = Cover(LOCAL, ("liveness",))
    cover.explored({"liveness": Size(2, 3)})
    cover.took(0, progress(b"\1\0\0"))
    assert conclude(cover, 2.0).verdict is Verdict.INCONCLUSIVE
    cover.took(1, progress(b"\0\1\1"))
    outcome = conclude(cover, 2.0)
    assert outcome.verdict is Verdict.HOLDS
    assert outcome.figures == {
        "edges": "3 of 3",
        "states": "2 of 2",
        "actions": "0 of 25",
        "manners": "0 of 12",
        "paths": 2,
        "steps": 8,
        "steps/s": 4,
    }


def test_one_edge_that_is_missing_is_noticed() -> None:
    cover = Cover(LOCAL, ("liveness",))
    cover.explored({"liveness": Size(2, 3)})
    cover.took(0, progress(b"\1\0\1"))
    outcome = conclude(cover, 2.0)
    assert outcome.verdict is Verdict.INCONCLUSIVE
    assert outcome.figures["edges"] == "2 of 3 (66.7%)"
    assert "1 edges were not taken" in outcome.detail


def test_a_graph_that_nobody_explored_is_noticed() -> None:
    cover = Cover(LOCAL, ("liveness", "random"))
    cover.explored({"liveness": Size(2, 3)})
    cover.took(0, progress(b"\1\1\1"))
    assert conclude(cover, 2.0).verdict is Verdict.INCONCLUSIVE
    assert conclude(Cover(LOCAL, ("liveness",)), 2.0).verdict is Verdict.INCONCLUSIVE


def covered(work: Work) -> Outcome:
    return run_cover(graphs=["liveness"], observer=Quiet(), work=work)


@pytest.mark.slow
@pytest.mark.usefixtures("forked")
def test_what_the_processes_say_is_put_together() -> None:
    outcome = covered(odd_workers.takes_all)
    assert (outcome.verdict, outcome.figures["edges"]) == (Verdict.HOLDS, "5 of 5")
    outcome = covered(odd_workers.forgets_one)
    assert outcome.verdict is Verdict.INCONCLUSIVE
    assert outcome.figures["edges"] == "4 of 5 (80.0%)"


@pytest.mark.slow
@pytest.mark.usefixtures("forked")
def test_a_worker_that_dies_is_reported() -> None:
    outcome = covered(odd_workers.dies)
    assert outcome.verdict is Verdict.COULD_NOT_RUN
    assert "a worker ended without a word, with exit code 7" in outcome.detail


@pytest.mark.slow
@pytest.mark.usefixtures("forked")
def test_an_error_in_a_worker_is_reported() -> None:
    outcome = run_cover(graphs=["liveness"], fault="no_such_fault", observer=Quiet())
    assert outcome.verdict is Verdict.COULD_NOT_RUN
    assert "no fault is called 'no_such_fault'" in outcome.detail


@pytest.mark.slow
@pytest.mark.usefixtures("forked")
def test_workers_that_do_not_agree_about_a_graph_are_an_error() -> None:
    with pytest.raises(AssertionError, match="liveness was explored twice, and differs"):
        covered(odd_workers.explores_otherwise)


@pytest.mark.slow
def test_silent_workers_are_given_up_and_no_process_is_left() -> None:
    jobs = [Job(Target.LOCAL, ("liveness",), share, 2, "", None) for share in range(2)]
    with Workers(jobs, odd_workers.is_silent, silence=0.1) as crew:
        processes = list(crew._ends.values())
        said = list(crew.messages())
    assert [message for _, message in said] == [Broken("no worker spoke for 0.1 s")] * 2
    assert not any(process.is_alive() for process in processes)


@pytest.mark.slow
@pytest.mark.parametrize("end", [KeyboardInterrupt, SystemExit])
def test_no_process_outlives_an_interrupt_or_a_request_to_end(end: type[BaseException]) -> None:
    jobs = [Job(Target.LOCAL, ("liveness",), share, 2, "", None) for share in range(2)]
    with pytest.raises(end), Workers(jobs, odd_workers.is_silent) as crew:  # noqa: PT012
        processes = list(crew._ends.values())
        assert all(process.is_alive() for process in processes)
        raise end
    assert not any(process.is_alive() for process in processes)


@pytest.mark.slow
@pytest.mark.usefixtures("forked")
def test_a_budget_that_ends_early_is_inconclusive() -> None:
    outcome = run_cover(graphs=["liveness"], seconds=0.001, observer=Quiet())
    assert outcome.verdict is Verdict.INCONCLUSIVE
    assert outcome.figures["edges"] == "0 of 17,447"
    assert "17,447 edges were not taken; give it more time" in outcome.detail


@pytest.mark.slow
def test_the_smallest_graph_is_covered_whole() -> None:
    outcome = run_cover(graphs=["droplast"], observer=Quiet())
    assert (outcome.verdict, outcome.name) == (Verdict.HOLDS, "cover local")
    assert outcome.figures["edges"] == "4,526 of 4,526"
    assert outcome.figures["states"] == "926 of 926"
    assert outcome.heat["Publish"]["filling"] > 0


@pytest.mark.slow
@pytest.mark.usefixtures("forked")
def test_a_planted_fault_is_found_shortened_and_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running, "SHORTENING", 2.0)
    outcome = run_cover(graphs=["liveness"], fault="lost_wakeup", observer=Quiet())
    assert outcome.verdict is Verdict.VIOLATED
    found = outcome.counterexample
    assert found is not None
    assert "lost wake-up" in found.what[0]
    assert len(found.rows) <= 6
    assert found.token
    assert outcome.detail == found.as_text()


def test_steps_within_other_bounds_are_passed_over() -> None:
    machine = Machine(QUICK["liveness"])
    before = machine.initial()
    label, after = next(iter(machine.successors(before)))
    seen = EdgeCoverage()
    for _ in range(2):
        seen.add(machine.bounds, before, label, after)
        seen.add(QUICK["cancel"], before, label, after)
    assert len(seen.edges) == 2
    assert len(seen.states) == 4
    other = replace(machine.bounds, capacity=3)
    seen.add(other, before, label, after)
    assert len(seen.edges) == 2


def test_the_command_prints_the_outcome_and_ends_with_its_code(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked: list[tuple[list[str], float | None, str]] = []

    def run(
        target: Target, *, graphs: list[str], seconds: float | None, fault: str, observer: object
    ) -> Outcome:
        assert target is Target.LOCAL
        asked.append((graphs, seconds, fault))
        return conclude(Cover(LOCAL, ("liveness",)), 1.0)

    monkeypatch.setattr(running, "run_cover", run)
    with pytest.raises(typer.Exit) as end:
        cover(Target.LOCAL, ["random"], "2m", "lost_wakeup", as_json=True, save=None)
    assert end.value.exit_code == int(Verdict.INCONCLUSIVE)
    assert asked == [(["random"], 120.0, "lost_wakeup")]
    document = json.loads(capsys.readouterr().out)
    assert document["command"] == "campaign cover"
    assert document["outcomes"][0]["name"] == "cover local"


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        (
            lambda: known_graph(Target.LOCAL, "rivers"),
            "no graph of local is called 'rivers'; there are: writers",
        ),
        (
            lambda: cover(Target.LOCAL, None, None, "no_such", as_json=False, save=None),
            "no fault is called 'no_such'; there are: .*partial_publish",
        ),
    ],
)
def test_an_unknown_name_is_answered_with_those_that_there_are(
    wrong: Callable[[], object], says: str
) -> None:
    with pytest.raises(typer.BadParameter, match=says):
        wrong()
