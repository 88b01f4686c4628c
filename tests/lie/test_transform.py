"""LieTransform: recovery and extrapolation of known transformations, and invalid input."""

import pickle
import sys
import warnings
from functools import partial

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from scipy.linalg import expm, subspace_angles
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.utils.estimator_checks import check_estimator

from manifoldry.exceptions import (
    ConvergenceWarning,
    ExtensionWarning,
    ManifoldryWarning,
    RankWarning,
)
from manifoldry.lie import LieTransform, transform
from manifoldry.util.progress import ProgressReporter

from .conftest import band_limited, cosine, moved, spectral_derivative, translations

ROTATION = np.array([[0.0, -1.0], [1.0, 0.0]])


def rotated_pairs(n=60, largest=0.4, seed=0):
    rng = np.random.default_rng(seed)
    X, angle = rng.normal(size=(n, 2)), rng.uniform(-largest, largest, (n, 1))
    return X, moved(X, ROTATION[None], angle), angle


# ---------------------------------------------------------------- translation


def test_exponential_of_the_derivative_shifts_by_a_pixel():
    D, X = spectral_derivative(20), band_limited(5, 20, np.random.default_rng(0))
    np.testing.assert_allclose(X @ expm(D).T, np.roll(X, -1, axis=1), atol=1e-13)


def test_first_order_alternation_finds_translation(shifts):
    model = LieTransform(refine=False).fit(shifts.X, shifts.Y)
    assert cosine(model.generators_[0], shifts.generator) > 0.99
    assert (np.diff(model.trace_) <= 1e-13).all()
    assert model.n_iter_ == len(model.trace_) - 1
    assert not len(model.refinement_trace_)


def test_refinement_removes_the_error_of_first_order(shifts):
    first = LieTransform(refine=False).fit(shifts.X, shifts.Y)
    model = LieTransform(reg=1e-5).fit(shifts.X, shifts.Y)
    assert cosine(model.generators_[0], shifts.generator) > 0.99999
    assert model.loss_ < 1e-8 < 1e-3 < first.loss_
    assert (np.diff(model.refinement_trace_) <= 1e-13).all()
    scale = np.linalg.norm(shifts.generator)
    assert np.abs(model.amounts_) == pytest.approx(np.abs(scale * shifts.amounts), rel=1e-3)


@pytest.mark.parametrize(("largest", "cut"), [(3.0, None), (6.0, 4)])
def test_large_transformations(largest, cut):
    # First order finds a different generator, a contraction of the signals.
    data = translations(largest=largest, cut=cut)
    P = np.linalg.pinv(data.X) @ data.X  # projection onto the frequencies present
    D = P @ data.generator @ P
    model = LieTransform().fit(data.X, data.Y)
    assert cosine(LieTransform(refine=False).fit(data.X, data.Y).generators_[0], D) < 0.5
    assert cosine(model.generators_[0], D) > 0.999
    assert abs(np.corrcoef(model.amounts_[:, 0], data.amounts[:, 0])[0, 1]) > 0.999


def test_extrapolation_beyond_the_training_pairs(shifts):
    model = LieTransform().fit(shifts.X, shifts.Y)
    new = band_limited(10, 20, np.random.default_rng(7))
    pixel = model.estimate(new, np.roll(new, -1, axis=1), largest=50.0)
    assert np.ptp(pixel) < 1e-2 * abs(pixel.mean())
    for shift in (-5, -2, 3, 5):
        found = model.apply(new, shift * pixel.mean())
        expected = np.roll(new, -shift, axis=1)
        assert np.linalg.norm(found - expected) < 0.02 * np.linalg.norm(expected)


def windows(rng, n, shifts):
    """Windows of smooth signals, shifted: new content enters at the border."""
    x, frequency = np.arange(12), rng.uniform(0.1, 2.0, (n, 6))
    phase, size = rng.uniform(0, 2 * np.pi, (2, n, 6))
    waves = np.cos(frequency[:, :, None] * (x + shifts[:, None, None]) + phase[:, :, None])
    return (size[:, :, None] * waves).sum(axis=1)


def test_extrapolation_from_windows_is_limited_and_says_so():
    amounts = np.random.default_rng(0).uniform(-1, 1, 300)
    X, Y = (windows(np.random.default_rng(1), 300, a * amounts) for a in (0, 1))
    model = LieTransform().fit(X, Y)
    unit = model.amounts_[:, 0] @ amounts / (amounts @ amounts)
    start = windows(np.random.default_rng(2), 100, np.zeros(100))

    def explained(shift):
        true = windows(np.random.default_rng(2), 100, np.full(100, shift))
        return (
            1 - ((model.apply(start, shift * unit) - true) ** 2).sum() / ((start - true) ** 2).sum()
        )

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert explained(1.0) > 0.9
        assert explained(1.8) > 0.8
    with pytest.warns(ExtensionWarning, match=r"up to [67][.\d]* times the largest .* training"):
        assert explained(7.0) < 0.6


def test_exact_transformations_extrapolate_without_a_warning(rotation, shifts):
    with warnings.catch_warnings():
        warnings.simplefilter("error", ExtensionWarning)
        for model in (rotation, LieTransform().fit(shifts.X, shifts.Y)):
            model.apply(model.components_[:3], 10 * np.abs(model.amounts_).max())


def test_few_pairs():
    # 400 entries of a generator from 40 pairs of unknown amounts.
    for seed in range(5):
        data = translations(n_pairs=40, seed=seed)
        model = LieTransform().fit(data.X, data.Y)
        assert cosine(model.generators_[0], data.generator) > 0.999


def test_noise():
    data = translations(noise=0.02)
    model = LieTransform().fit(data.X, data.Y)
    P = np.linalg.svd(data.X)[2][:19]  # without the Nyquist frequency, which is pure noise
    found = P @ model.generators_[0] @ P.T
    assert cosine(found, P @ data.generator @ P.T) > 0.99


# ---------------------------------------------------------------- other transformations


def test_rotation_of_the_plane():
    X, Y, angle = rotated_pairs()
    model = LieTransform(reg=1e-5).fit(X, Y)
    assert cosine(model.generators_[0], ROTATION) > 0.99999
    unit = model.amounts_[:, 0] @ angle[:, 0] / (angle[:, 0] @ angle[:, 0])  # amount of a radian
    assert abs(unit) == pytest.approx(np.sqrt(2), rel=1e-3)
    found = model.apply([[1.0, 0.0]], np.pi * unit)
    np.testing.assert_allclose(found, [[-1.0, 0.0]], atol=0.01)


def test_scaling():
    X = np.random.default_rng(0).normal(size=(40, 3))
    Y = X * np.exp(np.random.default_rng(1).uniform(-0.5, 0.5, (40, 1)))
    model = LieTransform(reg=1e-5).fit(X, Y)
    assert cosine(model.generators_[0], np.eye(3)) > 0.9999
    np.testing.assert_allclose(model.apply(X, np.sqrt(3) * np.log(5)), 5 * X, atol=0.01)


def test_two_generators_are_found_as_a_subspace():
    # Translation of 5 × 5 images along either axis.
    D, eye = spectral_derivative(5), np.eye(5)
    true = np.stack([np.kron(D, eye), np.kron(eye, D)])
    rng = np.random.default_rng(0)
    X, amounts = rng.normal(size=(250, 25)), rng.uniform(-0.4, 0.4, (250, 2))
    model = LieTransform(2, reg=1e-4).fit(X, moved(X, true, amounts))
    angles = subspace_angles(model.generators_.reshape(2, -1).T, true.reshape(2, -1).T)
    assert angles.max() < 0.01
    image = rng.normal(size=(1, 25))
    down = np.roll(image.reshape(5, 5), -1, axis=0).reshape(1, -1)
    found, left = model.estimate(image, down, largest=20.0, return_residual=True)
    assert left[0] < 0.02 * np.linalg.norm(down - image)
    np.testing.assert_allclose(model.apply(image, found), down, atol=0.05)


def test_rotations_that_do_not_commute():
    axes = np.zeros((3, 3, 3))
    for i, (j, k) in enumerate([(1, 2), (2, 0), (0, 1)]):
        axes[i, k, j], axes[i, j, k] = 1.0, -1.0
    # Two vectors per row, since two rotations can take a single vector anywhere.
    true = np.stack([np.kron(np.eye(2), axis) for axis in axes[:2]])
    rng = np.random.default_rng(0)
    X, amounts = rng.normal(size=(150, 6)), rng.uniform(-0.7, 0.7, (150, 2))
    model = LieTransform(2, reg=1e-4).fit(X, moved(X, true, amounts))
    angles = subspace_angles(model.generators_.reshape(2, -1).T, true.reshape(2, -1).T)
    assert angles.max() < 0.01


# ---------------------------------------------------------------- apply, estimate, score


@pytest.fixture(scope="module")
def rotation():
    return LieTransform().fit(*rotated_pairs()[:2])


def test_amounts_add(rotation, shifts):
    for model, X in (
        (rotation, rotated_pairs()[0]),
        (LieTransform().fit(shifts.X, shifts.Y), shifts.X),
    ):
        twice = model.apply(model.apply(X, 1.3), -0.4)
        np.testing.assert_allclose(twice, model.apply(X, 0.9), atol=1e-10)
        np.testing.assert_allclose(model.apply(X, 0.0), X, atol=1e-12)


def test_apply_is_the_exponential_of_generators(rotation):
    X, amounts = rotated_pairs()[0], np.linspace(-4, 4, 60)
    expected = moved(X, rotation.generators_, amounts[:, None])
    for given in (amounts, amounts[:, None], amounts.tolist()):
        np.testing.assert_allclose(rotation.apply(X, given), expected, atol=1e-12)
    alike = rotation.apply(X, 0.7)
    np.testing.assert_allclose(alike, X @ expm(0.7 * rotation.generators_[0]).T, atol=1e-12)
    for given in ([0.7], [[0.7]], np.full(60, 0.7)):
        np.testing.assert_allclose(rotation.apply(X, given), alike, atol=1e-12)


def test_estimate_inverts_apply(rotation):
    X, amounts = rotated_pairs(seed=3)[0], np.linspace(-0.5, 0.5, 60)
    found, left = rotation.estimate(X, rotation.apply(X, amounts), return_residual=True)
    assert found.shape == (60, 1)
    np.testing.assert_allclose(found[:, 0], amounts, atol=1e-9)
    assert left.max() < 1e-9


def test_residual(rotation):
    found, left = rotation.estimate([[1.0, 0.0]], [[3.0, 0.0]], return_residual=True)
    assert found[0, 0] == pytest.approx(0, abs=1e-3)
    assert left[0] == pytest.approx(2, rel=1e-3)


def test_score(rotation):
    X, Y, _ = rotated_pairs(seed=5)
    assert rotation.score(X, Y) > 0.9999
    assert rotation.score(X, 1.1 * X) < 0.01  # scaling is not a rotation
    assert rotation.score(X, X) == 1.0


def test_complement_of_the_basis_is_unchanged():
    X, Y, _ = rotated_pairs()
    wide = [np.column_stack([rows, np.zeros(60)]) for rows in (X, Y)]
    model = LieTransform().fit(*wide)
    assert model.components_.shape == (2, 3)
    assert model.basis_energy_ == pytest.approx(1)
    assert model.apply([[1.0, 0.0, 5.0]], 1.0)[0, 2] == pytest.approx(5)
    assert not model.generators_[:, 2].any()


def test_basis_energy_of_a_smaller_basis(shifts):
    model = LieTransform(n_components=10).fit(shifts.X, shifts.Y)
    assert model.components_.shape == (10, 20)
    S = np.linalg.svd(np.vstack([shifts.X, shifts.Y]), compute_uv=False)
    assert model.basis_energy_ == pytest.approx((S[:10] ** 2).sum() / (S**2).sum())


def test_float32_in_float32_out(shifts):
    X, Y = shifts.X.astype(np.float32), shifts.Y.astype(np.float32)
    model = LieTransform().fit(X, Y)
    assert model.apply(X, 0.3).dtype == np.float32
    assert cosine(model.generators_[0], shifts.generator) > 0.9999


# ---------------------------------------------------------------- as an estimator


class OfItsOwnRows(LieTransform):
    """Pairs each row with the next, so that scikit-learn's checks can fit with any target.

    The checks fit with a target of one column, or one class per row, which cannot be transformed
    rows; all else in them applies.
    """

    def fit(self, X, y=None):
        if sparse.issparse(X) or np.ndim(X) != 2:
            return super().fit(X, X)  # which raises
        return super().fit(X, np.roll(X, 1, axis=0) if len(X) > 1 else 2.0 * X)

    def score(self, X, y=None):
        return super().score(X, np.roll(X, 1, axis=0))


@pytest.mark.filterwarnings("ignore")
def test_conventions_of_scikit_learn():
    check_estimator(OfItsOwnRows(max_iter=2))


def test_clone_pickle_and_same_seed_same_bits(shifts):
    model = LieTransform(reg=1e-2, random_state=3).fit(shifts.X, shifts.Y)
    again = clone(model).fit(shifts.X, shifts.Y)
    loaded = pickle.loads(pickle.dumps(model))
    for other in (again, loaded):
        np.testing.assert_array_equal(other.generators_, model.generators_)
        np.testing.assert_array_equal(other.apply(shifts.X, 1.0), model.apply(shifts.X, 1.0))


def test_grid_search_chooses_the_penalty():
    data = translations(n_pairs=80, n=10, noise=0.05, cut=3)
    search = GridSearchCV(LieTransform(max_iter=30), {"reg": [1e-6, 1e-2]}, cv=2).fit(
        data.X, data.Y
    )
    assert search.best_params_ == {"reg": 1e-2}


def test_frames_give_feature_names():
    X, Y, _ = rotated_pairs()
    model = LieTransform().fit(*(pd.DataFrame(rows, columns=["east", "north"]) for rows in (X, Y)))
    assert list(model.feature_names_in_) == ["east", "north"]
    assert model.n_features_in_ == 2


def test_input_is_neither_changed_nor_kept():
    X, Y, _ = rotated_pairs()
    before = X.copy(), Y.copy()
    model = LieTransform().fit(X, Y)
    np.testing.assert_array_equal((X, Y), before)
    generators = model.generators_
    X[:], Y[:] = 0, 0
    np.testing.assert_array_equal(model.generators_, generators)


def test_units_do_not_matter():
    X, Y, _ = rotated_pairs()
    plain = LieTransform().fit(X, Y)
    for unit in (1e-150, 1e-8, 1e8, 1e150):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            model = LieTransform().fit(unit * X, unit * Y)
            found = model.apply(unit * X, 1.0)
        np.testing.assert_allclose(model.amounts_, plain.amounts_, rtol=1e-6, atol=1e-9)
        np.testing.assert_allclose(found / unit, plain.apply(X, 1.0), rtol=1e-6)
        assert model.score(unit * X, unit * Y) == pytest.approx(plain.score(X, Y))


# ---------------------------------------------------------------- unusual and invalid input


def test_fewer_pairs_than_features_warn_and_stay_finite():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(5, 30))
    with pytest.warns(RankWarning, match="5 pairs are too few"):
        model = LieTransform().fit(X, np.roll(X, 1, axis=1))
    assert np.isfinite(model.generators_).all()
    assert np.isfinite(model.apply(rng.normal(size=(3, 30)), model.amounts_.max())).all()


@pytest.mark.filterwarnings("ignore::manifoldry.exceptions.ManifoldryWarning")
def test_one_pair():
    X, Y = np.array([[1.0, 0.0]]), np.array([[0.8, 0.6]])
    model = LieTransform().fit(X, Y)
    assert model.score(X, Y) > 0.99
    np.testing.assert_allclose(model.apply(X, model.amounts_), Y, atol=0.01)


@pytest.mark.filterwarnings("ignore::manifoldry.exceptions.ManifoldryWarning")
def test_one_feature_is_scaling():
    X = np.array([[1.0], [2.0], [-1.0]])
    model = LieTransform().fit(X, 2 * X)
    np.testing.assert_allclose(model.generators_, [[[1.0]]])
    assert model.amounts_ == pytest.approx(np.log(2), rel=0.01)


@pytest.mark.filterwarnings("ignore::manifoldry.exceptions.ManifoldryWarning")
def test_pairs_that_are_equal_or_zero_or_repeated():
    X, Y, _ = rotated_pairs()
    X[:5], Y[:5] = 0.0, 0.0
    Y[5:10] = X[5:10]
    X[10:20], Y[10:20] = X[20], Y[20]
    model = LieTransform().fit(X, Y)
    assert cosine(model.generators_[0], ROTATION) > 0.9999
    assert np.abs(model.amounts_[:10]).max() < 1e-6
    assert np.isfinite(model.estimate(X, Y)).all()


@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize(
    ("change", "explained"),
    [
        (lambda X: -X, 0.6),  # a half rotation in a plane; in space one axis remains
        (lambda X: 0 * X, 0.99),
        (lambda X: 1e6 * X, 0.99),
        (lambda X: X + 1e-12 * X @ np.diag([1.0, -1.0, 2.0]), 0.99),
        (lambda X: np.where(np.arange(50)[:, None] < 45, X, 1.1 * X), 0.99),
        (lambda X: np.random.default_rng(1).normal(size=X.shape), 0.0),
    ],
    ids=["opposite", "nothing", "large scaling", "tiny move", "most stay", "unrelated"],
)
def test_unusual_changes(change, explained):
    X = np.random.default_rng(0).normal(size=(50, 3))
    Y = change(X)
    model = LieTransform().fit(X, Y)
    assert model.loss_ <= 1
    assert model.score(X, Y) >= explained
    assert np.isfinite(model.apply(X, model.amounts_)).all()


def test_too_few_iterations_warn(shifts):
    with pytest.warns(ConvergenceWarning, match="max_iter=1 "):
        model = LieTransform(max_iter=1, tol=0.0).fit(shifts.X, shifts.Y)
    assert not model.converged_


NAN = np.array([[1.0, np.nan], [0.0, 1.0]])
INFINITE = np.array([[1.0, np.inf], [0.0, 1.0]])
PLAIN = np.array([[1.0, 2.0], [0.0, 1.0]])
BAD_PAIRS = {
    "NaN": (NAN, PLAIN, "NaN"),
    "NaN after": (PLAIN, NAN, "Y contains NaN"),
    "infinite": (PLAIN, INFINITE, "Y contains infinity"),
    "none after": (PLAIN, None, "Y is None"),
    "unequal length": (PLAIN, PLAIN[:1], r"shape \(2, 2\) and Y has shape \(1, 2\)"),
    "unequal width": (PLAIN, PLAIN[:, :1], r"shape \(2, 2\) and Y has shape \(2, 1\)"),
    "equal": (PLAIN, PLAIN, "no transformation to learn"),
    "zero": (0 * PLAIN, PLAIN, "all rows of X are zero"),
    "empty": (PLAIN[:0], PLAIN[:0], "0 sample"),
    "masked": (np.ma.masked_greater(PLAIN, 1.5), PLAIN, "masked"),
    "masked after": (PLAIN, np.ma.masked_greater(PLAIN, 1.5), "masked"),
    "one row of numbers": (PLAIN[0], PLAIN[0], "2D array"),
}


@pytest.mark.parametrize("case", BAD_PAIRS.values(), ids=BAD_PAIRS.keys())
def test_invalid_pairs(case):
    X, Y, message = case
    with pytest.raises(ValueError, match=message):
        LieTransform().fit(X, Y)


def test_sparse_pairs():
    with pytest.raises(TypeError, match="dense data is required"):
        LieTransform().fit(sparse.csr_array(PLAIN), PLAIN)
    with pytest.raises(TypeError, match="dense data is required"):
        LieTransform().fit(PLAIN, sparse.csr_array(PLAIN))


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"n_generators": 0}, "n_generators=0 must be at least 1"),
        ({"n_generators": 9}, "n_generators=9 must be at most 4"),
        ({"n_components": 3}, "n_components=3 must be at most 2"),
        ({"n_components": 0}, "n_components=0"),
        ({"reg": 0.0}, "reg=0.0 must be greater than 0"),
        ({"reg": np.nan}, "reg=nan"),
        ({"tol": -1.0}, "tol=-1.0"),
        ({"max_iter": 0}, "max_iter=0"),
    ],
)
def test_invalid_parameters(params, message):
    with pytest.raises(ValueError, match=message):
        LieTransform(**params).fit(*rotated_pairs()[:2])


def test_invalid_amounts(rotation):
    X = np.eye(2)
    for amount, message in [
        ([1.0, 2.0, 3.0], r"amount has shape \(3,\)"),
        (np.ones((2, 2)), r"amount has shape \(2, 2\)"),
        (np.nan, "NaN or infinity"),
    ]:
        with pytest.raises(ValueError, match=message):
            rotation.apply(X, amount)


@pytest.mark.filterwarnings("ignore::manifoldry.exceptions.ManifoldryWarning")
def test_amounts_that_overflow():
    X = np.random.default_rng(0).normal(size=(20, 2))
    scaling = LieTransform().fit(X, 2 * X)
    with pytest.raises(ValueError, match="overflow floating point"):
        scaling.apply(X, 1e4)


def test_not_fitted():
    model = LieTransform()
    for call in (lambda: model.apply(PLAIN, 1.0), lambda: model.estimate(PLAIN, PLAIN)):
        with pytest.raises(NotFittedError):
            call()
    assert not hasattr(model, "generators_")


def test_wrong_number_of_features(rotation):
    with pytest.raises(ValueError, match="3 features"):
        rotation.apply(np.eye(3), 1.0)


def test_warnings_have_one_base_class():
    assert issubclass(RankWarning, ManifoldryWarning)


# ---------------------------------------------------------------- flat rows, progress, refits


def test_flat_rows_have_uncertain_amounts_and_do_not_count():
    rng = np.random.default_rng(0)
    D, flat = spectral_derivative(20), np.arange(200) < 40
    X, shift = band_limited(200, 20, rng), rng.uniform(-0.5, 0.5, (200, 1))
    X[flat] = rng.normal(size=(40, 1))
    X, Y = (rows + 0.1 * rng.normal(size=X.shape) for rows in (X, moved(X, D[None], shift)))
    with pytest.warns(ManifoldryWarning, match=r"hardly change the rows of 40 of 200 pairs.*noise"):
        model = LieTransform().fit(X, Y)
    assert np.array_equal(model.uncertain_, flat)
    pixel = np.linalg.norm(D)
    assert np.abs(model.amounts_[flat]).max() > 1.8 * 0.5 * pixel  # shifts are at most 0.5
    with pytest.warns(ExtensionWarning, match=r"up to 2\.[2-9] times"):
        model.apply(X, 1.3 * pixel)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        textured = LieTransform().fit(X[~flat], Y[~flat])
    assert not textured.uncertain_.any()


def test_slow_rows_without_noise_are_certain():
    X, Y, _ = rotated_pairs()
    X[:10], Y[:10] = 0.01 * X[:10], 0.01 * Y[:10]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert not LieTransform(reg=1e-8).fit(X, Y).uncertain_.any()


def test_progress(shifts, monkeypatch, capfd):
    monkeypatch.setitem(sys.modules, "rich.console", None)
    monkeypatch.setattr(transform, "ProgressReporter", partial(ProgressReporter, seconds=0.0))
    quiet = LieTransform(max_iter=5).fit(shifts.X, shifts.Y)
    assert capfd.readouterr().err == ""
    model = LieTransform(max_iter=5, verbose=True).fit(shifts.X, shifts.Y)
    lines = capfd.readouterr().err.splitlines()
    step, value = model.n_iter_, model.trace_[-1]
    assert f"LieTransform: first order, step {step} of at most 5; value {value:.4g}" in lines
    assert "LieTransform: exponential, round 1 of at most 10, step 1 of at most 5" in lines
    assert np.array_equal(model.amounts_, quiet.amounts_)


@pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError])
@pytest.mark.parametrize("stage", ["alternate", "refine", "pair_losses"])
def test_a_fit_that_fails_or_is_interrupted_keeps_the_former_model(
    stage, error, shifts, monkeypatch
):
    model = LieTransform().fit(*rotated_pairs()[:2])
    state = dict(vars(model))

    def fail(*_):
        raise error

    monkeypatch.setattr(transform, stage, fail)
    with pytest.raises(error):
        model.fit(shifts.X, shifts.Y)
    assert vars(model).keys() == state.keys()
    assert all(value is state[name] for name, value in vars(model).items())


def test_generators_that_explain_little_are_reported():
    X, Y = np.random.default_rng(0).normal(size=(2, 60, 4))
    with pytest.warns(
        ManifoldryWarning, match=r"do not explain a fraction 0\.\d+ .*subtract its mean"
    ):
        LieTransform(refine=False).fit(X, Y)
