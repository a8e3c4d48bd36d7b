"""Train CartPole through a buffer whose producers wait: actors in threads or processes, a learner.

On-policy learning wants every transition once and while it is fresh. A plain ring would overwrite
what the learner has not seen, and an unbounded queue would let the actors run ahead with a stale
policy. Here a small `BlockingReplayBuffer` in arrival order does both jobs: actors wait when it is
full, so the data is never older than a few updates, and nothing is lost.

How it is wired:

- each actor (`cartpole_actors.py`) plays whole episodes with the newest posted weights, turns
  rewards into returns-to-go, and writes them in chunks; a chunk is admitted whole or not at all;
- the learner, in the main thread, draws fixed batches, each record exactly once, and takes one
  clipped policy-gradient step a batch (`cartpole_policy.py`);
- with `--processes` the actors are processes: the storage is a `SharedStorage`, and nothing else
  changes about the buffer. With `--kill-actor` one of them is killed on the way;
- `capacity`, `chunk` and `batch` obey chunk + batch <= capacity + gcd(chunk, batch), so that a
  writer and the reader can never wait for each other;
- Ctrl-C sets one cancel token, which ends every blocked call, and the run ends as if it were done.

At the end the counts are audited (`cartpole_report.py`): every record that was admitted was either
delivered once or is still in the buffer.
"""

import argparse
import gc
import signal
import sys
import time
from functools import partial
from pathlib import Path
from types import FrameType

import forebay
import torch
from cartpole_actors import Board, Processes, Threads, act, example
from cartpole_policy import Network, improve
from cartpole_report import Diary, audit, plot
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from tensordict import TensorDict


class Learner:
    """Draws batches, improves the policy, and notes what it was given."""

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
        self._kill_actor: int | None = args.kill_actor
        self._buffer = buffer
        self._token = token
        self._board = board
        self._network = network
        self._optimiser = torch.optim.Adam(network.parameters(), lr=args.learning_rate)
        self._diary = diary

    def run(self, crew: Threads | Processes, console: Console) -> None:
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
                mean = self._diary.recent()
                progress.update(task, advance=1, mean=mean)
                if not console.is_terminal and update % self._report_every == 0:
                    print(f"update {update}/{self._updates}: mean return {mean:.1f}", flush=True)
                if update == self._kill_actor and isinstance(crew, Processes):
                    crew.kill()

    def _next_batch(self) -> TensorDict:
        started = time.perf_counter()
        batch = self._buffer.sample(cancel_event=self._token)
        waited = time.perf_counter() - started
        assert isinstance(batch, TensorDict)  # what these storages give back
        self._diary.note(batch, waited, self._board.version(), len(self._buffer))
        return batch


def parse(argv: list[str] | None) -> argparse.Namespace:
    """Read the command line and refuse sizes that could make calls wait for each other."""
    parser = argparse.ArgumentParser(
        description="Train CartPole-v1 through a forebay buffer: some actors, one learner.",
        epilog="Ctrl-C ends the run cleanly, with exit code 0. Try --capacity 4096 to see the"
        " batches grow old, --actors 1 to see the learner wait, or --processes --kill-actor to see"
        " an actor die and be replaced.",
    )
    parser.add_argument("--seed", type=int, default=0, help="of weights, actions and environments")
    parser.add_argument("--actors", type=int, default=3, help="threads that play (default 3)")
    parser.add_argument(
        "--processes",
        nargs="?",
        const="spawn",
        choices=["spawn", "forkserver", "fork"],
        help="let the actors play in processes, started this way (spawn unless named)",
    )
    parser.add_argument(
        "--kill-actor",
        nargs="?",
        const=100,
        type=int,
        metavar="UPDATE",
        help="kill an actor's process after so many updates (100 unless named)",
    )
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
    if args.kill_actor is not None and args.processes is None:
        parser.error("--kill-actor needs --processes: a thread cannot be killed")
    return args


def main(argv: list[str] | None = None) -> int:
    """Run actors and learner; return 0 when the learner finished or was stopped by Ctrl-C."""
    args = parse(argv)
    torch.manual_seed(args.seed)
    torch.set_num_threads(1)
    network = Network()
    board = Board(network.weights())
    diary = Diary()
    storage: forebay.Storage
    if args.processes is None:
        storage = forebay.TensorStorage(args.capacity)
    else:
        storage = forebay.SharedStorage(args.capacity, example=example())
    buffer = forebay.BlockingReplayBuffer(
        storage, batch_size=args.batch, order="fifo", seed=args.seed
    )
    token = buffer.cancel_token()

    def stop(signum: int, frame: FrameType | None) -> None:
        token.set()  # takes no lock, so it is safe here

    previous = signal.signal(signal.SIGINT, stop)
    play = partial(act, seed=args.seed, chunk=args.chunk, buffer=buffer, token=token, board=board)
    crew: Threads | Processes
    if args.processes is None:
        crew = Threads(args.actors, play)
    else:
        crew = Processes(args.actors, play, buffer, args.processes)
    learner = Learner(args, buffer, token, board, network, diary)
    started = time.perf_counter()
    try:
        crew.start()
        learner.run(crew, Console())
    except forebay.Cancelled:
        print("interrupted: every blocked call was cancelled")
    finally:
        buffer.shutdown(immediate=True)
        crew.join()
        signal.signal(signal.SIGINT, previous)
    seconds = time.perf_counter() - started
    if diary.returns:
        first, last = diary.tenths()
        print(
            f"{len(diary.returns)} episodes in {seconds:.1f} s; mean return of the first tenth"
            f" {first:.1f}, of the last {last:.1f}"
        )
    plot(diary, args.plot)
    print(f"plot: {args.plot}")
    print(audit(buffer, diary))
    return 0


if __name__ == "__main__":
    code = main()
    # The collector's last passes over everything that torch has made would double the time to exit.
    gc.freeze()
    sys.exit(code)
