"""Runs a program: the original lives through all of it, its twins through what comes after a save.

Continuation: where a snapshot promises it, every step of a twin is seen like the original's, and so
is the state in the end. Where it does not, since a lease was out or a batch had failed, the twin is
drained and its records are accounted for.
"""

import tempfile
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from forebay_models.counterexample import Counterexample, Row
from forebay_models.twins.account import wrong_with
from forebay_models.twins.life import Life, Lived, Mark
from forebay_models.twins.places import live_in
from forebay_models.twins.program import CONSUMING, SAMPLERS, Program, Recipe, Save, Step
from forebay_models.twins.seen import difference

ORIGINAL = "original"
BOTH = f"different of the {ORIGINAL} and the"


class Parted(Exception):
    """Twins that did not go on alike, or an account that is wrong.

    Attributes:
        failure: tells it.
    """

    def __init__(self, failure: Counterexample) -> None:
        super().__init__(failure.as_text())
        self.failure = failure


@dataclass
class Counts:
    """What runs have shown so far; all but `accounted`, `steps` and `ways` count exact twins.

    Attributes:
        samplers: by how records are sampled.
        midway: of overwriting buffers that were saved in the middle of an epoch.
        renewed: of those in which an epoch began after the save.
        evicted: of those in which records had been overwritten when they were saved.
        leased: of those that were saved while leases were open.
    """

    exact: int = 0
    accounted: int = 0
    queued: int = 0
    elsewhere: int = 0
    crossed: int = 0
    steps: int = 0
    ways: Counter[str] = field(default_factory=Counter)
    samplers: Counter[str] = field(default_factory=Counter)
    midway: int = 0
    renewed: int = 0
    evicted: int = 0
    leased: int = 0

    @property
    def overwriting(self) -> int:
        """Of buffers that overwrite."""
        return sum(self.samplers[name] for name in SAMPLERS if name not in CONSUMING)

    def add(self, recipe: Recipe, storage: str, save: Save, mark: Mark, lived: Lived) -> None:
        """Count a twin, of an original with its records in `storage`."""
        self.steps += len(lived.steps)
        self.ways[save.way] += 1
        if not mark.exact:
            self.accounted += 1
            return
        self.exact += 1
        self.queued += mark.ahead > 0
        self.elsewhere += save.place != "here"
        self.crossed += save.storage != storage
        self.samplers[recipe.sampler] += 1
        self.midway += mark.midway
        self.renewed += lived.epochs > 0
        self.evicted += mark.evicted > 0
        self.leased += mark.leases > 0


def judge(program: Program, name: str, counts: Counts, fault: str = "") -> None:
    """Run a program.

    Args:
        program: what to run.
        name: of the check.
        counts: what was shown is counted here.
        fault: the name of a planted fault, or nothing.

    Raises:
        Parted: something is not as promised.
    """
    with tempfile.TemporaryDirectory() as directory:
        Run(program, name, counts, fault, directory).run()


class Run:
    """One run of a program."""

    def __init__(
        self, program: Program, name: str, counts: Counts, fault: str, directory: str
    ) -> None:
        self._program = program
        self._name = name
        self._counts = counts
        self._fault = fault
        self._directory = directory
        self._segments: list[tuple[int, tuple[Step, ...]]] = []
        first = 0
        for segment in program.segments:
            self._segments.append((first, segment))
            first += len(segment)
        self._original: Lived | None = None

    def run(self) -> None:
        """Run all lives and compare them."""
        program = self._program
        recipe, saves = program.recipe, program.saves
        life = Life(
            recipe=recipe,
            storage=recipe.storage,
            segments=tuple(self._segments),
            save=(saves[0].way, 0),
            fault=self._fault,
            directory=self._directory,
        )
        self._original = original = self._live(ORIGINAL, "here", life)
        saved, storage = original.saved, recipe.storage
        for number, save in enumerate(saves):
            twin, mark, later = f"twin {number + 1}", original.marks[number], number + 1
            life = Life(
                recipe=recipe,
                storage=save.storage,
                saved=saved,
                used=save.used,
                mark=mark,
                segments=tuple(self._segments[later:]) if mark.exact else (),
                save=(saves[later].way, 0) if mark.exact and later < len(saves) else None,
                drains=not mark.exact,
                fault=self._fault,
                directory=self._directory,
            )
            lived = self._live(twin, save.place, life)
            if not mark.exact:
                assert lived.drained is not None
                if wrong := list(wrong_with(mark.account, lived.drained, recipe, twin)):
                    raise self._parted(twin, None, wrong)
            else:
                self._compare(twin, original, lived)
            self._counts.add(recipe, storage, save, mark, lived)
            if not mark.exact:
                return  # the next one would be the twin of a buffer that was emptied
            saved, storage = lived.saved, save.storage

    def _live(self, who: str, place: str, life: Life) -> Lived:
        try:
            return live_in(place, life)  # type: ignore[arg-type]  # "here" or of the save
        except Exception as error:
            notes = getattr(error, "__notes__", [])
            what = f"{who}: {type(error).__name__}: {error}"
            raise self._parted(who, None, [what, *notes]) from error

    def _compare(self, twin: str, original: Lived, lived: Lived) -> None:
        for number, one in lived.steps.items():
            other = original.steps[number]
            if found := (
                difference(other.outcome[0], one.outcome[0], "the outcome")
                or difference(other.outcome[1], one.outcome[1], "the result,")
                or difference(other.stats, one.stats, "the stats,")
            ):
                raise self._parted(twin, number, [f"{BOTH} {twin}: {found}"])
        if found := difference(original.state, lived.state, "the state in the end,"):
            raise self._parted(twin, None, [f"{BOTH} {twin}: {found}"])

    def _parted(self, twin: str, at: int | None, what: Iterable[str]) -> Parted:
        rows = []
        original = self._original
        for place, (first, segment) in enumerate(self._segments):
            for number, step in enumerate(segment, first):
                notes: tuple[str, ...] = ()
                if original is not None and number in original.steps:
                    outcome, result = original.steps[number].outcome
                    notes = (outcome if result is None else f"{outcome} {_short(result)}",)
                if number == at:
                    notes = (*notes, f"here the {twin} parts")
                rows.append(Row(label=str(step), actor="all that live", notes=notes))
            if place < len(self._program.saves):
                save = self._program.saves[place]
                rows.append(Row(label="save", notes=(f"twin {place + 1} {save}",)))
        return Parted(
            Counterexample(
                name=self._name,
                setting=self._program.recipe.line(),
                rows=tuple(rows),
                what=tuple(what),
            )
        )


def _short(result: object) -> str:
    """Return a result in a few words: of batches the slots."""
    batch = isinstance(result, list) and len(result) == 2 and isinstance(result[0], list)
    text = f"from slots {result[0]}" if batch else str(result)  # type: ignore[index]  # a list
    return text if len(text) < 60 else f"{text[:57]}..."
