"""Points in general position: what the mathematics says of shifts, rotations, units and order."""

import numpy as np
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.stats import ortho_group

from .models import models
from .outcomes import Refusal, fitted
from .samples import GENERIC, samples

generic = samples(least=20, most=40, kinds=GENERIC, scales=(1.0,), offsets=(0.0,))


def is_spectral(method):
    return not (method.iterative or method.mixed or method.one_by_one)


def is_isotropic(model):
    """Whether it depends on Euclidean distances only."""
    metric = getattr(model.make(), "metric", "euclidean")
    kernel = getattr(model.make(), "kernel", "rbf")
    isotropic = kernel in ("rbf", "linear", "precomputed")
    return metric in ("euclidean", "precomputed") and isotropic and not model.method.moves


def has_gaps(estimator):
    """Whether every coordinate is determined up to sign, with digits to spare."""
    if getattr(estimator, "component_labels_", np.zeros(1)).max() > 0:
        return False  # components are laid out in the units of the data
    values, n_components = np.abs(estimator.computed_eigenvalues_), estimator.n_components_
    # Gaps are around clusters of equal eigenvalues: those inside are rounding.
    inside = np.abs(np.diff(values[:n_components]))
    smallest = min(estimator.gaps_.min(), inside.min(initial=np.inf))
    distinct = smallest > max(1e-3 * values[:n_components].max(), 1e-9 * values.max())
    return distinct and n_components < len(values)


def agree(estimator, reference, expected, tolerance):
    Y = estimator.embedding_
    signs = np.sign((Y * expected).sum(axis=0))
    error = np.abs(Y * signs - expected).max()
    assert error <= tolerance * np.abs(expected).max()


@given(
    models(is_spectral, parameters=False),
    generic,
    st.floats(-100, 100),
    st.integers(0, 99),
    st.integers(-60, 60),
)
def test_shift_rotation_and_units(model, sample, shift, seed, exponent):
    assume(is_isotropic(model) and model.method.scale_power is not None)
    X = sample.points.astype(np.float64)
    d = X.shape[1]
    rotation = ortho_group.rvs(d, random_state=seed) if d > 1 else np.eye(1)
    unit = 2.0**exponent
    estimator = fitted(model, X)
    assume(not isinstance(estimator, Refusal) and has_gaps(estimator))
    moved = fitted(model, (X @ rotation + shift) * unit)
    assert not isinstance(moved, Refusal)
    power = model.method.scale_power if model.method.takes in ("data", "distances") else 0
    agree(moved, estimator, estimator.embedding_ * unit**power, 1e-6)


@given(models(is_spectral, parameters=False), generic, st.integers(0, 99))
def test_order_of_rows(model, sample, seed):
    assume("landmarks" not in model.id)  # the first landmark is drawn by its number
    X = sample.points.astype(np.float64)
    order = np.random.default_rng(seed).permutation(len(X))
    estimator = fitted(model, X)
    assume(not isinstance(estimator, Refusal) and has_gaps(estimator))
    shuffled = fitted(model, X[order])
    assert not isinstance(shuffled, Refusal)
    agree(shuffled, estimator, estimator.embedding_[order], 1e-6)
