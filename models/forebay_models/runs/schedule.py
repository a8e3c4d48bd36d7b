"""The level "schedule": the library's own threads, in an order that was chosen.

It holds the scenario with its programs, and the choices that did not go by themselves.
"""

import time
from dataclasses import dataclass
from typing import ClassVar

from forebay_models.campaign.quiet import quiet_library
from forebay_models.documents import DocumentError, Fields, Json, text
from forebay_models.outcome import Outcome, Verdict
from forebay_models.runs.values import exactly, read_order, whole
from forebay_models.runs.walk import planted
from forebay_models.scheduling.play import Theatre
from forebay_models.scheduling.scenario import Scenario
from forebay_models.scheduling.search import replay
from forebay_models.scheduling.show import counterexample_of
from forebay_models.tokens import LEVELS, token_of


@dataclass(frozen=True)
class ScheduleRun:
    """One schedule of one scenario."""

    scenario: Scenario
    choices: dict[int, int]

    level: ClassVar[str] = "schedule"

    def as_json(self) -> dict[str, Json]:
        """Return the run as one JSON object."""
        scenario = self.scenario
        return {
            "name": scenario.name,
            "capacity": scenario.capacity,
            "uses": scenario.uses,
            "order": scenario.order,
            "programs": [list(pair) for pair in scenario.programs],
            "token_of": [list(pair) for pair in scenario.token_of],
            "choices": [list(pair) for pair in sorted(self.choices.items())],
        }

    @classmethod
    def from_json(cls, document: object) -> "ScheduleRun":
        """Return the run that `as_json` gave, or raise `DocumentError`."""
        fields = Fields(document, "schedule")
        try:
            scenario = Scenario(
                name=fields.text("name"),
                capacity=fields.whole("capacity"),
                uses=fields.whole("uses"),
                order=read_order(fields.text("order")),
                programs=tuple(_texts(pair, "program") for pair in fields.items("programs")),
                token_of=tuple(_texts(pair, "token") for pair in fields.items("token_of")),
            )
            if not any(scenario.ops):
                raise DocumentError("schedule: nobody does anything")
        except DocumentError:
            raise
        except ValueError as error:
            raise DocumentError(f"impossible schedule: {error}") from error
        choices = dict(_numbers(pair) for pair in fields.items("choices"))
        fields.end()
        return cls(scenario, choices)

    def again(self, fault: str) -> Outcome:
        """Run the schedule once more."""
        started = time.monotonic()
        with quiet_library(), planted(fault), Theatre(self.scenario) as theatre:
            run = replay(theatre, self.choices)
        failure = None
        detail = "every step is as the specification says"
        if run.failure is not None:
            token = token_of(self, fault=fault)
            failure = counterexample_of(self.scenario, run, name="replay schedule", token=token)
            detail = failure.as_text()
        return Outcome(
            name="replay schedule",
            verdict=Verdict.HOLDS if failure is None else Verdict.VIOLATED,
            bounds=self.scenario.line(),
            figures={"choices": len(run.choices), "slices": len(run.slices)},
            seconds=time.monotonic() - started,
            detail=detail,
            counterexample=failure,
        )


def _texts(document: object, what: str) -> tuple[str, str]:
    first, second = exactly(document, what, 2)
    return text(first, what), text(second, what)


def _numbers(document: object) -> tuple[int, int]:
    place, index = exactly(document, "choice", 2)
    return whole(place, "choice"), whole(index, "choice")


LEVELS[ScheduleRun.level] = ScheduleRun.from_json
