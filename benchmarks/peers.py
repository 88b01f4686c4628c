"""One virtual environment for each peer, created when first needed."""

import subprocess
import sys
import venv
from functools import cache
from pathlib import Path

from benchmarks.workload import OURS

ENVS = Path(__file__).parent / ".envs"
# Requirements for pip; numpy is needed to read the data.
PACKAGES = {
    "scikit-learn": ("scikit-learn", "pyamg"),
    "tapkee": ("tapkee", "numpy"),
    "umap-learn": ("umap-learn",),
    "openTSNE": ("openTSNE",),
    "zadu": ("zadu",),
    "pynndescent": ("pynndescent",),
    "hnswlib": ("hnswlib", "numpy"),
    "usearch": ("usearch", "numpy"),
    "faiss-cpu": ("faiss-cpu", "numpy"),
    "cvxpy": ("cvxpy",),
    "driada": ("driada", "cvxpy"),
}


class NotInstalled(Exception):  # noqa: N818 (a fact about the machine, not a mistake)
    """A peer's environment could not be made."""


@cache
def python(peer):
    """The interpreter of a peer's environment; raises NotInstalled if there is none."""
    if peer == OURS:
        return sys.executable
    folder = ENVS / peer
    interpreter = folder / "bin" / "python"
    if not (folder / ".ready").exists():
        print(f"making {folder} ...", flush=True)
        venv.create(folder, with_pip=True, clear=True)
        pip = (interpreter, "-m", "pip", "install", "--quiet", "--disable-pip-version-check")
        done = subprocess.run((*pip, *PACKAGES[peer]), capture_output=True, text=True, check=False)
        if done.returncode:
            raise NotInstalled(last_line(done.stderr))
        (folder / ".ready").touch()
    return str(interpreter)


def last_line(text):
    """The last nonempty line, which has the reason in the output of pip and in tracebacks."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1][:200] if lines else "no message"
