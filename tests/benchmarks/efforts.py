"""The smallest sizes that every case can be measured with."""

from typing import Final

from benchmarks.plan import Effort

LEAST: Final = Effort(
    repetitions=1,
    turns=1,
    shortest=0.0,
    large=2**12,
    mib=2,
    wakes=2,
    deaths=1,
    readers=2,
    idle=0.05,
    graphs=("droplast",),
    schedules=1,
    walks=1,
    records=1000,
    nbytes=2**20,
    threads=4,
    processes=2,
    batches=2,
    capacities=(2**8, 2**9),
    rows=(1, 8),
    leaves=(1, 4),
    waiters=(0, 2),
)
