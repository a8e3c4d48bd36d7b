"""How much memory there is to be had: asked before it is reserved.

Reserving more shared memory than is free does not fail: the kernel kills somebody instead. So the
bytes needed are compared first with what the machine has available, and with what the process's
control groups leave it. Caches that the kernel drops on demand count as free in both.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_GROUPS: Final = Path("sys/fs/cgroup")


@dataclass(frozen=True, kw_only=True)
class Free:
    """What may be reserved, in bytes; None where there is no such figure.

    Attributes:
        machine: what the machine has available.
        group: the least that a control group of this process leaves it.
    """

    machine: int | None
    group: int | None


def free_memory(root: Path = Path("/")) -> Free:
    """Return what is free, by the files of the kernel under `root`."""
    return Free(machine=_available(root), group=min(_left_by_groups(root), default=None))


def demand_memory(nbytes: int, free: Free) -> None:
    """Raise unless so many bytes are free.

    Raises:
        MemoryError: they are not; the message has the bytes needed and both figures.
    """
    limits = [limit for limit in (free.machine, free.group) if limit is not None]
    if limits and nbytes > min(limits):
        raise MemoryError(
            f"{nbytes} bytes of shared memory are needed; the machine has {_figure(free.machine)} "
            f"bytes available, the control group leaves {_figure(free.group)}: use a smaller "
            "capacity or smaller records"
        )


def _figure(limit: int | None) -> str:
    return "an unknown number of" if limit is None else str(limit)


def _available(root: Path) -> int | None:
    for line in _text(root / "proc/meminfo").splitlines():
        name, _, value = line.partition(":")
        if name == "MemAvailable":
            return int(value.split()[0]) * 1024
    return None


def _left_by_groups(root: Path) -> Iterator[int]:
    """Yield what each control group above this process leaves, of both versions."""
    for line in _text(root / "proc/self/cgroup").splitlines():
        _, controllers, path = line.split(":", 2)
        if controllers == "":
            for top in (root / _GROUPS, root / _GROUPS / "unified"):
                yield from _left(top, path, "memory.max", "memory.current", "inactive_file")
        elif "memory" in controllers.split(","):
            names = ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")
            yield from _left(root / _GROUPS / "memory", path, *names)


def _left(top: Path, path: str, limit: str, usage: str, cache: str) -> Iterator[int]:
    """Yield what a group and its parents leave.

    Inside a container the path may name a group that is not to be seen there; its top then stands
    for the container's own.
    """
    group = top / path.lstrip("/")
    for folder in (group, *group.parents):
        most, used = _text(folder / limit).strip(), _text(folder / usage).strip()
        if most.isdigit() and used.isdigit():
            yield max(int(most) - int(used) + _cached(folder, cache), 0)
        if folder == top:
            return


def _cached(folder: Path, name: str) -> int:
    for line in _text(folder / "memory.stat").splitlines():
        key, _, value = line.partition(" ")
        if key == name:
            return int(value)
    return 0


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii")
    except OSError:
        return ""
