"""What other processes do: forks, signals, damaged caches, directories that cannot be written."""

import os
import subprocess
import sys
import textwrap

import pytest

POSIX = pytest.mark.skipif(os.name != "posix", reason="there are no forks and signals elsewhere")

COMPILED = """
    import numpy as np
    from manifoldry.neighbors.compiled import squared_distance
    X = np.arange(6, dtype=np.float32).reshape(2, 3)
    assert squared_distance(X, 0, 1) == 27
"""


def run(code, timeout=60, **environment):
    """Run Python code in a process of its own; an error or a timeout fails the test."""
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        env=os.environ | environment,
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
        import manifoldry

        root = os.path.dirname(manifoldry.__file__)
        search = ["grep", "-rnE", r"functools.*cached_property", "--include=*.py", root]
        found = subprocess.run(search, capture_output=True, text=True, check=False).stdout
        assert [line for line in found.splitlines() if "import" in line] == []

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
