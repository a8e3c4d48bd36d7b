"""What an action stores is its own: no store reads cells that a store before it has changed."""

import numpy as np
import pytest
from forebay._stores import Ints, Store, commit
from forebay_models.adapters.adapter import Adapter
from forebay_models.adapters.local import LocalAdapter
from forebay_models.campaign.run import STEPS, run
from forebay_models.campaign.session import Session
from forebay_models.campaign.settings import Setting

EXAMPLES = 60
"""So many come to all that stores much: captures, restores, batches that come back."""


def start(setting: Setting) -> Adapter:
    return LocalAdapter(setting.bounds, setting.storage, setting.seed, patience=5.0)


def views_of_targets(stores: list[Store]) -> list[Store]:
    """Return the stores whose index or value is a view of memory that some store writes to."""
    memories = [_whole(target) for target, _, _ in stores if not isinstance(target, list)]
    return [
        store
        for store in stores
        for part in store[1:]
        if isinstance(part, np.ndarray)
        and any(np.may_share_memory(part, memory) for memory in memories)
    ]


def _whole(target: memoryview | Ints) -> Ints:
    """Return all of the memory that something is a view of."""
    view = np.asarray(target)
    while isinstance(view.base, np.ndarray):
        view = view.base
    return view


def test_a_view_of_a_ledger_is_noticed() -> None:
    block = np.arange(12)
    first, second = block[:4], block[4:]
    slots = np.array([1, 0])
    honest: list[Store] = [
        (first, slots, second[:2].copy()),
        (first, slice(0, 2), slots),
        (first, slots, 1),
    ]
    assert views_of_targets(honest) == []
    assert len(views_of_targets([*honest, (second, slots, first[:2])])) == 1
    assert len(views_of_targets([*honest, (second, first[:2], 1)])) == 1


def test_no_store_is_a_view_of_what_the_same_action_changes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Such a store would depend on the order, and on how far a death had let its action come."""
    commits = 0

    def looked_into(stores: list[Store]) -> None:
        nonlocal commits
        commits += 1
        assert views_of_targets(stores) == []
        commit(stores)

    monkeypatch.setattr("forebay._layout.commit", looked_into)
    session = Session(start, seconds=None, examples=EXAMPLES, shrinking=0.0)
    run(session, seed_number=0, steps=STEPS)
    assert session.failure is None, session.failure
    assert {"Capture", "Restore", "Return", "Empty"} <= set(session.exercise.actions)
    assert commits > EXAMPLES
