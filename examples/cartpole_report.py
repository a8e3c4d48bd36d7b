"""What a run of the CartPole example is judged by: the learner's diary, a plot, and an audit."""

from dataclasses import dataclass, field
from pathlib import Path

import forebay
import numpy as np
from cartpole_actors import SERIALS
from tensordict import TensorDict


@dataclass
class Diary:
    """What the learner has seen, batch by batch."""

    returns: list[float] = field(default_factory=list)
    reader_waits: list[float] = field(default_factory=list)
    writer_waits: list[float] = field(default_factory=list)
    occupancy: list[int] = field(default_factory=list)
    staleness: list[float] = field(default_factory=list)
    trained: int = 0
    _counts: dict[int, int] = field(default_factory=dict)

    def note(self, batch: TensorDict, waited: float, version: int, occupancy: int) -> None:
        """Note a batch, and check that each actor's records come in order, each once, none missing.

        Raises:
            AssertionError: a record was lost, repeated or overtaken.
        """
        lengths = batch["episode"]
        self.returns += lengths[lengths > 0].tolist()
        self.reader_waits.append(waited)
        self.writer_waits.append(float(batch["waited"].sum()))
        self.occupancy.append(occupancy)
        self.staleness.append(version - float(batch["version"].float().mean()))
        self.trained += len(batch)
        for serial in batch["serial"].tolist():
            actor, number = divmod(serial, SERIALS)
            expected = self._counts.get(actor, 0)
            assert number == expected, f"actor {actor}: record {number} comes, not {expected}"
            self._counts[actor] = number + 1

    def recent(self) -> float:
        """Return the mean return of the last fifty episodes, or 0 before the first."""
        return float(np.mean(self.returns[-50:])) if self.returns else 0.0

    def tenths(self) -> tuple[float, float]:
        """Return the mean return of the first and of the last tenth of the episodes."""
        tenth = max(1, len(self.returns) // 10)
        return float(np.mean(self.returns[:tenth])), float(np.mean(self.returns[-tenth:]))


def plot(diary: Diary, path: Path) -> None:
    """Draw returns by episode, and waiting time and occupancy by update, into a PNG file."""
    import matplotlib  # here, since the actors' processes import this module and do not draw

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

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


def audit(buffer: forebay.BlockingReplayBuffer, diary: Diary) -> str:
    """Return the conservation line.

    Raises:
        AssertionError: what was written is neither delivered nor there.
    """
    stats = buffer.stats()
    assert stats.admitted == stats.delivered + stats.sampleable, stats
    assert diary.trained == stats.delivered, (diary.trained, stats)
    return (
        f"nothing lost: {stats.admitted} admitted = {stats.delivered} delivered"
        f" + {stats.sampleable} still sampleable; recoveries: {stats.recoveries}"
    )
