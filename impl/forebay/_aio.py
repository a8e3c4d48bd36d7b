"""Calls for asyncio: a cancelled task leaves the buffer as if it had not called.

The waiting and the copying are done by a thread of the call's own, so that waiting calls cannot use
up a pool that others need. The last action, Publish or Deliver, is not: the task takes it itself,
between its last await and its return. A task can only be cancelled at an await, so either the
cancellation came before, and the batch is given back, or the call has returned.
"""

import asyncio
import itertools
import threading
from collections.abc import Callable
from functools import partial
from typing import NoReturn, TypeVar

from forebay._calls import Call
from forebay._core import Core

T = TypeVar("T")


async def run(core: Core, call: Call, work: Callable[[], T], finish: Callable[[], object]) -> T:
    """Run a call up to its last action in a thread, then take that action here.

    Args:
        core: the buffer's calls.
        call: the call; its actor must be none of a thread's.
        work: everything but the last action; it settles the call if it raises.
        finish: the last action, one critical section.
    """
    core.awaiting[call.actor] = threading.get_ident()
    try:
        return await _run(core, call, work, finish)
    finally:
        core.awaiting.pop(call.actor, None)


async def _run(core: Core, call: Call, work: Callable[[], T], finish: Callable[[], object]) -> T:
    loop = asyncio.get_running_loop()
    # Of a thread at its end and a coroutine that is dropped, the later one, which gets 1, settles.
    ends = itertools.count()
    # The outcome travels as a value: a future cannot carry every exception (no StopIteration).
    done: asyncio.Future[Callable[[], T]] = loop.create_future()

    def body() -> None:
        outcome: Callable[[], T]
        try:
            outcome = partial(_give, work())
        except BaseException as error:
            outcome = partial(_raise, error)
        try:
            loop.call_soon_threadsafe(done.set_result, outcome)
        except RuntimeError:  # the loop is closed: nobody is left to finish the call
            core.settle(call)
        if next(ends):
            core.settle(call)

    threading.Thread(target=body, name="forebay-async", daemon=True).start()
    try:
        try:
            await asyncio.wait({done})
            result = done.result()()
            finish()
        except GeneratorExit:
            raise
        except BaseException:
            await _stop(core, call, done)
            raise
    except GeneratorExit:  # the coroutine was dropped, so nothing can be awaited any more
        core.stop(call)
        if next(ends):
            core.orphan(call)
        raise
    return result


async def _stop(core: Core, call: Call, done: "asyncio.Future[Callable[[], T]]") -> None:
    """End a call whose task was cancelled, and wait until its thread has nothing to do with it."""
    core.stop(call)
    while not done.done():
        try:
            await asyncio.wait({done})
        except asyncio.CancelledError:
            continue  # the task ends with the first cancellation as soon as the thread is done
    core.settle(call)


def _give(value: T) -> T:
    return value


def _raise(error: BaseException) -> NoReturn:
    if isinstance(error, StopIteration):  # a coroutine cannot raise it either
        raise RuntimeError(f"a call raised {error!r}") from error
    raise error
