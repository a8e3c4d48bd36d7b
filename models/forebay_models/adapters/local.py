"""A buffer on threads, one thread for each actor, moved step by step."""

from forebay_spec.actions import Label
from forebay_spec.bounds import Bounds

from forebay_models.adapters.adapter import USUAL, Observation
from forebay_models.adapters.crossings import Crossings
from forebay_models.stepping.board import PATIENCE
from forebay_models.stepping.worker import Hands
from forebay_models.targets import StorageKind


class LocalAdapter(Crossings):
    """Drives one buffer, whose queue is that of the one process that reads.

    Args:
        bounds: what actors, sizes and features there are.
        storage: where the records are kept.
        seed: of the buffer's random order.
        patience: seconds within which a thread has to come to a stop.
        hands: lends the threads; see `Crew`.
    """

    def __init__(
        self,
        bounds: Bounds,
        storage: StorageKind = "tensor",
        seed: int = 0,
        *,
        patience: float = PATIENCE,
        hands: Hands | None = None,
    ) -> None:
        super().__init__(bounds, storage, seed, patience, hands)
        if bounds.prefetch:
            self._open_queues()

    def apply(self, label: Label, manner: str = USUAL) -> Observation:
        """Take one step; see `Adapter.apply`."""
        self._dozing = None
        self._between.clear()
        found = self._actions[label.name](manner, *label.args)
        return self._observation(found)

    def _open_queues(self) -> None:
        (process,) = self._bounds.reading
        self._open_queue(process, self._buffer)
