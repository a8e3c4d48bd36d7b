"""Interrupts at every place where the interpreter can run a signal handler.

CPython looks for signals when a call into Python or C has returned, when a function begins and when
a loop jumps back; nowhere else. `interrupted` runs an action and raises KeyboardInterrupt at the
n-th of these places inside the library, so that a test can go through all of them. Cycles are not
collected meanwhile: what is raised in a finalizer is lost, and no place of the action.
"""

import dis
import gc
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from types import CodeType, FrameType, TracebackType
from typing import TYPE_CHECKING

import forebay

if TYPE_CHECKING:
    from _typeshed import TraceFunction

LIBRARY = str(Path(forebay.__file__).parent)
_CALLS = {"CALL", "CALL_FUNCTION_EX", "CALL_KW", "CALL_INTRINSIC_1"}
_STARTS = {"RESUME", "JUMP_BACKWARD"}


@cache
def _operations(code: CodeType) -> dict[int, str]:
    return {step.offset: step.opname for step in dis.get_instructions(code)}


class Interrupts:
    """Raises KeyboardInterrupt at chosen places, counted from the start or from the last one.

    Attributes:
        raised: how many interrupts there were.
        handler: what runs at the places instead of raising, if anything.
    """

    def __init__(self, places: list[int], handler: Callable[[], None] | None = None) -> None:
        self.raised = 0
        self._places = places
        self._handler = handler
        self._seen = 0
        self._last: dict[int, str] = {}

    def __enter__(self) -> "Interrupts":
        self._before = sys.gettrace()
        self._collecting = gc.isenabled()
        gc.disable()
        sys.settrace(self._trace)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        sys.settrace(self._before)
        if self._collecting:
            gc.enable()

    def _trace(self, frame: FrameType, event: str, argument: object) -> "TraceFunction | None":
        if not frame.f_code.co_filename.startswith(LIBRARY):
            return None
        frame.f_trace_opcodes = True
        frame.f_trace_lines = False
        return self._step

    def _step(self, frame: FrameType, event: str, argument: object) -> "TraceFunction | None":
        if event != "opcode":
            return self._step
        name = _operations(frame.f_code).get(frame.f_lasti, "")
        before = self._last.get(id(frame), "")
        self._last[id(frame)] = name
        if before in _CALLS or name in _STARTS:
            self._reach()
        return self._step

    def _reach(self) -> None:
        if self.raised == len(self._places):
            return
        if self._seen < self._places[self.raised]:
            self._seen += 1
            return
        self._seen = 0
        self.raised += 1
        if self._handler is None:
            raise KeyboardInterrupt
        self._handler()


def interrupted(action: Callable[[], object], *places: int) -> int:
    """Run an action with interrupts at these places; return how many of them it reached."""
    interrupts = Interrupts(list(places))
    with suppress(KeyboardInterrupt), interrupts:
        next(_apart(action), None)
    return interrupts.raised


def _apart(action: Callable[[], object]) -> Iterator[None]:
    """Run an action in a generator, which has a handled exception of its own.

    What a trace function raises where a handler ends can leave that handler's exception behind as
    one that is still being handled; it would be the context of all that later tests raise.
    """
    action()
    yield
