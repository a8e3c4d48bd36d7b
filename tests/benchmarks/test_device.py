"""The benchmark of a device computes what it says; here the host stands for the device.

The cases are those that run on a GPU. What differs is where tensors are made and how one waits.
"""

import json
import re
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from threading import Lock

import forebay
import pytest
import torch
from tensordict import TensorDictBase

from benchmarks import device, device_peers, timing
from benchmarks.device_peers import PINNED, PLAIN, TORCHRL, Ours, Plain, full_sides
from benchmarks.records import RECORD
from benchmarks.records import tokens as records
from benchmarks.timing import OURS


class Host:
    """Host memory in the place of a device; what is queued has run at once."""

    name = "a device that is none"
    where = torch.device("cpu")

    def wait(self) -> None:
        """Nothing is left to do."""

    def storage(self, capacity: int) -> forebay.Storage:
        return forebay.TensorStorage(capacity)

    def pinned(self, tensor: torch.Tensor) -> torch.Tensor:
        return tensor.clone()

    def aside(self) -> Callable[[], AbstractContextManager[object]]:
        return nullcontext


class Clock:
    """A clock that goes on only when work takes time, and a device that lags behind the host.

    What is queued takes its time when somebody waits for the device, and not before.
    """

    name = "a device that lags behind"
    where = torch.device("cpu")

    def __init__(self) -> None:
        self.now = 0.0
        self._queued = 0.0
        self._lock = Lock()
        self._streams = 0
        self.entered: list[int] = []

    def queue(self, seconds: float) -> Callable[[int], None]:
        def work(cycles: int) -> None:
            with self._lock:
                self._queued += seconds * cycles

        return work

    def wait(self) -> None:
        with self._lock:
            self.now += self._queued
            self._queued = 0.0

    def storage(self, capacity: int) -> forebay.Storage:
        raise NotImplementedError

    def pinned(self, tensor: torch.Tensor) -> torch.Tensor:
        raise NotImplementedError

    def aside(self) -> Callable[[], AbstractContextManager[object]]:
        self._streams += 1
        number = self._streams

        def block() -> AbstractContextManager[object]:
            with self._lock:
                self.entered.append(number)
            return nullcontext()

        return block


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr("time.perf_counter", lambda: clock.now)
    return clock


def test_bandwidth_counts_until_the_device_has_nothing_left_to_do(clock: Clock) -> None:
    works = {OURS: clock.queue(0.01), "a slower one": clock.queue(0.04)}
    ours, slower = device.bandwidth(clock, works, 100, 3)
    assert (ours.name, slower.name) == (OURS, "a slower one")
    assert ours.gigabytes == pytest.approx(100 * RECORD / 0.01 / 1e9)
    assert slower.gigabytes == pytest.approx(ours.gigabytes / 4)
    assert slower.times_ours == pytest.approx((4.0, 4.0, 4.0))


def test_overlap_compares_all_at_once_with_each_alone(clock: Clock) -> None:
    # Eight cycles of each are enough, so 0.8, 1.6 and 2.4 seconds; this device does one at a time.
    works = [clock.queue(0.1), clock.queue(0.2), clock.queue(0.3)]
    (found,) = device.overlap(clock, {OURS: works}, 3)
    assert found.milliseconds == pytest.approx(4800)
    assert found.of_the_sum == pytest.approx((1.0, 1.0, 1.0))
    assert found.of_the_longest == pytest.approx((2.0, 2.0, 2.0))


def test_what_runs_at_once_has_a_stream_each(clock: Clock) -> None:
    device.overlap(clock, {OURS: [clock.queue(0.1)] * 3}, 1)
    assert clock.entered[3:6] == [1, 2, 3], "each alone"
    assert sorted(clock.entered[:3]) == sorted(clock.entered[6:]) == [1, 2, 3], "all at once"


def test_what_was_queued_before_is_not_counted(clock: Clock) -> None:
    clock.queue(5.0)(1)
    work = clock.queue(0.1)
    assert device.at_once(clock, [lambda: work(2)]) == pytest.approx(0.2)


def test_an_error_of_one_of_three_is_not_lost(clock: Clock) -> None:
    def fails() -> None:
        raise ArithmeticError("it did not run")

    with pytest.raises(ArithmeticError, match="it did not run"):
        device.at_once(clock, [lambda: None, fails, lambda: None])


@pytest.mark.parametrize("from_host", [True, False])
def test_every_side_hands_out_whole_records_that_were_written(from_host: bool) -> None:
    sides = full_sides(Host(), 4, 16, from_host=from_host)
    assert list(sides) == [OURS, PLAIN, *([PINNED] if from_host else []), TORCHRL]
    written = {tuple(row.tolist()) for row in records(4)["tokens"]}
    for name, side in sides.items():
        side.put()
        tokens, logprob = leaves(side.get())
        assert tokens.shape == (4, RECORD // 12), name
        assert {tuple(row.tolist()) for row in tokens} <= written, name
        assert torch.equal(logprob, tokens.to(torch.float32)), name


def leaves(drawn: object) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the tokens and the log-probabilities of what a side has drawn."""
    if isinstance(drawn, TensorDictBase):
        return drawn["tokens"], drawn["logprob"]
    assert isinstance(drawn, list)
    tokens, logprob = drawn
    return tokens, logprob


@pytest.mark.parametrize("pinned", [True, False])
def test_the_plain_side_writes_every_slot_in_turn(pinned: bool) -> None:
    side = Plain(Host(), records(4), 12, pinned=pinned)
    for column in side.columns:
        column.zero_()
    for filled in (4, 8, 12, 12):
        side.put()
        rows = torch.cat([records(4)["tokens"]] * (filled // 4))
        assert torch.equal(side.columns[0][:filled], rows)
        assert not side.columns[0][filled:].any()


def test_the_plain_side_reads_every_slot_in_turn() -> None:
    side = Plain(Host(), records(4), 12)
    side.columns[0].copy_(torch.arange(12).unsqueeze(1).expand_as(side.columns[0]))
    seen = [int(row[0]) for _ in range(3) for row in leaves(side.get())[0]]
    assert sorted(seen) == list(range(12))


def test_our_side_is_full_and_goes_on_overwriting() -> None:
    side = full_sides(Host(), 4, 16, from_host=True)[OURS]
    assert isinstance(side, Ours)
    device.puts(side)(3)
    device.gets(side)(5)
    stats = side.buffer.stats()
    assert (stats.size, stats.evicted, stats.delivered) == (16, 12, 20)


def test_torchrl_is_left_out_where_it_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device_peers, "has_torchrl", lambda: False)
    assert list(full_sides(Host(), 4, 16, from_host=False)) == [OURS, PLAIN]


def test_training_multiplies(monkeypatch: pytest.MonkeyPatch) -> None:
    products = []

    def mm(left: torch.Tensor, right: torch.Tensor, *, out: torch.Tensor) -> None:
        assert left.shape == right.shape == out.shape == (16, 16)
        products.append(out)

    monkeypatch.setattr(device, "WIDTH", 16)
    monkeypatch.setattr("torch.mm", mm)
    device.training(Host())(3)
    assert len(products) == 3


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """The whole command, at a small size and on the host."""
    monkeypatch.setattr(device, "Cuda", Host)
    monkeypatch.setattr(device, "WIDTH", 16)
    monkeypatch.setattr(device, "SIZES", dict.fromkeys(device.SIZES, (4, 8)))
    monkeypatch.setattr(device, "settle", lambda cores: f"{cores} cores")
    monkeypatch.setattr(timing, "SHORTEST", 0.002)


@pytest.mark.usefixtures("small")
def test_every_case_comes_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert device.main(["--mib", "1", "--repetitions", "1", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["machine"] == "a device that is none; 4 cores"
    assert document["capacity"] == 80
    assert document["peers"] == "TorchRL is installed"
    names: dict[tuple[str, int], list[str]] = {}
    for result in document["results"]:
        names.setdefault((result["case"], result["rows"]), []).append(result["name"])
        if result["case"].startswith("overlap"):
            assert result["milliseconds"] > 0
            longest, of_sum = result["of_the_longest"], result["of_the_sum"]
            assert of_sum["smallest"] <= of_sum["median"] <= of_sum["largest"]
            assert longest["median"] > of_sum["median"] > 0
        else:
            assert result["gigabytes"] > 0
            assert result["times_ours"]["median"] == 1.0 or result["name"] != OURS
    host, other = [OURS, PLAIN, PINNED, TORCHRL], [OURS, PLAIN, TORCHRL]
    assert names == {
        (case, rows): host if case.endswith("host") else other
        for case in device.SIZES
        for rows in (4, 8)
    }


@pytest.mark.usefixtures("small")
def test_the_tables_name_the_machine(capsys: pytest.CaptureFixture[str]) -> None:
    cases = ["extend-device", "overlap-device"]
    assert device.main([*cases, "--mib", "1", "--repetitions", "1"]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert "a device that is none; 4 cores" in printed
    assert "80 records of 12288 bytes; TorchRL is installed" in printed
    assert re.search(r"│ 8 │ forebay │ \d+\.\d │ 1\.00 \(1\.00 to 1\.00\) │", printed)


@pytest.mark.parametrize(
    ("version", "reason"),
    [
        (None, rf"torch {re.escape(torch.__version__)} is built without CUDA"),
        ("12.8", r"torch\.cuda\.is_available\(\) says that there is none"),
    ],
)
def test_without_a_device_it_says_so_and_could_not_run(
    version: str | None,
    reason: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr("torch.version.cuda", version)
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    assert device.main([]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert re.search(f"needs a CUDA device: {reason}\n$", printed.err)


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        (["P2"], "unknown case P2; there are extend-host, extend-device, sample, overlap-host"),
        (["--repetitions", "0"], "--repetitions is at least 1"),
        (["--mib", "11"], "--mib is at least 12, for one batch"),
    ],
)
def test_options_that_make_no_sense(
    wrong: list[str], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit, match="2"):
        device.main(wrong)
    assert says in capsys.readouterr().err


@pytest.mark.cuda
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_every_case_runs_on_a_cuda_device(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(device, "settle", lambda cores: f"{cores} cores")
    assert device.main(["--mib", "12", "--repetitions", "1", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert torch.cuda.get_device_name() in document["machine"]
    assert {result["case"] for result in document["results"]} == set(device.SIZES)
