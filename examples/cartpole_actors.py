"""The actors of the CartPole example: what one does, and how threads or processes do it.

An actor plays whole episodes with the newest posted weights and writes them. All that it has to
tell is in its records, so it is the same in a thread and in a process. Actors in processes can be
killed at any time: what a dead one had begun to write is taken back, and another takes its place.
"""

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from multiprocessing import connection, get_context, resource_tracker
from multiprocessing.process import BaseProcess

import forebay
import gymnasium
import numpy as np
import torch
from cartpole_policy import OBSERVATION, Floats, Weights, choose, returns_to_go
from tensordict import TensorDict

SERIALS = 1 << 32
"""How many records an actor may write: a record's serial is actor * SERIALS + its number."""
GRACE = 0.5
"""Seconds that processes have for their end; a shared buffer survives that they are killed."""
Play = Callable[[int], None]
"""What an actor does, given its number."""


class Board:
    """Where the learner posts its newest weights and all actors, wherever they are, read them.

    There is no lock, which an actor could take along when it is killed. Who reads during a post
    may get weights of two versions; that does no harm, since a record says with what probability
    its action was chosen.
    """

    def __init__(self, weights: Weights) -> None:
        self._weights = [torch.from_numpy(part.copy()) for part in weights]
        self._version = torch.zeros((), dtype=torch.int64)
        for tensor in (*self._weights, self._version):
            tensor.share_memory_()  # type: ignore[no-untyped-call]  # torch gives it no types

    def post(self, weights: Weights) -> None:
        """Replace the weights; the version rises by one."""
        for shared, part in zip(self._weights, weights, strict=True):
            shared.copy_(torch.from_numpy(part))
        self._version += 1

    def read(self) -> tuple[Weights, int]:
        """Return a copy of the newest weights and their version."""
        version = self.version()
        return Weights(*(shared.numpy().copy() for shared in self._weights)), version

    def version(self) -> int:
        """Return how often weights were posted."""
        return int(self._version)


def act(
    number: int,
    *,
    seed: int,
    chunk: int,
    buffer: forebay.BlockingReplayBuffer,
    token: forebay.CancelToken,
    board: Board,
) -> None:
    """Write episode after episode until the buffer closes or the token is set.

    An error of this actor reaches the learner.
    """
    torch.set_num_threads(1)
    waited = 0.0
    with buffer.producer():
        try:
            for episode in _episodes(number, seed, token, board):
                for part in episode.split(chunk):
                    part["waited"][0] = waited
                    started = time.perf_counter()
                    buffer.extend(part, cancel_event=token)
                    waited = time.perf_counter() - started
        except (forebay.ShutDown, forebay.Cancelled):
            return
        except Exception as error:
            buffer.fail(error)
            raise


def _episodes(
    number: int, seed: int, token: forebay.CancelToken, board: Board
) -> Iterator[TensorDict]:
    env: gymnasium.Env[Floats, int] = gymnasium.make("CartPole-v1")
    generator = np.random.default_rng([seed, number])
    observation, _ = env.reset(seed=seed * 1000 + number)
    serial = number * SERIALS
    while not token.is_set():
        weights, version = board.read()
        seen: list[Floats] = []
        actions: list[int] = []
        log_probs: list[float] = []
        over = False
        while not over:
            action, log_prob = choose(weights, observation, generator.random())
            seen.append(observation)
            actions.append(action)
            log_probs.append(log_prob)
            observation, _, terminated, truncated, _ = env.step(action)
            over = terminated or truncated
        observation, _ = env.reset()
        yield records(seen, actions, log_probs, version, serial)
        serial += len(seen)
    env.close()


def records(
    seen: list[Floats], actions: list[int], log_probs: list[float], version: int, serial: int
) -> TensorDict:
    """Return an episode as records, one a step.

    `episode` is the length of the episode in its last record and 0 in the others; `waited`, in
    seconds, is filled in when the records are written.
    """
    steps = len(seen)
    length = torch.zeros(steps)
    length[-1] = steps
    return TensorDict(
        {
            "observation": torch.from_numpy(np.stack(seen)),
            "action": torch.tensor(actions),
            "log_prob": torch.tensor(log_probs),
            "return_to_go": torch.from_numpy(returns_to_go(steps)),
            "version": torch.full((steps,), version),
            "serial": torch.arange(serial, serial + steps),
            "episode": length,
            "waited": torch.zeros(steps),
        },
        batch_size=[steps],
    )


def example() -> TensorDict:
    """Return a record, from which a storage for several processes learns what records are like."""
    return records([np.zeros(OBSERVATION, np.float32)], [0], [0.0], 0, 0)[0]


class Threads:
    """Actors in threads."""

    def __init__(self, actors: int, play: Play) -> None:
        self._threads = [
            threading.Thread(target=play, args=(n,), name=f"actor-{n}") for n in range(actors)
        ]

    def start(self) -> None:
        """Let the actors begin."""
        for thread in self._threads:
            thread.start()

    def join(self) -> None:
        """Wait for the actors' ends; the buffer is closed."""
        for thread in self._threads:
            if thread.ident is not None:
                thread.join()


class Processes:
    """Actors in processes, each with a number of its own, and a thread that looks after them.

    The thread starts them and puts a new one in the place of each that is killed. It is registered
    as a producer like the actors are: as long as it is there, the learner waits for the new actor
    instead of being told that all are gone.

    Args:
        actors: how many play at a time.
        play: what an actor does; with its arguments it is pickled, unless the method is fork.
        buffer: what they write to.
        method: how processes are started: spawn, forkserver or fork.
    """

    def __init__(
        self, actors: int, play: Play, buffer: forebay.BlockingReplayBuffer, method: str
    ) -> None:
        self._actors = actors
        self._play = play
        self._buffer = buffer
        self._context = get_context(method)
        self._alive: dict[int, BaseProcess] = {}
        self._hired = 0
        self._over, self._end = connection.Pipe(duplex=False)
        self._supervisor = threading.Thread(target=self._supervise, name="supervisor")
        # multiprocessing's helper lets signals through again where it is started: below, too late.
        resource_tracker.ensure_running()

    def start(self) -> None:
        """Let the actors begin."""
        self._supervisor.start()

    def join(self) -> None:
        """Wait for the actors' ends; the buffer is closed."""
        self._end.close()
        if self._supervisor.ident is not None:
            self._supervisor.join()

    def kill(self) -> None:
        """Kill the actor that has been there longest, whatever it does, as a full memory would."""
        for process in list(self._alive.values())[:1]:
            assert process.pid is not None  # it was started
            os.kill(process.pid, signal.SIGKILL)

    def _supervise(self) -> None:
        # The processes inherit this: Ctrl-C is for the learner, which then ends them.
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            with self._buffer.producer():
                for _ in range(self._actors):
                    self._hire()
                while not self._over.poll():
                    self._replace_the_dead()
        except Exception as error:
            self._buffer.fail(error)
            raise
        finally:
            self._dismiss()

    def _hire(self) -> int:
        """Start an actor and return its number."""
        number = self._hired
        self._hired += 1
        process = self._context.Process(  # type: ignore[attr-defined]  # each context has its own
            target=self._play, args=(number,), name=f"actor-{number}", daemon=True
        )
        process.start()
        self._alive[number] = process
        return number

    def _replace_the_dead(self) -> None:
        """Wait until somebody has ended, or all is over."""
        ends = [process.sentinel for process in self._alive.values()]
        connection.wait([self._over, *ends])
        for number, process in list(self._alive.items()):
            if process.is_alive():
                continue
            del self._alive[number]
            if process.exitcode is not None and process.exitcode < 0:
                name = signal.Signals(-process.exitcode).name
                heir = self._hire()
                print(f"actor {number} was killed by {name}; actor {heir} is starting", flush=True)

    def _dismiss(self) -> None:
        give_up = time.monotonic() + GRACE
        for process in self._alive.values():
            process.join(max(0.0, give_up - time.monotonic()))
            process.kill()
            process.join()
