"""Registered producers: readers are told when all of them are gone, instead of waiting for ever.

A buffer cannot know who means to write to it. Whoever does can say so, for the length of a block.
While nobody has ever registered, readers wait as long as their timeouts let them.
"""

from contextlib import suppress
from types import TracebackType

from forebay._actions import inside_action
from forebay._core import SETTLING, Core
from forebay._one_process import OneProcess


class Producer(OneProcess):
    """A promise to write, as a context manager; from `BlockingReplayBuffer.producer`.

    Once somebody has registered and all who did are gone, readers get what is left and then an
    error: `ShutDown` if all blocks came to their ends, `PeerLost` if a producer died in its block
    or its block raised. A producer that registers later makes readers wait again.

    A block that is left by `sys.exit` without an error status, or because the generator around it
    is closed, has come to its end. A producer that is dropped while it is registered has failed.
    """

    def __init__(self, core: Core) -> None:
        self._core = core
        self._places = [0]
        self._life = core.peers.life

    def __enter__(self) -> "Producer":
        core = self._core
        if self._places[0] and self._life == core.peers.life:
            raise RuntimeError("this producer is registered already; ask the buffer for another")
        core.thread_actor()
        self._life = core.peers.life
        try:
            core.register_producer(self._places)
        except BaseException:
            self._settle(failed=False)
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        failed = kind is not None and not _ends_well(kind, error)
        try:
            self._end(failed)
        except BaseException:
            self._settle(failed)
            raise

    def _end(self, failed: bool) -> None:
        """Unregister, unless that was done, or this is a forked child's copy.

        A generator that is closed by a garbage collection may leave its block inside the section.
        """
        if not self._places[0] or self._life != self._core.peers.life:
            return
        if inside_action():
            places, self._places = self._places, [0]
            self._core.desert(places, self._life, failed)
        else:
            self._core.unregister_producer(self._places, failed)

    def _settle(self, failed: bool) -> None:
        """Unregister though interrupts may go on; the first one is on its way to the caller."""
        for _ in range(SETTLING):
            with suppress(BaseException):
                self._end(failed)
                return

    def __del__(self) -> None:
        try:
            core, places, life = self._core, self._places, self._life
        except AttributeError:  # it was never finished
            return
        if places[0] and not core.forked and life == core.peers.life:
            core.desert(places, life, failed=True)


def _ends_well(kind: type[BaseException], error: BaseException | None) -> bool:
    """Tell whether an exception that leaves a block is just the end of its program or generator."""
    if isinstance(error, SystemExit):
        return error.code is None or (isinstance(error.code, int) and error.code == 0)
    return issubclass(kind, GeneratorExit)
