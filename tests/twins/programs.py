"""For each planted fault one program in which it shows, so that a few steps are enough."""

from forebay_models.targets import StorageKind
from forebay_models.twins.program import Place, Program, Recipe, Save, Step, Way

Steps = tuple[Step, ...]

BATCH = Step("batch", 1)
RELEASE, COMMIT, APPEND = Step("release", 1), Step("commit", 1), Step("append", 1)
FIFO = Recipe("fifo", 1, 2, 1, 8, "tensor", "flat", "", 0)
EPOCHS = Recipe("epochs", 1, 0, 2, 7, "tensor", "flat", "", 0)
UNIFORM = EPOCHS._replace(order="replacement")


def extend(size: int) -> Step:
    return Step("extend", size)


def sample(size: int) -> Step:
    return Step("sample", size)


def lease(size: int) -> Step:
    return Step("lease", size)


FIRST = (extend(5), BATCH)
THEN = (BATCH, BATCH, extend(2), sample(2))

PROGRAMS: dict[str, tuple[Recipe, Steps, Steps]] = {
    "generator_rewound": (FIFO._replace(order="random", prefetch=0), FIRST, (BATCH, BATCH)),
    "queue_dropped": (FIFO, FIRST, THEN),
    "queue_order_lost": (FIFO, FIRST, THEN),
    "ages_reversed": (FIFO._replace(prefetch=0), FIRST, THEN),
    "ages_not_rebased": (
        FIFO._replace(prefetch=0, uses=2),
        (extend(3), sample(2)),
        (extend(1), lease(1), extend(1), RELEASE, sample(5)),
    ),
    "free_order_lost": (
        FIFO._replace(prefetch=0),
        (extend(5), lease(1), BATCH, COMMIT),
        (extend(3),),
    ),
    "uses_lost": (FIFO._replace(prefetch=0, uses=2), FIRST, (sample(5), sample(5))),
    "counters_lost": (FIFO, FIRST, (Step("look", 1),)),
    "transforms_forgotten": (FIFO._replace(prefetch=0, transform="counting"), FIRST, THEN),
    "leases_consumed": (FIFO._replace(prefetch=0), (extend(3), lease(2)), ()),
    "requires_grad_lost": (FIFO._replace(transform="weighted"), FIRST, THEN),
    "dtype_widened": (FIFO._replace(schema="odd"), FIRST, THEN),
}
"""Of buffers that use their records up."""

FULL = (extend(4), extend(3), BATCH)
AHEAD = EPOCHS._replace(prefetch=1)
OVER = (extend(5), extend(4), BATCH)
RING_PROGRAMS: dict[str, tuple[Recipe, Steps, Steps]] = {
    "left_lost": (EPOCHS, FULL, (sample(5), sample(1))),
    "all_left_in_snapshot": (EPOCHS, FULL, (sample(5),)),
    "all_left_restored": (EPOCHS, FULL, (sample(5),)),
    "left_order_lost": (EPOCHS, FULL, (sample(5),)),
    "drawn_order_lost": (EPOCHS, (extend(5), sample(5)), (sample(5),)),
    "unreturned_not_left": (EPOCHS, (*FULL, lease(3)), (sample(5),)),
    "epoch_not_in_snapshot": (AHEAD, (*FULL, sample(5), sample(5)), (APPEND, sample(5))),
    "queue_remembers_anew": (AHEAD, (*FULL, sample(5), sample(5)), (APPEND, sample(5))),
    "epoch_ended_by_restore": (AHEAD, FULL, (APPEND, sample(5), sample(5))),
    "overwritten_ahead_dropped": (AHEAD, (*FULL, extend(5), extend(2)), (BATCH,)),
    "aged_by_slot": (UNIFORM, OVER, (extend(2), sample(5))),
    "ring_ages_not_rebased": (EPOCHS, FULL, (extend(1), sample(2))),
    "restored_gives_no_room": (UNIFORM, OVER, (extend(2),)),
}
"""Of buffers that overwrite."""

IN_RINGS: dict[str, tuple[Recipe, Steps, Steps]] = {
    "generator_rewound": (UNIFORM, FULL, (BATCH, BATCH)),
    "queue_dropped": (AHEAD, FULL, THEN),
    "queue_order_lost": (AHEAD._replace(prefetch=3), FULL, THEN),
    "counters_lost": (UNIFORM, OVER, (Step("look", 1),)),
    "leases_consumed": (EPOCHS, (*FULL, lease(2)), (sample(5),)),
}
"""Of buffers that overwrite, for faults that any buffer may have."""


def program(
    parts: tuple[Recipe, Steps, Steps],
    way: Way = "state_dict",
    storage: StorageKind = "tensor",
    place: Place = "here",
) -> Program:
    """Return a program that saves once, between its steps."""
    recipe, before, after = parts
    return Program(recipe, (before, after), (Save(way, storage, used=False, place=place),))
