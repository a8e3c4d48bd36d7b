"""Who takes no part in a recorded run, but looks at its buffer and steers it."""

from dataclasses import replace
from functools import partial
from typing import Literal

from forebay import BlockingReplayBuffer, CancelToken

from forebay_models.linear.actor import as_it_is
from forebay_models.linear.history import Operation
from forebay_models.linear.recorder import Taking
from forebay_models.linear.workload import OUTSIDER


class Outsider:
    """Calls the methods that do not wait."""

    def __init__(self, recorder: Taking, buffer: BlockingReplayBuffer) -> None:
        self._recorder = recorder
        self._buffer = buffer

    def cancel(self, name: str, token: CancelToken) -> None:
        """Set a token."""
        op = Operation(actor=OUTSIDER, kind="cancel", call=0, token=name)
        self._recorder.perform(op, token.set, as_it_is)

    def look(self) -> None:
        """Ask how many records there are."""
        op = Operation(actor=OUTSIDER, kind="len", call=0)
        self._recorder.perform(
            op, lambda: len(self._buffer), lambda op, length: replace(op, length=length)
        )

    def empty(self) -> None:
        """Throw all records away."""
        op = Operation(actor=OUTSIDER, kind="empty", call=0)
        self._recorder.perform(op, self._buffer.empty, as_it_is)

    def close(self, mode: Literal["draining", "stopped"]) -> None:
        """Close the buffer so far."""
        op = Operation(actor=OUTSIDER, kind="shutdown", call=0, mode=mode)
        close = partial(self._buffer.shutdown, immediate=mode == "stopped")
        self._recorder.perform(op, close, as_it_is)

    def recover(self) -> None:
        """Look for the dead, as whoever waits does now and then."""
        op = Operation(actor=OUTSIDER, kind="recover", call=0)
        self._recorder.perform(op, self._look_for_the_dead, as_it_is)

    def _look_for_the_dead(self) -> None:
        core = self._buffer._core
        with core.section:
            core.peers.recover()
