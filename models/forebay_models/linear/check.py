"""The search for an order of steps that explains a history: Wing and Gong's, as improved by Lowe.

Depth first: of the operations that may happen next, those that returned soonest are tried first,
and points that were seen before are not looked at again. A point is how far each actor has come and
the state of the machine, so two orders that lead to the same point are one. What an operation
returned decides most of what it can have done - which slots, which records - so that most wrong
orders end after a step or two.

The problem is hard in general (it is NP-complete), so there is a limit on points; a search that
reaches it has shown nothing, unless counting shows that no path can have the history's results.

Jeannette Wing and Chun Gong, "Testing and verifying concurrent objects", 1993; Gavin Lowe, "Testing
for linearizability", 2017.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from forebay_models.linear.accounts import hopeless
from forebay_models.linear.history import History
from forebay_models.linear.model import Config, Model, Move
from forebay_models.outcome import Verdict

LIMIT: Final = 200_000
"""How many points are visited at most; a history of 70 operations takes a few hundred."""


@dataclass(frozen=True)
class Search:
    """What came of a search.

    Attributes:
        verdict: HOLDS, VIOLATED or INCONCLUSIVE.
        path: steps that explain the history, or else those that explain most of its operations.
        last: where the path ends.
        visited: how many different points were visited.
    """

    verdict: Verdict
    path: tuple[Move, ...]
    last: Config
    visited: int


def check(history: History, limit: int = LIMIT) -> Search:
    """Search for an order of steps that explains a history, visiting at most `limit` points."""
    return search(Model(history), limit)


def search(model: Model, limit: int = LIMIT) -> Search:
    """Do the same for a history whose model is there already."""
    start = model.initial()
    seen = {start}
    path: list[Move] = []
    longest: tuple[Move, ...] = ()
    most = -1
    branches: list[Iterator[Move]] = [model.moves(start)]
    last = start
    finished = model.finished(start)
    while branches and not finished:
        move = next(branches[-1], None)
        if move is None:
            branches.pop()
            del path[-1:]
            continue
        if move.after in seen:
            continue
        if len(seen) >= limit:
            verdict = Verdict.VIOLATED if hopeless(model.history) else Verdict.INCONCLUSIVE
            return Search(verdict, longest, last, len(seen))
        seen.add(move.after)
        path.append(move)
        if sum(move.after.done) > most:
            most, longest, last = sum(move.after.done), tuple(path), move.after
        branches.append(model.moves(move.after))
        finished = model.finished(move.after)
    verdict = Verdict.HOLDS if finished else Verdict.VIOLATED
    return Search(verdict, longest, last, len(seen))
