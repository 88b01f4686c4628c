"""The wrapper: its coordinates, new points, and all estimators that it accepts."""

import warnings
from functools import partial

import numpy as np
import pytest
from scipy.stats import spearmanr
from sklearn.base import clone
from sklearn.datasets import make_moons
from sklearn.metrics import adjusted_rand_score
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import check_estimator

from manifoldry import (
    LLE,
    LTSA,
    MVU,
    PCA,
    ClassicalMDS,
    DiffusionMaps,
    Isomap,
    KernelPCA,
    LaplacianEigenmaps,
    NonRedundant,
    SpectralClustering,
)
from manifoldry.datasets import make_ring, make_strip, make_swiss_roll
from manifoldry.exceptions import DisconnectedGraphWarning, RankWarning
from manifoldry.metrics import unpredictability
from manifoldry.nonredundant import KernelSmoother
from manifoldry.nonredundant.criteria import GraphProblem, PredictionCriterion, mass_of

LE = LaplacianEigenmaps(n_neighbors=12)
CUT = 0.03  # fraction of the largest singular value below which functions are left out
CRITERIA = ("gradient", "prediction")


def width_of(coordinates):
    """The first function of the second coordinate on a strip: cos(πx)."""
    u = coordinates[:, 1]
    return np.cos(np.pi * (u - u.min()) / np.ptp(u))


def correlation(f, g):
    return abs(np.corrcoef(f, g)[0, 1])


def explained(f, columns):
    """R² of a linear fit."""
    A = np.column_stack([np.ones(len(f)), columns])
    rest = f - A @ np.linalg.lstsq(A, f, rcond=None)[0]
    return 1 - (rest**2).sum() / ((f - f.mean()) ** 2).sum()


# --- what the coordinates show --------------------------------------------------------------------


@pytest.mark.parametrize("aspect", [2.5, 3.5])
@pytest.mark.parametrize("seed", range(3))
def test_a_strip_shows_its_width(aspect, seed):
    X, coordinates = make_strip(600, aspect=aspect, random_state=seed)
    plain = LE.set_params(n_components=2).fit_transform(X)
    assert unpredictability(plain)[1] < 0.3
    model = NonRedundant(LE).fit(X)
    assert model.unpredictability_[1] > 0.9
    assert correlation(model.embedding_[:, 1], width_of(coordinates)) > 0.93
    published = NonRedundant(LE, criterion="prediction").fit(X)
    assert 0.9 < published.unpredictability_[1] < 1.1
    np.testing.assert_allclose(
        model.unpredictability_, unpredictability(model.embedding_), rtol=1e-6
    )


@pytest.mark.parametrize("noise", [0.0, 0.3])
def test_a_long_roll_shows_its_height(noise):
    X, coordinates = make_swiss_roll(1500, aspect=6, noise=noise, random_state=0)
    model = NonRedundant(LE).fit(X)
    assert correlation(model.embedding_[:, 1], width_of(coordinates)) > 0.9


def test_a_box_shows_its_three_sides():
    U = np.random.default_rng(0).uniform(size=(1500, 3))
    Y = NonRedundant(LE, 3).fit_transform(U * [4, 2, 1])
    for i in range(3):
        assert correlation(Y[:, i], np.cos(np.pi * U[:, i])) > 0.9


@pytest.mark.parametrize(("criterion", "least"), [("gradient", 0.98), ("prediction", 0.8)])
def test_the_second_branch_of_a_circle_is_new(criterion, least):
    X, coordinates = make_ring(800, random_state=0)
    angle = coordinates[:, 0]
    Y = NonRedundant(LE, 2, criterion=criterion).fit_transform(X)
    assert explained(Y[:, 1], np.column_stack([np.cos(angle), np.sin(angle)])) > least


def test_lle_shows_the_height_of_a_roll():
    X, coordinates = make_swiss_roll(1500, aspect=6, random_state=0)
    plain = LLE(2, n_neighbors=12).fit_transform(X)
    model = NonRedundant(LLE(n_neighbors=12)).fit(X)
    height = width_of(coordinates)
    assert correlation(plain[:, 1], height) < 0.6
    assert correlation(model.embedding_[:, 1], height) > 0.85


def test_prediction_takes_over_where_gradients_fail():
    X, _ = make_swiss_roll(2000, aspect=16, random_state=0)
    model = NonRedundant(LLE(n_neighbors=12)).fit(X)
    assert model.unpredictability_[1] > 0.9
    assert "prediction" in model.coordinate_descriptions_[1]


def test_prediction_takes_over_where_gradients_are_doubtful():
    """Experiment E3.1, seed 3: r₂ = 0.91, but a rank correlation of 0.42 with the height."""
    X, coordinates = make_swiss_roll(2000, aspect=10, noise=0.15, random_state=3)
    model = NonRedundant(LLE(n_neighbors=12)).fit(X)
    assert abs(spearmanr(model.embedding_[:, 1], coordinates[:, 1]).statistic) > 0.85


def test_methods_without_redundancy_are_unchanged():
    X, _ = make_swiss_roll(600, aspect=2, random_state=0)
    plain = Isomap(2, n_neighbors=8).fit_transform(X)
    np.testing.assert_allclose(
        NonRedundant(Isomap(n_neighbors=8)).fit_transform(X), plain, atol=1e-4 * np.abs(plain).max()
    )


# --- properties of the definition -----------------------------------------------------------------


@pytest.mark.parametrize("smoother", ["nadaraya_watson", "local_linear"])
@pytest.mark.parametrize("bandwidth", [0.2, 0.45, "auto"])
def test_a_smoother_predicts_nearly_zero(smoother, bandwidth):
    """P f against ‖P‖‖f‖, with the matrix of the smoother written out."""
    X, _ = make_strip(400, aspect=3, random_state=0)
    model = NonRedundant(LE, 3, criterion="prediction", bandwidth=bandwidth, smoother=smoother).fit(
        X
    )
    Y, mass = model.embedding_, np.asarray(model.affinity_.sum(axis=1)).ravel()
    np.testing.assert_allclose(mass @ Y, 0, atol=1e-9 * np.abs(Y).max() * mass.sum())
    if smoother == "local_linear" or bandwidth == "auto":
        assert model.unpredictability_[1] > 0.85
        return
    for i in (1, 2):
        F = Y[:, :i]
        Z = F / (bandwidth * np.sqrt(i * (mass @ F**2) / mass.sum()))
        K = np.exp(-0.5 * ((Z[:, None] - Z[None]) ** 2).sum(axis=2)) * mass
        P = K / K.sum(axis=1, keepdims=True)
        size = np.linalg.norm(P / np.sqrt(mass), 2) * np.linalg.norm(np.sqrt(mass) * Y[:, i])
        assert np.linalg.norm(P @ Y[:, i]) < 1.1 * CUT * size


@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.parametrize(
    "estimator", [LE, LLE(n_neighbors=12), DiffusionMaps(), KernelPCA(), PCA(), Isomap()]
)
def test_the_first_coordinate_is_the_method_s_own(estimator, criterion):
    X, _ = make_strip(300, aspect=3, curl=0.5, random_state=0)
    expected = clone(estimator).set_params(n_components=1).fit_transform(X)
    for k in (1, 2):
        Y = NonRedundant(estimator, k, criterion=criterion).fit_transform(X)
        scale = np.abs(expected).max()
        np.testing.assert_allclose(Y[:, :1], expected, atol=1e-6 * scale)


@pytest.mark.parametrize("criterion", CRITERIA)
def test_rescaling_the_kernel_rescales_the_map(criterion):
    X, _ = make_strip(200, aspect=3, random_state=0)
    K = np.exp(-((X[:, None] - X[None]) ** 2).sum(axis=2))
    one, seven = (
        NonRedundant(KernelPCA(kernel="precomputed"), 3, criterion=criterion).fit(c * K)
        for c in (1.0, 7.0)
    )
    np.testing.assert_allclose(
        seven.embedding_ / np.sqrt(7), one.embedding_, atol=1e-5 * np.abs(one.embedding_).max()
    )


def test_auto_takes_the_widest_kernel_with_an_unpredictable_coordinate():
    X, _ = make_strip(600, aspect=2.5, random_state=0)
    model = NonRedundant(LE, criterion="prediction", bandwidth="auto").fit(X)
    assert "bandwidth 0.6" in model.coordinate_descriptions_[1]
    narrow = NonRedundant(LE, criterion="prediction", bandwidth=0.15).fit(X)
    assert model.eigenvalues_[1] < narrow.eigenvalues_[1]


# --- how many -------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("data", ["strip", "roll", "box"])
def test_auto_counts_the_directions(data, seed):
    rng = np.random.default_rng(seed)
    X, expected = {
        "strip": (make_strip(800, aspect=3.5, random_state=seed).X, 2),
        "roll": (make_swiss_roll(1000, aspect=4, random_state=seed).X, 2),
        "box": (rng.uniform(size=(1000, 3)) * [4, 2, 1], 3),
    }[data]
    model = NonRedundant(LE, "auto").fit(X)
    assert model.n_components_ == model.embedding_.shape[1] == expected


# --- new points -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("estimator", "criterion", "largest"),
    [
        (LE, "gradient", 1e-8),
        (LE, "prediction", 1e-8),
        (DiffusionMaps(), "gradient", 1e-7),
        (DiffusionMaps(), "prediction", 1e-8),
        (KernelPCA(), "prediction", 1e-8),
        (PCA(), "prediction", 1e-8),
        (ClassicalMDS(metric="cityblock"), "prediction", 1e-6),
        (Isomap(), "prediction", 1e-4),
        (LLE(n_neighbors=12), "gradient", 0.03),
        (LTSA(n_neighbors=12), "gradient", 0.03),
    ],
)
def test_the_formula_for_new_points_returns_training_points(estimator, criterion, largest):
    X, _ = make_strip(500, aspect=3, curl=0.5, random_state=0)
    model = NonRedundant(estimator, 2, criterion=criterion).fit(X)
    assert model.extension_error(X) < largest


@pytest.mark.parametrize("criterion", CRITERIA)
def test_new_points_fall_between_old_ones(criterion):
    X, coordinates = make_strip(2000, aspect=3.5, random_state=0)
    model = NonRedundant(LE, criterion=criterion).fit(X[::2])
    known = KNeighborsRegressor(5).fit(coordinates[::2], model.embedding_)
    expected, got = known.predict(coordinates[1::2]), model.transform(X[1::2])
    for i in range(2):
        assert correlation(expected[:, i], got[:, i]) > 0.99
    assert np.array_equal(model.transform(X[::2][:50]), model.embedding_[:50])


def test_there_and_back():
    X, _ = make_swiss_roll(1500, aspect=5, random_state=0)
    model = NonRedundant(LE).fit(X)
    back = model.inverse_transform(model.embedding_)
    assert ((X - back) ** 2).sum() < 0.02 * ((X - X.mean(axis=0)) ** 2).sum()
    plain = LE.set_params(n_components=2).fit(X)
    lost = ((X - plain.inverse_transform(plain.embedding_)) ** 2).sum()
    assert ((X - back) ** 2).sum() < 0.3 * lost


def test_landmarks():
    X, coordinates = make_swiss_roll(800, aspect=3, random_state=0)
    model = NonRedundant(Isomap(n_neighbors=8, n_landmarks=80), criterion="prediction").fit(X)
    assert model.embedding_.shape == (800, 2)
    assert correlation(model.embedding_[:, 1], coordinates[:, 1]) > 0.9
    assert model.transform(X[:5] + 1e-3).shape == (5, 2)


# --- as an estimator ------------------------------------------------------------------------------


@pytest.mark.slow  # the contract runs them for one criterion
@pytest.mark.parametrize("criterion", CRITERIA)
def test_scikit_learn_s_own_checks(criterion):
    check_estimator(NonRedundant(criterion=criterion))


def test_in_pipelines_and_grids():
    X, coordinates = make_strip(300, aspect=3, random_state=0)
    pipeline = make_pipeline(NonRedundant(LE, 2), KNeighborsRegressor(5))
    grid = GridSearchCV(
        pipeline,
        {
            "nonredundant__criterion": list(CRITERIA),
            "nonredundant__estimator__n_neighbors": [8, 12],
        },
        cv=2,
    )
    grid.fit(X, coordinates[:, 1])
    assert grid.best_score_ > 0.8


def test_components_are_embedded_apart():
    X, _ = make_strip(300, aspect=3, random_state=0)
    far = np.vstack([X, X[:100] + 100])
    with pytest.warns(DisconnectedGraphWarning):
        model = NonRedundant(LE, 2).fit(far)
    assert np.isfinite(model.embedding_).all()
    assert np.isfinite(model.transform(far[::7] + 1e-4)).all()


@pytest.mark.parametrize(
    ("parameters", "error", "message"),
    [
        (
            {"estimator": SpectralClustering(), "n_components": 100},
            ValueError,
            "=100 must be at most",
        ),
        (
            {"estimator": SpectralClustering(), "n_components": 1.5},
            TypeError,
            "must be a whole number",
        ),
        ({"estimator": KNeighborsRegressor()}, TypeError, "must be a spectral embedding"),
        ({"criterion": "best"}, ValueError, "criterion='best' must be one of 'gradient'"),
        ({"bandwidth": -1.0}, ValueError, "bandwidth=-1.0 must be"),
        ({"smoother": "spline"}, ValueError, "smoother='spline' must be one of"),
        ({"n_components": 0}, ValueError, "n_components=0 must be"),
        ({"n_components": 500}, ValueError, "n_components=500 must be at most"),
        ({"estimator": LTSA(), "n_components": "auto"}, ValueError, "depends on that number"),
    ],
)
def test_invalid_parameters(parameters, error, message):
    X, _ = make_strip(100, random_state=0)
    with pytest.raises(error, match=message):
        NonRedundant(**parameters).fit(X)


@pytest.mark.parametrize("criterion", CRITERIA)
def test_around_spectral_clustering(criterion):
    """The coordinates are those of Laplacian eigenmaps; k-means on them gives the clusters."""
    strip, _ = make_strip(250, aspect=3, random_state=0)
    model = NonRedundant(SpectralClustering(3), criterion=criterion).fit(strip[:200])
    same = NonRedundant(LaplacianEigenmaps(), 2, criterion=criterion).fit(strip[:200])
    np.testing.assert_allclose(model.embedding_, same.embedding_, atol=1e-7)
    np.testing.assert_allclose(model.transform(strip[200:]), same.transform(strip[200:]), atol=1e-7)
    np.testing.assert_array_equal(model.predict(strip[:200]), model.labels_)
    assert set(model.predict(strip[200:])) <= {0, 1, 2}
    X, y = make_moons(250, noise=0.05, random_state=0)
    two = NonRedundant(SpectralClustering(2), criterion=criterion).fit(X[:200])
    assert two.embedding_.shape == (200, 1)
    assert adjusted_rand_score(y[:200], two.labels_) == 1
    assert adjusted_rand_score(y[200:], two.predict(X[200:])) == 1
    np.testing.assert_array_equal(clone(two).fit_predict(X[:200]), two.labels_)
    assert not hasattr(same, "predict")
    assert not hasattr(same, "fit_predict")


@pytest.mark.parametrize("criterion", CRITERIA)
def test_clusters_that_are_not_connected(criterion):
    """The first coordinate tells the two components apart, and its gradient is rounding."""
    strips = [make_strip(150, aspect=3, random_state=seed).X + 20 * seed for seed in (0, 1)]
    model = NonRedundant(SpectralClustering(2), 2, criterion=criterion).fit(np.vstack(strips))
    assert adjusted_rand_score(np.repeat([0, 1], 150), model.labels_) == 1
    first = model.embedding_[:, 0].reshape(2, 150)
    np.testing.assert_allclose(first, first[:, :1] * np.ones(150), rtol=1e-6)
    lengths = [np.cos(np.pi * strip[:, 0] / np.ptp(strip[:, 0])) for strip in strips]
    parts = zip(model.embedding_[:, 1].reshape(2, 150), lengths, strict=True)
    assert max(correlation(f, length) for f, length in parts) > 0.95


def test_criteria_can_be_used_alone():
    """They need only a problem, the earlier coordinates, and a solver."""
    X, _ = make_strip(300, aspect=3, random_state=0)
    model = clone(LE).set_params(n_components=1).fit(X)
    (problem,) = clone(LE).pose(X).problems
    from manifoldry.eigen import Auto

    found = PredictionCriterion(0.3).next(
        GraphProblem(problem),
        model.embedding_,
        lambda p: Auto().solve(p, 1, np.random.default_rng(0)),
    )
    assert found.error > 0.9
    assert mass_of(problem) @ found.f == pytest.approx(0, abs=1e-9)


def test_unfolded_points_have_coordinates_of_their_own():
    """A ring cannot be laid flat: height comes third, mixed with what is left of the ring."""
    rng = np.random.default_rng(0)
    angle, height = rng.uniform(0, 2 * np.pi, 150), rng.uniform(0, 1, 150)
    X = np.column_stack([np.cos(angle), np.sin(angle), height])
    plain = MVU(3, max_iter=3000).fit(X)
    model = NonRedundant(MVU(max_iter=3000), 3, criterion="prediction").fit(X)
    assert model.unpredictability_[2] > plain.unpredictability()[2] + 0.1
    variance = plain.unfolded_.var(axis=0, ddof=0) * len(X)
    np.testing.assert_allclose(np.sort(variance)[::-1], plain.eigenvalues_, rtol=1e-9)
    np.testing.assert_allclose(model.eigenvalues_[0], plain.eigenvalues_[0], rtol=1e-9)
    assert model.score(X + 0.01 * rng.normal(size=X.shape)) > 0.99
    np.testing.assert_array_equal(model.transform(X[:5]), model.embedding_[:5])
    assert model.residuals_.shape == model.gaps_.shape == (3,)
    assert "one coordinate at a time" in model.solver_


@pytest.mark.filterwarnings("ignore::manifoldry.exceptions.ManifoldryWarning")
def test_unfolded_components_have_coordinates_apart():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.uniform(0, 3, 120), rng.uniform(0, 1, 120)])
    X[70:, 0] += 50
    model = NonRedundant(MVU(max_iter=2000)).fit(X)
    for label in (0, 1):
        rows = model.component_labels_ == label
        along = np.abs(np.corrcoef(model.embedding_[rows].T, X[rows].T)[:2, 2:])
        assert along[0, 0] > 0.99
        assert along[1, 1] > 0.9  # of a component of 50 points


def test_warnings_of_the_method():
    with pytest.warns(RankWarning, match="eigenvalues to the power t=1000000"):
        NonRedundant(DiffusionMaps(t=1e6)).fit(make_strip(100, aspect=3, random_state=0).X)
    flat = np.column_stack([np.arange(30.0), np.zeros(30)])
    with pytest.warns(RankWarning, match="there are 1 positive eigenvalues"):
        NonRedundant(PCA()).fit(flat)


# --- what reviewers found -----------------------------------------------------------------------


@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.parametrize("estimator", [LaplacianEigenmaps(), DiffusionMaps(), PCA()])
@pytest.mark.parametrize("n", [12, 40, 100])
def test_new_points_of_small_data_stay_near_the_map(estimator, criterion, n):
    rng = np.random.default_rng(1)
    X, new = rng.normal(size=(n, 2)), rng.normal(size=(500, 2))
    model = NonRedundant(estimator, criterion=criterion).fit(X)
    size = np.abs(model.embedding_).max(axis=0)
    assert (np.abs(model.transform(new)) < 8 * size).all()


def test_more_coordinates_than_directions_warn():
    X, _ = make_strip(500, aspect=3.5, random_state=0)
    with pytest.warns(RankWarning, match="pass n_components=2 or .auto. to stop before them"):
        NonRedundant(LE, 4).fit(X)
    line = np.linspace(0, 1, 300)[:, None]
    with pytest.warns(RankWarning, match="coordinate 1 .* is redundant or noise: coordinate 1 "):
        NonRedundant(LE, 2).fit(line)


@pytest.mark.parametrize("estimator", [PCA(), ClassicalMDS(), KernelPCA(kernel="linear")])
def test_auto_does_not_count_rounding(estimator):
    X, _ = make_strip(300, aspect=3, random_state=0)
    X = X @ np.random.default_rng(0).normal(size=(2, 10))
    assert NonRedundant(estimator, "auto").fit(X).n_components_ == 2


@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.parametrize(
    "method", [LaplacianEigenmaps, partial(DiffusionMaps, gamma=20.0), LLE, Isomap]
)
def test_only_the_largest_component(method, criterion):
    X, _ = make_strip(150, aspect=3, random_state=0)
    both = np.vstack([X, X[:40] + 100])
    with pytest.warns(DisconnectedGraphWarning):
        model = NonRedundant(method(disconnected="largest"), criterion=criterion).fit(both)
    alone = NonRedundant(method(), criterion=criterion).fit(X)
    got, expected = model.embedding_[:150], alone.embedding_
    got, expected = got / np.linalg.norm(got, axis=0), expected / np.linalg.norm(expected, axis=0)
    np.testing.assert_allclose(got, expected, atol=1e-6)
    assert np.isnan(model.embedding_[150:]).all()
    assert np.isfinite(model.inverse_transform(alone.embedding_[:5])).all()
    assert np.isfinite(model.transform(X[:5] + 1e-3)).all()


def test_small_components_bound_auto():
    rng = np.random.default_rng(0)
    X = np.vstack([rng.normal(size=(6, 3)) + 50 * i for i in range(12)])
    with pytest.warns(DisconnectedGraphWarning):
        model = NonRedundant(LLE(n_neighbors=3), "auto").fit(X)
    assert model.unpredictability_.shape == (model.n_components_,)


def test_heavy_tails_do_not_break_the_units():
    for seed in range(4):
        X = np.random.default_rng(seed).standard_t(2, size=(60, 3))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            assert np.isfinite(NonRedundant(DiffusionMaps()).fit(X).embedding_).all()


def test_duplicates_do_not_change_the_unpredictability():
    X, _ = make_strip(300, aspect=3, random_state=0)
    Y = NonRedundant(LE).fit_transform(X)
    np.testing.assert_allclose(unpredictability(np.vstack([Y] * 3)), unpredictability(Y))


def test_parameters_of_the_estimator_are_its_own():
    X, _ = make_strip(200, random_state=0)
    maps = [
        NonRedundant(Isomap(n_landmarks=20, landmarks="random", random_state=seed)).fit(X)
        for seed in (1, 2)
    ]
    assert not np.array_equal(maps[0].landmarks_, maps[1].landmarks_)
    inner = LaplacianEigenmaps(eigen_solver="shift_invert")
    model = NonRedundant(inner).fit(X)
    assert model.estimator_.eigen_solver == inner.eigen_solver == "shift_invert"
    assert model.solver_.startswith("ShiftInvertLanczos")
    framed = NonRedundant(LaplacianEigenmaps().set_output(transform="pandas")).fit(X)
    assert isinstance(framed.transform(X), np.ndarray)
    assert "embedding_" in dir(model)


@pytest.mark.parametrize("normalization", ["sym", "none"])
def test_other_normalizations_are_refused(normalization):
    X, _ = make_strip(100, random_state=0)
    with pytest.raises(ValueError, match="pass normalization='rw'"):
        NonRedundant(LaplacianEigenmaps(normalization=normalization)).fit(X)


def test_coordinates_are_orthogonal_to_those_before_them():
    X, _ = make_strip(400, aspect=3, random_state=0)
    for criterion in CRITERIA:
        model = NonRedundant(LE, 3, criterion=criterion).fit(X)
        mass = np.asarray(model.affinity_.sum(axis=1)).ravel()
        G = model.embedding_.T @ (mass[:, None] * model.embedding_)
        np.testing.assert_allclose(G, np.diag(np.diag(G)), atol=1e-8 * G[0, 0])


def test_any_estimator_has_unpredictability():
    X, _ = make_strip(500, aspect=3.5, random_state=0)
    model = LaplacianEigenmaps(3, n_neighbors=12).fit(X)
    assert (model.unpredictability()[1:] < 0.3).all()
    np.testing.assert_array_equal(model.unpredictability(), unpredictability(model))
    np.testing.assert_allclose(NonRedundant(LE).fit(X).unpredictability()[1], 1, atol=0.15)


@pytest.mark.parametrize("data", ["strip", "roll"])
def test_a_low_rank_smoother_gives_the_coordinate_of_the_full_matrix(data):
    """Beyond 500 points a low-rank factor replaces the matrix."""
    X = {
        "strip": make_strip(1200, aspect=2.5, random_state=0),
        "roll": make_swiss_roll(1200, aspect=4, random_state=0),
    }[data].X
    low = NonRedundant(LE, 2, criterion="prediction").fit(X).embedding_
    exact = KernelSmoother(tol=0)
    whole = NonRedundant(LE, 2, criterion="prediction", smoother=exact).fit(X).embedding_
    for i in range(2):
        assert correlation(low[:, i], whole[:, i]) > 0.999
    assert not np.array_equal(low[:, 1], whole[:, 1])


@pytest.mark.parametrize("wrong", [{"criterion": "best"}, {"eigen_solver": "best"}], ids=str)
def test_invalid_options_raise_before_the_data_are_read(wrong, monkeypatch):
    def pose(self, X):
        pytest.fail("the data were read first")

    monkeypatch.setattr(LaplacianEigenmaps, "pose", pose)
    with pytest.raises(ValueError, match="best"):
        NonRedundant(**wrong).fit(np.zeros((5, 2)))
