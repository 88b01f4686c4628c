"""The conditions of a measurement: the machine, its current speed, the source."""

import json
import os
import platform
import statistics
import subprocess
import time
from importlib.util import find_spec
from pathlib import Path


def machine():
    """Processor, cores, memory, system."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    models = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return {
        "cpu": models[0] if models else platform.processor(),
        "cores": os.cpu_count(),
        "memory_gb": round(memory, 1),
        "system": f"{platform.system()} {platform.machine()}",
    }


def threads():
    """Limits on threads set by environment variables."""
    return {k: v for k, v in os.environ.items() if k.endswith("_NUM_THREADS")}


def pace():
    """Median seconds of a fixed dense and a fixed sparse product: the current speed."""
    import numpy as np
    from scipy.sparse import csr_array

    rng, n, k = np.random.default_rng(0), 100_000, 12
    A = rng.normal(size=(1000, 1000)).astype(np.float32)
    W = csr_array((np.ones(n * k), rng.integers(0, n, n * k), np.arange(0, n * k + 1, k)), (n, n))
    X = rng.normal(size=(n, 4))

    def products():
        start = time.perf_counter()
        _ = A @ A, W @ X
        return time.perf_counter() - start

    return statistics.median(products() for _ in range(7))


def source(package):
    """Commit of the checkout that `package` is imported from, and whether its folder was edited.

    Both are None if the package is not part of a checkout, even if its folder is inside one.
    """
    folder = Path(find_spec(package).origin).parent
    try:
        git(folder, "ls-files", "--error-unmatch", "__init__.py")
        commit, changes = (
            git(folder, "rev-parse", "HEAD"),
            git(folder, "status", "--porcelain", "."),
        )
    except (OSError, subprocess.CalledProcessError):
        return {"commit": None, "dirty": None}
    return {"commit": commit, "dirty": bool(changes)}


def git(folder, *arguments):
    """Output of git in a folder, without the environment variables that a git hook sets."""
    environ = {k: v for k, v in os.environ.items() if not k.startswith("GIT_")}
    command = ["git", "--no-optional-locks", *arguments]
    done = subprocess.run(
        command, cwd=folder, env=environ, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def last_line(command, timeout):
    """The JSON in the last line that a command prints, or what went wrong."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=timeout)
    except subprocess.TimeoutExpired:
        return {"error": f"not ended after {timeout:g} s"}
    if done.returncode:
        return {"error": done.stderr.strip().splitlines()[-1:]}
    return json.loads(done.stdout.splitlines()[-1])
