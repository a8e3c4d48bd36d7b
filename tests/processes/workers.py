"""What the children of these tests do. Each says what it has reached."""

import os
import pickle
import signal
import time
from multiprocessing.queues import Queue

from forebay._errors import PeerLost
from forebay._shared_block import SharedBlock

from tests.processes.support import BUSY, CHANGED, COUNTER, PATIENCE, TURN, Line, Shared


def heed_interrupts() -> None:
    """Have SIGINT raise KeyboardInterrupt, whatever this process has inherited."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


def count(line: Line, shared: Shared, times: int) -> None:
    """Add one so many times, each time in several steps that others must not come between."""
    section = shared.monitor.section()
    line.send("ready")
    line.recv()
    for _ in range(times):
        with section:
            shared.cells[BUSY] += 1
            alone = shared.cells[BUSY] == 1
            shared.cells[COUNTER] += 1
            shared.cells[BUSY] -= 1
        if not alone:
            line.send("somebody else was inside")
            return
    line.send("done")


def take_turns(line: Line, shared: Shared, me: int, rounds: int) -> None:
    """Wait for the own turn and hand it on, so many times."""
    for _ in range(rounds):
        while True:
            seen = shared.monitor.sequence()
            with shared.monitor.section():
                mine = shared.cells[TURN] % 2 == me
                if mine:
                    shared.cells[TURN] += 1
            if mine:
                break
            shared.monitor.wait(seen, None)
        shared.monitor.wake()
    line.send("done")


def await_change(line: Line, shared: Shared) -> None:
    """Sleep until the cell changes; say how long the processor was used, and how long it took."""
    seen = shared.monitor.sequence()
    line.send("asleep")
    used, began = time.process_time(), time.monotonic()
    while shared.cells[CHANGED] == 0:
        shared.monitor.wait(seen, None)
        seen = shared.monitor.sequence()
    line.send((time.process_time() - used, time.monotonic() - began))


def hold(line: Line, shared: Shared) -> None:
    """Enter the section and stay there."""
    with shared.monitor.section():
        line.send("inside")
        line.recv()
    line.send("left")


def enter(line: Line, shared: Shared) -> None:
    """Enter the section and leave it, telling of an interrupt on the way."""
    heed_interrupts()
    line.send("entering")
    try:
        with shared.monitor.section():
            line.send("inside")
    except KeyboardInterrupt:
        line.send("interrupted")
        line.recv()
        with shared.monitor.section():
            line.send("inside after all")


def sleep(line: Line, shared: Shared) -> None:
    """Sleep at the sequence word until interrupted."""
    heed_interrupts()
    seen = shared.monitor.sequence()
    line.send("asleep")
    try:
        while True:
            shared.monitor.wait(seen, None)
    except KeyboardInterrupt:
        line.send("interrupted")


def change_without_wake(line: Line, shared: Shared) -> None:
    """Change the cell and then never wake anybody."""
    with shared.monitor.section():
        shared.cells[CHANGED] = 1
    line.send("changed")
    line.recv()


def register(line: Line, shared: Shared) -> None:
    """Become a participant."""
    with shared.monitor.section():
        row = shared.participants.register()
    line.send(row)
    line.recv()


def hammer(line: Line, shared: Shared) -> None:
    """Use everything for ever: enter, change, leave, wake, and sleep a moment."""
    monitor, cells = shared.monitor, shared.cells
    line.send("ready")
    while True:
        seen = monitor.sequence()
        with monitor.section():
            cells[COUNTER] += 1
            cells[BUSY] += 1
            cells[BUSY] -= 1
        monitor.wake()
        monitor.wait(seen, monitor.clock() + 0.001)


def store_in(line: Line, block: SharedBlock, offset: int) -> None:
    """Store a number in a block, and tell what was there and how many descriptors there are."""
    cells = block.cells("q", 1, offset)
    line.send((cells[0], len(os.listdir("/proc/self/fd"))))
    cells[0] = os.getpid()
    line.send("stored")


def store_from_queue(line: Line, blocks: "Queue[SharedBlock]") -> None:
    """Do as `store_in` with the block that comes through a queue."""
    try:
        block = blocks.get(timeout=PATIENCE)
    except PeerLost as error:
        line.send(str(error))
        return
    store_in(line, block, 0)


def load(line: Line, pickled: bytes) -> None:
    """Load a pickled block twice and store in it, or tell why that cannot be."""
    try:
        block: SharedBlock = pickle.loads(pickled)
    except PeerLost as error:
        line.send(str(error))
        return
    line.send(pickle.loads(pickled) is block)
    store_in(line, block, 0)


def pickle_and_wait(line: Line) -> None:
    """Make a block, send it pickled, and keep it until told to end."""
    block = SharedBlock(4096)
    line.send(pickle.dumps(block))
    line.recv()
    line.send(block.cells("q", 1, 0)[0])


def stay_until_killed(line: Line, nbytes: int) -> None:
    """Reserve memory and keep it."""
    block = SharedBlock(nbytes)
    line.send(block.nbytes)
    line.recv()
