"""The buffer follows given paths through queues, captures and restores, and shows what it did."""

from collections.abc import Callable, Mapping
from unittest.mock import patch

import pytest
from forebay import _layout as at
from forebay._boundary import Boundary
from forebay._capture import Capture
from forebay._restore import Restore
from forebay._snapshot import Snapshot
from forebay_models.adapters.adapter import IN_TRANSFORM, INTERRUPTED, LATE, USUAL
from forebay_models.adapters.start import start
from forebay_models.campaign.driver import Divergence, Exercise
from forebay_models.campaign.quiet import quiet_library
from forebay_models.campaign.replay import Move, walk
from forebay_models.campaign.settings import Setting
from forebay_models.targets import LOCAL, SHARED, StorageKind
from forebay_spec.actions import Label
from forebay_spec.bounds import Bounds, Request

THREADS = Bounds(
    name="threads of q1",
    capacity=3,
    producers=("p1", "p2"),
    readers=("c1", "c2"),
    write_sizes=(1, 2),
    requests=(Request("plain", 1, 1), Request("plain", 2, 2), Request("lease", 1, 1)),
    process_of=tuple((actor, "q1") for actor in ("p1", "p2", "c1", "c2")),
    prefetch=2,
    features=LOCAL.features,
)
PROCESSES = Bounds(
    name="processes",
    capacity=3,
    producers=("p1",),
    readers=("c1", "c2"),
    write_sizes=(1, 2),
    requests=(Request("plain", 1, 1), Request("lease", 1, 1)),
    prefetch=2,
    features=SHARED.features,
)


def move(text: str, manner: str = USUAL) -> Move:
    """Return a step from its label's text."""
    name, _, rest = text.partition("(")
    args = rest.rstrip(")").split(",") if rest else []
    return Move(Label(name, tuple(int(arg) if arg.isdigit() else arg for arg in args)), manner)


def moves(*texts: str | Move) -> list[Move]:
    return [move(it) if isinstance(it, str) else it for it in texts]


FULL = ("Arrive(p1,2)", "Publish(p1)")
AHEAD = ("Refill(q1)", "Ready(0)")
CAPTURE = ("CaptureAsk(c1)", "Capture(c1)", "CaptureDone(c1)", "CaptureDone(c1)")
TAKE = "Ask(c1,plain,1,1)"
PATHS: Mapping[str, list[Move]] = {
    "taken while it gathers": moves(*FULL, "Refill(q1)", TAKE, "Ready(0)", "Deliver(0)"),
    "taken while it gathers, and fails": moves(
        *FULL, "Refill(q1)", move(TAKE, LATE), move("Fail(0)", IN_TRANSFORM), "Return(0)"
    ),
    "taken when it is ready": moves(*FULL, *AHEAD, TAKE, "Deliver(0)"),
    "taken when it has failed": moves(*FULL, "Refill(q1)", "Fail(0)", TAKE, "Return(0)"),
    "taken as a lease": moves(
        *FULL, *AHEAD, "Ask(c1,lease,1,1)", "Return(0)", *AHEAD, "Ask(c1,lease,1,1)", "Deliver(0)"
    ),
    "flushed, ready and failed": moves(
        *FULL, *AHEAD, "Return(0)", "Refill(q1)", "Fail(0)", "Return(0)"
    ),
    "stale": moves(
        *FULL, "Refill(q1)", "Refill(q1)", "Ready(1)", "Empty", "Ready(0)", *FULL, *AHEAD
    ),
    "recalled": moves(
        *(*FULL, *AHEAD, "Arrive(p1,2)", "Ask(c1,plain,2,2)"),
        *("Recall", "Draw(c1)", "Ready(0)", "Deliver(0)", "Admit(p1)", "Publish(p1)"),
    ),
    "captured with its queue while others go on": moves(
        *(*FULL, *AHEAD, "Refill(q1)", "CaptureAsk(c1)", "Ask(c2,plain,1,1)", "Arrive(p2,1)"),
        *("Ready(1)", "Capture(c1)", "Draw(c2)", "Deliver(0)", "CaptureDone(c1)"),
        *("Publish(p2)", "CaptureDone(c1)"),
    ),
    "captured when there is nothing": moves("CaptureAsk(p1)", "Capture(p1)"),
    "emptied while it is copied": moves(
        *(*FULL, "CaptureAsk(p1)", "Capture(p1)", "Empty", "CaptureDone(p1)", "CaptureDone(p1)")
    ),
    "restored with its queue": moves(
        *(*FULL, *AHEAD, *CAPTURE, "Ask(c2,lease,1,1)", "RestoreAsk(p1)", "Arrive(p2,1)"),
        *(TAKE, "Load(p1)", "Restore(p1)", "Draw(c1)", "Deliver(0)"),
        *("Admit(p2)", "Publish(p2)", TAKE, "Ready(0)", "Deliver(0)"),
    ),
    "restored with two batches": moves(
        *(*FULL, *AHEAD, "Refill(q1)", "Ready(1)", *CAPTURE, TAKE, "Deliver(0)"),
        *("RestoreAsk(p1)", "Load(p1)", "Restore(p1)", TAKE, "Deliver(0)", TAKE, "Deliver(0)"),
    ),
    "rejected": moves(
        *(*FULL, *CAPTURE, "Ask(c2,plain,1,1)", "RestoreAsk(p1)", "Reject(p1)"),
        *("RestoreAsk(p1)", move("Reject(p1)", INTERRUPTED), "Ready(0)", "Deliver(0)"),
        *("RestoreAsk(p1)", "Reject(p1)", "RestoreAsk(p1)", "Load(p1)", "Restore(p1)"),
    ),
    "nothing to restore": moves("RestoreAsk(p1)", "Arrive(p2,1)", "Reject(p1)", "Admit(p2)"),
    "the first records are written while an empty state is restored": moves(
        *("CaptureAsk(p1)", "Capture(p1)", "Arrive(p2,1)", "RestoreAsk(p1)", "Publish(p2)"),
        *("Load(p1)", "Restore(p1)", "Arrive(p2,1)", "Publish(p2)", TAKE, "Ready(0)"),
    ),
}
DEATHS: Mapping[str, list[Move]] = {
    "with a queue": moves(
        *(*FULL, "Refill(c1)", "Refill(c1)", "Ready(1)", "Kill(c1)", "Recover(c1)"),
        *("Refill(c2)", "Ready(0)", "Refill(c1)", TAKE, "Ready(1)", "Deliver(1)"),
    ),
    "while it has taken what gathers": moves(
        *(*FULL, "Refill(c1)", TAKE, "Kill(c1)", "Recover(c1)", TAKE, "Ready(0)", "Deliver(0)")
    ),
    "while it copies": moves(
        *(*FULL, "CaptureAsk(c1)", "Capture(c1)", "CaptureDone(c1)", "Kill(c1)", "Recover(c1)"),
        *("Ask(c2,plain,1,1)", "Ready(0)", "Deliver(0)"),
        *("RestoreAsk(p1)", "Load(p1)", "Restore(p1)", TAKE, "Ready(0)", "Deliver(0)"),
    ),
    "while it asks for a capture": moves(*FULL, "CaptureAsk(c1)", "Kill(c1)", "Recover(c1)"),
    "while it loads": moves(
        *(*FULL, *CAPTURE, "RestoreAsk(c1)", "Load(c1)", "Ask(c2,plain,1,1)", "Kill(c1)"),
        *("Recover(c1)", "Refuse(c2)", "Ask(c1,plain,1,1)"),
    ),
    "while a restore waits": moves(
        *(*FULL, *CAPTURE, "Ask(c2,plain,1,1)", "RestoreAsk(p1)", "Kill(c2)", "Recover(c2)"),
        *("Load(p1)", "Restore(p1)"),
    ),
}


def walked(
    path: list[Move], bounds: Bounds, storage: StorageKind, exercise: Exercise | None = None
) -> Divergence | None:
    with quiet_library():
        return walk(start, Setting(bounds, storage, 0), path, exercise=exercise)


@pytest.mark.parametrize("name", PATHS)
@pytest.mark.parametrize("storage", ["tensor", "list", "simulated"])
def test_threads_follow_a_path(name: str, storage: StorageKind) -> None:
    exercise = Exercise()
    failure = walked(PATHS[name], THREADS, storage, exercise)
    assert failure is None, failure
    assert exercise.steps == len(PATHS[name])


@pytest.mark.parametrize("name", DEATHS)
def test_processes_follow_a_path_through_a_death(name: str) -> None:
    failure = walked(DEATHS[name], PROCESSES, "shared")
    assert failure is None, failure


def test_the_paths_have_every_action() -> None:
    taken = {label.name for path in PATHS.values() for label, _ in path}
    assert taken >= {
        *("Refill", "Recall", "CaptureAsk", "Capture", "CaptureDone"),
        *("RestoreAsk", "Load", "Restore", "Reject"),
    }


def count_once_more(buffer: Boundary, snapshot: Snapshot, *rest: object) -> None:
    """Enter a snapshot, and count a record that was never written."""
    honest_restore(buffer, snapshot, *rest)  # type: ignore[arg-type]  # handed on as it came
    buffer._ledger.cells[at.ADMITTED] += 1


honest_restore = Boundary.restore
honest_payloads = Capture.payloads
FAULTS: dict[str, tuple[object, str, Callable[..., object], str, str]] = {
    "a counter is off": (
        Boundary,
        "restore",
        count_once_more,
        "restored with its queue",
        "Restore",
    ),
    "it does not wait": (Restore, "_is_quiet", lambda it: True, "rejected", "RestoreAsk"),
    "payloads are mixed up": (
        Capture,
        "payloads",
        lambda it: honest_payloads(it)[::-1],
        "restored with two batches",
        "Deliver",
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_wrong_step_is_noticed_at_once(fault: str) -> None:
    owner, attribute, wrong, name, action = FAULTS[fault]
    with patch.object(owner, attribute, wrong):
        failure = walked(PATHS[name], THREADS, "list")
    assert failure is not None
    assert failure.steps[-1].label.name == action
