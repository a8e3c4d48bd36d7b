"""A storage on a simulated device whose streams are players too: what is queued runs when chosen.

Each actor works on a stream of its own, and each of these streams is a player of the stage beside
the actors: its turn is one step of the operation that is next in its queue. So the schedules are
also those of the device, and a copy, a gather or the use of a batch may come at any later time that
streams and events allow.

An actor is told at once which numbers it has got: those that it would have got on a device that
carries everything out at once. A use of the batch is queued on its stream, and finds out when it
runs whether that came true.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Final, cast

import torch
from forebay import CudaStorage
from forebay._device_storage import DeviceStorage
from forebay._records import Rows
from forebay._stores import Ints
from forebay._streams import Streams

from forebay_models.device.queues import SimulatedEvent, SimulatedStream
from forebay_models.device.simulated import SimulatedDevice
from forebay_models.scheduling.scenario import Scenario
from forebay_models.scheduling.stage import Failure, Player, Stage, Status

RAN: Final = "ran"
"""The label of a stream that has carried out a step of an operation."""


class WrongOrder(Failure):
    """The use of a batch on the device has found something else than what was drawn."""


def players_of(scenario: Scenario) -> list[str]:
    """Return the names of the players: the actors, and their streams if the records are there."""
    if scenario.storage != "simulated":
        return list(scenario.actors)
    return [*scenario.actors, *(f"{actor}'s stream" for actor in scenario.actors)]


class DeviceNumbers:
    """Slots for one number each on a device; see `NumberStorage`.

    Args:
        capacity: the number of slots.
        streams: the device.
        tell: returns what is in a tensor of the device, as lists.
        copied: is called after a batch was queued to be written; may raise.
    """

    initialized = True

    def __init__(
        self,
        capacity: int,
        streams: Streams,
        tell: Callable[[torch.Tensor], list[list[int]]],
        copied: Callable[[], None],
    ) -> None:
        self.streams: Final = streams
        self.device: Final = streams.device
        self._tell = tell
        self._copied = copied
        example = {"number": torch.zeros(2, dtype=torch.int64)}
        self._storage = DeviceStorage(capacity, streams=streams, example=example)

    @property
    def capacity(self) -> int:
        """The number of slots."""
        return self._storage.capacity

    def check(self, batch: object, *, dim_extend: int = 0, cast: bool = False) -> Rows:
        """Take a list of numbers."""
        assert isinstance(batch, list)
        return self._storage.check(_columns(batch))

    def write(self, slots: Ints, rows: Rows) -> None:
        """Queue the copy of numbers into slots."""
        self._storage.write(slots, rows)
        self._copied()

    def read(self, slots: Ints) -> list[int]:
        """Queue a gather, and return the numbers that it is to find."""
        batch = cast("Mapping[str, torch.Tensor]", self._storage.read(slots))
        return [first for first, _ in self._tell(batch["number"])]


def on_simulated(
    capacity: int, device: SimulatedDevice, copied: Callable[[], None]
) -> DeviceNumbers:
    """Return a storage that looks, on the device, whether a batch holds what was promised."""

    def tell(numbers: torch.Tensor) -> list[list[int]]:
        device.look(numbers, "a batch")
        promised: list[list[int]] = device.promised(numbers).tolist()
        return promised

    numbers = DeviceNumbers(capacity, device, tell, copied)
    device.finish()  # its memory is reserved on a stream that nobody works on
    return numbers


def on_cuda(capacity: int, copied: Callable[[], None]) -> DeviceNumbers:
    """Return a storage on a CUDA device, which runs what is queued whenever it likes.

    Raises:
        RuntimeError: torch finds no CUDA device.
    """
    streams = CudaStorage(capacity).streams
    return DeviceNumbers(capacity, streams, torch.Tensor.tolist, copied)


class StreamPlayers:
    """The players that are streams, and the actors who wait on the host for what is queued.

    Args:
        stage: whose players they are, behind the actors.
        actors: the actors.
        device: the device.
    """

    def __init__(self, stage: Stage, actors: Sequence[str], device: SimulatedDevice) -> None:
        self._stage = stage
        self._device = device
        self._streams = {actor: device.stream(actor) for actor in actors}
        players = stage.players[len(actors) :]
        self._pairs = list(zip(self._streams.values(), players, strict=True))
        self._waiting: list[tuple[SimulatedEvent, Player]] = []
        device.on_queued = lambda stream: self._rouse()
        device.wait_on_host = self._wait_on_host

    def on(self, actor: str) -> AbstractContextManager[object]:
        """Let an actor, in its thread, work on its stream within a block."""
        return self._device.on(self._streams[actor])

    def programs(self) -> list[Callable[[], None]]:
        """Return what each of these players does."""

        def program(stream: SimulatedStream, player: Player) -> Callable[[], None]:
            return lambda: self._serve(stream, player)

        return [program(stream, player) for stream, player in self._pairs]

    def check_end(self) -> None:
        """Say whether all that was queued has run; to be asked when the run is over."""
        if left := self._device.left():
            raise WrongOrder(left)

    def digest(self) -> int:
        """Return a number for what is in memory and in queues; equal states have equal numbers."""
        queues = [
            (stream.queued, stream.steps, repr(next(iter(stream.operations), None)))
            for stream, _ in self._pairs
        ]
        return hash((self._device.contents(), tuple(queues)))

    def _serve(self, stream: SimulatedStream, player: Player) -> None:
        """Carry out what is queued in a stream, step by step."""
        while True:
            if self._device.step(stream):
                if self._device.faults:
                    raise WrongOrder(self._device.faults[0])
                self._rouse()
                self._stage.reach(RAN)
            else:
                self._stage.block(Status.IDLE, RAN)

    def _rouse(self) -> None:
        """Let those streams and hosts go on that can by now."""
        for stream, player in self._pairs:
            if player.status is Status.IDLE and stream.ready():
                player.status = Status.READY
        for event, player in self._waiting:
            if event.over:
                player.status = Status.READY

    def _wait_on_host(self, event: SimulatedEvent) -> None:
        me = self._stage.current
        if me is None:
            return
        waiting = (event, me)
        self._waiting.append(waiting)
        try:
            self._stage.block(Status.IDLE, "waits for the device")
        finally:
            self._waiting.remove(waiting)


def _columns(numbers: Sequence[int]) -> dict[str, torch.Tensor]:
    """Return records of two words each, so that a record can be torn."""
    column = torch.tensor(numbers, dtype=torch.int64)
    return {"number": torch.stack([column, column], 1)}
