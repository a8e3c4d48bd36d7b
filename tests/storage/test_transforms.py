"""What batches go through, with plain callables and with TorchRL's transforms."""

import pytest
import torch
from forebay._transforms import Transforms
from tensordict import TensorDict


def number(batch: object) -> float:
    assert isinstance(batch, float)
    return batch


class Doubling:
    """A transform that doubles on the way out and halves on the way in."""

    def __call__(self, batch: object) -> object:
        return number(batch) * 2

    def inv(self, batch: object) -> object:
        return number(batch) / 2


def plus_one(batch: object) -> object:
    return number(batch) + 1


class TestDefaults:
    def test_nothing(self) -> None:
        transforms = Transforms()
        batch = object()
        assert transforms.sample(batch) is batch
        assert transforms.write(batch) is batch

    def test_writes_go_through_the_inverse(self) -> None:
        transforms = Transforms(Doubling())
        assert transforms.sample(3.0) == 6.0
        assert transforms.write(3.0) == 1.5

    def test_a_callable_without_inverse_leaves_writes_alone(self) -> None:
        transforms = Transforms(plus_one)
        assert transforms.sample(3.0) == 4.0
        assert transforms.write(3.0) == 3.0

    def test_no_write_transform(self) -> None:
        transforms = Transforms(Doubling(), None)
        assert transforms.sample(3.0) == 6.0
        assert transforms.write(3.0) == 3.0

    def test_a_write_transform_of_its_own(self) -> None:
        transforms = Transforms(Doubling(), plus_one)
        assert transforms.sample(3.0) == 6.0
        assert transforms.write(3.0) == 4.0


class TestAppending:
    def test_samples_go_forwards_and_writes_backwards(self) -> None:
        transforms = Transforms(write_transform=plus_one)
        transforms.append(Doubling())
        transforms.append(plus_one)
        assert transforms.sample(3.0) == 7.0
        assert transforms.write(3.0) == 2.5

    def test_inverted(self) -> None:
        transforms = Transforms(plus_one)
        transforms.append(Doubling(), invert=True)
        assert transforms.sample(3.0) == 2.0
        assert transforms.write(3.0) == 6.0

    def test_only_what_has_an_inverse_can_be_inverted(self) -> None:
        transforms = Transforms()
        with pytest.raises(ValueError, match="invert=True needs a transform with an inv"):
            transforms.append(plus_one, invert=True)
        assert transforms.write(3.0) == 3.0


def test_a_write_transform_may_give_nothing() -> None:
    later: list[object] = []

    def keep(batch: object) -> object:
        later.append(batch)
        return batch

    transforms = Transforms(write_transform=keep)
    transforms.append(Doubling())
    assert transforms.write(2.0) == 1.0
    nothing = Transforms(write_transform=lambda batch: None)
    assert nothing.write(2.0) is None
    assert later == [1.0]


def test_a_sample_transform_must_give_a_batch() -> None:
    with pytest.raises(TypeError, match="returned None instead of a batch"):
        Transforms(lambda batch: None).sample(3.0)


@pytest.mark.parametrize("where", ["transform", "write_transform"])
def test_a_transform_must_be_callable(where: str) -> None:
    with pytest.raises(TypeError, match=f"{where} must be callable, got 3"):
        Transforms(**{where: 3})  # type: ignore[arg-type]  # the point of the test


def test_a_module_without_inverse_stays_in_its_mode() -> None:
    module = torch.nn.Dropout()
    Transforms(module)
    assert module.training


class TestTorchRL:
    """The transforms that TorchRL's buffers take."""

    def test_samples_and_writes(self) -> None:
        transforms_module = pytest.importorskip(
            "torchrl.envs.transforms", reason="needs the extra [torchrl]"
        )
        scaling = transforms_module.ObservationNorm(
            loc=1.0, scale=2.0, in_keys=["obs"], in_keys_inv=["obs"], out_keys_inv=["obs"]
        )
        transforms = Transforms(scaling)
        assert not scaling.training
        batch = TensorDict({"obs": torch.tensor([[1.0], [2.0]])}, batch_size=[2])
        sampled = transforms.sample(batch)
        assert isinstance(sampled, TensorDict)
        assert sampled["obs"].tolist() == [[3.0], [5.0]]
        written = transforms.write(sampled)
        assert isinstance(written, TensorDict)
        assert written["obs"].tolist() == [[1.0], [2.0]]

    def test_a_single_record_goes_through_as_a_batch_of_one(self) -> None:
        transforms_module = pytest.importorskip(
            "torchrl.envs.transforms", reason="needs the extra [torchrl]"
        )
        compose = transforms_module.Compose(
            transforms_module.DoubleToFloat(in_keys_inv=["obs"], out_keys_inv=["obs"])
        )
        transforms = Transforms(compose)
        record = TensorDict({"obs": torch.tensor([1.0])})
        written = transforms.write([record])
        assert isinstance(written, list)
        assert len(written) == 1
        assert written[0].batch_size == ()
        assert written[0]["obs"].dtype == torch.float64


def test_a_batch_of_one_that_grows_stays_a_batch() -> None:
    def twice(batch: object) -> object:
        assert isinstance(batch, TensorDict)
        return torch.cat([batch, batch])

    written = Transforms(write_transform=twice).write([TensorDict({"x": torch.tensor(5)})])
    assert isinstance(written, TensorDict)
    assert written["x"].tolist() == [5, 5]
