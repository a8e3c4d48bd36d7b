"""What the records of twin runs look like, and what batches go through.

Every record carries its number in a leaf that no transform touches, so that it can be accounted for
whatever else becomes of it. All that is named here lies at the top of the module, since buffers are
pickled with their transforms.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

import torch
from forebay._transforms import Transform
from tensordict import TensorDict, tensorclass

WEIGHT: Final = torch.tensor(1.5, requires_grad=True)
"""What the weighted batches are multiplied by; so they are no leaves, and require gradients."""

_OBJECTS: Final = "objects"


@tensorclass
class Moment:
    """A record as a tensorclass."""

    number: torch.Tensor
    x: torch.Tensor
    done: torch.Tensor


def _x(number: torch.Tensor) -> torch.Tensor:
    return number.unsqueeze(1) * torch.tensor([1.0, -0.25, 1 / 3])


def _flat(number: torch.Tensor) -> TensorDict:
    return TensorDict({"number": number, "x": _x(number)}, number.shape)


def _nested(number: torch.Tensor) -> TensorDict:
    pixels = (number.reshape(-1, 1, 1) + torch.arange(4).reshape(2, 2)).to(torch.uint8)
    deep = TensorDict({"value": number.double() / 3}, number.shape)
    seen = TensorDict({"pixels": pixels, "deep": deep}, number.shape)
    return TensorDict({"number": number, "x": _x(number), "seen": seen}, number.shape)


def _tensorclass(number: torch.Tensor) -> Any:
    leaves = {"number": number, "x": _x(number), "done": number % 3 == 0}
    make: Any = Moment  # whose arguments only tensordict knows
    return make(**leaves, batch_size=number.shape)


def _odd(number: torch.Tensor) -> TensorDict:
    """Return records with leaves that are easily forgotten or changed on the way."""
    return TensorDict(
        {
            "number": number,
            "x": _x(number).to(torch.bfloat16),
            "flag": number % 2 == 0,
            "flags": (number.unsqueeze(1) >> torch.arange(3)) % 2 == 1,
            "nothing": torch.empty(len(number), 0),
            "none": torch.empty(len(number), 2, 0, dtype=torch.int16),
            "half": number.to(torch.float16) / 7,
            "wave": torch.complex(number.float(), -number.float()),
        },
        number.shape,
    )


def _objects(number: torch.Tensor) -> list[object]:
    """Return records that no storage of tensors takes."""
    return [
        {
            "number": n,
            "x": torch.full((n % 3,), n / 3),
            "text": f"record {n}",
            "more": (None, n % 2 == 0, [n, str(n)]),
        }
        for n in number.tolist()
    ]


TENSORS: Final[Mapping[str, Callable[[torch.Tensor], Any]]] = {
    "flat": _flat,
    "nested": _nested,
    "tensorclass": _tensorclass,
    "odd": _odd,
}
"""The schemas of fixed shapes."""

SCHEMAS: Final[Mapping[str, Callable[[torch.Tensor], Any]]] = {**TENSORS, _OBJECTS: _objects}


def records(schema: str, first: int, count: int) -> Any:
    """Return so many records, numbered from `first` on."""
    return SCHEMAS[schema](torch.arange(first, first + count))


def example(schema: str) -> Any:
    """Return one record, as a shared storage is made with."""
    return records(schema, 0, 1)[0]


def numbers_of(batch: Any) -> list[int]:
    """Return the numbers of the records of a batch."""
    if isinstance(batch, list):
        return [item["number"] for item in batch]
    found: list[int] = batch.get("number").tolist()
    return found


def _changed(batch: Any, change: Callable[[torch.Tensor], torch.Tensor]) -> object:
    if isinstance(batch, list):
        return [{**item, "x": change(item["x"])} for item in batch]
    return batch.set("x", change(batch.get("x")))


def weighted(batch: Any) -> object:
    """Return a batch that gradients flow through."""
    return _changed(batch, lambda x: x * WEIGHT)


def doubled(batch: Any) -> object:
    """Return a batch that shows that it came here."""
    return _changed(batch, lambda x: x * 2)


def shifted(batch: Any) -> object:
    """Return a batch that shows whether it came here before or after it was doubled."""
    return _changed(batch, lambda x: x + 1)


def picky(batch: Any) -> object:
    """Raise for a batch of several records that begins with certain ones."""
    first, *rest = numbers_of(batch)
    if rest and first % 5 == 2:
        raise ArithmeticError(f"no batch begins with record {first}")
    return batch


class Counting:
    """Tells each batch how many there were before; that is its state."""

    def __init__(self) -> None:
        self.batches = 0

    def __call__(self, batch: Any) -> object:
        self.batches += 1
        number = self.batches
        return _changed(batch, lambda x: x + number)

    def state_dict(self) -> dict[str, int]:
        """Return the state."""
        return {"batches": self.batches}

    def load_state_dict(self, state: dict[str, int]) -> None:
        """Take a state."""
        self.batches = state["batches"]


TRANSFORMS: Final[Mapping[str, Callable[[], Transform]]] = {
    "weighted": lambda: weighted,
    "picky": lambda: picky,
    "counting": Counting,
    "doubled": lambda: doubled,
    "shifted": lambda: shifted,
}
"""What makes the transforms that a buffer may be given, by their names."""

APPENDED: Final = ("doubled", "shifted")
"""Those that are appended in the middle of a run."""
