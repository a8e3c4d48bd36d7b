"""The level "schedule": the library's own threads, in an order that was chosen.

It holds the scenario with its programs, and the choices that did not go by themselves.
"""

import time
from dataclasses import dataclass
from typing import ClassVar, Final

from forebay_models.campaign.quiet import quiet_library
from forebay_models.documents import DocumentError, Fields, Json, text
from forebay_models.outcome import Outcome, Verdict
from forebay_models.runs.values import exactly, read_consuming_order, whole
from forebay_models.runs.walk import planted
from forebay_models.scheduling.play import Theatre
from forebay_models.scheduling.scenario import SCENARIO_STORAGES, Scenario, ScenarioStorage
from forebay_models.scheduling.search import replay, search, taken
from forebay_models.scheduling.show import counterexample_of
from forebay_models.scheduling.strategies import DepthFirst
from forebay_models.tokens import LEVELS, token_of

_BOUND: Final = 2
_SCHEDULES: Final = 10_000


@dataclass(frozen=True)
class ScheduleRun:
    """One schedule of one scenario."""

    scenario: Scenario
    choices: dict[int, int]

    level: ClassVar[str] = "schedule"

    def as_json(self) -> dict[str, Json]:
        """Return the run as one JSON object."""
        scenario = self.scenario
        # Tokens of plain numbers are as they were before there were other storages.
        storage = {} if scenario.storage == "numbers" else {"storage": scenario.storage}
        return {
            "name": scenario.name,
            "capacity": scenario.capacity,
            "uses": scenario.uses,
            "order": scenario.order,
            "programs": [list(pair) for pair in scenario.programs],
            "token_of": [list(pair) for pair in scenario.token_of],
            **storage,
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
                order=read_consuming_order(fields.text("order")),
                programs=tuple(_texts(pair, "program") for pair in fields.items("programs")),
                token_of=tuple(_texts(pair, "token") for pair in fields.items("token_of")),
                storage=_storage(fields),
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
        """Run the schedule once more, or, where it cannot be taken any more, all that are like it.

        A change of the library may add a choice point, and then the same choices make another
        schedule. So all schedules with as many preemptions are run instead; a scenario that was
        made short has few of them.
        """
        started = time.monotonic()
        verdict, failure = Verdict.HOLDS, None
        detail = "every step is as the specification says"
        with quiet_library(), planted(fault), Theatre(self.scenario) as theatre:
            run, schedules = replay(theatre, self.choices), 1
            if run.failure is None and not taken(run, self.choices):
                bound = min(len(self.choices), _BOUND)
                found = search(
                    theatre, DepthFirst(bound), enough=lambda found: found.schedules >= _SCHEDULES
                )
                schedules += found.schedules
                detail = (
                    f"the schedule cannot be taken any more; of all with at most {bound} "
                    f"preemptions {found.schedules:,} were run instead"
                )
                run = found.failed or run
                if not found.exhausted and found.failed is None:
                    verdict = Verdict.INCONCLUSIVE
        if run.failure is not None:
            token = token_of(self, fault=fault)
            failure = counterexample_of(self.scenario, run, name="replay schedule", token=token)
            verdict, detail = Verdict.VIOLATED, failure.as_text()
        return Outcome(
            name="replay schedule",
            verdict=verdict,
            bounds=self.scenario.line(),
            figures={"schedules": schedules, "choices": len(run.choices)},
            seconds=time.monotonic() - started,
            detail=detail,
            counterexample=failure,
        )


def _storage(fields: Fields) -> ScenarioStorage:
    if "storage" not in fields.names():
        return "numbers"
    name = fields.text("storage")
    known = next((it for it in SCENARIO_STORAGES if it == name), None)
    if known is None:
        raise DocumentError(f"storage: {name!r} is none of {', '.join(SCENARIO_STORAGES)}")
    return known


def _texts(document: object, what: str) -> tuple[str, str]:
    first, second = exactly(document, what, 2)
    return text(first, what), text(second, what)


def _numbers(document: object) -> tuple[int, int]:
    place, index = exactly(document, "choice", 2)
    numbers = whole(place, "choice"), whole(index, "choice")
    if min(numbers) < 0:
        raise DocumentError(f"choice: expected numbers from 0 on, got {numbers}")
    return numbers


LEVELS[ScheduleRun.level] = ScheduleRun.from_json
