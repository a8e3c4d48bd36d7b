"""What is due where going on exactly is not promised: nothing is lost or there twice.

That is after a save with a batch that had failed and, of a buffer that uses its records up, with an
open lease. There each record has to be given as often as it may be, before and after. In a buffer
that overwrites, what is left of the epoch has to be what it is once all is returned that the
snapshot leaves out; and the records are given that are there or drawn ahead, and no others.
"""

from collections.abc import Iterator
from typing import NamedTuple

from forebay_models.twins.program import Recipe


class Account(NamedTuple):
    """What has become of the records, by their numbers.

    Attributes:
        written: all of them.
        given: how often each was given to a reader for good.
        gone: those that were dropped or overwritten.
        ahead: those of the batches that are drawn ahead and will be given.
        left: the slots that a sampler of an overwriting buffer draws from, once all is returned
            that a snapshot leaves out; nothing in another buffer.
    """

    written: frozenset[int]
    given: dict[int, int]
    gone: frozenset[int]
    ahead: frozenset[int]
    left: frozenset[int]

    @property
    def there(self) -> frozenset[int]:
        """The records that an overwriting buffer has."""
        return self.written - self.gone


class Drained(NamedTuple):
    """What a twin gave that was to be drained.

    Attributes:
        found: how often each record.
        left: the slots that its sampler drew from at first, if it overwrites.
    """

    found: dict[int, int]
    left: frozenset[int]


def wrong_with(account: Account, drained: Drained, recipe: Recipe, twin: str) -> Iterator[str]:
    """Tell what a twin should have given otherwise."""
    if recipe.overwrites:
        yield from _wrong_with_ring(account, drained, twin)
    else:
        yield from _wrong_with_uses(account, drained, recipe.uses, twin)


def _wrong_with_uses(account: Account, drained: Drained, uses: int, twin: str) -> Iterator[str]:
    for number in sorted(account.written | drained.found.keys()):
        before, after = account.given.get(number, 0), drained.found.get(number, 0)
        due = 0 if number in account.gone or number not in account.written else uses - before
        if after != due:
            yield (
                f"record {number} was given {before} times before it was saved; the {twin}"
                f" gives it {after} times and should do so {due} times"
            )


def _wrong_with_ring(account: Account, drained: Drained, twin: str) -> Iterator[str]:
    if drained.left != account.left:
        yield (
            f"the {twin} begins with slots {sorted(drained.left)} left and should do so with"
            f" {sorted(account.left)}"
        )
    for number in sorted(account.there - drained.found.keys()):
        yield f"record {number} was there when it was saved; the {twin} never gives it"
    for number in sorted(drained.found.keys() - account.there - account.ahead):
        yield f"record {number} was not there when it was saved; the {twin} gives it"
