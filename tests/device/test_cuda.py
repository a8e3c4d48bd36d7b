"""The storage on a real device: what the simulated one shows, where there is a CUDA device."""

import threading
from typing import Any

import pytest
import torch
from forebay import BlockingReplayBuffer, CudaStorage, RecordMismatch, ReplayBuffer
from tensordict import TensorDict

from tests.storage.support import steps

CUDA = torch.cuda.is_available()
needs_cuda = pytest.mark.skipif(not CUDA, reason="needs a CUDA device, and torch finds none")
LONG = 50_000_000
"""Clock cycles of the device for which a stream is kept busy: some hundredths of a second."""


def busy() -> None:
    """Keep the current stream busy for a while."""
    torch.cuda._sleep(LONG)  # type: ignore[no-untyped-call]  # torch's own, for its tests


def stream() -> torch.cuda.Stream:
    """Return a stream of torch's pool."""
    return torch.cuda.Stream()  # type: ignore[no-untyped-call]  # torch's own


def records(first: int, n: int, device: str = "cpu") -> TensorDict:
    """Return records that tell their number in each word."""
    number = torch.arange(first, first + n, device=device)
    wide = number.unsqueeze(1).repeat(1, 4096)
    return TensorDict({"x": number, "y": wide}, batch_size=[n])


def whole(batch: TensorDict) -> list[int]:
    """Return the numbers of a batch, each of whose rows has to be one record."""
    numbers: list[int] = batch["x"].tolist()
    assert batch["y"].amin(1).tolist() == batch["y"].amax(1).tolist() == numbers
    return numbers


@pytest.mark.skipif(CUDA, reason="there is a CUDA device")
def test_without_a_device_the_error_says_so_and_what_to_use() -> None:
    with pytest.raises(RuntimeError, match=r"no CUDA device .* use TensorStorage or SharedStorage"):
        CudaStorage(8)


@pytest.mark.parametrize("device", ["cpu", "meta", "gpu", "cuda:-1", None])
def test_another_device_is_refused(device: Any) -> None:
    with pytest.raises(ValueError, match=f"must be a CUDA device .* got '{device}'"):
        CudaStorage(8, device=device)


@pytest.mark.cuda
@needs_cuda
class TestOnCuda:
    """What needs a device."""

    def test_a_device_that_there_is_not(self) -> None:
        with pytest.raises(ValueError, match=r"must be one of cuda:0 to cuda:\d+, got 'cuda:99'"):
            CudaStorage(8, device="cuda:99")

    @pytest.mark.parametrize("source", ["cpu", "cuda"])
    def test_records_come_back_on_the_device(self, source: str) -> None:
        storage = CudaStorage(8)
        buffer = BlockingReplayBuffer(storage, batch_size=4, order="random", seed=0)
        assert storage.device == torch.device("cuda", torch.cuda.current_device())
        for first in (0, 4, 8):
            buffer.extend(steps(4, first).to(source))
            batch = buffer.sample()
            assert batch["obs"].device == storage.device
            assert sorted(batch["action"].tolist()) == list(range(first, first + 4))
            assert batch["next", "obs"][:, 0].tolist() == (batch["action"] + 0.5).tolist()

    def test_too_much_memory_names_both_figures(self) -> None:
        with pytest.raises(MemoryError, match=r"bytes of memory of cuda:\d+ are needed, and about"):
            CudaStorage(2**20, example={"x": torch.zeros(2**24)})

    def test_tensors_of_other_devices_are_refused(self) -> None:
        storage = CudaStorage(8, example={"x": torch.zeros(2)})
        with pytest.raises(RecordMismatch, match="cpu or on the device of the storage, got one on"):
            storage.check({"x": torch.zeros(3, 2, device="meta")})

    def test_a_reader_waits_for_a_copy_on_another_stream(self) -> None:
        buffer = BlockingReplayBuffer(CudaStorage(8), batch_size=4)
        actor, learner = stream(), stream()
        for first in range(0, 40, 4):
            with torch.cuda.stream(actor):
                rows = records(first, 4, "cuda")
                busy()
                buffer.extend(rows)
            with torch.cuda.stream(learner):
                assert whole(buffer.sample()) == list(range(first, first + 4))

    def test_a_writer_waits_for_a_gather_on_another_stream(self) -> None:
        buffer = BlockingReplayBuffer(CudaStorage(4), batch_size=4)
        actor, learner = stream(), stream()
        drawn = []
        for first in range(0, 40, 4):
            with torch.cuda.stream(actor):
                buffer.extend(records(first, 4))
            with torch.cuda.stream(learner):
                busy()
                drawn.append((first, buffer.sample()))
        torch.cuda.synchronize()
        for first, batch in drawn:
            assert whole(batch) == list(range(first, first + 4))

    def test_a_call_does_not_wait_for_what_is_queued(self) -> None:
        buffer = BlockingReplayBuffer(CudaStorage(8), batch_size=4)
        buffer.extend(records(0, 4, "cuda"))
        torch.cuda.synchronize()
        busy()
        queued = torch.cuda.Event()  # type: ignore[no-untyped-call]  # torch's own
        queued.record()
        buffer.sample()
        buffer.extend(records(4, 4, "cuda"))
        assert not queued.query()  # type: ignore[no-untyped-call]  # torch's own

    def test_batches_drawn_ahead_are_there_for_the_stream_that_gets_them(self) -> None:
        buffer = BlockingReplayBuffer(CudaStorage(64), batch_size=4, prefetch=3)
        learner = stream()
        buffer.extend(records(0, 32))
        for first in range(0, 64, 4):
            with torch.cuda.stream(learner):
                assert whole(buffer.sample()) == list(range(first, first + 4))
            buffer.extend(records(32 + first, 4, "cuda"))
        buffer.shutdown(immediate=True)

    def test_threads_with_streams_of_their_own_tear_no_row(self) -> None:
        ring = ReplayBuffer(CudaStorage(256), batch_size=64, seed=0)
        ring.extend(records(0, 256))
        wrong: list[BaseException] = []

        def write(number: int) -> None:
            with torch.cuda.stream(stream()):
                for round_ in range(50):
                    ring.extend(records(1000 * number + round_, 32, ["cpu", "cuda"][round_ % 2]))

        def read() -> None:
            try:
                with torch.cuda.stream(stream()):
                    for _ in range(100):
                        whole(ring.sample())
            except BaseException as error:
                wrong.append(error)

        threads = [threading.Thread(target=write, args=(n,)) for n in (1, 2)]
        threads += [threading.Thread(target=read) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(120.0)
        assert not any(thread.is_alive() for thread in threads)
        assert wrong == []
