"""Processes that take the paths of a cover between them, and what they say.

A thread that hands over to another one on the same core does so several times faster than across
cores, and threads of one interpreter never run at once anyway. So each process stays on a core of
its own, and there are two of them.

Every process explores and plans for itself, which gives the same plan in each, and takes every
second path. What it has taken it tells now and then. Whoever listens is told everything: how far it
is, a failure of the buffer, an error of its own, and that it ended without a word.
"""

import gc
import multiprocessing
import os
import signal
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from types import TracebackType
from typing import Final, NamedTuple

from forebay_spec.actions import Machine
from forebay_spec.bounds import QUICK
from forebay_spec.state import State

from forebay_models.campaign.driver import Divergence, Exercise, Taken
from forebay_models.campaign.quiet import quiet_library
from forebay_models.campaign.settings import Setting
from forebay_models.cover.edges import EdgeCoverage
from forebay_models.cover.plan import paths
from forebay_models.cover.share import Share
from forebay_models.explore.graph import explore
from forebay_models.runs.walk import planted
from forebay_models.stepping.worker import Hands
from forebay_models.targets import SCOPES, Target

BETWEEN: Final = 0.5
"""Seconds between two reports of a worker."""

SILENCE: Final = 120.0
"""Seconds for which nothing is heard of any worker before they are given up."""

ENDING: Final = 5.0
"""Seconds within which a process that was told to end is given before it is killed."""


class Job(NamedTuple):
    """What a worker has to do.

    Attributes:
        target: what is driven.
        graphs: the names of the graphs.
        share: which of the shares it takes.
        shares: how many there are.
        fault: the name of a fault to plant, or nothing.
        until: when to end, on the monotonic clock that all processes share; None for never.
    """

    target: Target
    graphs: tuple[str, ...]
    share: int
    shares: int
    fault: str
    until: float | None


class Size(NamedTuple):
    """How large a graph is."""

    states: int
    edges: int


class Sizes(NamedTuple):
    """A worker has explored its graphs."""

    of: Mapping[str, Size]


class Progress(NamedTuple):
    """Which edges and states of a graph a worker has taken, one byte for each, and how."""

    graph: str
    edges: bytes
    states: bytes
    exercise: Exercise


class Failure(NamedTuple):
    """The buffer did not do what the specification says; see `Divergence`."""

    setting: Setting
    steps: tuple[Taken, ...]
    what: tuple[str, ...]
    expected: tuple[State, ...]
    seen: State | None

    def divergence(self) -> Divergence:
        """Return it as the exception that the driver raised."""
        return Divergence(*self)


class Broken(NamedTuple):
    """A worker could not do its work; `why` is a text for people."""

    why: str


class Done(NamedTuple):
    """A worker has come to the end of its job, or of its time."""


Message = Sizes | Progress | Failure | Broken | Done
Work = Callable[[Job, "Connection[Message, None]"], None]


def work(job: Job, told: "Connection[Message, None]") -> None:
    """Do a job and tell how it goes; runs in a process of its own."""
    # A Ctrl-C reaches every process of the terminal; the one that started this decides.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _stay_on_core(job.share)
    try:
        for message in messages(job):
            told.send(message)
    except Exception:
        told.send(Broken(traceback.format_exc()))


def messages(job: Job) -> Iterator[Message]:
    """Do a job and yield what there is to tell."""
    graphs = {name: explore(Machine(QUICK[name])) for name in job.graphs}
    yield Sizes({name: Size(len(it.states), len(it.edges)) for name, it in graphs.items()})
    # Nothing of the graphs is ever garbage, and there is much of it to look through.
    gc.freeze()
    with planted(job.fault), quiet_library(), Hands() as hands:
        for name, graph in graphs.items():
            if _late(job):
                break
            share = Share(graph, hands, Exercise(), SCOPES[job.target])
            told = time.monotonic()
            mine = islice(enumerate(paths(graph)), job.share, None, job.shares)
            for number, path in mine:
                failure = share.walk(number, path, lambda: not _late(job))
                if failure is not None:
                    yield _progress(name, share)
                    yield Failure(
                        failure.setting, failure.steps, failure.what, failure.expected, failure.seen
                    )
                    return
                if _late(job):
                    break
                if time.monotonic() > told + BETWEEN:
                    told = time.monotonic()
                    yield _progress(name, share)
            yield _progress(name, share)
    yield Done()


def _progress(name: str, share: Share) -> Progress:
    # The edges of the exercise say nothing that the share does not say shorter.
    exercise = replace(share.exercise, edges=EdgeCoverage())
    return Progress(name, bytes(share.taken), bytes(share.seen), exercise)


def _late(job: Job) -> bool:
    return job.until is not None and time.monotonic() >= job.until


def _stay_on_core(share: int) -> None:
    """Keep this process on one of the cores that it may use, where the system allows that."""
    if hasattr(os, "sched_setaffinity"):
        cores = sorted(os.sched_getaffinity(0))
        os.sched_setaffinity(0, {cores[share % len(cores)]})


class Workers:
    """Runs jobs in processes, and leaves none of them behind, however the block ends.

    Args:
        jobs: what they do, one each.
        work: does it.
        silence: seconds for which nothing is heard of any worker before they are given up.
    """

    def __init__(self, jobs: Sequence[Job], work: Work = work, silence: float = SILENCE) -> None:
        self._jobs = jobs
        self._work = work
        self._silence = silence
        self._ends: dict[Connection[None, Message], BaseProcess] = {}

    def __enter__(self) -> "Workers":
        context = multiprocessing.get_context("spawn")
        try:
            for job in self._jobs:
                here, there = context.Pipe(duplex=False)
                process = context.Process(target=self._work, args=(job, there), daemon=True)
                process.start()
                self._ends[here] = process
                # Then its end closes with the process, which is how its death is noticed.
                there.close()
        except BaseException:
            self._stop()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stop()

    def messages(self) -> Iterator[tuple[int, Message]]:
        """Yield what the workers say, each with its number, until all of them have ended.

        A worker that ends before it has said `Done`, `Failure` or `Broken` is `Broken`, and so is
        one of which nothing is heard.
        """
        numbers = {end: number for number, end in enumerate(self._ends)}
        open_ends = list(self._ends)
        while open_ends:
            heard = wait(open_ends, self._silence)
            if not heard:
                yield numbers[open_ends.pop()], Broken(f"no worker spoke for {self._silence:g} s")
            for end in heard:
                assert isinstance(end, Connection)
                try:
                    message: Message = end.recv()
                except (EOFError, OSError):
                    open_ends.remove(end)
                    yield numbers[end], Broken(_death_of(self._ends[end]))
                    continue
                if isinstance(message, Done | Failure | Broken):
                    open_ends.remove(end)
                yield numbers[end], message

    def _stop(self) -> None:
        for process in self._ends.values():
            process.kill()
        for end, process in self._ends.items():
            process.join(ENDING)
            end.close()


def _death_of(process: BaseProcess) -> str:
    process.join(ENDING)
    return f"a worker ended without a word, with exit code {process.exitcode}"
