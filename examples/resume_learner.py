"""The run that `resume.py` kills: a learner, its actors, and one checkpoint of both.

The learner trains on each record once. Every so many steps it saves, in one directory, the buffer,
its weights, and the ids of all records that it was trained on; then it points `latest` at that
directory. Whoever is killed in the middle of a step goes on from there: the steps since then have
never happened, neither for the weights nor for the buffer, and that is why no record is used twice
in what the weights have seen.

Started anew it loads the newest checkpoint and looks first whether that is so.
"""

import json
import multiprocessing
import os
import shutil
import sys
from multiprocessing.context import ForkServerContext
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Final, NamedTuple

import forebay
import torch
from safetensors.torch import load_file, save_file
from tensordict import TensorDict

CAPACITY: Final = 512
BATCH: Final = 32
CHUNK: Final = 24
ACTORS: Final = 2
PREFETCH: Final = 2
FEATURES: Final = 8


class Counts(NamedTuple):
    """Where every record is that was ever admitted in this lineage."""

    admitted: int
    delivered: int
    sampleable: int
    prefetched: int

    @property
    def kept(self) -> bool:
        """Whether each record was delivered once or is still there."""
        return self.admitted == self.delivered + self.sampleable + self.prefetched


def counts(buffer: forebay.BlockingReplayBuffer) -> Counts:
    """Return the counts, in records; what is drawn ahead was not delivered yet."""
    stats = buffer.stats()
    return Counts(stats.admitted, stats.delivered, stats.sampleable, BATCH * stats.prefetched)


def act(buffer: forebay.BlockingReplayBuffer, start: int, actor: int) -> None:
    """Write chunks of records with new ids until the buffer is closed."""
    torch.set_num_threads(1)
    torch.manual_seed(1000 * start + actor)
    teacher = torch.arange(1.0, FEATURES + 1)
    writer = buffer.writer(when_closed="discard")
    first = (start << 40) | (actor << 32)
    while True:
        features = torch.randn(CHUNK, FEATURES)
        target = features @ teacher + 0.1 * torch.randn(CHUNK)
        ids = torch.arange(first, first + CHUNK)
        chunk = TensorDict({"features": features, "target": target, "id": ids}, [CHUNK])
        if not len(writer.extend(chunk)):
            return
        first += CHUNK


class Learner:
    """A linear model, the ids that it was trained on, and how many steps that took."""

    def __init__(self, buffer: forebay.BlockingReplayBuffer, place: Path) -> None:
        self.buffer = buffer
        self.step = 0
        self.trained: list[torch.Tensor] = []
        self._place = place
        self._weights = torch.zeros(FEATURES)

    def train(self) -> float:
        """Take one step; return the loss before it."""
        batch = self.buffer.sample()
        wrong = batch["features"] @ self._weights - batch["target"]
        self._weights -= 0.05 * (batch["features"] * wrong[:, None]).mean(0)
        self.trained.append(batch["id"])
        self.step += 1
        return float((wrong**2).mean())

    def ids(self) -> torch.Tensor:
        """Return the ids of all records that the weights have seen: int64[steps * BATCH]."""
        return torch.cat([torch.empty(0, dtype=torch.int64), *self.trained])

    def save(self) -> None:
        """Save everything as it is between two steps, and then make that the newest."""
        target = self._place / f"step-{self.step:06}"
        target.mkdir(exist_ok=True)
        self.buffer.dumps(target / "buffer")
        save_file({"weights": self._weights, "ids": self.ids()}, target / "learner.safetensors")
        pointer = self._place / "latest.new"
        pointer.write_text(target.name, encoding="utf-8")
        os.replace(pointer, self._place / "latest")
        for other in self._place.glob("step-*"):
            if other != target:
                shutil.rmtree(other)

    def load(self) -> bool:
        """Go on from the newest checkpoint; False if there is none.

        Raises:
            RuntimeError: a record would be lost, or be trained on twice.
        """
        pointer = self._place / "latest"
        if not pointer.exists():
            return False
        source = self._place / pointer.read_text(encoding="utf-8")
        saved = load_file(source / "learner.safetensors")
        self._weights, ids = saved["weights"], saved["ids"]
        self.trained = [ids]
        self.step = len(ids) // BATCH
        self.buffer.loads(source / "buffer")
        waiting = forebay.read_records(source / "buffer")
        assert isinstance(waiting, TensorDict)
        check(ids, waiting["id"], counts(self.buffer))
        return True


def check(trained: torch.Tensor, waiting: torch.Tensor, now: Counts) -> None:
    """Raise RuntimeError unless each record of a lineage was trained on once or still waits."""
    both = torch.cat([trained, waiting])
    twice = len(both) - len(set(both.tolist()))
    if twice:
        raise RuntimeError(f"{twice} records are or would be trained on twice")
    if not now.kept or now.delivered != len(trained):
        raise RuntimeError(f"records are lost: {now}, trained on {len(trained)}")


def start_actors(buffer: forebay.BlockingReplayBuffer, start: int) -> list[BaseProcess]:
    """Start the actors, in processes that share the buffer."""
    context = multiprocessing.get_context("forkserver")
    assert isinstance(context, ForkServerContext)
    context.set_forkserver_preload(["forebay"])
    actors: list[BaseProcess] = [
        context.Process(target=act, args=(buffer, start, actor)) for actor in range(ACTORS)
    ]
    for actor in actors:
        actor.start()
    return actors


def tell(**what: object) -> None:
    """Print one line for whoever has started this run."""
    print(json.dumps(what), flush=True)


def main(place: Path, start: int, steps: int, every: int) -> None:
    """Train until `steps` steps are done in this lineage, saving every so many."""
    torch.set_num_threads(1)
    example = TensorDict({"features": torch.zeros(FEATURES), "target": 0.0, "id": 0})
    buffer = forebay.BlockingReplayBuffer(
        forebay.SharedStorage(CAPACITY, example=example), batch_size=BATCH, prefetch=PREFETCH
    )
    learner = Learner(buffer, place)
    resumed = learner.load()
    tell(what="starts", step=learner.step, resumed=resumed, **counts(buffer)._asdict())
    actors = start_actors(buffer, start)
    try:
        while learner.step < steps:
            tell(what="step", step=learner.step + 1)
            loss = learner.train()
            if learner.step % every == 0:
                learner.save()
                tell(what="saved", step=learner.step, loss=loss)
    finally:
        buffer.shutdown()
        for actor in actors:
            actor.join()
    while True:  # what is left is trained on too, so that nothing is unaccounted for
        try:
            learner.train()
        except forebay.ShutDown:
            break
    now = counts(buffer)
    check(learner.ids(), torch.empty(0, dtype=torch.int64), now)
    tell(what="ends", step=learner.step, loss=loss, ids=len(learner.ids()), **now._asdict())


if __name__ == "__main__":
    main(Path(sys.argv[1]), *map(int, sys.argv[2:5]))
