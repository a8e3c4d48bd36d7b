"""What there is to measure, by name."""

from collections.abc import Mapping
from typing import Final

from benchmarks.checkpoints import going_on, saving
from benchmarks.cycles import cycles, large, larger, lazy, overwriting
from benchmarks.growth import growing
from benchmarks.models import exploring, scheduling, walking
from benchmarks.plan import Case
from benchmarks.processes import beside_copies, small_records, tokens
from benchmarks.scale import scaling
from benchmarks.threads import handing_over
from benchmarks.tracing import tracing
from benchmarks.waiting import idling, waking

CASES: Final[Mapping[str, Case]] = {
    "P1": Case("write and draw in one thread, capacity 4096 half full", cycles),
    "P2": Case("the same at capacity 2^20", large),
    "P3": Case("a cycle at capacity 2^20 over one at 2^12", larger),
    "P4": Case("from one thread to another, capacity 4096", handing_over),
    "P5": Case("from one spawned process to another, small records", small_records),
    "P6": Case("from one spawned process to another, tokens", tokens),
    "P7": Case("the same as a share of the memory-copy bound", beside_copies),
    "P8": Case("how soon a blocked writer returns, and a death is got over", waking),
    "P9": Case("what blocked readers use of a core", idling),
    "P10": Case("dumps, beside a plain sequential write with sync", saving),
    "P11": Case("a producer while a capture runs, over one without", going_on),
    "P12": Case("edges a second of the explorer", exploring),
    "P13": Case("schedules a second of the deterministic scheduler", scheduling),
    "P14": Case("extend of a lazily stacked TensorDict", lazy),
    "ring": Case("overwrite and draw with replacement in one thread, capacity 4096", overwriting),
    "trace": Case("a cycle beside the same with a trace", tracing),
    "scale": Case("very many records, very large ones, very many producers", scaling),
    "growth": Case("the cost of a call as capacity, batch, leaves and waiters grow", growing),
    "models": Case("random walks by target, and the time of the last make verify", walking),
}
