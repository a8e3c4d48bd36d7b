"""Which schedules are run: all with few preemptions, or random ones of two kinds.

A strategy picks among the options of each choice point; see `stage`. All are deterministic: those
with chance in them are given a seed.
"""

import random
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, Protocol

from forebay_models.scheduling.stage import Kind, LeftToChance, Option, Pruned

Digest = Callable[[], int]
"""Returns a number for where a run is: where it is equal, equal choices lead on equally."""


class Strategy(Protocol):
    """Gives one schedule after the other."""

    def begin(self) -> bool:
        """Begin the next schedule; False if there is none."""

    def pick(self, options: Sequence[Option], digest: Digest) -> int:
        """Return the index of the option to take."""


class Fixed:
    """One schedule: what happens by itself, but for some choices.

    Args:
        deviations: the index of the option to take at the choices that are not to go by themselves;
            where there are fewer options, the last one is taken.
    """

    def __init__(self, deviations: Mapping[int, int]) -> None:
        self._deviations = deviations
        self._place = 0

    def begin(self) -> bool:
        """Begin at the first choice again."""
        self._place = 0
        return True

    def pick(self, options: Sequence[Option], digest: Digest) -> int:
        """Return the index of the option to take."""
        index = self._deviations.get(self._place, 0)
        self._place += 1
        return min(index, len(options) - 1)


class _Node(NamedTuple):
    """A choice on the present path: what options cost, what was spent before, what was taken."""

    costs: tuple[int, ...]
    spent: int
    taken: int


class DepthFirst:
    """Every schedule with at most so many preemptions, as far as it makes a difference.

    A preemption takes the baton from a thread that could go on, or ends a sleep early. Whom to let
    run when a thread blocks or ends is free, and all of that is tried too. A run that comes to
    where another one has been, with no more preemptions left, is not followed further.

    Args:
        bound: the number of preemptions.
    """

    def __init__(self, bound: int) -> None:
        self.bound = bound
        self._path: list[_Node] = []
        self._been: dict[int, int] = {}
        self._place = 0
        self._begun = False

    def begin(self) -> bool:
        """Begin the next schedule; False if all were run."""
        self._place = 0
        if not self._begun:
            self._begun = True
            return True
        while self._path:
            costs, spent, taken = self._path.pop()
            for index in range(taken + 1, len(costs)):
                if spent + costs[index] <= self.bound:
                    self._path.append(_Node(costs, spent, index))
                    return True
        return False

    def pick(self, options: Sequence[Option], digest: Digest) -> int:
        """Return the index of the option to take."""
        place, path = self._place, self._path
        self._place += 1
        if place < len(path):
            node = path[place]
            if len(node.costs) != len(options):
                raise LeftToChance("the same choices led elsewhere: something is left to chance")
            return node.taken
        spent = 0
        if path:
            last = path[-1]
            spent = last.spent + last.costs[last.taken]
        here = digest()
        if self._been.get(here, spent + 1) <= spent:
            raise Pruned
        self._been[here] = spent
        path.append(_Node(tuple(option.cost for option in options), spent, 0))
        return 0


class Uniform:
    """Random schedules: every option with equal chances at every choice.

    Args:
        seed: of the choices.
    """

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def begin(self) -> bool:
        """There is always one more."""
        return True

    def pick(self, options: Sequence[Option], digest: Digest) -> int:
        """Return the index of the option to take."""
        return self._random.randrange(len(options))


class Priorities:
    """Random schedules in which the thread with the highest priority runs, in the manner of PCT.

    Priorities are random, and at `depth - 1` random choices whoever runs falls behind all others.
    Probabilistic concurrency testing (Burckhardt et al., ASPLOS 2010) has a bound for the chance to
    find a fault of that depth; here the bound is not promised, since sleeps may end early, and the
    length of a schedule is guessed from those before it.

    Args:
        seed: of the choices.
        depth: see above.
        early: the chance that a sleep ends early where that can be chosen.
    """

    def __init__(self, seed: int, depth: int = 3, early: float = 0.02) -> None:
        self._random = random.Random(seed)
        self._depth = depth
        self._early = early
        self._longest = 50
        self._place = 0
        self._lowest = 0.0
        self._priorities: dict[int, float] = {}
        self._falls: frozenset[int] = frozenset()

    def begin(self) -> bool:
        """There is always one more."""
        self._longest = max(self._longest, self._place)
        self._place, self._lowest = 0, 0.0
        self._priorities = {}
        self._falls = frozenset(
            self._random.randrange(self._longest) for _ in range(self._depth - 1)
        )
        return True

    def pick(self, options: Sequence[Option], digest: Digest) -> int:
        """Return the index of the option to take."""
        place = self._place
        self._place += 1
        runs = [index for index, option in enumerate(options) if option.kind is Kind.RUN]
        if place in self._falls and runs:
            self._lowest -= 1.0
            self._priorities[options[runs[0]].player] = self._lowest
        if len(runs) < len(options) and (not runs or self._random.random() < self._early):
            return self._random.randrange(len(runs), len(options))
        return max(runs, key=lambda index: self._priority(options[index].player))

    def _priority(self, player: int) -> float:
        if player not in self._priorities:
            self._priorities[player] = self._random.random() + 1.0
        return self._priorities[player]
