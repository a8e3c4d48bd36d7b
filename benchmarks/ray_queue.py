"""Ray's queue, which is measured only where Ray is installed; it is no part of any other extra.

The queue is an actor, a process of its own. Both sides attach to the cluster that `ray_runs` starts
on this machine; the one that writes is told its address by the pickled channel.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any, Final

from tensordict import TensorDict

from benchmarks.children import PATIENCE
from benchmarks.peers import CAPACITY
from benchmarks.records import arrays_of

SPACE: Final = "benchmarks"
OPTIONS: Final[dict[str, Any]] = {"namespace": SPACE, "log_to_driver": False}


@contextmanager
def ray_runs() -> Iterator[None]:
    """Have Ray run on this machine meanwhile, if it is installed."""
    if find_spec("ray") is None:
        yield
        return
    import ray

    ray.init(num_cpus=2, include_dashboard=False, logging_level="ERROR", **OPTIONS)
    try:
        yield
    finally:
        ray.shutdown()


class RayQueue:
    """A queue of batches, each a dict of arrays, in a process of its own."""

    def __init__(self, batch: TensorDict, capacity: int = CAPACITY) -> None:
        import ray
        from ray.util.queue import Queue

        self._address = ray.get_runtime_context().gcs_address
        self._name = f"queue-{os.getpid()}-{len(batch)}"
        self._queue = Queue(max(1, capacity // len(batch)), {"name": self._name})

    def __getstate__(self) -> tuple[str, str]:
        return self._address, self._name

    def __setstate__(self, state: tuple[str, str]) -> None:
        import ray

        self._address, self._name = state
        ray.init(self._address, logging_level="ERROR", **OPTIONS)
        self._queue = _Attached(ray.get_actor(self._name))

    def put(self, batch: TensorDict) -> None:
        """Put a batch, waiting for room."""
        self._queue.put(arrays_of(batch), timeout=PATIENCE)

    def get(self) -> object:
        """Take a batch, waiting for one."""
        return self._queue.get(timeout=PATIENCE)

    def close(self) -> None:
        """End the queue's process."""
        self._queue.shutdown(force=True)


class _Attached:
    """The calls of Ray's queue on an actor that another process has made."""

    def __init__(self, actor: Any) -> None:
        import ray

        self._actor, self._get = actor, ray.get

    def put(self, item: object, *, timeout: float) -> None:
        self._get(self._actor.put.remote(item, timeout))
