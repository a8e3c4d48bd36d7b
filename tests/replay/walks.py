"""Short walks that fail with a planted fault, one for each kind of thing that can be wrong."""

from typing import Final, NamedTuple

from forebay_models.adapters.adapter import INTERRUPTED
from forebay_models.campaign.replay import Move
from forebay_models.campaign.settings import Setting
from forebay_models.runs.walk import WalkRun
from forebay_models.targets import LOCAL
from forebay_spec.actions import Label
from forebay_spec.bounds import Bounds, Request

BOUNDS: Final = Bounds(
    name="small",
    capacity=2,
    producers=("p1", "p2"),
    readers=("c1",),
    write_sizes=(1, 2),
    requests=(Request("plain", 1, 1), Request("plain", 2, 2)),
    token_of=(("c1", "t1"),),
    features=LOCAL.features,
)
SETTING: Final = Setting(BOUNDS, "tensor", 0)

WRITE_2: Final = (Label("Arrive", ("p1", 2)), Label("Publish", ("p1",)))
WRITE_1: Final = (Label("Arrive", ("p1", 1)), Label("Publish", ("p1",)))
ASK: Final = Label("Ask", ("c1", "plain", 1, 1))
WAIT: Final = Label("Arrive", ("p2", 2))
EXPIRE: Final = Label("Expire", ("p2",))
READY: Final = Label("Ready", (0,))
DELIVER: Final = Label("Deliver", (0,))
ASK_2: Final = Label("Ask", ("c1", "plain", 2, 2))


class Case(NamedTuple):
    """A planted fault, the steps that show it, and words of what is said to be wrong."""

    fault: str
    labels: tuple[Label, ...]
    wrong: str
    manner: str = ""

    @property
    def run(self) -> WalkRun:
        """The walk; its last step happens in the manner of the case."""
        moves = [Move(label) for label in self.labels]
        moves[-1] = Move(self.labels[-1], self.manner)
        return WalkRun(SETTING, tuple(moves))


CASES: Final = (
    Case("use_count_off_by_one", (*WRITE_1, ASK), "the state is not one"),
    Case("lost_wakeup", (WRITE_1[0], ASK, WRITE_1[1]), "lost wake-up: c1"),
    Case("cancel_wakes_nobody", (ASK, Label("SetCancel", ("t1",))), "lost wake-up: c1"),
    Case("partial_publish", WRITE_2, "critical section"),
    Case("two_sections", WRITE_1, "critical sections"),
    Case("batch_reversed", (*WRITE_2, ASK_2, READY, DELIVER), "the records of the batch"),
    Case(
        "records_lost_when_transform_raises",
        (*WRITE_1, ASK, Label("Fail", (0,)), Label("Return", (0,))),
        "the state is not one",
    ),
    Case("stats_raise", (ASK,), "KeyError was raised"),
    Case("expired_write_left_in_queue", (*WRITE_2, WAIT, EXPIRE), "the state is not one"),
    Case("mutual_wait_unnoticed", (*WRITE_1, WAIT, ASK_2), "the call should get MUTUAL_WAIT"),
    Case(
        "waiter_count_not_decreased_on_exception",
        (ASK, Label("Expire", ("c1",))),
        "critical sections",
        manner=INTERRUPTED,
    ),
)
