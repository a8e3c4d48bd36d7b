"""Records the history of a real run of processes on one shared buffer, some of which are killed.

The library is as it is shipped, but that the dead are looked for more often. The parent takes no
part, so it never waits for anything of the buffer's: it starts an actor a process, reads what they
tell, and kills some of them with SIGKILL, each when it has told so many lines and a little later.
One more process, the outsider, sets tokens, looks, empties and closes when the parent says so; it
is never killed. When all others are gone it looks for the dead and draws whatever is left, so that
what was lost by a death, or is there although it should not be, is part of the history.

The processes are forked, from a parent that has the library loaded: that takes milliseconds, and
planted faults are in them. How the other ways of starting differ is not the business of this
campaign.
"""

import multiprocessing
import os
import random
import signal
import time
import warnings
from collections.abc import Callable
from contextlib import suppress
from multiprocessing.connection import wait
from multiprocessing.process import BaseProcess
from typing import Final

from forebay_models.campaign.quiet import quiet_library
from forebay_models.linear.history import History, Operation
from forebay_models.linear.record import Recording
from forebay_models.linear.scene import BUFFER, FINISH, PATIENCE, SharedScene, looking_often
from forebay_models.linear.wire import Transcript, now
from forebay_models.linear.workload import KILLER, OUTSIDER, PROCESSES, Workload

ENDING: Final = 5.0
"""Seconds for a process that was killed to be gone, and for a hanging buffer to describe itself."""
_CHUNK: Final = 1 << 16


def record_processes(plan: Workload, patience: float = PATIENCE) -> Recording:
    """Run a workload on processes and return what happened; `patience` is in seconds."""
    with quiet_library(), looking_often():
        run = ProcessRun(plan)
        try:
            return run.record(patience)
        finally:
            run.end()


class ProcessRun:
    """One run as the parent sees it."""

    def __init__(self, plan: Workload) -> None:
        self.plan = plan
        self._pipe, tell = os.pipe()
        self._take_orders, self._orders = os.pipe()
        os.set_blocking(self._pipe, False)
        self._open = {self._pipe, tell, self._take_orders, self._orders}
        self._context = multiprocessing.get_context("fork")
        self._scene = SharedScene(plan, tell)
        self._told = Transcript()
        self._kills = plan.kills()
        self._choice = plan.choices(OUTSIDER)
        self._living: dict[str, BaseProcess] = {}
        self._deaths: list[str] = []
        self._closed = False
        self._finishing = False

    def record(self, patience: float) -> Recording:
        """Run all processes to their end, or till patience is lost."""
        for place, (name, _) in enumerate(PROCESSES):
            self._start(name, self._scene.act, place)
        self._start(OUTSIDER, self._scene.serve, self._take_orders)
        ended = self._conduct(time.monotonic() + patience)
        if not ended:
            self._start(BUFFER, self._scene.describe)
            self._living[BUFFER].join(ENDING)
        self._hear()
        says = self._told.said.pop(BUFFER, "it does not answer")
        self._deaths += [f"{name}: {text}" for name, text in self._told.said.items()]
        history = History(self.plan.setting(), self._told.operations())
        return Recording(history=history, hang="" if ended else says, deaths=tuple(self._deaths))

    def end(self) -> None:
        """Kill whoever is left, and close the pipes."""
        for process in self._living.values():
            process.kill()
        for process in self._living.values():
            process.join(ENDING)
            if process.exitcode is not None:
                process.close()
        for end in self._open:
            os.close(end)

    def _start(self, name: str, work: Callable[..., None], *arguments: object) -> None:
        process = self._context.Process(target=work, args=arguments, name=name, daemon=True)
        with warnings.catch_warnings():
            # Newer interpreters warn of any fork of a process that has threads, as torch may.
            warnings.filterwarnings("ignore", ".*fork.*", DeprecationWarning)
            process.start()
        self._living[name] = process

    def _conduct(self, until: float) -> bool:
        """Read, interfere and kill until all have ended; False if they do not in time."""
        while OUTSIDER in self._living:
            patience = until - time.monotonic()
            if patience <= 0:
                return False
            sentinels = [process.sentinel for process in self._living.values()]
            wait([self._pipe, *sentinels], patience)
            for op in self._hear():
                if op.returned is not None and op.actor != OUTSIDER:
                    self._interfere()
            self._bury()
            if not self._closed:
                self._kill_who_is_due()
            if self._is_enough() and not self._closed:
                self._close()
            if self._living.keys() == {OUTSIDER} and not self._finishing:
                self._order(FINISH)
                self._finishing = True
        return True

    def _hear(self) -> list[Operation]:
        """Take in all that was told since, and return the operations that it tells of."""
        heard: list[Operation] = []
        with suppress(BlockingIOError):
            while told := os.read(self._pipe, _CHUNK):
                heard += self._told.hear(told)
        return heard

    def _bury(self) -> None:
        """Let go of those who have ended by themselves."""
        for name, process in list(self._living.items()):
            if process.exitcode is not None:
                del self._living[name]
                if process.exitcode != 0:
                    self._deaths.append(f"{name}: it ended with exit code {process.exitcode}")
                process.close()

    def _kill_who_is_due(self) -> None:
        for kill in list(self._kills):
            if self._told.lines.get(kill.victim, 0) >= kill.lines or self._is_enough():
                self._kills.remove(kill)
                time.sleep(kill.delay)
                self._kill(kill.victim)

    def _kill(self, victim: str) -> None:
        process = self._living.get(victim)
        if process is None:
            return
        called = now()
        process.kill()
        process.join(ENDING)
        if process.exitcode != -signal.SIGKILL:
            return  # it has ended by itself just before, or does not end: both are noticed
        del self._living[victim]
        process.close()
        op = Operation(actor=KILLER, kind="kill", call=called, returned=now(), victim=victim)
        self._told.add(op)

    def _is_enough(self) -> bool:
        """Tell whether enough was done, or the run is spoilt."""
        failed = bool(self._told.said or self._deaths)
        return failed or self._told.count >= self.plan.operations

    def _interfere(self) -> None:
        """Now and then let the outsider set a token, look or empty."""
        choice = self._choice
        if self._closed or choice.random() >= 0.2:
            return
        what = choice.choice(("cancel", "cancel", "cancel", "len", "len", "empty"))
        if what != "cancel":
            self._order(what)
            return
        calling = [op.token for op in self._told.under_way.values() if op.token]
        if calling:
            self._order(f"cancel {choice.choice(calling)}")

    def _close(self) -> None:
        """Close the buffer, at once or by and by, which ends the work of all actors."""
        choice: random.Random = self._choice
        drains = choice.random() < 0.8
        if drains:
            self._order("draining")
            self._order("len")
        if not drains or choice.random() < 0.2:
            self._order("stopped")
            self._order("draining")
        self._closed = True

    def _order(self, order: str) -> None:
        with suppress(BrokenPipeError):  # the outsider is dead, which is noticed
            os.write(self._orders, f"{order}\n".encode("ascii"))
