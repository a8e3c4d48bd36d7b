"""How records are sampled: what a buffer is told, as values that can be compared.

An overwriting buffer is given one of the two samplers here. A blocking buffer has an order and a
number of uses instead.
"""

from dataclasses import dataclass
from typing import Final, Literal, NamedTuple

Order = Literal["fifo", "random"]
ORDERS: Final = ("fifo", "random")


class Sampling(NamedTuple):
    """How a blocking buffer samples; in the place of TorchRL's sampler objects."""

    order: Order
    consume_after_n_samples: int


@dataclass(frozen=True)
class RandomSampler:
    """Samples uniformly, each record of a batch whatever the others are: with replacement."""

    @property
    def order(self) -> str:
        """Its name in the models and in checkpoints."""
        return "replacement"

    @property
    def drop_last(self) -> bool:
        """Whether a short batch is left out, of which there is none here."""
        return False


@dataclass(frozen=True)
class SamplerWithoutReplacement:
    """Samples every record once in an epoch, in random order, then begins anew.

    A record that is written meanwhile is one of the epoch. A batch that is returned goes back into
    its own epoch, and into no later one.

    Args:
        drop_last: whether the last batch of an epoch is left out when it would be short.
    """

    drop_last: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.drop_last, bool):
            raise TypeError(f"drop_last must be a bool, got {self.drop_last!r}")

    @property
    def order(self) -> str:
        """Its name in the models and in checkpoints."""
        return "epochs"


Sampler = RandomSampler | SamplerWithoutReplacement


def checked_sampler(value: object) -> Sampler:
    """Return a sampler.

    Raises:
        TypeError: it is none; the message says which there are.
    """
    if isinstance(value, Sampler):
        return value
    kind = value if isinstance(value, type) else type(value)
    hint = ""
    if kind.__module__.partition(".")[0] == "torchrl":
        hint = "; one of TorchRL keeps a state of its own, which nothing here would save"
    elif isinstance(value, type):
        hint = "; make one by calling it"
    raise TypeError(
        f"sampler must be forebay.RandomSampler() or "
        f"forebay.SamplerWithoutReplacement(drop_last=...), got {value!r}{hint}"
    )
