"""Who else takes part in a buffer, as its actions ask for it.

A buffer of one process has no peers: nobody can die and leave something behind. The participants
of a shared buffer are in `_shared_peers`.
"""

from collections.abc import Callable
from typing import Final, Protocol

OWNER_ENDED: Final = (
    "the process that made the storage of this buffer has ended, and its memory of the device with "
    "all records went with it; make a new buffer"
)
"""What is the cause when the memory of a buffer is gone."""


class Peers(Protocol):
    """The processes that take part in a buffer, this one among them."""

    shared: bool
    """Whether there can be others."""

    life: int
    """How often this process was forked off since the buffer was made; a batch of before is not
    this process's."""

    @property
    def enlisted(self) -> bool:
        """Whether this process takes part already."""

    def enlist(self) -> None:
        """Take part from now on, inside the section."""

    def participant(self) -> int:
        """Return the row of this process, which takes part."""

    def elsewhere(self, actor: int) -> int | None:
        """Return the number of the process of an actor that is not of this process, else None."""

    def anybody_dead(self) -> bool:
        """Tell whether a participant has died that nobody has reclaimed, inside the section."""

    def due(self) -> bool:
        """Tell whether it is time to look for the dead; asked inside the section."""

    def recover(self) -> bool:
        """Recover: reclaim what the dead have left, inside the section; False if nobody is dead."""

    def note(self, error: BaseException) -> Callable[[], int]:
        """Return what keeps an error as the cause of a failure, unless there is one already.

        It is called inside the section, where no foreign code may run, and returns how many bytes
        of shared memory it took, or 0.
        """

    def failure(self) -> BaseException | None:
        """Return the cause of a failure, if there is one."""


class NoPeers:
    """The peers of a buffer of one process."""

    shared = False
    life = 0
    enlisted = True

    def __init__(self) -> None:
        self._failure: BaseException | None = None

    def enlist(self) -> None: ...

    def participant(self) -> int:
        return 0

    def elsewhere(self, actor: int) -> int | None:
        return None

    def anybody_dead(self) -> bool:
        return False

    def due(self) -> bool:
        return False

    def recover(self) -> bool:
        return False

    def note(self, error: BaseException) -> Callable[[], int]:
        def keep() -> int:
            if self._failure is None:
                self._failure = error
            return 0

        return keep

    def failure(self) -> BaseException | None:
        return self._failure
