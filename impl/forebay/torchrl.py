"""What TorchRL's collectors write, as an example for a storage.

A storage that other processes open has to know its records before the first one comes. Specs do not
tell: the policy adds keys, the collector adds `("collector", "traj_ids")`, and its arguments add
and remove some. So `example` lets a collector take one step and looks at what it hands over.

This module needs torchrl, and `import forebay` does not import it.
"""

from typing import TYPE_CHECKING

from tensordict import TensorDict, TensorDictBase

from forebay._errors import RecordMismatch

try:
    from torchrl.collectors import Collector
    from torchrl.envs import EnvBase
except ImportError as error:
    raise ImportError(
        "forebay.torchrl needs torchrl; install it with: pip install 'forebay[torchrl]'"
    ) from error

if TYPE_CHECKING:
    from collections.abc import Callable

_WITHOUT = {
    "replay_buffer": "example looks at what would be written to it",
    "frames_per_batch": "example takes one step",
    "total_frames": "example takes one step",
    "init_random_frames": "random steps lack what the policy adds",
    "trajs_per_batch": "it decides when records are written, not what is in them",
    "trajs_per_write": "it decides when records are written, not what is in them",
    "policy_factory": "make the policy and pass it",
    "create_env_kwargs": "pass a function that needs no arguments, such as a functools.partial",
}


class _Catch:
    """Stands in for a replay buffer and keeps what is written."""

    def __init__(self) -> None:
        self.batch: TensorDictBase | None = None
        self.record: TensorDictBase | None = None

    def extend(self, batch: TensorDictBase) -> None:
        """Take a batch, of which every row is a record, whatever its dimensions."""
        self.batch = batch

    def add(self, record: TensorDictBase) -> None:
        """Take a record, which may have batch dimensions of its own."""
        self.record = record

    def first(self) -> TensorDict:
        """Return a copy of the first record."""
        record = self.record
        if self.batch is not None and 0 not in self.batch.batch_size:
            record = self.batch.contiguous().flatten()[0]
        if record is None:
            raise RecordMismatch("the collector writes nothing of one step; look at its postproc")
        return record.to_tensordict().clear_device_()


def example(
    env: "EnvBase | Callable[[], EnvBase]",
    policy: "Callable[[TensorDictBase], TensorDictBase] | None" = None,
    **collector_arguments: object,
) -> TensorDict:
    """Return a record such as TorchRL's collectors write to a replay buffer.

    Resets the environment, takes one step with the policy as a `Collector` does, and returns what
    the collector writes. `MultiSyncCollector` and `MultiAsyncCollector` write the same.

    Args:
        env: an environment, which is left open, or a function that makes one, which is closed
            again. It may be a batch of environments; a record is one row of one of them.
        policy: as for the collector; None for random actions.
        collector_arguments: the other arguments that the collector will be given and that change
            what it writes, such as `compact_obs`, `track_traj_ids`, `max_frames_per_traj`,
            `postproc` or `extend_buffer`.

    Returns:
        The record, a TensorDict of its own without batch dimensions; with `extend_buffer=False`,
        where collectors write the steps of all environments of a batch as one record, with those
        of the environment.

    Raises:
        TypeError: `env` makes no environment, `policy` cannot be called, or an argument is not one
            that says what the collector writes.
        RecordMismatch: nothing of the step would be written.
    """
    for name, reason in _WITHOUT.items():
        if name in collector_arguments:
            raise TypeError(f"leave out {name}: {reason}")
    if policy is not None and not callable(policy):
        raise TypeError(f"policy must be callable or None, got {policy!r}")
    made = _made(env, collector_arguments)
    try:
        return _one_step(made, policy, collector_arguments)
    finally:
        if made is not env and not made.is_closed:
            made.close()


def _made(env: object, collector_arguments: dict[str, object]) -> "EnvBase":
    """Return the environment, made if need be."""
    if isinstance(env, EnvBase):
        return env
    if not callable(env):
        raise TypeError(
            f"env must be a TorchRL environment or a function that makes one, got {env!r}"
        )
    made = env()
    if not isinstance(made, EnvBase):
        raise TypeError(f"env must make a TorchRL environment, but it made {made!r}")
    return made


def _one_step(env: "EnvBase", policy: object, collector_arguments: dict[str, object]) -> TensorDict:
    """Return the record that a collector writes for one step of the environment."""
    catch = _Catch()
    # With a number of frames in all, the collector would close the environment after the last.
    collector = Collector(
        env,
        policy,
        replay_buffer=catch,
        frames_per_batch=env.batch_size.numel(),
        total_frames=-1,
        **collector_arguments,
    )
    try:
        next(iter(collector))
    finally:
        collector.shutdown(close_env=False)
    return catch.first()
