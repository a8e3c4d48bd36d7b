"""A warning about sizes that can run into a mutual wait.

With one writer size n, one reader size k and single use, a writer and a reader can come to wait for
each other exactly if n + k > C + gcd(n, k): amounts in the buffer are multiples of the divisor, and
then one of them lies too high for the writer and too low for the reader. Both models confirm it.
"""

import logging
from math import gcd

_logger = logging.getLogger("forebay")


class SizeWatch:
    """Remembers the sizes of the last write and the last read, and warns once about a bad pair."""

    def __init__(self, capacity: int, single_use: bool) -> None:
        self._capacity = capacity
        self._done = not single_use
        self._write = 0
        self._read = 0

    def write(self, n: int) -> None:
        """Take note of a write of n records."""
        if not self._done and n != self._write:
            self._write = n
            self._check()

    def read(self, k: int, m: int) -> None:
        """Take note of a read of k records, of which m will do."""
        if not self._done and k == m and k != self._read:
            self._read = k
            self._check()

    def _check(self) -> None:
        n, k = self._write, self._read
        if not n or not k or n + k <= self._capacity + gcd(n, k):
            return
        self._done = True
        _logger.warning(
            "writes of %d and samples of %d records can come to wait for each other in a capacity "
            "of %d, which ends one of them with MutualWait; a capacity of %d cannot",
            n,
            k,
            self._capacity,
            n + k - gcd(n, k),
        )
