"""The processes that live through all runs of a campaign, and get one buffer after the other."""

from collections.abc import Sequence
from typing import Final

from forebay_models.faults.crew import START, Crew, Member, Wrong
from forebay_models.faults.hands import Task, act
from forebay_models.faults.program import OK, Did, ops_of
from forebay_models.faults.scenarios import FINDER, OTHERS

PRELOAD: Final = ("forebay", "forebay_models.faults.hands")


class Stage:
    """The processes that live through all runs.

    Args:
        crew: who starts them.
        fault: the planted fault, or nothing.
    """

    def __init__(self, crew: Crew, fault: str = "") -> None:
        self.crew = crew
        self.others = {
            name: crew.start(name, "forkserver", act, fault, None) for name in (*OTHERS, FINDER)
        }
        for member in self.others.values():
            member.says(START)


def drain(member: Member, capacity: int, deserted: bool) -> Sequence[Did]:
    """Have everything taken out, and return the calls that did it.

    Args:
        member: who does it.
        capacity: of the buffer.
        deserted: readers are told that all is over without the buffer being closed.
    """
    heard: list[Did] = []

    def take(program: str) -> Did:
        member.tell(Task(ops_of(program)))
        did = member.says()
        if not isinstance(did, Did):
            raise Wrong(f"{member.name} says {did!r}")
        member.says()
        heard.append(did)
        return did

    if not deserted:
        take("shutdown")
    while take(f"sample {capacity} 1").outcome == OK:
        pass
    return heard
