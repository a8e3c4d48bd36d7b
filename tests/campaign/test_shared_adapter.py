"""A shared buffer is driven through kills and recoveries, and a wrong recovery is noticed."""

from collections.abc import Callable
from unittest.mock import patch

import pytest
from forebay._ledger import Ledger
from forebay._shared_peers import SharedPeers
from forebay._tickets import Tickets
from forebay_models.adapters.start import start
from forebay_models.campaign.driver import Divergence, Exercise
from forebay_models.campaign.quiet import quiet_library
from forebay_models.campaign.replay import Move, walk
from forebay_models.campaign.settings import Setting
from forebay_models.targets import SHARED
from forebay_spec.actions import Label
from forebay_spec.bounds import Bounds, Request

BOUNDS = Bounds(
    name="mortal",
    capacity=2,
    producers=("p1", "p2"),
    readers=("c1", "c2"),
    write_sizes=(1, 2),
    requests=(Request("plain", 1, 1), Request("lease", 1, 1)),
    features=SHARED.features,
)
LEASE = Label("Ask", ("c1", "lease", 1, 1))
SAMPLE = Label("Ask", ("c1", "plain", 1, 1))
FULL = (Label("Arrive", ("p1", 2)), Label("Publish", ("p1",)))
WALKS = {
    "while it fills": (
        Label("Arrive", ("p1", 2)),
        Label("Kill", ("p1",)),
        Label("Recover", ("p1",)),
    ),
    "while it waits at the head": (
        *FULL,
        Label("Arrive", ("p1", 2)),
        Label("Arrive", ("p2", 1)),
        Label("Kill", ("p1",)),
        SAMPLE,
        Label("Ready", (0,)),
        Label("Deliver", (0,)),
        Label("Recover", ("p1",)),
        Label("Admit", ("p2",)),
        Label("Publish", ("p2",)),
    ),
    "while it gathers": (*FULL, SAMPLE, Label("Kill", ("c1",)), Label("Recover", ("c1",))),
    "with a lease, and the next one of that name": (
        *FULL,
        LEASE,
        Label("Ready", (0,)),
        Label("Kill", ("c1",)),
        Label("Recover", ("c1",)),
        SAMPLE,
        Label("Ready", (0,)),
        Label("Deliver", (0,)),
    ),
    "two at once": (
        *FULL,
        LEASE,
        Label("Arrive", ("p1", 1)),
        Label("Kill", ("c1",)),
        Label("Kill", ("p1",)),
        Label("Recover", ("p1",)),
        Label("Recover", ("c1",)),
    ),
}


def walked(*labels: Label) -> Divergence | None:
    setting = Setting(BOUNDS, "shared", 0)
    with quiet_library():
        return walk(start, setting, [Move(label) for label in labels], exercise=Exercise())


@pytest.mark.parametrize("name", WALKS)
def test_a_participant_is_killed_and_recovered(name: str) -> None:
    assert walked(*WALKS[name]) is None


def nothing(*_: object, **__: object) -> list[int]:
    return []


def deliver(self: Ledger, call: object) -> None:
    self.deliver(call, 0.0)  # type: ignore[arg-type]  # it is the call that is returned


def publish(self: Ledger, call: object) -> None:
    self.publish(call)  # type: ignore[arg-type]  # it is the call that is abandoned


FAULTS: dict[str, tuple[object, str, Callable[..., object], str]] = {
    "the ticket stays": (Tickets, "rows_of", nothing, "while it waits at the head"),
    "the hold counts as delivered": (Ledger, "give_back", deliver, "while it gathers"),
    "the half batch is published": (Ledger, "abandon", publish, "while it fills"),
    "nobody is dead": (SharedPeers, "_reclaim", nothing, "two at once"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_wrong_recovery_is_noticed_at_once(fault: str) -> None:
    owner, attribute, wrong, name = FAULTS[fault]
    with patch.object(owner, attribute, wrong):
        failure = walked(*WALKS[name])
    assert failure is not None
    assert failure.steps[-1].label.name == "Recover"
