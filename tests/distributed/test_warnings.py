"""Warnings of tasks: they reach the user, and filters of the process stay as they are."""

import sys
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor

import dask
import dask.array as da
import numpy as np
import pytest

import manifoldry as mf
from manifoldry.distributed import using_options
from manifoldry.exceptions import NoveltyWarning, RankWarning, ignoring, recording, warn

THREADS = 8


@pytest.fixture(name="X", scope="module")
def make_rows():
    """Rows of four independent columns."""
    return np.random.default_rng(0).normal(size=(320, 4))


@pytest.fixture
def changing(monkeypatch):
    """Modules of the package that change filters of warnings in other threads than the main one.

    Whether two of them change them at the same time, and leave them changed, is a matter of chance.
    """
    modules, enter = set(), warnings.catch_warnings.__enter__

    def watched(context):
        module = sys._getframe(1).f_globals["__name__"]
        if threading.current_thread() is not threading.main_thread():
            modules.add(module)
        return enter(context)

    before = list(warnings.filters), warnings.showwarning, warnings._showwarnmsg_impl
    monkeypatch.setattr(warnings.catch_warnings, "__enter__", watched)
    yield modules
    assert [name for name in modules if name.startswith("manifoldry")] == []
    after = list(warnings.filters), warnings.showwarning, warnings._showwarnmsg_impl
    assert after == before


@pytest.mark.parametrize("wrapper", [mf.ConformalInverse, mf.FromDensity])
@pytest.mark.parametrize("method", ["transform", "inverse_transform", "novelty"])
def test_methods_of_wrappers_leave_the_filters(wrapper, method, X, changing):
    model = wrapper(mf.PCA(2)).fit(X)
    new = X[:, :2] if method == "inverse_transform" else X + 0.01
    with dask.config.set(scheduler="threads", num_workers=THREADS):
        found = getattr(model, method)(da.from_array(new, chunks=(10, -1))).compute()
    with ignoring(NoveltyWarning):
        np.testing.assert_allclose(found, getattr(model, method)(new), rtol=1e-6, atol=1e-8)


ESTIMATORS = (
    mf.PCA(2),
    mf.ConformalInverse(mf.PCA(2)),
    mf.FromDensity(mf.PCA(2)),
    mf.LaplacianEigenmaps(2),
    mf.Isomap(2),
    mf.MVU(2, max_iter=2),
    mf.ElasticEmbedding(2, max_iter=5),
    mf.TSNE(2, max_iter=5, init="spectral"),
)


def test_fits_in_parallel_threads_leave_the_filters(X, changing):
    data = da.from_array(X, chunks=(80, -1))
    start = mf.TSNE(2, max_iter=5, init=mf.PCA(2).fit(X))

    def fit(estimator):
        with using_options(landmarks=100), ignoring(mf.exceptions.ManifoldryWarning):
            return estimator.fit(data).embedding_.shape

    with ThreadPoolExecutor(THREADS) as pool:
        shapes = list(pool.map(fit, [*ESTIMATORS, start]))
    assert set(shapes) == {(len(X), 2)}


@pytest.mark.parametrize("estimator", [mf.LaplacianEigenmaps(2), mf.Isomap(2), mf.PCA(2)])
def test_fits_to_all_rows_leave_the_filters(estimator, X, changing):
    with ignoring(mf.exceptions.ManifoldryWarning):
        fitted = estimator.fit(da.from_array(X, chunks=(80, -1)))
    assert fitted.embedding_.shape == (len(X), 2)


def test_evidence_from_samples_leaves_the_filters(X, changing):
    data = da.from_array(X, chunks=(80, -1))
    with ignoring(mf.exceptions.ManifoldryWarning):
        found = mf.assess(data, data[:, :2], sample=80, random_state=0)
        dimension = mf.estimate_dimension(data, sample=160, random_state=0)
    assert 0 < float(found.metrics["trustworthiness"]) < 1
    assert dimension.n_samples == len(X)


def fit_to_a_line(_=None):
    """Fit landmarks on a line, of which there is one principal component."""
    line = da.from_array(np.outer(np.arange(60.0), [1.0, 2.0, 3.0]), chunks=(20, -1))
    with using_options(landmarks=30):
        return mf.PCA(2).fit(line)


@pytest.mark.parametrize("scheduler", ["threads", "cluster"])
def test_warnings_of_a_fit_on_a_worker_are_issued_once(scheduler, request):
    if scheduler == "cluster":
        request.getfixturevalue("client")
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        fit_to_a_line()
    [said] = [each for each in said if issubclass(each.category, RankWarning)]
    assert said.filename == __file__
    with (
        warnings.catch_warnings(action="error", category=RankWarning),
        pytest.raises(RankWarning),
    ):
        fit_to_a_line()


def test_each_fit_in_parallel_threads_warns_once():
    with warnings.catch_warnings(record=True) as said:  # of all threads
        warnings.simplefilter("always")
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(fit_to_a_line, range(12)))
    assert sum(issubclass(each.category, RankWarning) for each in said) == 12


def test_a_warning_of_several_samples_is_issued_once(X):
    Y = X[:, :2].copy()
    Y[:, 1] = 0.1 * Y[:, 0]  # which each sample reports
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        mf.assess(da.from_array(X, chunks=(80, -1)), Y, sample=80, random_state=0)
    messages = [str(each.message) for each in said]
    assert len(messages) == len(set(messages))


def test_contexts_of_two_threads_may_overlap():
    """The first one ends inside the second one, which would restore the filters of the first."""
    before = list(warnings.filters), warnings._showwarnmsg_impl
    inside, entered, left = [], threading.Event(), threading.Event()

    def overlap():
        with ignoring(NoveltyWarning), recording() as said:
            entered.set()
            assert left.wait(10)
            warn("of the thread", NoveltyWarning)
            warn("of the thread", RankWarning)
        inside.extend(said)

    thread = threading.Thread(target=overlap)
    with ignoring(RankWarning), recording() as said:
        thread.start()
        assert entered.wait(10)
        warn("of the test", NoveltyWarning)
        warn("of the test", RankWarning)
    left.set()
    thread.join()
    assert said == [("of the test", NoveltyWarning)]
    assert inside == [("of the thread", RankWarning)]
    assert before == (list(warnings.filters), warnings._showwarnmsg_impl)
