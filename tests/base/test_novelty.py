"""Novelty on real digits, of wrappers and of other inputs; the contract suite has all methods."""

import copy
import pickle
import warnings

import numpy as np
import pytest
from scipy import sparse
from scipy.spatial.distance import cdist
from sklearn.datasets import load_digits
from sklearn.decomposition import TruncatedSVD
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

import manifoldry as mf
from manifoldry.exceptions import NoveltyWarning
from manifoldry.extension import RelativeDistance
from manifoldry.extension.relative_distance import Unit
from manifoldry.metrics import assess, reconstruction


@pytest.fixture(scope="module", name="digits")
def digits_without_zeros():
    """Training rows, held-out rows of the same digits, and zeros."""
    X, y = load_digits(return_X_y=True)
    known = np.random.default_rng(0).permutation(np.flatnonzero(y > 0))
    return X[known[:800]], X[known[800:]], X[y == 0]


def test_a_digit_that_was_left_out(digits, recwarn):
    seen, held, zeros = digits
    model = mf.PCA(2).fit(seen)
    model.transform(held)
    assert not [w for w in recwarn if w.category is NoveltyWarning]
    assert (model.novelty(held) > 2).mean() < 0.03
    assert (model.novelty(zeros) > 2).mean() > 0.8
    with pytest.warns(NoveltyWarning, match=r"of 178 rows are unlike"):
        make_pipeline(model).transform(zeros)


def test_assess_has_a_verdict(digits):
    seen, held, zeros = digits
    model = mf.PCA(2).fit(seen)
    alike, unlike = (assess(seen, model, X_new=rows) for rows in (held, zeros))
    assert (alike.new_rows_differ, unlike.new_rows_differ) == (False, True)
    assert "By distance the new rows cannot be told from the training data" in alike.summary
    assert "of the new rows are unlike anything the model was fitted on" in unlike.summary
    assert unlike.metrics["unlike_rows"] == (model.novelty(zeros) > 2).mean()
    assert np.array_equal(unlike.novelty, model.novelty(zeros))
    one_wrong = np.vstack([held[:19], 10 * held[19:20]])
    assert assess(seen, model, X_new=one_wrong).new_rows_differ
    without = assess(seen, model)
    assert without.new_rows_differ is None
    assert "unlike_rows" not in without.metrics
    with pytest.raises(TypeError, match=r"new needs a fitted estimator .* not a ndarray"):
        assess(seen, model.embedding_, X_new=held)


@pytest.mark.parametrize(
    "wrapper",
    [
        mf.FromDensity(mf.PCA(2), n_draws=300),
        mf.ConformalInverse(mf.PCA(2)),
        mf.ConformalInverse(TruncatedSVD(2)),
    ],
    ids=["FromDensity", "ConformalInverse", "ConformalInverse-sklearn"],
)
def test_wrappers_compare_with_the_data(wrapper, digits, recwarn):
    seen, held, _ = digits
    data = seen[:100].copy()
    model = wrapper.fit(data)
    expected = mf.PCA(2).fit(seen[:100]).novelty(held)
    placed, distance = model.transform(held, return_distance=True)
    np.testing.assert_allclose(distance, expected)
    assert np.array_equal(placed, model.transform(held))
    data[:] = 0  # the model has a copy
    np.testing.assert_allclose(pickle.loads(pickle.dumps(model)).novelty(held), expected)
    assert not [w for w in recwarn if w.category is NoveltyWarning]
    with pytest.warns(NoveltyWarning, match="50 of 50 rows are unlike") as caught:
        model.transform(held[:50] + 30)
    assert len([w for w in caught if w.category is NoveltyWarning]) == 1


def test_sparse_rows_and_graphs(digits):
    seen, held, _ = digits
    expected = mf.PCA(2).fit(seen).novelty(held)
    by_graph = mf.LaplacianEigenmaps(2).fit(mf.NeighborGraph.build(seen)).novelty(held)
    np.testing.assert_allclose(by_graph, expected)
    rows = mf.LaplacianEigenmaps(2).fit(sparse.csr_array(seen)).novelty(sparse.csr_array(held))
    np.testing.assert_allclose(rows, expected, rtol=1e-9)


def test_a_given_metric(digits):
    """Rows that differ in length only are alike by the angle between them."""
    seen, held, _ = digits
    model = mf.Isomap(2, metric="cosine").fit(seen[:300])
    np.testing.assert_allclose(model.novelty(5 * held), model.novelty(held), rtol=1e-6)
    assert (mf.Isomap(2).fit(seen[:300]).novelty(5 * held) > 2).all()


@pytest.mark.parametrize("kernel", ["cosine", "poly", lambda x, y: float(x @ y)])
def test_unknown_for_kernels_without_a_metric(kernel, digits, recwarn):
    """The cosine of an angle does not depend on lengths."""
    model = mf.KernelPCA(2, kernel=kernel).fit(digits[0][:100])
    model.transform(50 * digits[1][:10])
    assert not [w for w in recwarn if w.category is NoveltyWarning]
    with pytest.raises(ValueError, match="kernel='rbf', 'linear' and 'laplacian' only"):
        model.novelty(digits[1])
    wrapped = mf.ConformalInverse(model).fit(digits[0][:100])
    wrapped.transform(50 * digits[1][:10])
    assert not [w for w in recwarn if w.category is NoveltyWarning]


def test_the_laplacian_kernel_has_the_manhattan_metric(digits):
    seen, held, _ = digits
    found = mf.KernelPCA(2, kernel="laplacian").fit(seen[:200]).novelty(held)
    expected = mf.LaplacianEigenmaps(2, metric="manhattan").fit(seen[:200]).novelty(held)
    np.testing.assert_allclose(found, expected)


def test_clusters_of_unlike_rows(digits):
    model = mf.SpectralClustering(3).fit(digits[0][:300])
    with pytest.warns(NoveltyWarning, match="20 of 20 rows are unlike"):
        model.predict(digits[1][:20] + 30)


def test_a_score_has_no_warning(digits, recwarn):
    """Not even in a grid search, which would repeat it for every candidate."""
    seen, held, _ = digits
    GridSearchCV(mf.PCA(), {"n_components": [1, 2]}, cv=2).fit(np.vstack([seen, held + 30]))
    reconstruction(mf.PCA(2).fit(seen), held + 30)
    assert not [w for w in recwarn if w.category is NoveltyWarning]


def test_distances_that_overflow(digits):
    model = mf.PCA(2).fit(digits[0])
    huge = np.full((2, 64), 1e200)
    with pytest.warns(NoveltyWarning, match="2 of 2 rows"):
        placed, distance = model.transform(huge, return_distance=True)
    assert np.isfinite(placed).all()
    assert (distance == np.inf).all()


def test_a_model_keeps_few_rows_and_no_state_of_a_transform():
    X = np.random.default_rng(0).normal(size=(4000, 30))
    model = mf.PCA(2).fit(X)
    before = pickle.dumps(model)
    assert len(before) < 1.6 * X[:1000].nbytes
    model.transform(X[:5] + 0.1)
    assert pickle.dumps(model) == before


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda model: pickle.loads(pickle.dumps(model))])
def test_a_saved_model_of_distances_measures_new_rows(digits, copied):
    seen, held, _ = digits
    D, D_new = cdist(seen[:200], seen[:200]), cdist(held, seen[:200])
    model = mf.ClassicalMDS(2, metric="precomputed").fit(D)
    again = copied(model)
    assert np.array_equal(again.novelty(D_new), model.novelty(D_new))
    np.testing.assert_allclose(again.novelty(D_new), mf.PCA(2).fit(seen[:200]).novelty(held))


def test_a_loaded_model_does_not_search_the_references_again(digits, monkeypatch):
    seen, held, _ = digits
    model = mf.PCA(2).fit(seen)
    expected = model.novelty(held)
    saved = pickle.dumps(model)

    def fail(*_):
        raise AssertionError

    monkeypatch.setattr(Unit, "of", fail)
    assert np.array_equal(pickle.loads(saved).novelty(held), expected)


def test_one_search_for_distances_and_warning(digits):
    calls = []

    def metric(x, y):
        calls.append(1)
        return np.abs(x - y).sum()

    model = mf.ClassicalMDS(2, metric=metric).fit(digits[0][:30])
    new = digits[1][:10]
    model.transform(new)  # the first one also computes the unit
    calls.clear()
    model.transform(new)
    once = len(calls)
    calls.clear()
    model.transform(new, return_distance=True)
    assert len(calls) == once


def test_distance_on_an_uneven_map():
    """Positions of the training points are near, also where the map is sparse."""
    radius = np.random.default_rng(0).lognormal(0, 2, size=1000)
    angle = np.random.default_rng(1).uniform(0, 2 * np.pi, size=1000)
    X = radius[:, None] * np.column_stack([np.cos(angle), np.sin(angle)])
    model = mf.PCA(2).fit(X)
    _, distance = model.inverse_transform(model.embedding_, return_distance=True)
    assert (distance > 2).mean() <= 0.01


# ---------------------------------------------------------------- positions on the map


@pytest.fixture(scope="module")
def mapped(digits):
    return mf.LaplacianEigenmaps(2).fit(digits[0])


def test_positions_of_held_out_rows_are_on_the_map(mapped, digits, recwarn):
    mapped.inverse_transform(mapped.transform(digits[1]))
    mapped.inverse_transform(mapped.transform(digits[1])[:1])
    assert not [w for w in recwarn if w.category is NoveltyWarning]


def test_a_grid_around_the_map_is_mostly_off_it(mapped):
    Y = mapped.embedding_
    axes = 2 * np.linspace(Y.min(axis=0), Y.max(axis=0), 30)
    grid = np.stack(np.meshgrid(*axes.T), axis=-1).reshape(-1, 2)
    with pytest.warns(NoveltyWarning, match=r"about \d\d% of 900 positions are off the map"):
        mapped.inverse_transform(grid)


def test_one_position_of_many_is_reported_if_it_is_very_far_off(mapped):
    Y = mapped.embedding_[:16].copy()
    Y[3] = 30 * np.ptp(mapped.embedding_, axis=0)
    with pytest.warns(NoveltyWarning, match=r"^1 of 16 positions is off the map"):
        mapped.inverse_transform(Y)


def test_nothing_is_measured_if_the_warning_is_ignored(mapped, monkeypatch):
    def fail(*_, **__):
        raise AssertionError

    monkeypatch.setattr(RelativeDistance, "of_points", fail)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NoveltyWarning)
        mapped.inverse_transform(mapped.embedding_[:3])


@pytest.mark.parametrize(
    "wrapper",
    [
        mf.NonRedundant(mf.LaplacianEigenmaps(2)),
        mf.ConformalInverse(mf.PCA(2)),
        mf.ConformalInverse(TruncatedSVD(2)),
        mf.FromDensity(mf.PCA(2), n_draws=300, width=0.5),
        mf.FromDensity(mf.PCA(2), n_draws=300, width=1),
    ],
    ids=["NonRedundant", "ConformalInverse", "of scikit-learn", "FromDensity", "wide windows"],
)
def test_wrappers_report_positions_off_the_map_once(wrapper, digits, recwarn):
    model = wrapper.fit(digits[0][:100])
    Y = model.transform(digits[0][:100])
    far = Y[:20] + 30 * np.ptp(Y, axis=0)
    recwarn.clear()
    model.inverse_transform(far)
    messages = [str(w.message) for w in recwarn if w.category is NoveltyWarning]
    assert len(messages) == 1
    assert "20 of 20 positions are off the map" in messages[0]
    recwarn.clear()
    if hasattr(model, "inverse_with_radius"):  # it says which are reliable
        assert not model.inverse_with_radius(far).reliable.any()
        assert not [w for w in recwarn if w.category is NoveltyWarning]


def test_the_map_is_measured_once_per_fit(digits, monkeypatch):
    model = mf.PCA(2).fit(digits[0])
    model.inverse_transform(model.embedding_[:1])
    measured, of_points = [], RelativeDistance.of_points

    def counted(*args, **options):
        measured.append(1)
        return of_points(*args, **options)

    monkeypatch.setattr(RelativeDistance, "of_points", counted)
    model.inverse_transform(model.embedding_[:1])
    assert not measured
    model.fit(10 * digits[0])
    with pytest.warns(NoveltyWarning, match="off the map"):
        model.inverse_transform(model.embedding_[:20] * 10)
    assert len(measured) == 2  # the data and the new map
