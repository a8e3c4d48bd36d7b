"""Whether a state can be loaded: everything that can be wrong with it, before anything changes.

A state may come from anywhere. So every part is looked at: that it is there, of its type and in its
range, that it goes with the buffer it is to be loaded into, and that all parts tell one story: each
slot is either free or has one record, nothing is used more often than it may be, and what was
drawn ahead is held by nobody else. What differs is named, with what was expected and what came.
"""

from collections.abc import Mapping
from typing import Final, NamedTuple, NoReturn

import numpy as np
import torch

from forebay._errors import CheckpointError
from forebay._snapshot import COUNTERS, Snapshot
from forebay._state import FORMAT, KINDS, PREFETCHED_VERSION, VERSION, Saved, Settings
from forebay._stores import Flags, Ints

MOST: Final = 2**62
"""No counter comes near it in the life of a buffer; from there on it would leave its 64 bits."""

_PARTS: Final = {
    "format",
    "version",
    "buffer",
    "counters",
    "generator",
    "records",
    "free",
    "sampler",
    "transforms",
}


class Checked(NamedTuple):
    """A state that goes with a buffer."""

    snapshot: Snapshot
    data: object
    payloads: list[Saved]
    transforms: list[object]


def checked(state: object, target: Settings) -> Checked:
    """Return what a state says; its records and transforms are still to be looked at.

    Raises:
        CheckpointError: it is no state, or not one for a buffer like this.
    """
    _header(state)
    state = _dict(state, "the state", _PARTS, {"prefetched"})
    _settings(state["buffer"], target)
    capacity = target.capacity
    records = _dict(state["records"], "records", {"slots", "uses", "stamps", "data"})
    slots = _numbers(records["slots"], "records.slots", capacity)
    limit = target.uses
    uses = _numbers(records["uses"], "records.uses", limit + 1, len(slots))
    stamps = _numbers(records["stamps"], "records.stamps", MOST, len(slots))
    free, fresh = _free(state["free"], slots, capacity)
    _ages(stamps, target)
    queue, payloads = _queue(state.get("prefetched"), target)
    if target.kind == "blocking":
        uses, dense = _used(state, target, slots, uses, stamps, queue)
        drawn = dense[:0]
    else:
        dense, drawn = _left(state, target, slots, stamps, queue)
    key, draws = _generator(state["generator"])
    snapshot = Snapshot(
        slots=slots,
        uses=uses,
        stamps=stamps,
        free=free,
        fresh=fresh,
        dense=dense,
        drawn=drawn,
        queue=tuple(queue),
        numbers=(),
        counters=_counters(state["counters"]),
        key=key,
        draws=draws,
    )
    data = records["data"]
    _demand(data is not None or not len(slots), "records.data", f"{len(slots)} records")
    return Checked(snapshot, data, payloads, _list(state["transforms"], "transforms"))


def refuse(where: str, expected: str, came: object) -> NoReturn:
    """Raise the error of a state that differs from what was expected.

    Raises:
        CheckpointError: always.
    """
    raise CheckpointError(
        f"the checkpoint cannot be loaded, nothing changed: {where}: expected {expected}, got "
        f"{came}. Its records alone can be put into any buffer: forebay.read_records(path) reads "
        f"them from a file, then extend"
    )


def _header(state: object) -> None:
    """Look at what says whether the rest can be understood at all."""
    if not isinstance(state, Mapping):
        refuse("the state", "a dict as state_dict returns it", type(state).__name__)
    _text(state.get("format"), "format", FORMAT, repr(FORMAT))
    version = _number(state.get("version"), "version", MOST)
    if version != VERSION:
        newer = ", which a newer release of forebay has written" if version > VERSION else ""
        refuse("version", f"version {VERSION}", f"version {version}{newer}")


def _settings(value: object, target: Settings) -> None:
    """Hold how the buffer of the state was made against the target."""
    kind = value.get("kind") if isinstance(value, Mapping) else None
    if type(kind) is str and kind in KINDS and kind != target.kind:
        refuse(
            "buffer.kind",
            f"the state of a {KINDS[target.kind]}, as this buffer is",
            f"that of a {KINDS[kind]}",
        )
    sampled = target.sampled()
    made = _dict(value, "buffer", {"kind", "capacity", "batch_size", "prefetch", *sampled})
    _text(made["kind"], "buffer.kind", target.kind, f"a {target.kind} buffer")
    for name, wanted in {"capacity": target.capacity, **sampled}.items():
        if type(made[name]) is not type(wanted) or made[name] != wanted:
            refuse(f"buffer.{name}", f"{wanted!r}, as this buffer has it", f"{made[name]!r}")
    if made["batch_size"] is not None:
        _number(made["batch_size"], "buffer.batch_size", target.capacity + 1)
    _number(made["prefetch"], "buffer.prefetch", MOST)


def _ages(stamps: Ints, target: Settings) -> None:
    """Demand one age for each record, or none where there are no ages."""
    if target.aged:
        _demand(_differ(stamps), "records.stamps", "one age for each record")
        _demand(not len(stamps) or stamps.min() > 0, "records.stamps", "ages from 1 on")
    else:
        _demand(not stamps.any(), "records.stamps", "no ages, since records are drawn at random")


def _free(value: object, slots: Ints, capacity: int) -> tuple[Ints, int]:
    """Return the free order, which has every slot that no record is in."""
    parts = _dict(value, "free", {"order", "fresh"})
    free = _numbers(parts["order"], "free.order", capacity, capacity - len(slots))
    fresh = _number(parts["fresh"], "free.fresh", len(free) + 1)
    every = np.sort(np.concatenate([slots, free]))
    _demand(
        bool((every == np.arange(capacity)).all()),
        "records.slots and free.order",
        f"each of the {capacity} slots once",
    )
    _demand(
        bool((free[len(free) - fresh :] == np.arange(capacity - fresh, capacity)).all()),
        "free.fresh",
        f"the last {fresh} slots of the buffer, in rising order, at the end of free.order",
    )
    return free, fresh


def _queue(value: object, target: Settings) -> tuple[list[tuple[Ints, Ints]], list[Saved]]:
    """Return the batches that were drawn ahead, each of slots and of the target's size."""
    if value is None:
        return [], []
    parts = _dict(value, "prefetched", {"version", "depth", "batches"})
    version = _number(parts["version"], "prefetched.version", MOST)
    if version != PREFETCHED_VERSION:
        refuse("prefetched.version", f"version {PREFETCHED_VERSION}", f"version {version}")
    depth = _number(parts["depth"], "prefetched.depth", MOST)
    batches = _list(parts["batches"], "prefetched.batches")
    if len(batches) > depth:
        refuse("prefetched.batches", f"at most {depth}, the depth", f"{len(batches)} batches")
    if len(batches) > target.prefetch:
        refuse(
            "prefetched.batches",
            f"at most {target.prefetch}, the prefetch= of this buffer",
            f"{len(batches)} batches",
        )
    queue, payloads = [], []
    for number, batch in enumerate(batches):
        where = f"prefetched.batches[{number}]"
        entry = _dict(batch, where, {"slots", "stamps", "batch"}, {"elsewhere"})
        held = _numbers(entry["slots"], f"{where}.slots", target.capacity)
        size = target.batch_size
        if len(held) != size and not (target.short and size and 0 < len(held) < size):
            most = "1 to " if target.short else ""
            refuse(
                f"{where}.slots", f"{most}{size} records, the batch_size of this buffer", len(held)
            )
        remembered = _numbers(entry["stamps"], f"{where}.stamps", MOST, len(held))
        if target.order != "replacement":
            _demand(_differ(held), f"{where}.slots", "different slots")
        queue.append((held, remembered))
        elsewhere = _rising(entry.get("elsewhere", []), f"{where}.elsewhere")
        payloads.append(Saved(entry["batch"], elsewhere))
    return queue, payloads


def _one_record_an_age(known: list[tuple[Ints, Ints]]) -> None:
    """Demand that no age is remembered of two slots: both may have it again one day."""
    slots, ages = np.concatenate([np.stack(pair) for pair in known], axis=1)
    by_age = np.argsort(ages)
    slots, ages = slots[by_age], ages[by_age]
    twice = (ages[1:] == ages[:-1]) & (slots[1:] != slots[:-1])
    where = "prefetched.batches and records.stamps"
    _demand(not twice.any(), where, "ages that are of one record each")


def _used(
    state: Mapping[str, object],
    target: Settings,
    slots: Ints,
    uses: Ints,
    stamps: Ints,
    queue: list[tuple[Ints, Ints]],
) -> tuple[Ints, Ints]:
    """Return the uses of the records of a blocking buffer, and the places of its random sampler."""
    live = _flags(slots, target.capacity)
    for number, (held, remembered) in enumerate(queue):
        where = f"prefetched.batches[{number}]"
        _demand(bool(live[held].all()), f"{where}.slots", "slots with a record")
        aged = (remembered > 0) == target.fifo
        _demand(bool(aged.all()), f"{where}.stamps", "ages under fifo, and none under random")
    if target.fifo:
        _one_record_an_age([(slots, stamps), *queue])
    limit = target.uses
    pins = np.bincount(
        np.concatenate([slots[:0], *(held for held, _ in queue)]), minlength=target.capacity
    )
    _demand(bool((uses >= pins[slots]).all()), "records.uses", "a use for each batch drawn ahead")
    spent = (uses == limit) & (pins[slots] == 0)
    if "prefetched" in state:
        _demand(not spent.any(), "records.uses", f"fewer than {limit} for records nobody holds")
    # Else a batch that is not in the state had drawn them, and gives that use back.
    uses = uses - spent
    dense = _dense(state["sampler"], target)
    if not target.fifo:
        dense = np.concatenate([dense, slots[spent]])
        _demand_all(dense, slots[uses < limit])
    return uses, dense


def _left(
    state: Mapping[str, object],
    target: Settings,
    slots: Ints,
    stamps: Ints,
    queue: list[tuple[Ints, Ints]],
) -> tuple[Ints, Ints]:
    """Return the places of the sampler of an overwriting buffer: what is left, and what is drawn.

    A batch that was drawn ahead remembers records that are there, at the age that they have. None
    of them is left, and no other batch has drawn it.
    """
    dense = _dense(state["sampler"], target)
    if target.order == "replacement":
        for number, (_, remembered) in enumerate(queue):
            where = f"prefetched.batches[{number}].stamps"
            _demand(not remembered.any(), where, "no ages, since no record is drawn only once")
        _demand_all(dense, slots)
        return dense, dense[:0]
    age = np.zeros(target.capacity, np.int64)
    age[slots] = stamps
    for number, (held, remembered) in enumerate(queue):
        known = remembered > 0
        where = f"prefetched.batches[{number}].stamps"
        wanted = "the ages of its records, or 0 for those that are gone"
        _demand(bool((remembered[known] == age[held[known]]).all()), where, wanted)
    known_of = [held[remembered > 0] for held, remembered in queue]
    once = np.concatenate([dense, *known_of])
    where = "sampler.dense and prefetched.batches"
    _demand(_differ(once), where, "each record of the epoch once")
    live = _flags(slots, target.capacity)
    _demand(bool(live[dense].all()), "sampler.dense", "slots with a record")
    drawn = _numbers(_sampler(state["sampler"], target)["drawn"], "sampler.drawn", target.capacity)
    every = np.concatenate([dense, drawn])
    wanted = f"the {len(slots) - len(dense)} records that are not left, once each"
    _demand(np.array_equal(np.sort(every), np.sort(slots)), "sampler.drawn", wanted)
    return dense, drawn


def _dense(value: object, target: Settings) -> Ints:
    """Return the places of the random sampler, if there is one."""
    parts = _sampler(value, target)
    if target.fifo:
        return np.empty(0, np.int64)
    return _numbers(parts["dense"], "sampler.dense", target.capacity)


def _sampler(value: object, target: Settings) -> Mapping[str, object]:
    names = {"fifo": set[str](), "epochs": {"dense", "drawn"}}.get(target.order, {"dense"})
    return _dict(value, "sampler", names)


def _demand_all(dense: Ints, sampleable: Ints) -> None:
    _demand(
        np.array_equal(np.sort(dense), np.sort(sampleable)),
        "sampler.dense",
        f"the {len(sampleable)} records that can be sampled, once each",
    )


def _differ(values: Ints) -> bool:
    """Tell whether no number is there twice."""
    # A stable sort, since what comes in order takes one look then.
    return bool((np.diff(np.sort(values, kind="stable")) > 0).all())


def _flags(slots: Ints, capacity: int) -> Flags:
    """Return a flag for each slot: whether it is one of these."""
    flags = np.zeros(capacity, np.bool_)
    flags[slots] = True
    return flags


def _generator(value: object) -> tuple[tuple[int, int], int]:
    parts = _dict(value, "generator", {"key", "draws"})
    words = _list(parts["key"], "generator.key")
    _demand(len(words) == 2, "generator.key", "two words")
    low, high = (_number(word, "generator.key", 2**64) for word in words)
    return (low, high), _number(parts["draws"], "generator.draws", MOST)


def _counters(value: object) -> dict[str, int]:
    """Return all counters; one that the state does not have counts from 0."""
    parts = _dict(value, "counters", set(), set(COUNTERS))
    return {name: _number(parts.get(name, 0), f"counters.{name}", MOST) for name in COUNTERS}


def _dict(
    value: object, where: str, needed: set[str], others: set[str] | None = None
) -> Mapping[str, object]:
    """Return a dict that has all that is needed and nothing that is unknown."""
    if not isinstance(value, Mapping):
        refuse(where, "a dict", type(value).__name__)
    lacking, unknown = needed - value.keys(), value.keys() - needed - (others or set())
    if lacking:
        refuse(where, f"an entry {sorted(lacking)[0]!r}", "none")
    if unknown:
        refuse(where, "no other entries", f"{sorted(map(repr, unknown))[0]}")
    return value


def _list(value: object, where: str) -> list[object]:
    if not isinstance(value, list):
        refuse(where, "a list", type(value).__name__)
    return value


def _text(value: object, where: str, wanted: str, expected: str) -> None:
    """Demand one text; what is compared with others may be no bool, as of an array."""
    if type(value) is not str or value != wanted:
        refuse(where, expected, f"{value!r:.40}")


def _number(value: object, where: str, end: int) -> int:
    """Return an int from 0 up to, and without, an end."""
    if type(value) is not int:
        refuse(where, "an int", f"{type(value).__name__} {value!r:.40}")
    if not 0 <= value < end:
        refuse(where, f"0 to {end - 1}", value)
    return value


def _rising(value: object, where: str) -> list[int]:
    """Return a copy of a list of rising ints."""
    numbers = [_number(number, where, MOST) for number in _list(value, where)]
    _demand(numbers == sorted(set(numbers)), where, "rising numbers")
    return numbers


def _numbers(value: object, where: str, end: int, length: int | None = None) -> Ints:
    """Return a copy of a tensor of such ints, as many as there should be; else all different.

    Nothing is copied before its length is known: a few bytes can say that they are a tensor of any.
    """
    if type(value) is not torch.Tensor or value.is_nested or value.layout is not torch.strided:
        refuse(where, "an int64 tensor of one dimension", type(value).__name__)
    if value.dtype is not torch.int64 or value.ndim != 1 or value.is_meta:
        came = f"{value.dtype} of shape {list(value.shape)} on {value.device}"
        refuse(where, "an int64 tensor of one dimension", came)
    if length is not None and len(value) != length:
        refuse(where, f"{length} numbers", len(value))
    if length is None and len(value) > end:
        refuse(where, f"at most {end} numbers", len(value))
    numbers: Ints = value.detach().cpu().resolve_neg().numpy().copy()
    wrong = numbers[(numbers < 0) | (numbers >= end)]
    if len(wrong):
        refuse(where, f"0 to {end - 1}", int(wrong[0]))
    return numbers


def _demand(holds: bool, where: str, expected: str) -> None:
    if not holds:
        refuse(where, expected, "something else")
