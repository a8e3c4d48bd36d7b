"""Train CartPole through a buffer whose producers wait: actors in threads, one learner.

On-policy learning wants every transition once and while it is fresh. A plain ring would overwrite
what the learner has not seen, and an unbounded queue would let the actors run ahead with a stale
policy. Here a small `BlockingReplayBuffer` in arrival order does both jobs: actors wait when it is
full, so the data is never older than a few updates, and nothing is lost.

How it is wired:

- each actor plays whole episodes with the newest posted weights, turns rewards into returns-to-go,
  and writes them in chunks; a chunk is admitted whole or not at all;
- the learner, in the main thread, draws fixed batches, each record exactly once, and takes one
  clipped policy-gradient step a batch;
- `capacity`, `chunk` and `batch` obey chunk + batch <= capacity + gcd(chunk, batch), so that a
  writer and the reader can never wait for each other;
- Ctrl-C sets one cancel token, which ends every blocked call; the exit code is then 130.

At the end the counts are audited: every record that was admitted was either delivered once or is
still in the buffer.
"""

import argparse
import gc
import signal
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType

import gymnasium
import matplotlib

matplotlib.use("Agg")

import forebay
import matplotlib.pyplot as plt
import numpy as np
import torch
from cartpole_policy import Floats, Network, Weights, choose, improve, returns_to_go
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from tensordict import TensorDict


class Board:
    """Where the learner posts its newest weights and the actors read them."""

    def __init__(self, weights: Weights) -> None:
        self._lock = threading.Lock()
        self._weights = weights
        self._version = 0

    def post(self, weights: Weights) -> None:
        """Replace the weights; the version rises by one."""
        with self._lock:
            self._weights = weights
            self._version += 1

    def read(self) -> tuple[Weights, int]:
        """Return the newest weights and their version."""
        with self._lock:
            return self._weights, self._version


@dataclass
class Diary:
    """What the run is judged by afterwards; appended to under its lock."""

    returns: list[float] = field(default_factory=list)
    written: int = 0
    writer_wait: float = 0.0
    lock: threading.Lock = field(default_factory=threading.Lock)
    reader_waits: list[float] = field(default_factory=list)
    writer_waits: list[float] = field(default_factory=list)
    occupancy: list[int] = field(default_factory=list)
    staleness: list[float] = field(default_factory=list)


class Actor(threading.Thread):
    """Plays episodes and writes them until the buffer closes or the token is set."""

    def __init__(
        self,
        number: int,
        args: argparse.Namespace,
        buffer: forebay.BlockingReplayBuffer,
        token: forebay.CancelToken,
        board: Board,
        diary: Diary,
    ) -> None:
        super().__init__(name=f"actor-{number}")
        self._number = number
        self._seed: int = args.seed * 1000 + number
        self._chunk: int = args.chunk
        self._buffer = buffer
        self._token = token
        self._board = board
        self._diary = diary
        self._serial = 0

    def run(self) -> None:
        """Write episode after episode; an error of this thread reaches the learner."""
        try:
            for episode in self._episodes():
                for chunk in episode.split(self._chunk):
                    self._write(chunk)
        except (forebay.ShutDown, forebay.Cancelled):
            return
        except Exception as error:
            self._buffer.fail(error)
            raise

    def _write(self, chunk: TensorDict) -> None:
        started = time.perf_counter()
        self._buffer.extend(chunk, cancel_event=self._token)
        waited = time.perf_counter() - started
        with self._diary.lock:
            self._diary.written += len(chunk)
            self._diary.writer_wait += waited

    def _episodes(self) -> Iterator[TensorDict]:
        env: gymnasium.Env[Floats, int] = gymnasium.make("CartPole-v1")
        generator = np.random.default_rng(self._seed)
        observation, _ = env.reset(seed=self._seed)
        while not self._token.is_set():
            weights, version = self._board.read()
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
            with self._diary.lock:
                self._diary.returns.append(float(len(seen)))
            yield self._records(seen, actions, log_probs, version)
        env.close()

    def _records(
        self, seen: list[Floats], actions: list[int], log_probs: list[float], version: int
    ) -> TensorDict:
        """Return one record a step; `serial` names the record, so that the learner can audit."""
        steps = len(seen)
        first = (self._number << 32) + self._serial
        self._serial += steps
        return TensorDict(
            {
                "observation": torch.from_numpy(np.stack(seen)),
                "action": torch.tensor(actions),
                "log_prob": torch.tensor(log_probs),
                "return_to_go": torch.from_numpy(returns_to_go(steps)),
                "version": torch.full((steps,), version),
                "serial": torch.arange(first, first + steps),
            },
            batch_size=[steps],
        )


class Learner:
    """Draws batches, improves the policy, and keeps count of what it was given."""

    def __init__(
        self,
        args: argparse.Namespace,
        buffer: forebay.BlockingReplayBuffer,
        token: forebay.CancelToken,
        board: Board,
        network: Network,
        diary: Diary,
    ) -> None:
        self._updates: int = args.updates
        self._report_every: int = args.report_every
        self._buffer = buffer
        self._token = token
        self._board = board
        self._network = network
        self._optimiser = torch.optim.Adam(network.parameters(), lr=args.learning_rate)
        self._diary = diary
        self.serials: set[int] = set()
        self.trained = 0

    def run(self, console: Console) -> None:
        """Take `updates` steps, or fewer when the token is set."""
        columns = (
            TextColumn("updates"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("mean return {task.fields[mean]:.1f}"),
            TimeElapsedColumn(),
        )
        # A pipe gets plain lines instead of a bar.
        with Progress(*columns, console=console, disable=not console.is_terminal) as progress:
            task = progress.add_task("updates", total=self._updates, mean=0.0)
            for update in range(1, self._updates + 1):
                batch = self._next_batch()
                improve(self._network, self._optimiser, batch)
                self._board.post(self._network.weights())
                with self._diary.lock:
                    recent = self._diary.returns[-50:]
                mean = sum(recent) / len(recent)
                progress.update(task, advance=1, mean=mean)
                if not console.is_terminal and update % self._report_every == 0:
                    print(f"update {update}/{self._updates}: mean return {mean:.1f}", flush=True)

    def _next_batch(self) -> TensorDict:
        started = time.perf_counter()
        batch = self._buffer.sample(cancel_event=self._token)
        assert isinstance(batch, TensorDict)  # what this storage gives back
        waited = time.perf_counter() - started
        self.serials.update(batch["serial"].tolist())
        self.trained += len(batch)
        _, version = self._board.read()
        with self._diary.lock:
            self._diary.reader_waits.append(waited)
            self._diary.writer_waits.append(self._diary.writer_wait)
            self._diary.writer_wait = 0.0
        self._diary.occupancy.append(len(self._buffer))
        self._diary.staleness.append(version - float(batch["version"].float().mean()))
        return batch


def tenths(returns: list[float]) -> tuple[float, float]:
    """Return the mean return of the first and of the last tenth of the episodes."""
    tenth = max(1, len(returns) // 10)
    return float(np.mean(returns[:tenth])), float(np.mean(returns[-tenth:]))


def plot(diary: Diary, path: Path) -> None:
    """Draw returns by episode, and waiting time and occupancy by update, into a PNG file."""
    figure, (top, middle, bottom) = plt.subplots(3, 1, figsize=(8, 9), layout="constrained")
    returns = np.array(diary.returns)
    width = max(1, len(returns) // 50)
    top.plot(returns, ".", markersize=2, alpha=0.3, color="tab:blue")
    if len(returns) >= width > 1:
        smooth = np.convolve(returns, np.ones(width) / width, mode="valid")
        top.plot(np.arange(width - 1, len(returns)), smooth, color="tab:red")
    top.set(xlabel="episode", ylabel="return")
    middle.plot(np.array(diary.reader_waits) * 1e3, label="learner", linewidth=0.8)
    middle.plot(np.array(diary.writer_waits) * 1e3, label="actors, summed", linewidth=0.8)
    middle.set(xlabel="update", ylabel="time in calls (ms)")
    middle.legend()
    bottom.plot(diary.occupancy, label="records left after each draw", linewidth=0.8)
    bottom.set(xlabel="update", ylabel="occupancy (records)")
    staleness = bottom.twinx()
    staleness.plot(diary.staleness, color="tab:orange", linewidth=0.8)
    staleness.set(ylabel="age of the batch (updates)")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=100)
    plt.close(figure)


def audit(buffer: forebay.BlockingReplayBuffer, learner: Learner, diary: Diary) -> str:
    """Return the conservation line; raise AssertionError when a record was lost or seen twice."""
    stats = buffer.stats()
    assert stats.admitted == stats.delivered + stats.sampleable, stats
    assert diary.written == stats.admitted, (diary.written, stats)
    assert learner.trained == stats.delivered, (learner.trained, stats)
    assert len(learner.serials) == learner.trained, "a record was delivered twice"
    return (
        f"nothing lost: {stats.admitted} admitted = {stats.delivered} delivered"
        f" + {stats.sampleable} still sampleable"
    )


def parse(argv: list[str] | None) -> argparse.Namespace:
    """Read the command line and refuse sizes that could make calls wait for each other."""
    parser = argparse.ArgumentParser(
        description="Train CartPole-v1 through a forebay buffer: actors in threads, one learner.",
        epilog="Ctrl-C ends the run cleanly with exit code 130. Try --capacity 4096 to see the"
        " batches grow old, or --actors 1 to see the learner wait.",
    )
    parser.add_argument("--seed", type=int, default=0, help="of weights, actions and environments")
    parser.add_argument("--actors", type=int, default=3, help="threads that play (default 3)")
    parser.add_argument("--updates", type=int, default=800, help="batches to learn from (800)")
    parser.add_argument("--batch", type=int, default=256, help="records a draw (256)")
    parser.add_argument("--chunk", type=int, default=64, help="most records a write (64)")
    parser.add_argument("--capacity", type=int, default=512, help="records the buffer holds (512)")
    parser.add_argument("--learning-rate", type=float, default=3e-3, help="of Adam (0.003)")
    parser.add_argument("--plot", type=Path, default=Path("cartpole.png"), help="PNG to write")
    parser.add_argument("--report-every", type=int, default=50, help="updates a line, in a pipe")
    args = parser.parse_args(argv)
    if min(args.actors, args.updates, args.batch, args.chunk, args.report_every) < 1:
        parser.error("--actors, --updates, --batch, --chunk and --report-every are at least 1")
    # A chunk may be as small as one record, so the bound is taken without its gcd term.
    if args.chunk + args.batch > args.capacity + 1:
        parser.error("--capacity must be at least --chunk + --batch - 1, or calls could deadlock")
    return args


def main(argv: list[str] | None = None) -> int:
    """Run actors and learner; return 0 when the learner finished, 130 after Ctrl-C."""
    args = parse(argv)
    torch.manual_seed(args.seed)
    torch.set_num_threads(1)
    network = Network()
    board = Board(network.weights())
    diary = Diary()
    buffer = forebay.BlockingReplayBuffer(
        forebay.TensorStorage(args.capacity), batch_size=args.batch, order="fifo", seed=args.seed
    )
    token = buffer.cancel_token()

    def stop(signum: int, frame: FrameType | None) -> None:
        token.set()  # takes no lock, so it is safe here

    previous = signal.signal(signal.SIGINT, stop)
    actors = [Actor(n, args, buffer, token, board, diary) for n in range(args.actors)]
    learner = Learner(args, buffer, token, board, network, diary)
    started = time.perf_counter()
    try:
        for actor in actors:
            actor.start()
        learner.run(Console())
    except forebay.Cancelled:
        print("interrupted: every blocked call was cancelled")
    finally:
        buffer.shutdown(immediate=True)
        for actor in actors:
            if actor.ident is not None:
                actor.join()
        signal.signal(signal.SIGINT, previous)
    seconds = time.perf_counter() - started
    if diary.returns:
        first, last = tenths(diary.returns)
        print(
            f"{len(diary.returns)} episodes in {seconds:.1f} s; mean return of the first tenth"
            f" {first:.1f}, of the last {last:.1f}"
        )
    plot(diary, args.plot)
    print(f"plot: {args.plot}")
    print(audit(buffer, learner, diary))
    return 130 if token.is_set() else 0


if __name__ == "__main__":
    code = main()
    # The collector's last passes over everything that torch has made would double the time to exit.
    gc.freeze()
    sys.exit(code)
