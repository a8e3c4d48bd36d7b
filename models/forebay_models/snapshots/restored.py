"""What a snapshot gives that is restored into a new buffer and taken out, and what is due."""

from collections import Counter
from collections.abc import Iterator
from typing import Any, Final

from forebay import BlockingReplayBuffer

from forebay_models.device.prompt import ON_DEVICE, awaited
from forebay_models.snapshots.judge import left_in
from forebay_models.snapshots.records import identities
from forebay_models.snapshots.round import Snapshot
from forebay_models.snapshots.setting import Buffer, Setting

PATIENCE: Final = 60.0
"""Seconds for a batch that is certainly there."""

_DRAWS: Final = 5


def wrong_when_restored(
    setting: Setting, snapshot: Snapshot, *, on_host: bool = False
) -> list[str]:
    """Restore a snapshot into a new buffer, take records out, and tell what is wrong with them.

    With `on_host` the records of a device are restored into the memory of the host.
    """
    moves = on_host and setting.storage in ON_DEVICE
    buffer = (setting._replace(storage="tensor") if moves else setting).make(seed=1)
    if snapshot.path:
        buffer.loads(snapshot.path, timeout=0)
    else:
        buffer.load_state_dict(snapshot.state, timeout=0)
    if isinstance(buffer, BlockingReplayBuffer):
        return _once_each(buffer, setting, snapshot.state)
    wrong = list(_again_and_again(buffer, setting, snapshot.state))
    buffer.shutdown(immediate=True)
    return wrong


def _once_each(buffer: BlockingReplayBuffer, setting: Setting, state: dict[str, Any]) -> list[str]:
    """Take everything out of a buffer that uses its records up."""
    given: Counter[int] = Counter()
    for batch in buffer.available():
        found, torn = identities(awaited(buffer.storage, batch))
        if torn:
            return torn
        given.update(found.tolist())
    records, left = left_in(state, setting.uses)
    due = {
        record: times
        for record, times in zip(records.tolist(), left.tolist(), strict=True)
        if times
    }
    return [
        f"after a restore record {record} is given {given[record]} times instead of"
        f" {due.get(record, 0)}"
        for record in sorted(due.keys() | given.keys())
        if given[record] != due.get(record, 0)
    ][:3]


def _again_and_again(buffer: Buffer, setting: Setting, state: dict[str, Any]) -> Iterator[str]:
    """Take what is drawn ahead out of a buffer that overwrites, then draws or two epochs."""
    for number, batch in enumerate(state["prefetched"]["batches"]):
        saved, given = identities(batch["batch"])[0].tolist(), _sample(buffer)
        if given != saved:
            yield f"after a restore batch {number} has {given} instead of {saved}"
    parts = state["records"]
    found, _ = identities(parts["data"] if parts["data"] is not None else [])
    by_slot = dict(zip(parts["slots"].tolist(), found.tolist(), strict=True))
    left = {by_slot[slot] for slot in state["sampler"]["dense"].tolist()}
    if len(by_slot) < setting.batch_size:
        return
    if setting.order == "replacement":
        for _ in range(_DRAWS):
            if others := set(_sample(buffer)) - left:
                yield f"after a restore records {sorted(others)} are given, which are not there"
        return
    for what, due in (("the rest of an epoch", left), ("an epoch", set(by_slot.values()))):
        whole, rest = divmod(len(due), setting.batch_size)
        draws = whole + (rest > 0 and not setting.drop_last)
        drawn = [record for _ in range(draws) for record in _sample(buffer)]
        missing = rest if setting.drop_last else 0
        if not due >= set(drawn) or not len(due) - missing == len(drawn) == len(set(drawn)):
            yield f"after a restore {what} of {sorted(due)} gives {sorted(drawn)}"


def _sample(buffer: Buffer) -> list[int]:
    """Sample a batch and return its records."""
    batch = awaited(buffer.storage, buffer.sample(timeout=PATIENCE))
    found: list[int] = identities(batch)[0].tolist()
    return found
