"""Workers of a cover that do not do what they should; a process of its own loads them by name."""

import os
import threading
from multiprocessing.connection import Connection

from forebay_models.campaign.driver import Exercise
from forebay_models.cover.workers import Done, Job, Message, Progress, Size, Sizes

SIZE = Size(states=3, edges=5)


def takes_all(job: Job, told: "Connection[Message, None]") -> None:
    """The first worker takes the even edges, the other one the odd ones."""
    _takes(job, told, bytes(number % 2 == job.share for number in range(SIZE.edges)))


def forgets_one(job: Job, told: "Connection[Message, None]") -> None:
    """As `takes_all`, but nobody takes the last edge."""
    _takes(job, told, bytes(number % 2 == job.share for number in range(SIZE.edges - 1)) + b"\0")


def explores_otherwise(job: Job, told: "Connection[Message, None]") -> None:
    """The workers do not agree about the graph."""
    told.send(Sizes({"liveness": Size(SIZE.states + job.share, SIZE.edges)}))
    told.send(Done())


def dies(job: Job, told: "Connection[Message, None]") -> None:
    """Ends in the middle, as if it had been killed."""
    told.send(Sizes({"liveness": SIZE}))
    os._exit(7)


def is_silent(job: Job, told: "Connection[Message, None]") -> None:
    """Never says anything."""
    threading.Event().wait()


def _takes(job: Job, told: "Connection[Message, None]", edges: bytes) -> None:
    told.send(Sizes({"liveness": SIZE}))
    told.send(Progress("liveness", edges, bytes([1, 1, 1]), Exercise(steps=3, examples=1)))
    told.send(Done())
