"""Where a life is lived: in this process, or in a new one that is there for nothing else.

Lives travel as pickles made here: multiprocessing would put their tensors into memory that is gone
with the process that has sent it.
"""

import faulthandler
import multiprocessing
import pickle
from collections.abc import Mapping
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerContext, SpawnContext
from typing import Final

from forebay_models.twins.life import Life, Lived, live
from forebay_models.twins.program import Place

START: Final = 120.0
"""Seconds for a new process to load the library and to live; a busy machine needs many."""

STUCK: Final = 90.0
"""Seconds after which a new process says on standard error where it is stuck, and ends."""

_CONTEXTS: Final[Mapping[Place, SpawnContext | ForkServerContext]] = {
    "forkserver": multiprocessing.get_context("forkserver"),
    "spawn": multiprocessing.get_context("spawn"),
}
_PRELOAD: Final = ["forebay_models.twins.life"]


def live_in(place: Place, life: Life) -> Lived:
    """Live through a life in a place; an error there is raised here."""
    if place == "here":
        return live(life)
    context = _CONTEXTS[place]
    if place == "forkserver":
        multiprocessing.set_forkserver_preload(_PRELOAD)
    here, there = context.Pipe()
    process = context.Process(target=_live, args=(there, pickle.dumps(life)), daemon=True)
    process.start()
    try:
        there.close()
        if not here.poll(START):
            raise RuntimeError(f"after {START:g} s the twin in a new process has not ended")
        try:
            lived: Lived | Exception = pickle.loads(here.recv_bytes())
        except EOFError:
            process.join(START)
            raise RuntimeError(
                f"the twin in a new process has ended with exit code {process.exitcode}"
            ) from None
    finally:
        here.close()
        process.kill()
        process.join()
        process.close()
    if isinstance(lived, Exception):
        raise lived
    return lived


def _live(there: Connection, life: bytes) -> None:
    lived: Lived | Exception
    faulthandler.dump_traceback_later(STUCK, exit=True)
    try:
        lived = live(pickle.loads(life))
    except Exception as error:
        error.add_note("raised in a new process")
        lived = error
    there.send_bytes(pickle.dumps(lived))
    there.close()
