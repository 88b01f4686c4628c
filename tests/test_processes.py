"""What other processes do: forks, signals, damaged caches, directories that cannot be written."""

import os
import re
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import manifoldry

POSIX = pytest.mark.skipif(os.name != "posix", reason="there are no forks and signals elsewhere")

COMPILED = """
    import numpy as np
    from manifoldry.neighbors.compiled import lengths
    X, out = np.array([[0.0, 0.0], [3.0, 4.0]]), np.empty(1)
    lengths(X, X, np.array([0]), np.array([1]), 1.0, out)
    assert out == 5
"""


def run(code, timeout=60, command=(), environment=None, **variables):
    """Run Python code in a process of its own; an error or a timeout fails the test."""
    return subprocess.run(
        [*command, sys.executable, "-c", textwrap.dedent(code)],
        env=(os.environ if environment is None else environment) | variables,
        capture_output=True,
        text=True,
        timeout=timeout,
        check=True,
    )


class TestCompiledFunctions:
    def test_damaged_caches_are_replaced(self, tmp_path):
        run(COMPILED, NUMBA_CACHE_DIR=str(tmp_path))
        files = [path for path in tmp_path.rglob("*") if path.is_file()]
        assert {path.suffix for path in files} == {".nbi", ".nbc"}
        for path in files:
            path.write_bytes(path.read_bytes()[:20])
        run(COMPILED, NUMBA_CACHE_DIR=str(tmp_path))
        assert all(path.stat().st_size > 20 for path in files)

    def test_without_a_writable_directory_they_are_compiled_with_one_warning(self):
        """As in a read-only installation without a home directory."""
        nowhere = """
            from numba.core import caching
            for each in vars(caching).values():
                if hasattr(each, "_locator_classes"):
                    each._locator_classes = []
        """
        done = run(textwrap.dedent(nowhere) + textwrap.dedent(COMPILED))
        assert done.stderr.count("set NUMBA_CACHE_DIR to a writable directory") == 1

    @POSIX
    def test_a_read_only_installation_without_a_home(self, tmp_path):
        """The same for real, without the rights of root to write everywhere."""
        without_rights = ["setpriv", "--bounding-set=-dac_override,-fowner", "--inh-caps=-all"]
        if os.getuid() != 0:
            without_rights = []
        elif not shutil.which("setpriv"):
            pytest.skip("root can write everywhere, and there is no setpriv to prevent it")
        package, home = tmp_path / "installed" / "manifoldry", tmp_path / "home"
        shutil.copytree(
            Path(manifoldry.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__")
        )
        home.mkdir()
        for path in [package, home, *package.rglob("*")]:
            path.chmod(0o555)
        environment = {
            name: value
            for name, value in os.environ.items()
            if name not in ("NUMBA_CACHE_DIR", "XDG_CACHE_HOME", "PYTHONPATH")
        } | {"HOME": str(home), "PYTHONPATH": str(package.parent), "PYTHONDONTWRITEBYTECODE": "1"}
        where = f"""
            import manifoldry, pathlib
            assert pathlib.Path(manifoldry.__file__).parent == pathlib.Path({str(package)!r})
            for folder in ({str(package)!r}, {str(home)!r}):
                try:
                    pathlib.Path(folder, "new").touch()
                except PermissionError:
                    continue
                raise AssertionError(f"{{folder}} can be written")
        """
        done = run(
            textwrap.dedent(where) + textwrap.dedent(COMPILED),
            command=without_rights,
            environment=environment,
        )
        assert done.stderr.count("set NUMBA_CACHE_DIR to a writable directory") == 1
        assert not list(home.iterdir())

    def test_a_full_disk_costs_a_warning_only(self, tmp_path):
        full = """
            from numba.core import caching
            def refuse(*_):
                raise OSError(28, "No space left on device")
            caching.IndexDataCacheFile.save = refuse
        """
        done = run(textwrap.dedent(full) + textwrap.dedent(COMPILED), NUMBA_CACHE_DIR=str(tmp_path))
        assert done.stderr.count("set NUMBA_CACHE_DIR") == 1


@POSIX
class TestForks:
    def test_a_property_that_another_thread_computes_can_be_computed_in_the_child(self):
        """functools.cached_property of Python 3.11 holds a lock of the class meanwhile."""
        run(
            """
            import os, threading, time
            from manifoldry.util.cached import cached_property

            class Slow:
                @cached_property
                def value(self):
                    time.sleep(0.5)
                    return 7

            threading.Thread(target=lambda: Slow().value).start()
            time.sleep(0.1)
            child = os.fork()
            if child == 0:
                os._exit(0 if Slow().value == 7 else 1)
            assert os.waitpid(child, 0)[1] == 0
            """,
            timeout=30,
        )

    def test_a_lock_that_another_thread_holds_is_free_in_the_child(self):
        run(
            """
            import os, threading, time
            from manifoldry.util.threads import ForkSafeLock

            lock = ForkSafeLock()

            def hold():
                with lock:
                    time.sleep(0.5)

            threading.Thread(target=hold).start()
            time.sleep(0.1)
            child = os.fork()
            if child == 0:
                with lock:
                    os._exit(0)
            assert os.waitpid(child, 0)[1] == 0
            """,
            timeout=30,
        )

    def test_no_module_uses_the_property_with_a_lock(self):
        root = os.path.dirname(manifoldry.__file__)
        search = ["grep", "-rnE", r"functools.*cached_property", "--include=*.py", root]
        found = subprocess.run(search, capture_output=True, text=True, check=False).stdout
        assert [line for line in found.splitlines() if "import" in line] == []

    def test_no_compiled_function_has_threads_of_its_own(self):
        """Those of numba abort if two threads start them, and do not exist after a fork."""
        threads = re.compile(r"parallel=True|\bprange\b")
        sources = Path(manifoldry.__file__).parent.rglob("*.py")
        assert [path for path in sources if threads.search(path.read_text())] == []

    def test_children_fit_while_a_thread_of_the_parent_does(self):
        run(
            """
            import os, threading, warnings
            warnings.simplefilter("ignore")
            import numpy as np
            from manifoldry import Isomap, LaplacianEigenmaps

            X = np.random.default_rng(0).normal(size=(300, 4))
            # Imports of the first fits: a fork during an import leaves it locked in any program.
            Isomap().fit(X).transform(X[:5] + 0.01)
            LaplacianEigenmaps().fit(X).transform(X[:5] + 0.01)
            stop = threading.Event()

            def fit():
                while not stop.is_set():
                    Isomap().fit(X).transform(X[:5] + 0.01)

            thread = threading.Thread(target=fit)
            thread.start()
            children = []
            for _ in range(6):
                child = os.fork()
                if child == 0:
                    Isomap().fit(X[:100])
                    LaplacianEigenmaps().fit(X[:100]).transform(X[100:105])
                    os._exit(0)
                children.append(child)
            failed = [os.waitpid(child, 0)[1] for child in children]
            stop.set()
            thread.join()
            assert failed == [0] * 6
            """
        )

    def test_spectral_clustering_after_a_fork(self):
        """OpenMP threads of the parent's k-means do not exist in the child."""
        run(
            """
            import os, warnings
            warnings.simplefilter("ignore")
            import numpy as np
            from manifoldry import SpectralClustering

            X = np.random.default_rng(0).normal(size=(1000, 3))
            SpectralClustering(4).fit(X).predict(X[:400] + 0.01)
            child = os.fork()
            if child == 0:
                SpectralClustering(4).fit(X).predict(X[:400] + 0.01)
                os._exit(0)
            assert os.waitpid(child, 0)[1] == 0
            """,
            OMP_NUM_THREADS="2",
        )
