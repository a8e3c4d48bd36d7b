"""The classes of states: every state has one, and each says what it is called after."""

import pytest
from forebay_models.coverage import STATE_CLASSES, heat_of, state_class
from forebay_models.explore.graph import explore
from forebay_spec.actions import Machine
from forebay_spec.bounds import QUICK
from forebay_spec.kernel import Closing, Phase
from forebay_spec.state import Hold, Slot, Ticket, initial

START = initial(QUICK["writers"])
LIVE, FILLING = Slot(Phase.LIVE, 0, 0, 1), Slot(Phase.FILLING, 0, 0, 0)
WRITER, READER = Ticket("write", "p1", 2, 2), Ticket("lease", "c1", 1, 1)
HOLD = Hold("c1", "lease", (0,), (1,), "ready")


def test_a_dozen_classes_cover_the_quick_graphs_and_each_comes_up() -> None:
    seen = {
        state_class(state)
        for bounds in QUICK.values()
        for state in explore(Machine(bounds), keep_edges=False).states
    }
    assert seen == set(STATE_CLASSES)
    assert len(STATE_CLASSES) == 12


@pytest.mark.parametrize(
    ("changes", "name"),
    [
        ({}, "empty"),
        ({"slots": (LIVE, START.slots[1]), "free": (1,)}, "partly full"),
        ({"slots": (LIVE, LIVE), "free": ()}, "full"),
        ({"filling": (("p1", (0,)),)}, "filling"),
        ({"holds": (HOLD,)}, "held"),
        ({"filling": (("p1", (1,)),), "holds": (HOLD,)}, "filling, held"),
        ({"tickets": (WRITER,), "holds": (HOLD,)}, "writers wait"),
        ({"tickets": (READER,)}, "readers wait"),
        ({"tickets": (READER, WRITER)}, "both wait"),
        ({"closing": Closing.DRAINING}, "draining"),
        ({"closing": Closing.DRAINING, "tickets": (READER,)}, "draining, waits"),
        ({"closing": Closing.STOPPED, "tickets": (READER,)}, "stopped"),
    ],
)
def test_a_state_is_in_the_class_that_says_most_about_it(
    changes: dict[str, object], name: str
) -> None:
    assert state_class(START._replace(**changes)) == name  # type: ignore[arg-type]  # a table


def test_counts_of_pairs_become_a_table_of_rows() -> None:
    counted = {("Arrive", "empty"): 3, ("Ask", "empty"): 1, ("Arrive", "full"): 2}
    assert heat_of(counted) == {"Arrive": {"empty": 3, "full": 2}, "Ask": {"empty": 1}}
