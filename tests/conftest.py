"""Settings for all tests."""

import gc
import os

# Test workers share the cores already; with a pool of BLAS threads in each, most of the time went
# into waiting for one another (ten times the whole). It has to be said before numpy is imported.
for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(name, "1")

import numpy as np  # noqa: E402 (the threads have to be set first)
import pytest  # noqa: E402

collect_ignore = ["sharpness/__main__.py"]  # no tests: it tests the tests


def pytest_addoption(parser):
    parser.addoption(
        "--fast-paths",
        action="store_true",
        help="take the compiled paths of large data for small data too; results must not change",
    )


def pytest_collection_finish():
    """Leave the tests themselves, many thousands of objects, out of all garbage collections."""
    gc.collect()
    gc.freeze()


@pytest.fixture
def free_memory(monkeypatch):
    """Function that sets the free memory; even small plans are compared with it."""
    from manifoldry.util import validation

    def set_to(n_bytes):
        monkeypatch.setattr(validation, "SMALL_PLAN", 0)
        monkeypatch.setattr(validation, "available_memory", lambda: n_bytes)

    return set_to


@pytest.fixture
def emulated():
    """A device that numpy emulates."""
    from manifoldry.device.emulated import EmulatedDevice

    return EmulatedDevice()


@pytest.fixture
def cuda():
    """The first GPU; the test is skipped if there is none, unless one is required."""
    from manifoldry.device import MissingDeviceError, resolve_device

    try:
        return resolve_device("cuda")
    except MissingDeviceError as error:
        if os.environ.get("MANIFOLDRY_NEED_GPU"):
            raise
        pytest.skip(f"no GPU: {error}")


@pytest.fixture(params=["emulated", "cuda"])
def device(request):
    """The devices that tests run on."""
    return request.getfixturevalue(request.param)


@pytest.fixture(scope="session")
def assert_searched_alike():
    """Two searches of the same objective began at the same value, and lowered it by as much.

    Where they end is not the same, because rounding errors grow from step to step. A line search
    never raises the value; values at different parameters of a homotopy are not compared.
    """

    def check(model, expected, fraction=0.1, never_up=True):
        traces = model.trace_, expected.trace_
        first, last = ([float(trace["value"][i]) for trace in traces] for i in (0, -1))
        assert first[0] == pytest.approx(first[1], rel=1e-5)
        assert first[0] - last[0] == pytest.approx(first[1] - last[1], rel=fraction)
        if never_up:
            rises = np.diff(model.trace_["value"])[np.diff(model.trace_["iteration"]) > 0]
            assert rises.max() <= 1e-6 * abs(first[0])

    return check


@pytest.fixture(autouse=True, scope="session")
def fast_paths(request):
    """Search by compiled loops, and approximate sums over pairs: what only large data get."""
    if not request.config.getoption("--fast-paths"):
        yield
        return
    from scipy import sparse

    from manifoldry.neighbors import paths, shortest_paths
    from manifoldry.neighbors.brute import BruteIndex
    from manifoldry.neighbors.edge_list import EdgeList
    from manifoldry.objectives import Exact, Fastest, pairwise

    patch = pytest.MonkeyPatch()
    patch.setattr(
        BruteIndex,
        "_is_large",
        lambda index, X: not (sparse.issparse(X) or sparse.issparse(index.X)),
    )
    patch.setattr(EdgeList, "_is_large", True)
    patch.setattr(shortest_paths, "COMPILE_ABOVE_WORK", 0)
    patch.setattr(paths, "COMPILE_ABOVE_POINTS", 0)
    exact = Exact(compile_pairs=0.0)
    patch.setattr(pairwise, "default_pair_sums", lambda: Fastest(exact_up_to=1, exact=exact))
    yield
    patch.undo()
