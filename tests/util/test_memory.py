"""Limits of memory: of the machine, of containers in both versions of the interface, of ulimit."""

import subprocess
import sys

import pytest

from manifoldry.util import memory
from manifoldry.util.memory import available_memory


def test_available_memory_is_plausible():
    available = available_memory()
    assert available is None or 2**20 < available < 2**50


@pytest.mark.parametrize("tightest", ["_system_memory", "_group_memory", "_process_memory"])
def test_the_tightest_limit_counts(tightest, monkeypatch):
    for name in ("_system_memory", "_group_memory", "_process_memory"):
        monkeypatch.setattr(memory, name, lambda: 3000)
    monkeypatch.setattr(memory, tightest, lambda: 2000)
    assert available_memory() == 2000
    monkeypatch.setattr(memory, tightest, lambda: None)  # unknown, or no limit
    assert available_memory() == 3000


def test_cached_files_count_as_available(tmp_path, monkeypatch):
    """Linux counts reclaimable caches as available but not as free."""
    (tmp_path / "meminfo").write_text("MemFree: 10 kB\nMemAvailable:    5000 kB\n")
    real = open
    monkeypatch.setattr(
        "builtins.open",
        lambda name, *rest: real(tmp_path / "meminfo" if name == "/proc/meminfo" else name, *rest),
    )
    assert memory._system_memory() == 5000 * 1024


def write_group(folder, most, now, reclaimable, names=memory._CGROUP_2):
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in zip(names, (most, now), strict=False):
        (folder / name).write_text(f"{text}\n")
    (folder / "memory.stat").write_text(f"anon 500000\n{names[2]} {reclaimable}\n")


def own_group(tmp_path, line):
    (tmp_path / "cgroup").write_text(line + "\n")
    return str(tmp_path / "cgroup")


def test_memory_limit_of_a_container(tmp_path):
    own = own_group(tmp_path, "0::/")
    write_group(tmp_path, 1_000_000, 700_000, 100_000)
    assert memory._group_memory(str(tmp_path), own) == 400_000
    write_group(tmp_path, "max", 700_000, 100_000)
    assert memory._group_memory(str(tmp_path), own) is None
    assert memory._group_memory(str(tmp_path / "nowhere"), own) is None
    assert memory._group_memory(str(tmp_path), str(tmp_path / "nowhere")) is None


def test_the_tightest_of_nested_groups_counts(tmp_path):
    """A service has its limit in its own group, not in the root of the tree."""
    own = own_group(tmp_path, "0::/user.slice/job.service")
    write_group(tmp_path / "user.slice", 5_000_000, 1_000_000, 0)
    write_group(tmp_path / "user.slice" / "job.service", "max", 500_000, 0)
    assert memory._group_memory(str(tmp_path), own) == 4_000_000
    write_group(tmp_path / "user.slice" / "job.service", 2_000_000, 500_000, 0)
    assert memory._group_memory(str(tmp_path), own) == 1_500_000


def test_the_first_version_of_control_groups(tmp_path):
    own = own_group(tmp_path, "12:memory:/docker/abc\n3:cpu:/docker/abc")
    folder = tmp_path / "memory" / "docker" / "abc"
    write_group(folder, 900_000, 300_000, 50_000, memory._CGROUP_1)
    assert memory._group_memory(str(tmp_path), own) == 650_000


@pytest.mark.skipif(sys.platform != "linux", reason="ulimit -v is not enforced elsewhere")
def test_a_limit_of_the_process_counts():
    """Below the limit, an error of ours names the size; not numpy's, or an abort of BLAS."""
    code = (
        "import resource; size = 2**31; resource.setrlimit(resource.RLIMIT_AS, (size, size))\n"
        "import numpy as np; from manifoldry import Isomap\n"
        "from manifoldry.util.memory import available_memory\n"
        "assert available_memory() < 2**31\n"
        "X = np.random.default_rng(0).normal(size=(25_000, 3))\n"
        "try: Isomap().fit(X)\n"
        "except MemoryError as error: print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "GiB are free; pass n_landmarks" in done.stdout
