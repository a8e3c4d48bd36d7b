"""A lease: records that are the reader's only once it says that it is done with them.

`sample` consumes what it gives; if the reader then fails, the records are lost. A lease holds them
instead: committed they are consumed, released they are as if they had not been drawn.
"""

import warnings
from types import TracebackType
from typing import Generic, TypeVar

import torch

from forebay._calls import BATCH, Call
from forebay._core import Core
from forebay._layout import NONE
from forebay._one_process import OneProcess, elsewhere
from forebay._stores import Ints

B = TypeVar("B")


class Lease(OneProcess, Generic[B]):
    """A drawn batch, to be committed or released.

    As a context manager it gives the batch, commits when the block ends and releases when the block
    raises. A lease that is dropped without either is released with a ResourceWarning.

    A lease belongs to the thread that drew it: a call of that thread which can never be served
    beside it is refused with `MutualWait`. A restore of the buffer makes it void: it cannot be
    committed any more, which its block says at its end, and there is nothing to release. After
    `empty` it can be committed or released as before, though no record comes back.

    Attributes:
        batch: the records.
        index: int64[rows], the slots that they are in.
    """

    def __init__(self, core: Core, call: Call, batch: B) -> None:
        self._core = core
        self._call = call
        self.batch = batch
        self.index = as_index(call.slots)

    @property
    def active(self) -> bool:
        """Whether the lease can still be committed or released; never in a forked child."""
        if self._call.places[BATCH] == NONE or self._elsewhere:
            return False
        return self._core.has_batch(self._call)

    @property
    def _elsewhere(self) -> bool:
        return self._core.forked or self._call.life != self._core.peers.life

    def commit(self) -> None:
        """Consume the records.

        Raises:
            RuntimeError: the lease has ended already, or a restore of the buffer has made it void.
        """
        self._core.monitor.point("committing")
        if not self._core.deliver(self._call):
            raise self._over()

    def release(self) -> None:
        """Give the records back, as if they had not been drawn.

        Raises:
            RuntimeError: the lease has ended already, or a restore of the buffer has made it void.
        """
        self._core.monitor.point("releasing")
        if not self._core.give_back(self._call):
            raise self._over()

    def _over(self) -> RuntimeError:
        """Return the error of a lease that is not active."""
        if self._core.forked:
            return elsewhere()
        if self._elsewhere:
            return RuntimeError("the lease belongs to the process that this one was forked off")
        if self._call.places[BATCH] != NONE:
            return RuntimeError(
                "the lease was made void by a restore of the buffer: its records are gone or are "
                "there again, as the restored state has it"
            )
        return RuntimeError("the lease has ended already; commit or release it once")

    def __enter__(self) -> B:
        if not self.active:
            raise self._over()
        return self.batch

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._elsewhere or self._call.places[BATCH] == NONE:
            return
        try:
            if kind is None:
                self.commit()
            elif self.active:
                self.release()
        except BaseException:
            self._core.settle(self._call)
            raise

    def __del__(self) -> None:
        try:
            active = self.active
        except AttributeError:  # it was never finished
            return
        if active:
            self._core.orphan(self._call)
            warnings.warn(
                f"a lease of {len(self._call.slots)} records was neither committed nor released; "
                f"they are returned",
                ResourceWarning,
                stacklevel=2,
                source=self,
            )


def as_index(slots: Ints) -> torch.Tensor:
    """Return slots as an int64 tensor of its own."""
    return torch.from_numpy(slots.copy())
