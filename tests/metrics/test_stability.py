"""Stability: estimators whose variability is known by construction or from theory."""

import pickle
import warnings

import numpy as np
import pandas as pd
import polars
import pytest
from scipy import sparse
from scipy.spatial import procrustes as scipys
from scipy.stats import ortho_group
from sklearn import decomposition
from sklearn.base import BaseEstimator
from sklearn.manifold import TSNE
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from manifoldry import PCA, ClassicalMDS, Isomap, LaplacianEigenmaps
from manifoldry.exceptions import DisconnectedGraphWarning, ManifoldryWarning
from manifoldry.metrics import stability
from manifoldry.metrics.refits import _clone_with_seed
from manifoldry.neighbors import NeighborGraph

X = np.random.default_rng(0).normal(size=(100, 3)) * [3.0, 2.0, 1.0]


class Fixed(BaseEstimator):
    """The first two columns: an embedding that does not depend on the other points."""

    def fit_transform(self, X, y=None):
        return self.transform(X)

    def transform(self, X):
        return np.array(X, dtype=float)[:, :2]


class Turned(BaseEstimator):
    """The first two columns after a random transformation of the given kind."""

    def __init__(self, kind, random_state=None):
        self.kind = kind
        self.random_state = random_state

    def fit_transform(self, X, y=None):
        rng = np.random.default_rng(self.random_state)
        self.shift_, self.matrix_ = rng.normal(size=2), ortho_group.rvs(2, random_state=rng)
        if self.kind != "rigid":
            self.matrix_ = self.matrix_ * rng.uniform(0.1, 10)
        if self.kind == "affine":
            self.matrix_ = self.matrix_ @ [[1.0, 1 + rng.normal() ** 2], [0, 1]]
        return self.transform(X)

    def transform(self, X):
        return X[:, :2] @ self.matrix_ + self.shift_


class Noise(BaseEstimator):
    """A random embedding, without transform."""

    def __init__(self, random_state=None):
        self.random_state = random_state

    def fit_transform(self, X, y=None):
        return np.random.default_rng(self.random_state).normal(size=(len(X), 2))


class Demanding(Fixed):
    """Fails unless a given point is present; column 0 holds the point numbers."""

    def __init__(self, needed=None, places=True):
        self.needed = needed
        self.places = places

    def fit_transform(self, X, y=None):
        if self.needed is not None and self.needed not in X[:, 0]:
            raise ArithmeticError(f"where is {self.needed}?")
        return np.array(X, dtype=float)[:, :2]

    def transform(self, X):
        if not self.places:
            raise NotImplementedError("no new points, please")
        return np.array(X, dtype=float)[:, :2]


class Foreign:
    """The minimal interface of an estimator of another package."""

    def __init__(self, scale=1.0):
        self.scale = scale

    def get_params(self, deep=True):
        return {"scale": self.scale}

    def set_params(self, **params):
        raise AssertionError("there is nothing to set")

    def fit_transform(self, X, y=None):
        return self.scale * np.asarray(X)[:, :2]


# Known results


@pytest.mark.parametrize("align", ["rigid", "similarity", "affine"])
def test_a_fixed_map_does_not_move(align):
    found = stability(Fixed(), X, transformation=align)
    for value in (found.variability, found.out_of_sample, found.difference):
        assert abs(value) < 1e-12
    assert found.per_point.max() < 1e-12
    assert found.per_point_out_of_sample.max() < 1e-12
    assert found.n_resamples == 20
    np.testing.assert_array_equal(found.embedding, X[:, :2])


def test_only_allowed_transformations_are_removed():
    kinds = ("rigid", "similarity", "affine")
    for i, kind in enumerate(kinds):
        for j, align in enumerate(kinds):
            found = stability(Turned(kind), X, transformation=align, n_resamples=5)
            if j >= i:
                assert max(found.variability, found.out_of_sample) < 1e-12
            else:
                assert min(found.variability, found.out_of_sample) > 0.1


@pytest.mark.parametrize("align", ["similarity", "affine"])
def test_noise_has_nothing_in_common(align):
    data = np.zeros((1000, 1))
    found = stability(Noise(), data, transformation=align)
    # Regression on k = 2 columns of noise explains about k/n of the variance.
    assert found.variability == pytest.approx(1, abs=0.01)
    assert found.variability.low < found.variability < found.variability.high
    assert found.out_of_sample is None
    assert found.difference is None
    assert found.per_point_out_of_sample is None


def test_principal_axis_errs_as_theory_says():
    """Anderson (1963): the axis of λ₁ turns towards λ₂'s by λ₁λ₂/(λ₁ − λ₂)² · (1/m − 1/n)."""
    n, fraction, repeats = 1500, 0.5, 200
    data = np.random.default_rng(1).normal(size=(n, 2)) * [2.0, 1.0]
    small, large = np.linalg.eigvalsh(np.cov(data.T))
    angle = small * large / (large - small) ** 2 * (1 / (fraction * n) - 1 / n)
    found = stability(
        PCA(1), data, n_resamples=repeats, fraction=fraction, transformation="rigid", random_state=0
    )
    # A point at height h above the axis moves by h·angle; the unit is the map's deviation.
    expected = np.sqrt(angle * small / large)
    assert np.sqrt((found.per_point**2).mean()) == pytest.approx(expected, rel=0.2)
    assert found.variability == pytest.approx(np.sqrt(2 / np.pi) * expected, rel=0.2)
    height = np.abs((data - data.mean(axis=0)) @ np.linalg.eigh(np.cov(data.T))[1][:, 0])
    assert np.corrcoef(height, found.per_point)[0, 1] > 0.99


def test_equal_eigenvalues_show_where_they_are_cut():
    """One axis of a round cloud is arbitrary; both together are not."""
    cloud = np.random.default_rng(0).normal(size=(300, 2))
    cut = stability(PCA(1), cloud, transformation="rigid", fraction=0.5)
    assert cut.variability > 0.3
    assert stability(PCA(2), cloud, transformation="rigid", fraction=0.5).variability < 1e-12
    long = stability(PCA(1), cloud * [5, 1], transformation="rigid", fraction=0.5)
    assert long.variability < cut.variability / 10


def test_values_are_those_of_scipys_procrustes(recorded):
    model, data, log = recorded
    found = stability(model, data, n_resamples=6, fraction=0.7)
    fits = [(rows, Y) for what, rows, Y in log if what == "fit"]
    [(_, whole), *parts] = fits
    spread = np.linalg.norm(whole - whole.mean(axis=0)) / np.sqrt(len(whole))
    errors, squares = [], np.zeros((6, 60))
    for square, (rows, Y) in zip(squares, parts, strict=True):
        target = whole[rows]
        _, moved, disparity = scipys(target, Y)
        size = np.linalg.norm(target - target.mean(axis=0))
        errors.append(np.sqrt(disparity / len(rows)) * size / spread)
        moved = moved * size + target.mean(axis=0)
        square[rows] = ((moved - target) ** 2).sum(axis=1) / spread**2
    assert found.variability == pytest.approx(np.mean(errors))
    np.testing.assert_allclose(found.per_point**2, squares.sum(axis=0) / found.counts)


def test_left_out_points_are_placed_by_models_that_have_not_seen_them(recorded):
    model, data, log = recorded
    found = stability(model, data, n_resamples=10)
    assert [what for what, _, _ in log] == ["fit"] + ["fit", "transform"] * 10
    for (_, kept, _), (_, out, _) in zip(log[1::2], log[2::2], strict=True):
        assert sorted([*kept, *out]) == list(range(60))
        assert len(kept) == 48
    np.testing.assert_array_equal(found.counts, 8)  # every point is left out in two of ten refits
    assert np.isfinite(found.per_point_out_of_sample).all()
    assert found.difference == pytest.approx(found.variability - found.out_of_sample)


def test_interval_is_students(recorded):
    from scipy.stats import ttest_1samp

    model, data, log = recorded
    found = stability(model, data, n_resamples=7, transformation="affine", keep_embeddings=True)
    spread = np.sqrt(((found.embedding - found.embedding.mean(axis=0)) ** 2).sum(axis=1).mean())
    errors = []
    for placed, (_, kept, _) in zip(found.aligned_embeddings, log[1::2], strict=True):
        offsets = (placed - found.embedding)[kept] / spread
        errors.append(np.sqrt((offsets**2).sum(axis=1).mean()))
    expected = ttest_1samp(errors, 0).confidence_interval(0.95)
    assert found.variability == pytest.approx(np.mean(errors))
    assert (found.variability.low, found.variability.high) == pytest.approx(tuple(expected))


def test_one_resample_is_no_interval():
    found = stability(Fixed(), X, n_resamples=1)
    assert (found.variability.low, found.variability.high) == (0, np.inf)
    assert (found.difference.low, found.difference.high) == (-np.inf, np.inf)


# Running


def test_results_do_not_depend_on_the_number_of_processes():
    """t-SNE without a seed, which amplifies every rounding error."""
    model = TSNE(perplexity=5, max_iter=260, init="random")
    one, two = (
        stability(model, X[:40], n_resamples=3, random_state=5, n_jobs=n_jobs) for n_jobs in (1, 2)
    )
    np.testing.assert_array_equal(one.embedding, two.embedding)
    np.testing.assert_array_equal(one.per_point, two.per_point)
    assert one.variability > 0.05
    other = stability(model, X[:40], n_resamples=3, random_state=6)
    assert one.variability != other.variability


def test_a_seed_of_the_estimators_own_is_kept():
    model = Noise(random_state=3)
    found = stability(model, X, n_resamples=2)
    expected = np.random.default_rng(3).normal(size=(100, 2))
    np.testing.assert_array_equal(found.embedding, expected)


def test_clones_get_a_seed_and_a_number_of_threads():
    own = make_pipeline(TSNE(random_state=3), Isomap(n_jobs=-1), Noise())
    copy = _clone_with_seed(own, seed=9, threads=2)
    assert [step.get_params().get("random_state") for _, step in copy.steps] == [3, 9, 9]
    assert [step.get_params().get("n_jobs") for _, step in copy.steps] == [None, 2, None]
    assert _clone_with_seed(own, seed=9, threads=None).get_params()["isomap__n_jobs"] == -1
    assert own.get_params()["noise__random_state"] is None


def test_kept_maps():
    found = stability(PCA(2), X, n_resamples=4, keep_embeddings=True)
    assert found.aligned_embeddings.shape == (4, 100, 2)
    offsets = np.linalg.norm(found.aligned_embeddings - found.embedding, axis=2)
    assert 0 < offsets.max() < 0.5 * found.embedding.std()
    assert stability(PCA(2), X, n_resamples=4).aligned_embeddings is None
    turned = stability(Noise(), X, n_resamples=4, keep_embeddings=True).aligned_embeddings
    assert np.isnan(turned).any(axis=2).sum() == 4 * 20  # left-out points are not embedded


def test_progress(capsys):
    stability(Fixed(), X, n_resamples=3)
    assert not capsys.readouterr().err
    stability(Fixed(), X, n_resamples=3, verbose=True)
    assert "refits" in capsys.readouterr().err


def test_nothing_given_is_changed():
    data, model = X.copy(), decomposition.PCA(2, copy=False)
    stability(model, data, n_resamples=2)
    np.testing.assert_array_equal(data, X)
    assert not hasattr(model, "components_")


def test_result_pickles_and_is_short():
    found = stability(PCA(1), X, n_resamples=2)
    again = pickle.loads(pickle.dumps(found))
    assert again.variability == found.variability
    assert again.variability.high == found.variability.high
    assert len(repr(found)) < 250


# Input


@pytest.mark.parametrize(
    "given",
    [
        lambda: X.astype(np.float32),
        lambda: X.tolist(),
        lambda: sparse.csr_matrix(X),
        lambda: sparse.coo_array(X),
        lambda: pd.DataFrame(X, columns=["a", "graph", "c"]),
    ],
    ids=["float32", "lists", "matrix", "coo", "frame"],
)
def test_kinds_of_data(given):
    expected = stability(PCA(2), X, n_resamples=3)
    found = stability(PCA(2), given(), n_resamples=3)
    assert found.variability == pytest.approx(expected.variability, rel=1e-4)
    assert found.out_of_sample == pytest.approx(expected.out_of_sample, rel=1e-4)


def test_polars_and_set_output():
    model = PCA(2).set_output(transform="polars")
    found = stability(model, polars.DataFrame(X, schema=list("abc")), n_resamples=3)
    assert found.variability == pytest.approx(stability(PCA(2), X, n_resamples=3).variability)


def test_precomputed_distances():
    D = np.linalg.norm(X[:, None] - X, axis=2)
    expected = stability(ClassicalMDS(2), X, n_resamples=3)
    found = stability(ClassicalMDS(2, metric="precomputed"), D, n_resamples=3)
    assert found.variability == pytest.approx(expected.variability)
    assert found.out_of_sample == pytest.approx(expected.out_of_sample)
    frame = pd.DataFrame(D)
    again = stability(ClassicalMDS(2, metric="precomputed"), frame, n_resamples=3)
    assert again.variability == found.variability
    with pytest.raises(ValueError, match=r"square matrix; got shape \(100, 3\)"):
        stability(ClassicalMDS(2, metric="precomputed"), X)
    with pytest.raises(ValueError, match=r"square matrix; got shape \(1, 100\)"):
        stability(ClassicalMDS(2, metric="precomputed"), X[:, 0])


def test_estimators_from_elsewhere():
    ours = stability(PCA(2), X, n_resamples=3)
    assert stability(decomposition.PCA(2), X, n_resamples=3).variability == pytest.approx(
        ours.variability
    )
    pipeline = make_pipeline(StandardScaler(), decomposition.PCA(2))
    assert stability(pipeline, X, n_resamples=3).out_of_sample > 0
    assert stability(Foreign(), X, n_resamples=3).variability < 1e-12


@pytest.mark.parametrize("disguise", [lambda X: X * 1e150, lambda X: X * 1e-150])
def test_units_do_not_matter(disguise):
    expected = stability(PCA(2), X, n_resamples=3)
    found = stability(PCA(2), disguise(X), n_resamples=3)
    assert found.variability == pytest.approx(expected.variability)
    np.testing.assert_allclose(found.per_point, expected.per_point, rtol=1e-6)


def test_an_offset_does_not_matter():
    found = stability(PCA(2), X + 1e8, n_resamples=3)
    assert found.variability == pytest.approx(stability(PCA(2), X, n_resamples=3).variability, 1e-5)


def test_points_that_are_not_embedded_are_ignored():
    two = np.vstack([X, X[:10] + 1e4])  # the larger component has 100 points, the other ten
    model = LaplacianEigenmaps(2, n_neighbors=6, disconnected="largest")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DisconnectedGraphWarning)
        found = stability(model, two, n_resamples=5)
    assert np.isnan(found.per_point[100:]).all()
    assert np.isfinite(found.per_point[:100]).all()
    assert not found.counts[100:].any()
    assert np.isfinite(found.variability)


# Failures


NUMBERED = np.column_stack([np.arange(50.0), X[:50, 1:]])


def test_some_failures_are_reported_and_ignored():
    with pytest.warns(ManifoldryWarning, match=r"2 of 10 refits failed .* where is 7\?") as issued:
        found = stability(Demanding(needed=7), NUMBERED, n_resamples=10)
    assert issued[0].filename == __file__
    assert found.failures == ("ArithmeticError: where is 7?",) * 2
    assert found.n_resamples == 8
    assert found.variability < 1e-12
    assert np.isnan(found.per_point_out_of_sample[7])  # refits without it failed


def test_mostly_failures_are_an_error():
    message = r"10 of 10 refits failed.*ArithmeticError: where is 7\?.*"
    with pytest.raises(RuntimeError, match=message):
        stability(_Spoilt(), NUMBERED, n_resamples=10)


class _Spoilt(Demanding):
    def fit_transform(self, X, y=None):
        if len(X) < 50:
            raise ArithmeticError("where is 7?")
        return super().fit_transform(X)


def test_an_error_of_all_the_data_is_the_estimators_own():
    with pytest.raises(ArithmeticError, match=r"where is 99\?"):
        stability(Demanding(needed=99), NUMBERED)


def test_transform_may_fail():
    with pytest.warns(ManifoldryWarning, match="transform failed for 4 of 4 .* no new points"):
        found = stability(Demanding(places=False), NUMBERED, n_resamples=4)
    assert found.variability < 1e-12
    assert found.out_of_sample is None
    assert len(found.failures) == 4


def test_a_warning_of_many_fits_comes_once():
    cloud = np.vstack([X[:30], X[:30] + 1e4])
    model = LaplacianEigenmaps(2, n_neighbors=5)
    with pytest.warns(DisconnectedGraphWarning) as issued:
        stability(model, cloud, n_resamples=4)
    about = [str(w.message) for w in issued if w.category is DisconnectedGraphWarning]
    assert len(about) == 2  # one for all the data, one for the refits
    assert about[1].startswith("in 4 of 4 refits: ")


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: stability(PCA, X), TypeError, "must be an unfitted or fitted scikit-learn"),
        (lambda: stability("PCA", X), TypeError, "estimator='PCA' must be"),
        (lambda: stability(PCA(2), X, n_resamples=0), ValueError, "n_resamples=0 must be at"),
        (lambda: stability(PCA(2), X, n_resamples=2.5), TypeError, "n_resamples=2.5 must be a"),
        (lambda: stability(PCA(2), X, fraction=0), ValueError, "fraction=0 must be greater"),
        (lambda: stability(PCA(2), X, fraction=1.0), ValueError, "keeps 100 .* must keep 3 to 99"),
        (lambda: stability(PCA(2), X, fraction=0.02), ValueError, "keeps 2 .* pass 0.03 to 0.99"),
        (lambda: stability(PCA(2), X, fraction=0.03), ValueError, "keeps 3 .* pass 0.04 to 0.99"),
        (lambda: stability(PCA(2), X[:4]), ValueError, "n_samples=4 .*: add points"),
        (lambda: stability(PCA(2), X, fraction=np.nan), ValueError, "fraction=nan must be finite"),
        (
            lambda: stability(PCA(2), X, transformation="free"),
            ValueError,
            "transformation='free' must be one of",
        ),
        (lambda: stability(PCA(2), X, n_jobs=0), ValueError, "n_jobs=0 must be"),
        (lambda: stability(PCA(2), X, random_state=-1), ValueError, "random_state=-1 must be"),
        (lambda: stability(PCA(2), X[:0]), ValueError, "n_samples=0 .*: add points"),
        (lambda: stability(PCA(2), X[:1]), ValueError, "n_samples=1 .*: add points"),
        (lambda: stability(PCA(2), X[:, 0]), ValueError, "Expected 2D array"),
        (lambda: stability(PCA(2), np.where(X > 2, np.nan, X)), ValueError, "NaN"),
        (lambda: stability(PCA(2), np.ma.masked_greater(X, 2)), ValueError, "masked cells"),
        (
            lambda: stability(PCA(1), NeighborGraph.build(X, 5)),
            TypeError,
            "X is of type NeighborGraph",
        ),
        (lambda: stability(Fixed(), X * 0), ValueError, "all 100 embedded points coincide"),
        (lambda: stability(Fixed(), X * 0 + 0.1), ValueError, "all 100 embedded points coincide"),
        (lambda: stability(PCA(2), None), TypeError, "X is None; pass data"),
    ],
)
def test_bad_input_is_named(call, error, words):
    with pytest.raises(error, match=words):
        call()


def test_an_embedding_of_the_wrong_shape():
    class Flat(Fixed):
        def fit_transform(self, X, y=None):
            return np.ones(len(X))

    with pytest.raises(ValueError, match=r"Flat returned ndarray of shape \(100,\) for 100 rows"):
        stability(Flat(), X)
