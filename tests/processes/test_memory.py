"""What memory is free, read from files as the kernel writes them."""

from pathlib import Path

import pytest
from forebay._memory import Free, demand_memory, free_memory


def write(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="ascii")
    return root


MEMINFO = "MemTotal:       2000 kB\nMemFree:        10 kB\nMemAvailable:   1000 kB\n"
GROUPS = "sys/fs/cgroup/"


def test_what_is_available_counts_and_not_what_is_unused(tmp_path: Path) -> None:
    root = write(tmp_path, {"proc/meminfo": MEMINFO})
    assert free_memory(root) == Free(machine=1_024_000, group=None)


def test_without_the_kernels_files_nothing_is_known(tmp_path: Path) -> None:
    free = free_memory(tmp_path)
    assert free == Free(machine=None, group=None)
    demand_memory(1 << 60, free)


def test_the_tightest_group_of_version_2_counts(tmp_path: Path) -> None:
    files = {
        "proc/meminfo": MEMINFO,
        "proc/self/cgroup": "0::/job/step\n",
        GROUPS + "job/memory.max": "5000\n",
        GROUPS + "job/memory.current": "4600\n",
        GROUPS + "job/memory.stat": "anon 7\ninactive_file 100\nactive_file 900\n",
        GROUPS + "job/step/memory.max": "max\n",
        GROUPS + "job/step/memory.current": "10\n",
    }
    assert free_memory(write(tmp_path, files)) == Free(machine=1_024_000, group=500)


def test_a_group_of_version_1_counts_from_inside_a_container_too(tmp_path: Path) -> None:
    files = {
        "proc/meminfo": MEMINFO,
        "proc/self/cgroup": "9:cpu:/x\n4:memory:/docker/abc\n0::/\n",
        GROUPS + "memory/memory.limit_in_bytes": "9000\n",
        GROUPS + "memory/memory.usage_in_bytes": "2000\n",
        GROUPS + "memory/memory.stat": "inactive_file 50\ntotal_inactive_file 300\n",
    }
    assert free_memory(write(tmp_path, files)) == Free(machine=1_024_000, group=7300)


def test_a_group_that_is_over_its_limit_leaves_nothing(tmp_path: Path) -> None:
    files = {
        "proc/self/cgroup": "0::/\n",
        GROUPS + "memory.max": "100\n",
        GROUPS + "memory.current": "150\n",
    }
    free = free_memory(write(tmp_path, files))
    assert free == Free(machine=None, group=0)
    with pytest.raises(MemoryError, match=r"^1 bytes.*an unknown number of bytes.*leaves 0:"):
        demand_memory(1, free)


def test_this_machine_has_memory() -> None:
    machine = free_memory().machine
    assert machine is not None
    assert machine > 1 << 20
