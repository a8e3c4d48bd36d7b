"""The parent's side: processes that are started, told what to do, waited for and killed.

Every wait is bounded. Whoever is still silent then is stuck, which is a finding, not an accident.
"""

import multiprocessing
import signal
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.context import BaseContext
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Final

from forebay_models.faults.hands import PATIENCE

METHODS: Final = ("fork", "spawn", "forkserver")
START: Final = 120.0
"""Seconds in which a process has to start, which takes a while where the library is loaded anew."""

_LOOK: Final = 0.0005


class Wrong(Exception):
    """What a kill has brought to light, as a sentence."""


@dataclass
class Member:
    """A process and the line to it; `patience` is how many seconds it may be silent."""

    name: str
    process: BaseProcess
    line: Connection
    patience: float

    @property
    def pid(self) -> int:
        """The number of the process."""
        assert self.process.pid is not None
        return self.process.pid

    def tell(self, order: object) -> None:
        """Give an order."""
        try:
            self.line.send(order)
        except OSError as error:
            raise Wrong(self._ending()) from error

    def says(self, patience: float | None = None) -> object:
        """Return what the process says next, if not otherwise said within its usual patience.

        Raises:
            Wrong: it says nothing, or has ended.
        """
        patience = self.patience if patience is None else patience
        if not self.line.poll(patience):
            raise Wrong(f"{self.name} is stuck: it says nothing for {patience:g} s")
        try:
            return self.line.recv()
        except (EOFError, OSError) as error:
            raise Wrong(self._ending()) from error

    def kill(self) -> None:
        """Kill the process and wait until it is dead."""
        self.process.kill()
        self.process.join(PATIENCE)
        if self.process.exitcode != -signal.SIGKILL:
            raise Wrong(f"{self.name} was to be killed, but {self._ending()}")
        self.close()

    def close(self) -> None:
        """Let go of a process that has ended."""
        self.line.close()
        self.process.close()

    def sleeps(self) -> bool:
        """Tell whether the process sleeps in the kernel.

        Raises:
            Wrong: it has ended.
        """
        try:
            text = Path(f"/proc/{self.pid}/stat").read_text(encoding="utf-8", errors="replace")
        except FileNotFoundError:
            text = ") X"
        state = text.rpartition(")")[2].split()[0]
        if state in "XZ":
            raise Wrong(self._ending())
        return state == "S"

    def _ending(self) -> str:
        self.process.join(PATIENCE)
        return f"{self.name} has ended with {self.process.exitcode}"


class Crew:
    """Starts processes, and knows all that live.

    Args:
        preload: modules that the server of forks loads before it forks.
        patience: seconds after which whoever is silent is stuck.
    """

    def __init__(self, preload: Sequence[str], patience: float) -> None:
        self._preload = list(preload)
        self.patience = patience
        self.members: list[Member] = []

    def start(
        self, name: str, method: str, work: Callable[..., None], *arguments: object
    ) -> Member:
        """Start a process that does this work with a line to here and these arguments."""
        context = self._context(method)
        mine, its = context.Pipe()
        process = context.Process(target=work, args=(its, *arguments), daemon=True)  # type: ignore[attr-defined]  # each context has its own
        member = Member(name, process, mine, self.patience)
        try:
            with signals_later(), warnings.catch_warnings():
                # Some runtimes warn of any fork once a library has threads of its own.
                warnings.filterwarnings("ignore", ".*fork.*", DeprecationWarning)
                process.start()
            self.members.append(member)
        finally:
            its.close()
        return member

    def kill(self, member: Member) -> None:
        """Kill a member and wait until it is dead."""
        self.members.remove(member)
        try:
            member.kill()
        except Wrong:
            member.close()
            raise

    def _context(self, method: str) -> BaseContext:
        if method == "forkserver":
            multiprocessing.set_forkserver_preload(self._preload)
        return multiprocessing.get_context(method)

    def end(self) -> None:
        """Kill and join everybody."""
        for member in self.members:
            member.process.kill()
        for member in self.members:
            member.process.join(PATIENCE)
            if member.process.exitcode is not None:
                member.close()
        self.members.clear()


@contextmanager
def crew(preload: Sequence[str], patience: float = PATIENCE) -> Iterator[Crew]:
    """Give a crew whose members are all dead afterwards."""
    members = Crew(preload, patience)
    try:
        yield members
    finally:
        members.end()


@contextmanager
def signals_later() -> Iterator[None]:
    """Let signals that come during the block take effect behind it.

    What a signal handler raises while the hooks of a fork run is swallowed; a command that forks
    all the time would often overhear a Ctrl-C.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came: list[int] = []
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    ours = {number: handler for number, handler in handlers.items() if callable(handler)}
    for number in ours:
        signal.signal(number, lambda number, frame: came.append(number))
    try:
        yield
    finally:
        for number, handler in ours.items():
            signal.signal(number, handler)
    for caught in came:
        signal.raise_signal(caught)


def until(condition: Callable[[], bool], what: str, patience: float) -> None:
    """Look at what cannot be waited for until it is there.

    Raises:
        Wrong: it does not come about.
    """
    give_up = time.monotonic() + patience
    while not condition():
        if time.monotonic() > give_up:
            raise Wrong(f"this does not come about: {what}")
        time.sleep(_LOOK)


def whoever_speaks(members: Sequence[Member], patience: float) -> list[Member]:
    """Return the members that have said something, or ended; none when the time is over."""
    lines = {member.line: member for member in members}
    return [lines[line] for line in wait(list(lines), patience) if isinstance(line, Connection)]
