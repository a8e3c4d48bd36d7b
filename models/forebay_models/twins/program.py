"""What twin runs are drawn from: a recipe, steps in segments, and a save between two of these.

No step waits: with a timeout of 0 what it comes to does not depend on who is how fast, and an error
is as good an outcome as a batch.
"""

from typing import Final, Literal, NamedTuple

from hypothesis import strategies as st

from forebay_models.targets import StorageKind, Target
from forebay_models.twins.schemas import APPENDED, SCHEMAS, TENSORS

Way = Literal["state_dict", "dumps", "pickle"]
Place = Literal["here", "forkserver", "spawn"]

CAPACITY: Final = 12
LONGEST: Final = 20
"""Steps of a segment at most."""


class Recipe(NamedTuple):
    """How the buffers of a run are made; the orders are named as in the models."""

    order: Literal["fifo", "random", "replacement", "epochs"]
    uses: int
    prefetch: int
    batch_size: int
    capacity: int
    storage: StorageKind
    schema: str
    transform: str
    seed: int
    drop_last: bool = False

    @property
    def overwrites(self) -> bool:
        """Whether they overwrite their oldest records, instead of using records up."""
        return self.order not in CONSUMING

    @property
    def sampler(self) -> str:
        """How records are sampled, in words; one of `SAMPLERS`."""
        return DROP_LAST if self.drop_last else self.order

    def line(self) -> str:
        """Return the recipe on one line."""
        uses = "" if self.overwrites else f" N={self.uses}"
        return (
            f"C={self.capacity}{uses} {self.sampler} B={self.batch_size} D={self.prefetch}, "
            f"{self.storage} storage of {self.schema} records, "
            f"transform {self.transform or 'none'}, seed {self.seed}"
        )


class Step(NamedTuple):
    """One call: its kind, and a size or a choice."""

    kind: str
    size: int

    def __str__(self) -> str:
        return f"{self.kind}({self.size})" if self.kind in SIZED else self.kind


class Save(NamedTuple):
    """How a buffer is saved, and where its twin comes to life.

    Attributes:
        way: of saving.
        storage: of the twin; a pickled buffer has that of the original whatever this says.
        used: whether the twin was used for something else before.
        place: the process: the one of the campaign, or a new one.
    """

    way: Way
    storage: StorageKind
    used: bool
    place: Place

    def __str__(self) -> str:
        used = ", used before" if self.used else ""
        where = "here" if self.place == "here" else f"in a new process ({self.place})"
        return f"saved by {self.way}; its twin: {self.storage} storage{used}, {where}"


class Program(NamedTuple):
    """A run: a save after each segment but the last."""

    recipe: Recipe
    segments: tuple[tuple[Step, ...], ...]
    saves: tuple[Save, ...]


CONSUMING: Final = ("fifo", "random")
"""The orders of a buffer that uses its records up; the others overwrite."""

DROP_LAST: Final = "epochs, drop last"
SAMPLERS: Final = (*CONSUMING, "replacement", "epochs", DROP_LAST)
"""All ways in which records are sampled."""

SIZED: Final = ("extend", "sample", "at_least", "lease", "can_extend", "can_sample", "append")
_KINDS: Final = (
    *("extend", "batch", "extend", "batch", "extend", "batch", "extend", "batch", "extend"),
    *("batch", "sample", "at_least", "sample", "at_least", "can_extend", "can_sample", "look"),
    *("lease", "commit", "lease", "release", "lease", "append", "empty"),
)
_BEGINNINGS: Final = (
    (),
    (Step("extend", 3), Step("extend", 4), Step("batch", 1)),
    (Step("extend", 2), Step("extend", 3), Step("extend", 4), Step("extend", 5), Step("batch", 1)),
)
_FULL: Final = (
    (*(Step("extend", size) for size in (3, 4, 5, 2)), Step("batch", 1)),
    (Step("extend", 5), Step("extend", 5), Step("batch", 1), Step("lease", 2), Step("batch", 1)),
)
"""Beginnings that fill most of a buffer, and overwrite in a small one."""

_RICHEST: Final = "odd"
_STORAGES: Final[dict[Target, tuple[StorageKind, ...]]] = {
    Target.LOCAL: ("tensor", "tensor", "list"),
    Target.SHARED: ("shared",),
    Target.SIMULATED: ("simulated", "simulated", "tensor"),
    Target.CUDA: ("cuda", "cuda", "tensor"),
}
"""Of the originals."""

_OF_TWINS: Final[dict[Target, tuple[StorageKind, ...]]] = {
    Target.LOCAL: ("tensor", "shared"),
    Target.SHARED: ("tensor", "shared"),
    Target.SIMULATED: ("simulated", "simulated", "tensor", "shared"),
    Target.CUDA: ("cuda", "cuda", "tensor", "shared"),
}


def _recipe(target: Target, sampler: str) -> st.SearchStrategy[Recipe]:
    return st.builds(
        Recipe,
        order=st.just("epochs" if sampler == DROP_LAST else sampler),
        uses=st.integers(1, 3) if sampler in CONSUMING else st.just(1),
        prefetch=st.integers(0, 4),
        batch_size=st.integers(1, 3),
        capacity=st.integers(3, CAPACITY),
        storage=st.sampled_from(_STORAGES[target]),
        schema=st.sampled_from((*SCHEMAS, _RICHEST)),
        transform=st.sampled_from(("", "", "weighted", "picky", "counting")),
        seed=st.integers(0, 3),
        drop_last=st.just(sampler == DROP_LAST),
    ).map(_possible)


def _possible(recipe: Recipe) -> Recipe:
    """Return a recipe without what does not go together.

    Objects need a storage of objects. How often a transform was called is certain only if the
    threads that gather ahead do not call it.
    """
    if recipe.storage != "list" and recipe.schema not in TENSORS:
        recipe = recipe._replace(schema="flat")
    if recipe.transform == "counting" and recipe.prefetch:
        recipe = recipe._replace(prefetch=0)
    return recipe


def _save(target: Target, places: tuple[Place, ...]) -> st.SearchStrategy[Save]:
    return st.builds(
        Save,
        way=st.sampled_from(("state_dict", "dumps", "pickle")),
        storage=st.sampled_from(_OF_TWINS[target]),
        used=st.booleans(),
        place=st.sampled_from(places),
    )


def _steps(kinds: tuple[str, ...]) -> st.SearchStrategy[tuple[Step, ...]]:
    step = st.builds(Step, kind=st.sampled_from(kinds), size=st.integers(1, 5))
    short = st.lists(step, max_size=LONGEST // 2)
    return st.one_of(short, st.lists(step, min_size=LONGEST // 2, max_size=LONGEST)).map(tuple)


def programs(target: Target, places: tuple[Place, ...], sampler: str) -> st.SearchStrategy[Program]:
    """Return the programs of a target and one of `SAMPLERS`; the twins live in these places.

    Only the last segment may close the buffer: how far it is closed is no part of what is saved.
    """
    middle, last = _steps(_KINDS), _steps((*_KINDS, "close"))
    beginning = st.sampled_from(_BEGINNINGS if sampler in CONSUMING else (*_BEGINNINGS, *_FULL))
    first = st.builds(lambda *parts: sum(parts, ()), beginning, middle)
    save, recipe = _save(target, places), _recipe(target, sampler)
    one = st.tuples(recipe, st.tuples(first, last), st.tuples(save))
    two = st.tuples(recipe, st.tuples(first, middle, last), st.tuples(save, save))
    return st.one_of(one, two).map(lambda parts: _fitting(Program(*parts)))


def _fitting(program: Program) -> Program:
    """Return a program whose twins have storages that take the records.

    A list is saved into a list. The place of a twin that is saved itself is where it runs.
    """
    saves = []
    storage = program.recipe.storage
    for save in program.saves:
        pickled = save.way == "pickle" and storage != "shared"
        if storage == "list" or pickled:
            save = save._replace(storage=storage, used=save.used and not pickled)
        storage = save.storage
        saves.append(save)
    return program._replace(saves=tuple(saves))


def appended(step: Step) -> str:
    """Return the name of the transform that a step appends."""
    return APPENDED[step.size % len(APPENDED)]
