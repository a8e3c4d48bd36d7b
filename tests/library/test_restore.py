"""What `load_state_dict` does to a buffer: all of it, or nothing."""

import copy
import pickle
import threading
from collections.abc import Callable
from typing import Any

import pytest
import torch
from forebay import BlockingReplayBuffer, CheckpointError, ListStorage, PeerLost, TensorStorage
from forebay._stages import Stage as Crossing
from tensordict import TensorDict

from tests.library.saving import (
    State,
    assert_nothing_left,
    at_point,
    crossing,
    make,
    make_tensors,
    numbers,
    plain,
)
from tests.library.support import PATIENCE, Stage, ledger_of, patience, result, snapshot

pytestmark = pytest.mark.filterwarnings("error")


@pytest.mark.parametrize("order", ["fifo", "random"])
def test_a_state_comes_back_as_it_was(order: Any) -> None:
    options: dict[str, Any] = {"order": order, "consume_after_n_samples": 2, "batch_size": 2}
    buffer = make_tensors(8, seed=1, **options)
    buffer.extend(numbers(0, 6))
    buffer.sample()
    buffer.extend(numbers(6, 1))
    buffer.sample(3)
    state = buffer.state_dict()
    other = make_tensors(8, seed=2, **options)
    other.extend(numbers(50, 3))
    other.load_state_dict(state)
    assert plain(other.state_dict()) == plain(state)
    assert dict(other.stats()) == dict(buffer.stats())
    assert_nothing_left(other)


def test_l25_later_changes_to_the_state_have_no_effect() -> None:
    buffer = make_tensors(4, batch_size=2, prefetch=1)
    buffer.extend(numbers(0, 4))
    buffer.sample()
    buffer.extend(numbers(4, 2))
    state = buffer.state_dict()
    other = make_tensors(4, batch_size=2, prefetch=1)
    other.load_state_dict(state)
    state["records"]["data"]["x"].fill_(-1)
    state["records"]["slots"].fill_(0)
    state["free"]["order"].fill_(0)
    state["prefetched"]["batches"][0]["batch"]["x"].fill_(-1)
    state["prefetched"]["batches"].clear()
    state["counters"].clear()
    assert other.sample()["x"].tolist() == [2, 3]
    assert other.sample()["x"].tolist() == [4, 5]
    assert_nothing_left(other)


def test_l25_objects_too() -> None:
    buffer = make(4)
    buffer.extend([[1], [2]])
    state = buffer.state_dict()
    other = make(4)
    other.load_state_dict(state)
    state["records"]["data"][0].append(-1)
    assert other.sample(2) == [[1], [2]]


def test_one_state_can_be_loaded_again_and_again() -> None:
    buffer = make_tensors(4, batch_size=2, prefetch=1)
    buffer.extend(numbers(0, 4))
    buffer.sample()
    state = buffer.state_dict()
    for _ in range(3):
        buffer.load_state_dict(state)
        assert buffer.sample()["x"].tolist() == [2, 3]
        assert len(buffer) == 0


def valid() -> State:
    """Return a state with all that a state can have: records, free slots, a queue."""
    buffer = make_tensors(8, batch_size=2, prefetch=2, consume_after_n_samples=2)
    buffer.extend(numbers(0, 7))
    buffer.sample()
    buffer.sample()
    return buffer.state_dict()


def put(*path: Any, value: Any) -> Callable[[State], None]:
    """Return what puts something into a state."""

    def change(state: State) -> None:
        inside: Any = state
        for key in path[:-1]:
            inside = inside[key]
        inside[path[-1]] = value

    return change


def without(*path: Any) -> Callable[[State], None]:
    """Return what takes something out of a state."""

    def change(state: State) -> None:
        inside: Any = state
        for key in path[:-1]:
            inside = inside[key]
        del inside[path[-1]]

    return change


def first(*path: Any, value: int) -> Callable[[State], None]:
    """Return what changes the first number of a tensor."""

    def change(state: State) -> None:
        inside: Any = state
        for key in path:
            inside = inside[key]
        inside[0] = value

    return change


QUEUED = ("prefetched", "batches", 0)
INVALID: dict[str, tuple[Callable[[State], None], str]] = {
    "another format": (put("format", value="other"), "format: expected 'forebay'"),
    "a newer version": (put("version", value=2), "version 2, which a newer release"),
    "an older version": (put("version", value=0), "version 1, got version 0"),
    "a version that is no number": (put("version", value="1"), "version: expected an int"),
    "another kind": (put("buffer", "kind", value="ring"), "buffer.kind: .*got 'ring'"),
    "another capacity": (put("buffer", "capacity", value=4), "buffer.capacity: expected 8.*got 4"),
    "another capacity type": (put("buffer", "capacity", value=8.0), "buffer.capacity"),
    "other uses": (
        put("buffer", "consume_after_n_samples", value=3),
        "consume_after_n_samples: expected 2.*got 3",
    ),
    "another order": (put("buffer", "order", value="random"), "order: expected 'fifo'"),
    "a strange batch size": (put("buffer", "batch_size", value=9), "buffer.batch_size"),
    "no records": (without("records"), "an entry 'records'"),
    "no slots": (without("records", "slots"), "an entry 'slots'"),
    "an unknown part": (put("more", value=1), "no other entries, got 'more'"),
    "no dict": (put("free", value=[]), "free: expected a dict, got list"),
    "slots of another dtype": (
        put("records", "slots", value=torch.zeros(5)),
        "records.slots: expected an int64 tensor",
    ),
    "slots as a list": (put("records", "slots", value=[0, 1]), "records.slots: .*got list"),
    "a slot too large": (
        first("records", "slots", value=8),
        "records.slots: expected 0 to 7, got 8",
    ),
    "a slot below 0": (
        first("records", "slots", value=-1),
        "records.slots: expected 0 to 7, got -1",
    ),
    "a slot twice": (first("records", "slots", value=1), "each of the 8 slots once"),
    "a free slot that has a record": (first("free", "order", value=1), "each of the 8 slots once"),
    "too few free slots": (
        put("free", "order", value=torch.zeros(0, dtype=torch.int64)),
        "free.order: expected",
    ),
    "too many fresh slots": (put("free", "fresh", value=9), "free.fresh"),
    "fresh slots elsewhere": (put("free", "fresh", value=2), "free.fresh"),
    "too many uses": (first("records", "uses", value=3), "records.uses: expected 0 to 2, got 3"),
    "too few uses": (first("records", "uses", value=0), "a use for each batch drawn ahead"),
    "spent and held by nobody": (
        put("prefetched", "batches", value=[]),
        "fewer than 2 for records nobody holds",
    ),
    "an age twice": (
        put("records", "stamps", value=torch.ones(7, dtype=torch.int64)),
        "one age for each record",
    ),
    "no age": (first("records", "stamps", value=0), "ages from 1 on"),
    "too few ages": (
        put("records", "stamps", value=torch.ones(1, dtype=torch.int64)),
        "records.stamps: expected",
    ),
    "a place where none is": (
        put("sampler", "dense", value=torch.zeros(0, dtype=torch.int64)),
        "sampler: expected no other entries",
    ),
    "a newer queue": (put("prefetched", "version", value=2), "prefetched.version"),
    "a queue that is too deep": (put("prefetched", "depth", value=1), "at most 1, the depth"),
    "a batch of another size": (
        put(*QUEUED, "slots", value=torch.zeros(1, dtype=torch.int64)),
        "2 records, the batch_size",
    ),
    "a batch with a slot twice": (
        put(*QUEUED, "slots", value=torch.full((2,), 4)),
        "different slots",
    ),
    "a batch of no record": (first(*QUEUED, "slots", value=7), "slots with a record"),
    "a batch without ages": (first(*QUEUED, "stamps", value=0), "ages under fifo"),
    "a batch without a payload": (without(*QUEUED, "batch"), "an entry 'batch'"),
    "a counter below 0": (put("counters", "admitted", value=-1), "counters.admitted"),
    "a counter out of range": (put("counters", "admitted", value=2**63), "counters.admitted"),
    "a counter that is no int": (put("counters", "spent", value=True), "counters.spent"),
    "an unknown counter": (put("counters", "lost", value=1), "no other entries, got 'lost'"),
    "a key of one word": (put("generator", "key", value=[1]), "generator.key: expected two words"),
    "a key out of range": (put("generator", "key", value=[1, 2**64]), "generator.key"),
    "draws below 0": (put("generator", "draws", value=-1), "generator.draws"),
    "transforms that are not there": (put("transforms", value=[{}]), "states of its transforms"),
    "no data": (put("records", "data", value=None), "records.data: expected"),
    "data of a list": (put("records", "data", value=[1, 2]), "go into a ListStorage"),
    "too few records": (put("records", "data", value=numbers(0, 1)), "got a batch of \\[1\\]"),
    "another dtype": (
        put("records", "data", "x", value=torch.zeros(7)),
        "'x': expected int64\\[\\], got float32\\[\\]\n",
    ),
    "another shape": (
        put("records", "data", "y", value=torch.zeros(7, 2)),
        "'y': expected float32\\[3\\], got float32\\[2\\]",
    ),
    "a leaf too many": (
        put("records", "data", "z", value=torch.zeros(7)),
        "'z': expected no such leaf",
    ),
}


@pytest.mark.parametrize("name", INVALID)
def test_l38_what_is_invalid_is_named_and_changes_nothing(name: str) -> None:
    change, words = INVALID[name]
    state = valid()
    change(state)
    target = make_tensors(8, batch_size=2, prefetch=2, consume_after_n_samples=2)
    target.extend(numbers(30, 5))
    target.sample()
    target.state_dict()  # which waits until nothing gathers
    before, counts = snapshot(target), dict(target.stats())
    with pytest.raises(CheckpointError, match=words) as raised:
        target.load_state_dict(state)
    assert "nothing changed" in str(raised.value)
    assert snapshot(target) == before
    assert dict(target.stats()) == counts
    assert target.sample()["x"].tolist() == [32, 33]
    assert_nothing_left(target)


def test_the_valid_state_is_valid() -> None:
    target = make_tensors(8, batch_size=2, prefetch=2, consume_after_n_samples=2)
    state = valid()
    assert len(state["prefetched"]["batches"]) == 2
    assert len(state["records"]["slots"]) == 7
    target.load_state_dict(state)
    assert plain(target.state_dict()) == plain(state)


@pytest.mark.parametrize("state", [None, 3, [], "forebay", {}])
def test_what_is_no_state_is_refused(state: Any) -> None:
    with pytest.raises(CheckpointError, match="read_records"):
        make(4).load_state_dict(state)


def test_l15_a_state_of_another_capacity_is_refused() -> None:
    small = make_tensors(4)
    small.extend(numbers(0, 4))
    large = make_tensors(1000)
    with pytest.raises(CheckpointError, match=r"expected 1000.*got 4.*read_records.*extend"):
        large.load_state_dict(small.state_dict())
    assert len(large) == 0
    large.extend({"other": torch.zeros(3)})
    assert len(large) == 3


def test_a_random_state_with_wrong_places_is_refused() -> None:
    buffer = make(4, order="random")
    buffer.extend([1, 2, 3])
    for dense in ([0, 1], [0, 1, 1], [0, 1, 3]):
        state = buffer.state_dict()
        state["sampler"]["dense"] = torch.tensor(dense)
        with pytest.raises(CheckpointError, match=r"sampler\.dense: expected the 3 records"):
            buffer.load_state_dict(state)
    state = buffer.state_dict()
    state["records"]["stamps"] += 1
    with pytest.raises(CheckpointError, match="no ages"):
        buffer.load_state_dict(state)


def test_a_deeper_queue_is_refused_and_a_shallower_one_is_not() -> None:
    state = valid()
    shallow = make_tensors(8, batch_size=2, prefetch=1, consume_after_n_samples=2)
    with pytest.raises(CheckpointError, match="at most 1, the prefetch= of this buffer"):
        shallow.load_state_dict(state)
    deep = make_tensors(8, batch_size=2, prefetch=4, consume_after_n_samples=2)
    deep.load_state_dict(state)
    assert deep.sample()["x"].tolist() == [4, 5]


def test_a_batch_size_matters_only_to_batches() -> None:
    buffer = make_tensors(8, batch_size=2)
    buffer.extend(numbers(0, 4))
    other = make_tensors(8, batch_size=3)
    other.load_state_dict(buffer.state_dict())
    assert other.sample()["x"].tolist() == [0, 1, 2]


def test_b9_a_state_without_a_queue_clears_that_of_the_target_and_loses_nothing() -> None:
    source = make_tensors(8, batch_size=2, prefetch=2)
    source.extend(numbers(0, 8))
    source.sample()
    state = source.state_dict()
    del state["prefetched"]
    target = make_tensors(8, batch_size=2, prefetch=2)
    target.extend(numbers(50, 6))
    target.sample()
    assert target.stats().prefetched == 2
    target.load_state_dict(state)
    assert target.stats().prefetched == 0
    assert [target.sample()["x"].tolist() for _ in range(3)] == [[2, 3], [4, 5], [6, 7]]
    assert_nothing_left(target)


def test_l27_large_counters_come_back_and_missing_ones_are_0() -> None:
    buffer = make(4)
    state = buffer.state_dict()
    state["counters"]["admitted"] = 2**40
    del state["counters"]["timeouts"]
    buffer.load_state_dict(state)
    assert buffer.stats().admitted == 2**40
    assert buffer.stats().timeouts == 0
    buffer.extend([1])
    assert buffer.write_count == 2**40 + 1


def test_a_lease_of_before_is_void_and_says_so() -> None:
    buffer = make(4)
    buffer.extend([1, 2])
    state = buffer.state_dict()
    lease = buffer.lease(1)
    buffer.load_state_dict(state)
    other = buffer.lease(1)
    assert other.batch == [1]
    with pytest.raises(RuntimeError, match="void by a restore"):
        lease.commit()
    with pytest.raises(RuntimeError, match="void by a restore"):
        lease.release()
    assert buffer.stats().pinned == 1
    other.commit()
    assert buffer.sample(1) == [2]
    assert_nothing_left(buffer)


def test_who_waits_waits_on_and_is_served_by_what_was_restored() -> None:
    stage = Stage()
    buffer = make(2, stage)
    state = make_state([1, 2])
    with patience() as start:
        reading = start(lambda: buffer.sample(2))
        stage.await_sleepers(1)
        buffer.load_state_dict(state)
        assert result(reading) == [1, 2]
        buffer.extend([3, 4])
        writing = start(lambda: buffer.extend([5]))
        stage.await_sleepers(1)
        empty = make(2).state_dict()
        buffer.load_state_dict(empty)
        assert result(writing).tolist() == [0]
    assert_nothing_left(buffer)


def make_state(records: list[object], capacity: int = 2) -> State:
    """Return the state of a buffer with these records."""
    buffer = make(capacity)
    buffer.extend(records)
    return buffer.state_dict()


def test_a_restore_waits_for_a_write_on_its_way_and_nobody_new_begins() -> None:
    stage = Stage()
    buffer = make(2, stage)
    state = make_state([7])
    filling, go_on = threading.Event(), threading.Event()

    def hold() -> None:
        filling.set()
        assert go_on.wait(PATIENCE)

    with patience() as start, at_point(stage, "admitted", hold):
        writing = start(lambda: buffer.extend([1]))
        assert filling.wait(PATIENCE)
        loading = start(lambda: buffer.load_state_dict(state))
        stage.await_sleepers(1)
        assert crossing(buffer) is Crossing.RESTORING
        late = start(lambda: buffer.extend([2]))
        stage.await_sleepers(2)
        go_on.set()
        result(loading)
        assert result(writing).tolist() == [0]
        result(late)
    assert buffer.sample(2) == [7, 2]
    assert_nothing_left(buffer)


def test_a_restore_that_waits_too_long_is_rejected_and_says_who_holds_it_up() -> None:
    stage = Stage()
    buffer = make(2, stage)
    state = make_state([7])

    def load() -> None:
        with pytest.raises(CheckpointError, match=r"within 0\.0 s.*\n(.|\n)*fills 1 slots"):
            result(start(lambda: buffer.load_state_dict(state, timeout=0)))

    with patience() as start, at_point(stage, "admitted", load):
        buffer.extend([1])
    assert buffer.sample(1) == [1]
    assert_nothing_left(buffer)


@pytest.mark.parametrize("timeout", [-1, float("nan")])
def test_a_timeout_that_is_none_is_refused(timeout: float) -> None:
    with pytest.raises(ValueError, match="timeout"):
        make(2).load_state_dict(make_state([1]), timeout=timeout)


def test_an_interrupt_before_the_restore_leaves_all_and_one_in_it_finishes_first() -> None:
    stage = Stage()
    buffer = make(2, stage)
    buffer.extend([1])
    state = make_state([7, 8])

    def interrupt() -> None:
        raise KeyboardInterrupt

    with at_point(stage, "restoring", interrupt), pytest.raises(KeyboardInterrupt):
        buffer.load_state_dict(state)
    assert_nothing_left(buffer)
    assert buffer.sample(1) == [1]
    with at_point(stage, "loading", interrupt), pytest.raises(KeyboardInterrupt):
        buffer.load_state_dict(state)
    assert_nothing_left(buffer)
    assert buffer.sample(2) == [7, 8]


def test_a_restore_that_cannot_be_finished_stops_the_buffer() -> None:
    buffer = make(2)
    buffer.extend([1])
    state = make_state([7, 8])
    storage = buffer.storage
    assert isinstance(storage, ListStorage)
    accept = storage.accept

    def failing(data: object, slots: Any) -> Any:
        arrival = accept(data, slots)

        def settle() -> None:
            raise MemoryError("no more")

        arrival.settle = settle  # type: ignore[method-assign]  # that is the fault
        return arrival

    storage.accept = failing  # type: ignore[method-assign]  # see above
    with pytest.raises(MemoryError, match="no more"):
        buffer.load_state_dict(state)
    assert crossing(buffer) is Crossing.NONE
    with pytest.raises(PeerLost, match="no more"):
        buffer.sample(1)
    assert len(buffer) == 0


def test_a_restore_inside_a_transform_is_refused() -> None:
    def load(batch: TensorDict) -> object:
        buffer.load_state_dict(state)
        return batch

    buffer = make(2, transform=load)
    buffer.extend([1])
    state = make_state([7])
    with pytest.raises(RuntimeError, match="by one of its transforms"):
        buffer.sample(1)
    assert len(buffer) == 1


class Counting:
    """A transform with a state."""

    def __init__(self) -> None:
        self.seen = 0
        self.memory = torch.zeros(2)

    def __call__(self, batch: TensorDict) -> object:
        self.seen += 1
        self.memory += 1
        return batch

    def state_dict(self) -> State:
        return {"seen": self.seen, "memory": self.memory}

    def load_state_dict(self, state: State) -> None:
        self.seen = state["seen"]
        if self.seen == 13:
            raise ValueError("thirteen")
        self.memory = state["memory"]


class TestTransforms:
    def test_their_states_are_part_of_it(self) -> None:
        counting = Counting()
        buffer = make(4, transform=counting)
        buffer.append_transform(lambda batch: batch)
        buffer.extend([1, 2])
        buffer.sample(1)
        state = buffer.state_dict()
        buffer.sample(1)
        assert plain(state["transforms"]) == [
            {"seen": 1, "memory": ["torch.float32", [1, 1]]},
            None,
        ]
        again = Counting()
        other = make(4, transform=again)
        other.append_transform(lambda batch: batch)
        other.load_state_dict(state)
        assert again.seen == 1
        state["transforms"][0]["memory"].fill_(9)
        assert again.memory.tolist() == [1, 1]

    @pytest.mark.parametrize("states", [[], [None], [{"seen": 13}], [{"other": 1}], [{}, {}]])
    def test_one_that_does_not_take_its_state_has_the_old_one(self, states: list[object]) -> None:
        counting = Counting()
        buffer = make(4, transform=counting)
        buffer.extend([1, 2, 3])
        buffer.sample(1)
        state = buffer.state_dict()
        state["transforms"] = states
        with pytest.raises(CheckpointError, match="nothing changed: the states of its transforms"):
            buffer.load_state_dict(state)
        assert counting.seen == 1
        assert counting.memory.tolist() == [1, 1]
        assert buffer.sample(1) == [2]
        assert_nothing_left(buffer)

    def test_modules(self) -> None:
        module = torch.nn.Linear(2, 2)
        buffer = make(4, transform=module)
        state = buffer.state_dict()
        before = copy.deepcopy(module.state_dict())
        with torch.no_grad():
            module.weight += 1
        buffer.load_state_dict(state)
        assert torch.equal(module.weight, before["weight"])
        state["transforms"][0]["weight"] = torch.zeros(3, 3)
        with pytest.raises(CheckpointError, match="weight"):
            buffer.load_state_dict(state)
        assert torch.equal(module.weight, before["weight"])


def test_a_storage_without_a_schema_takes_that_of_the_state() -> None:
    buffer = make_tensors(4)
    buffer.extend(numbers(0, 2))
    buffer.sample(2)
    other = make_tensors(4)
    other.load_state_dict(buffer.state_dict())
    with pytest.raises(ValueError, match="'x'"):
        other.extend({"z": torch.zeros(1)})
    other.extend(numbers(5, 1))
    assert other.sample(1)["x"].tolist() == [5]


def test_records_of_one_kind_of_storage_do_not_go_into_the_other() -> None:
    lists, tensors = make(4), make_tensors(4)
    lists.extend([1])
    tensors.extend(numbers(0, 1))
    with pytest.raises(CheckpointError, match="go into a ListStorage"):
        tensors.load_state_dict(lists.state_dict())
    with pytest.raises(CheckpointError, match="go into a storage of tensors"):
        lists.load_state_dict(tensors.state_dict())


def test_other_storages_say_that_they_cannot_be_saved() -> None:
    from tests.library.support import make as make_of_slots

    buffer = make_of_slots(4)
    with pytest.raises(TypeError, match="records of a Slots can be neither saved nor restored"):
        buffer.state_dict()
    with pytest.raises(TypeError, match="records of a Slots can be neither saved nor restored"):
        buffer.load_state_dict(make_state([1], 4))
    assert_nothing_left(buffer)


def test_a_first_write_between_the_check_and_the_restore_is_noticed() -> None:
    stage = Stage()
    buffer = BlockingReplayBuffer(TensorStorage(4), monitor=stage)
    source = make_tensors(4)
    source.extend(numbers(0, 2))
    storage = buffer.storage
    assert isinstance(storage, TensorStorage)
    accept = storage.accept

    def then_write(data: object, slots: Any) -> Any:
        arrival = accept(data, slots)
        buffer.extend({"z": torch.ones(1)})
        return arrival

    storage.accept = then_write  # type: ignore[method-assign]  # so that somebody comes first
    with pytest.raises(CheckpointError, match="first records were written"):
        buffer.load_state_dict(source.state_dict())
    assert buffer.sample(1)["z"].tolist() == [1]
    assert_nothing_left(buffer)


def test_a_queue_that_does_not_fit_the_limits_is_refused() -> None:
    from forebay import Limits

    state = valid()
    target = make_tensors(
        8, batch_size=2, prefetch=2, consume_after_n_samples=2, limits=Limits(calls=1)
    )
    with pytest.raises(CheckpointError, match="limits"):
        target.load_state_dict(state)


def test_states_can_be_pickled() -> None:
    state = valid()
    assert plain(pickle.loads(pickle.dumps(state))) == plain(state)


def test_numbers_of_batches_are_not_used_again() -> None:
    buffer = make_tensors(8, batch_size=2, prefetch=2)
    buffer.extend(numbers(0, 8))
    buffer.sample()
    before = {hold.number for hold in ledger_of(buffer).holds()}
    buffer.load_state_dict(buffer.state_dict())
    after = {hold.number for hold in ledger_of(buffer).holds()}
    assert len(after) == 2
    assert not before & after
