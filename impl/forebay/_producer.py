"""Registered producers: readers are told when all of them are gone, instead of waiting for ever.

A buffer cannot know who means to write to it. Whoever does can say so, for the length of a block.
While nobody has ever registered, readers wait as long as their timeouts let them.
"""

from types import TracebackType

from forebay._core import Core
from forebay._one_process import OneProcess


class Producer(OneProcess):
    """A promise to write, as a context manager; from `BlockingReplayBuffer.producer`.

    Once somebody has registered and all who did are gone, readers get what is left and then an
    error: `ShutDown` if all blocks came to their ends, `PeerLost` if a producer died in its block
    or its block raised. A producer that registers later makes readers wait again.
    """

    def __init__(self, core: Core) -> None:
        self._core = core
        self._life: int | None = None

    def __enter__(self) -> "Producer":
        if self._life is not None:
            raise RuntimeError("this producer is registered already; ask the buffer for another")
        self._core.thread_actor()
        self._core.register_producer()
        self._life = self._core.peers.life
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        life, self._life = self._life, None
        if life == self._core.peers.life:
            self._core.unregister_producer(failed=kind is not None)
