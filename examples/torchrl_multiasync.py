"""Train with TorchRL's MultiAsyncCollector through a forebay buffer, whose writers wait.

The collector's workers are processes that play CartPole and write to one buffer; the learner, here
in the main process, draws from it. The three numbered lines in `main` are what it takes to put
forebay in the place of TorchRL's buffer: workers that are ahead wait, and each record is learned
from once. `--torchrl` runs the same script on TorchRL's own consuming buffer and counts what was
overwritten before anybody had read it.

What a collector does when one of its workers dies, and what this script does about it:

- `collector.start()` lets the workers run by themselves, and then nobody looks after them: the
  others go on. So the script goes on too, with fewer workers, until none is left. Iterating over
  the collector instead would end all workers with a RuntimeError as soon as one has died.
- A collector cannot start a worker anew. Who needs that makes a second collector on the buffer, or
  starts actors without a collector, as `cartpole.py` does.
- `update_policy_weights_` would wait for ever for the dead worker to acknowledge the new weights,
  so the script asks for no acknowledgement and names the workers that are alive.

`--kill-actor` shows it: the learner stops drawing until every worker waits within an `extend`, and
kills one there. What that had asked for is taken back within a second, and the others go on. Ctrl-C
ends the run with exit code 0.
"""

import argparse
import gc
import logging
import os
import signal
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from multiprocessing import active_children, resource_tracker

import forebay
import torch
from forebay.torchrl import example
from tensordict import TensorDictBase
from tensordict.nn import TensorDictModule
from torchrl.collectors import MultiAsyncCollector
from torchrl.data import LazyTensorStorage, ReplayBuffer
from torchrl.envs import EnvBase, GymEnv, StepCounter, TransformedEnv
from torchrl.modules import MLP, OneHotCategorical, ProbabilisticActor, ValueOperator
from torchrl.objectives import ClipPPOLoss
from torchrl.weight_update import SharedMemWeightSyncScheme

CHUNK = 64
"""How many records a worker writes at a time."""
DISCOUNT = 0.98


def make_env() -> EnvBase:
    """Return an environment that counts its steps; a worker makes one for itself."""
    return TransformedEnv(GymEnv("CartPole-v1"), StepCounter())


def make_actor() -> ProbabilisticActor:
    """Return a policy that also says how probable its actions were."""
    network = TensorDictModule(
        MLP(in_features=4, out_features=2, num_cells=[64]), ["observation"], ["logits"]
    )
    return ProbabilisticActor(
        network,
        in_keys=["logits"],
        out_keys=["action"],
        spec=make_env().action_spec,
        distribution_class=OneHotCategorical,
        return_log_prob=True,
    )


def with_returns(chunk: TensorDictBase) -> TensorDictBase:
    """Add the discounted rewards that come after each step, up to the end of the chunk."""
    rewards = chunk["next", "reward"].reshape(-1).tolist()
    ends = chunk["next", "done"].reshape(-1).tolist()
    returns: list[float] = []
    after = 0.0
    for reward, end in zip(reversed(rewards), reversed(ends), strict=True):
        after = reward + (0.0 if end else DISCOUNT * after)
        returns.append(after)
    return chunk.set("return_to_go", torch.tensor(returns[::-1]).reshape(*chunk.batch_size, 1))


COLLECTOR = {"postproc": with_returns, "auto_register_policy_transforms": False}
"""What the collector is told about its records, and `example` too."""


def identities(batch: TensorDictBase) -> list[int]:
    """Return what tells records apart: the number of the trajectory and the step in it."""
    steps = batch["step_count"].reshape(-1)
    found: list[int] = (batch["collector", "traj_ids"].reshape(-1) * 1_000_000 + steps).tolist()
    return found


class Learner:
    """Learns from batches with PPO's clipped loss and notes which records there were."""

    def __init__(self, actor: ProbabilisticActor) -> None:
        self._critic = ValueOperator(
            MLP(in_features=4, out_features=1, num_cells=[64]), ["observation"]
        )
        self._loss = ClipPPOLoss(actor, self._critic, normalize_advantage=True)
        self._optimiser = torch.optim.Adam(self._loss.parameters(), lr=5e-3)
        self.seen: set[int] = set()
        self.records = 0
        self.lengths: list[int] = []

    def learn(self, batch: TensorDictBase) -> None:
        """Take one step."""
        self.seen.update(identities(batch))
        self.records += len(batch)
        over = batch["next", "done"].reshape(-1)
        self.lengths += batch["next", "step_count"].reshape(-1)[over].tolist()
        batch["value_target"] = batch["return_to_go"]
        with torch.no_grad():
            value = self._critic(batch.select("observation"))["state_value"]
        batch["advantage"] = batch["return_to_go"] - value
        losses = self._loss(batch)
        total = sum(value for name, value in losses.items() if name.startswith("loss_"))
        self._optimiser.zero_grad()
        total.backward()
        self._optimiser.step()

    def recent(self) -> float:
        """Return the mean length of the last fifty episodes, or 0 before the first."""
        lengths = self.lengths[-50:]
        return sum(lengths) / len(lengths) if lengths else 0.0


def start_workers(
    args: argparse.Namespace,
    actor: ProbabilisticActor,
    writer: object,
) -> MultiAsyncCollector:
    """Start the collector in a thread that lets no Ctrl-C through, which its processes inherit."""
    resource_tracker.ensure_running()  # it would let signals through again where it is started

    def start() -> MultiAsyncCollector:
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        return MultiAsyncCollector(
            [make_env] * args.workers,
            actor,
            replay_buffer=writer,
            frames_per_batch=CHUNK,
            total_frames=-1,
            weight_sync_schemes={"policy": SharedMemWeightSyncScheme(sync=False)},
            **COLLECTOR,
        )

    with ThreadPoolExecutor(1) as executor:
        try:
            return executor.submit(start).result()
        except KeyboardInterrupt:
            kill_children()  # so that the thread's wait for them comes to its end
            raise


def kill_children() -> None:
    """Kill every process that was started here."""
    for child in active_children():
        child.kill()
        child.join()


def living(collector: MultiAsyncCollector) -> list[int]:
    """Return the numbers of the workers that are alive."""
    return [number for number, process in enumerate(collector.procs) if process.is_alive()]


def kill_one(collector: MultiAsyncCollector, buffer: forebay.BlockingReplayBuffer) -> None:
    """Wait until all workers wait within `extend`, since nobody draws, and kill one of them."""
    while buffer.stats().waiting_writers < len(living(collector)):
        time.sleep(0.01)
    number = living(collector)[0]
    process = collector.procs[number]
    os.kill(process.pid, signal.SIGKILL)
    process.join()
    print(f"killed worker {number}, which waited within extend, as all did", flush=True)


def next_batch(
    args: argparse.Namespace,
    collector: MultiAsyncCollector,
    buffer: forebay.BlockingReplayBuffer | ReplayBuffer,
) -> TensorDictBase | None:
    """Return a batch, or None when no more will come."""
    if isinstance(buffer, forebay.BlockingReplayBuffer):
        while True:
            try:
                batch = buffer.sample(timeout=1.0)
            except forebay.SampleTimeout:
                if not living(collector):
                    return None
            else:
                assert isinstance(batch, TensorDictBase)  # what this storage gives back
                return batch
    while len(buffer) < args.batch:  # TorchRL's buffer does not wait for records
        if buffer.write_count >= args.updates * args.batch or not living(collector):
            return None
        time.sleep(0.001)
    batch = buffer.sample()
    assert isinstance(batch, TensorDictBase)
    return batch


def train(
    args: argparse.Namespace,
    collector: MultiAsyncCollector,
    buffer: forebay.BlockingReplayBuffer | ReplayBuffer,
    learner: Learner,
) -> None:
    """Take as many updates as were asked for, or fewer when no more records can come."""
    collector.start()
    for update in range(1, args.updates + 1):
        batch = next_batch(args, collector, buffer)
        if batch is None:
            print(f"after {update - 1} updates no more records come")
            return
        learner.learn(batch)
        collector.update_policy_weights_(worker_ids=living(collector))
        if update % args.report_every == 0:
            mean = learner.recent()
            print(f"update {update}/{args.updates}: mean length {mean:.1f}", flush=True)
        if update == args.kill_actor and isinstance(buffer, forebay.BlockingReplayBuffer):
            kill_one(collector, buffer)


def report(buffer: forebay.BlockingReplayBuffer | ReplayBuffer, learner: Learner) -> None:
    """Print what became of the records, once nobody writes any more."""
    twice = learner.records - len(learner.seen)
    if isinstance(buffer, forebay.BlockingReplayBuffer):
        stats = buffer.stats()
        print(
            f"forebay: {stats.admitted} admitted = {stats.delivered} delivered"
            f" + {stats.sampleable} still sampleable; delivered twice: {twice};"
            f" overwritten unread: {stats.admitted - stats.delivered - stats.sampleable};"
            f" recoveries: {stats.recoveries}"
        )
        return
    written = buffer.write_count
    kept = set(identities(buffer.storage[:])) if written else set()
    unread = len(kept - learner.seen)
    print(
        f"TorchRL: {written} written, {learner.records} sampled, {unread} unread in the buffer;"
        f" sampled twice: {twice};"
        f" overwritten unread: {written - len(learner.seen) - unread}"
    )


def parse(argv: list[str] | None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--workers", type=int, default=2, help="the collector's processes (2)")
    parser.add_argument("--updates", type=int, default=200, help="batches to learn from (200)")
    parser.add_argument("--batch", type=int, default=256, help="records a draw (256)")
    parser.add_argument("--capacity", type=int, default=512, help="records the buffer holds (512)")
    parser.add_argument("--report-every", type=int, default=20, help="updates a line (20)")
    parser.add_argument("--torchrl", action="store_true", help="use TorchRL's buffer instead")
    parser.add_argument(
        "--kill-actor",
        nargs="?",
        const=50,
        type=int,
        metavar="UPDATE",
        help="kill a worker within an extend after so many updates (50 unless named)",
    )
    args = parser.parse_args(argv)
    if min(args.workers, args.updates, args.batch, args.report_every) < 1:
        parser.error("--workers, --updates, --batch and --report-every are at least 1")
    if CHUNK + args.batch > args.capacity:
        parser.error(f"--capacity must be at least --batch + {CHUNK}, or calls could deadlock")
    if args.torchrl and args.kill_actor is not None:
        parser.error("--kill-actor needs forebay: writers to TorchRL's buffer never wait")
    return args


def main(argv: list[str] | None = None) -> int:
    """Run workers and learner; return 0 when the learner finished or was stopped by Ctrl-C."""
    args = parse(argv)
    logging.getLogger("torchrl").setLevel(logging.WARNING)  # it announces its storages
    torch.set_num_threads(1)
    actor = make_actor()
    learner = Learner(actor)
    record = example(make_env, actor, **COLLECTOR)
    buffer: forebay.BlockingReplayBuffer | ReplayBuffer
    if args.torchrl:
        storage = LazyTensorStorage(args.capacity)
        buffer = ReplayBuffer(
            storage=storage, batch_size=args.batch, consume_after_n_samples=1, shared=True
        )
        buffer.extend(record[None])  # so that it knows what with_returns adds
        buffer.empty()
        writer = buffer
    else:
        storage = forebay.SharedStorage(args.capacity, example=record)  # 1
        buffer = forebay.BlockingReplayBuffer(storage, batch_size=args.batch)  # 2
        writer = buffer.writer(when_closed="discard")  # 3: workers end quietly on a closed buffer
    collector = None
    try:
        collector = start_workers(args, actor, writer)
        train(args, collector, buffer, learner)
    except KeyboardInterrupt:
        print("interrupted")
    finally:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # what follows is short
        if isinstance(buffer, forebay.BlockingReplayBuffer):
            buffer.shutdown(immediate=True)  # ends the workers' waiting
        if collector is not None:
            collector.shutdown(timeout=1.0)
        kill_children()
    report(buffer, learner)
    return 0


if __name__ == "__main__":
    code = main()
    # Without the garbage collector's last passes over all that torch has made, the end is quicker.
    gc.freeze()
    sys.exit(code)
