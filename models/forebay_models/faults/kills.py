"""Kills by their names: in which scenario somebody is killed, who, and at which point."""

from typing import NamedTuple

from forebay_models.faults.points import Point, point_of
from forebay_models.faults.scenarios import FINDER, SCENARIOS, VICTIM


class Kill(NamedTuple):
    """Where somebody is killed.

    `point` is the victim's; `finder` that of the one who finds it, if that is killed as well. With
    `natural` nobody looks for the dead on purpose: those who wait have to find out.
    """

    scenario: str
    point: Point | None
    finder: Point | None = None
    natural: bool = False

    def __str__(self) -> str:
        actor = VICTIM if self.finder is None else f"{FINDER}@{self.point}"
        label, occurrence = (self.finder or self.point) or ("-", 0)
        natural = "/natural" if self.natural else ""
        return f"{self.scenario}/{actor}/{label}/{occurrence}{natural}"


def kill_of(text: str) -> Kill:
    """Read what `str` of a kill gives; `ValueError` says what is wrong with any other text."""
    parts = text.removesuffix("/natural").split("/")
    if len(parts) != 4 or parts[0] not in SCENARIOS:
        raise ValueError(f"a kill is written like writer/{VICTIM}/half/2, got {text!r}")
    scenario, actor, label, occurrence = parts
    point = point_of(f"{label}#{occurrence}")
    if actor == VICTIM:
        return Kill(scenario, point, natural=text.endswith("/natural"))
    if not actor.startswith(f"{FINDER}@"):
        raise ValueError(f"{VICTIM} or {FINDER}@half#2 is killed, got {actor!r}")
    return Kill(scenario, point_of(actor.removeprefix(f"{FINDER}@")), finder=point)
