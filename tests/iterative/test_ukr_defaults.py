"""UKR with no arguments: maps that a specialist would accept, and new points in their place."""

from functools import partial

import numpy as np
import pytest
from scipy.stats import spearmanr
from sklearn.datasets import load_digits
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor

from manifoldry import UKR
from manifoldry.datasets import make_helix, make_swiss_roll
from manifoldry.metrics import coranking, trustworthiness
from manifoldry.objectives.density_floor import DensityFloor
from manifoldry.objectives.kernel_regression import UKRObjective
from manifoldry.objectives.leave_one_out import minimize_over_scale
from manifoldry.optimize import Homotopy

slow = partial(pytest.param, marks=pytest.mark.slow)
NOISE = 2 * 0.15**2  # squared noise of the helix across the curve


@pytest.fixture
def rng():
    return np.random.default_rng(7)


@pytest.fixture(scope="module")
def roll():
    return make_swiss_roll(500, random_state=0)


@pytest.fixture(scope="module")
def unrolled(roll):
    """Fitted on the first 400 points."""
    return UKR().fit(roll.X[:400])


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    rows = np.random.default_rng(0).permutation(len(X))[:400]
    return X[rows], y[rows]


@pytest.fixture(scope="module")
def written(digits):
    """Fitted on the first 300 digits."""
    return UKR().fit(digits[0][:300])


@pytest.mark.parametrize("turns", [2, 4])
@pytest.mark.parametrize("seed", [*range(3), *(slow(seed) for seed in range(3, 10))])
def test_the_noisy_helix_is_solved(turns, seed):
    X, angle = make_helix(300, turns=turns, random_state=seed)
    model = UKR(1).fit(X)
    error = model.leave_one_out_error_ * X.var(axis=0).sum()
    assert error < 2 * NOISE
    assert abs(spearmanr(angle[:, 0], model.embedding_[:, 0])[0]) > 0.99
    assert model.converged_


def test_a_roll_is_unrolled(roll, unrolled):
    X, Y = roll.X[:400], unrolled.embedding_
    assert unrolled.converged_
    assert "tol" in unrolled.status_
    assert trustworthiness(X, Y, n_neighbors=10) > 0.98
    assert coranking(X, Y).area > 0.65  # 0.50 from Laplacian eigenmaps and without a floor


def test_digits_keep_their_neighbors(digits, written):
    X = digits[0][:300]
    assert written.converged_
    assert trustworthiness(X, written.embedding_, n_neighbors=10) > 0.93
    assert coranking(X, written.embedding_).area > 0.48  # 0.43 without
    assert written.start_.startswith("ElasticEmbedding")


def test_new_points_of_a_roll_have_their_coordinates(roll, unrolled):
    placed = unrolled.transform(roll.X[400:])
    for truth in roll.coordinates.T:
        near = KNeighborsRegressor(5).fit(unrolled.embedding_, truth[:400])
        assert near.score(placed, truth[400:]) > 0.95


def test_new_digits_fall_among_their_like(digits, written):
    X, y = digits
    near = KNeighborsClassifier(1).fit(written.embedding_, y[:300])
    assert near.score(written.transform(X[300:]), y[300:]) > 0.85


@pytest.mark.parametrize("fitted", ["unrolled", "written"])
def test_training_rows_return_without_being_looked_up(fitted, roll, digits, request):
    model = request.getfixturevalue(fitted)
    X = roll.X[:400] if fitted == "unrolled" else digits[0][:300]
    assert model.extension_error(X) < 0.15  # 0.4 and 0.7 without a floor for new points


def test_density_is_near_the_floor(unrolled):
    Y = unrolled.embedding_
    squares = ((Y[:, None] - Y) ** 2).sum(axis=2)
    density = np.exp(-squares).sum(axis=1) - 1
    assert np.quantile(density, 0.05) > 0.3 * 10


def test_the_best_start_is_taken_at_its_best_size(digits):
    X, _ = digits
    seen = []
    model = UKR(callback=lambda iterate: seen.append(iterate.step.value), max_iter=1)
    with pytest.warns(UserWarning, match="did not converge"):
        model.fit(X)
    tried = [float(word.split("(")[1].rstrip(")")) for word in model.start_.split(", ")]
    assert len(tried) == 3
    assert tried == sorted(tried)
    unit = model.extension_.frame.unit**2
    assert seen[0] * unit == pytest.approx(tried[0] * X.var(axis=0).sum(), rel=1e-2)


def test_least_scale_is_that_of_the_whole_objective(rng):
    X, Y = rng.standard_normal((40, 3)), rng.standard_normal((40, 2))
    objective = DensityFloor(UKRObjective(X), floor=8.0, weight=0.5)
    found = minimize_over_scale(objective.value, Y)
    Y = Y - Y.mean(axis=0)
    finer = [objective.value(s * Y) for s in np.geomspace(1e-2, 1e2, 400)]
    assert found.value <= min(finer) * (1 + 1e-3)
    assert found.value == pytest.approx(objective.value(found.scale * Y))


def test_value_of_the_floor_is_that_beside_its_gradient(rng):
    X, Y = rng.standard_normal((30, 3)), 3 * rng.standard_normal((30, 2))
    objective = DensityFloor(UKRObjective(X), floor=8.0, weight=0.5)
    assert objective.value(Y) == pytest.approx(objective.value_and_gradient(Y)[0], rel=1e-13)


@pytest.mark.parametrize("n", [2, 3, 5, 12])
def test_few_points(n, rng):
    model = UKR(1, max_iter=50).fit(rng.standard_normal((n, 3)))
    assert np.isfinite(model.embedding_).all()
    assert np.isfinite(model.transform(rng.standard_normal((2, 3)))).all()


def test_a_floor_that_nobody_can_reach_is_refused(rng):
    with pytest.raises(ValueError, match="density_floor=19 must be less than n_samples - 1 = 19"):
        UKR(density_floor=19).fit(rng.standard_normal((20, 3)))


def test_wrong_start_is_named(rng):
    with pytest.raises(ValueError, match="init='spiral' must be one of 'auto', 'spectral'"):
        UKR(init="spiral").fit(rng.standard_normal((20, 3)))


def test_units_of_the_data_do_not_matter():
    X, _ = make_helix(120, random_state=0)
    plain = UKR(1).fit(X)
    for scale in (2.0**-400, 2.0**400):
        other = UKR(1).fit(X * scale)
        np.testing.assert_allclose(other.embedding_, plain.embedding_, rtol=1e-6)


def test_a_box_holds_the_map_and_its_start_keeps_its_shape():
    X, angle = make_helix(200, random_state=0)
    model = UKR(1, box=5.0, leave_one_out=False).fit(X)
    assert np.abs(model.embedding_).max() <= 5.0
    assert abs(spearmanr(angle[:, 0], model.embedding_[:, 0])[0]) > 0.99


def test_a_growing_box_ends_at_its_size():
    X, angle = make_helix(200, random_state=0)
    model = UKR(1, box=12.0, optimizer=Homotopy(n_steps=8)).fit(X)
    assert len(model.path_) == 8
    assert np.abs(model.embedding_).max() <= 12.0
    sizes = [np.abs(Y).max() for Y in model.path_.embeddings]
    assert sizes == sorted(sizes)
    np.testing.assert_array_equal(model.path_.embeddings[-1], model.embedding_)
    assert abs(spearmanr(angle[:, 0], model.embedding_[:, 0])[0]) > 0.9


def test_an_interrupted_homotopy_keeps_a_map_of_the_box_it_was_in():
    X, _ = make_helix(100, random_state=0)
    rule = Homotopy(values=(1.0, 2.0, 20.0))
    seen = []

    def stop(iterate):
        seen.append(np.abs(iterate.embedding).max())
        return len(seen) == 3

    model = UKR(1, optimizer=rule, callback=stop).fit(X)
    assert model.status_ == "stopped by a callback"
    assert np.abs(model.embedding_).max() <= 1.0
