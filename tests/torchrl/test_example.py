"""`example` returns exactly what a collector writes, and leaves the environment as it was.

A storage with an example refuses records with a leaf more, less or different. So a collector that
fills such a storage has confirmed its example.
"""

import importlib
import sys
from typing import Any

import pytest
import torch
from forebay import RecordMismatch
from forebay.torchrl import example
from tensordict import TensorDict, TensorDictBase
from torchrl.collectors import Collector

from .support import ENVS, MakeEnv, actor, buffer_of, leaves, one_env, two_envs

ARGUMENTS = [
    pytest.param({}, id="plain"),
    pytest.param({"compact_obs": True}, id="compact"),
    pytest.param({"track_traj_ids": False}, id="no-ids"),
    pytest.param({"set_truncated": True}, id="truncated"),
    pytest.param({"extend_buffer": False}, id="step-by-step"),
    pytest.param({"auto_register_policy_transforms": True}, id="transforms"),
]


def doubled(batch: TensorDictBase) -> TensorDictBase:
    """A postproc that adds a leaf."""
    return batch.set("double", 2 * batch["observation"])


def nothing(batch: TensorDictBase) -> TensorDictBase:
    """A postproc that leaves no row."""
    return batch.contiguous()[:0]


@pytest.mark.parametrize("with_policy", [False, True], ids=["random", "policy"])
@pytest.mark.parametrize("arguments", ARGUMENTS)
@pytest.mark.parametrize("make_env", ENVS)
def test_a_collector_fills_a_storage_that_has_the_example(
    make_env: MakeEnv, arguments: dict[str, Any], with_policy: bool
) -> None:
    env = make_env()
    policy = actor(env) if with_policy else None
    arguments = {"auto_register_policy_transforms": False, **arguments}
    record = example(env, policy, **arguments)
    buffer = buffer_of(16, 4, record)
    collector = Collector(
        env, policy, replay_buffer=buffer, frames_per_batch=8, total_frames=16, **arguments
    )
    try:
        for _ in collector:
            assert leaves(buffer.sample(1), 1) == leaves(record)
    finally:
        collector.shutdown()
    assert buffer.write_count == (16 if record.batch_size == () else 8)


@pytest.mark.parametrize("make_env", ENVS)
def test_a_record_has_no_batch_dimension(make_env: MakeEnv) -> None:
    record = example(make_env)
    assert type(record) is TensorDict
    assert record.batch_size == ()
    assert record["observation"].shape == (4,)
    assert record["collector", "traj_ids"].shape == ()
    assert record.device is None


def test_steps_of_a_batch_of_environments_that_are_added_keep_their_dimension() -> None:
    record = example(two_envs, extend_buffer=False)
    assert record.batch_size == (2,)
    assert record["observation"].shape == (2, 4)


def test_what_the_policy_and_the_arguments_add_is_there() -> None:
    env = one_env()
    record = example(env, actor(env), postproc=doubled, auto_register_policy_transforms=True)
    assert {"logits", "action_log_prob", "double", "is_init"} <= set(record.keys())
    assert torch.equal(record["double"], 2 * record["observation"])
    assert "step_count" in example(env, max_frames_per_traj=3).keys()  # noqa: SIM118  # a TensorDict


def test_an_environment_stays_open_and_one_that_was_made_is_closed() -> None:
    env = one_env()
    example(env, max_frames_per_traj=3)
    assert not env.is_closed
    other = one_env()
    example(lambda: other)
    assert other.is_closed


def test_an_environment_that_was_made_is_closed_when_the_policy_fails() -> None:
    def fail(record: TensorDictBase) -> TensorDictBase:
        raise ZeroDivisionError

    env = one_env()
    with pytest.raises(ZeroDivisionError):
        example(lambda: env, fail)
    assert env.is_closed


def test_the_record_is_a_copy() -> None:
    env = one_env()
    record = example(env)
    before = record.clone()
    example(env)
    assert bool((record == before).all())


@pytest.mark.parametrize("wrong", [3, lambda: 3], ids=["value", "function"])
def test_what_is_no_environment_is_refused(wrong: object) -> None:
    with pytest.raises(TypeError, match=r"TorchRL environment.*3"):
        example(wrong)


def test_what_is_no_policy_is_refused() -> None:
    with pytest.raises(TypeError, match="policy must be callable or None, got 3"):
        example(one_env, 3)  # type: ignore[arg-type]  # that is what is tested


@pytest.mark.parametrize(
    "name",
    [
        "replay_buffer",
        "frames_per_batch",
        "total_frames",
        "init_random_frames",
        "trajs_per_batch",
        "trajs_per_write",
        "policy_factory",
        "create_env_kwargs",
    ],
)
def test_arguments_that_say_nothing_about_records_are_refused(name: str) -> None:
    with pytest.raises(TypeError, match=f"leave out {name}: "):
        example(one_env, **{name: None})


def test_an_unknown_argument_is_refused() -> None:
    with pytest.raises(TypeError, match="no_such_argument"):
        example(one_env, no_such_argument=1)


def test_a_step_of_which_nothing_would_be_written_is_refused() -> None:
    with pytest.raises(RecordMismatch, match="postproc"):
        example(two_envs, postproc=nothing)


def test_without_torchrl_the_message_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "forebay.torchrl")
    monkeypatch.setitem(sys.modules, "torchrl.collectors", None)
    with pytest.raises(ImportError, match=r"pip install 'forebay\[torchrl\]'"):
        importlib.import_module("forebay.torchrl")
