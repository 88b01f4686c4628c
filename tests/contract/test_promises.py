"""What docs/decisions.md and docs/scale.md promise of all estimators, as it is stated there."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from threadpoolctl import threadpool_limits

import manifoldry as mf
from manifoldry.optimize import EarlyExaggeration

pytestmark = pytest.mark.filterwarnings("ignore::manifoldry.exceptions.ManifoldryWarning")

OTHERS = [
    mf.ManifoldParzen(n_components=2),
    mf.MixtureOfFactorAnalyzers(2, random_state=0),
    mf.FromDensity(mf.PCA(2), n_draws=50, width=1, random_state=0),
    mf.ConformalInverse(mf.PCA(2), random_state=0),
    mf.LieTransform(refine=False, max_iter=5),
]
others = pytest.mark.parametrize("estimator", OTHERS, ids=lambda e: type(e).__name__)


def fit(estimator, X):
    """Fit to rows, or to pairs of rows and others."""
    paired = isinstance(estimator, mf.LieTransform)
    return estimator.fit(X, np.roll(X, 1, axis=1)) if paired else estimator.fit(X)


# ---------------------------------------------------------------- "a fit that fails"


def raising(error):
    def fail(*_, **__):
        raise error

    return fail


def keeps_its_state(model, refit, error):
    state = dict(vars(model))
    with pytest.raises(error):
        refit()
    assert vars(model).keys() == state.keys()
    assert all(value is state[name] for name, value in vars(model).items())


@pytest.mark.parametrize("place", ["Embedder._read", "warn_if_dominated"])  # the first, the last
@pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError])
@pytest.mark.once_per_class
def test_a_refit_that_fails_or_is_interrupted(method, fitted, X, place, error, monkeypatch):
    model = pickle.loads(pickle.dumps(fitted(method)))
    monkeypatch.setattr(f"manifoldry.base.embedder.{place}", raising(error))
    keeps_its_state(model, lambda: model.fit(method.input(X[:40])), error)


# What the last stage of their fit calls.
LAST = {
    "ManifoldParzen": "density.manifold_parzen.ManifoldParzen._learn",
    "MixtureOfFactorAnalyzers": "density.mixture_of_factor_analyzers.warn",
    "FromDensity": "wrappers.from_density.distance_by_estimator",
    "ConformalInverse": "wrappers.conformal_inverse.ConformalInverse._inverse",
    "LieTransform": "lie.transform.explained_fraction",
}


@pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError])
@others
def test_a_refit_of_other_estimators(estimator, X, error, monkeypatch):
    model = fit(clone(estimator), X[:30])
    monkeypatch.setattr(f"manifoldry.{LAST[type(model).__name__]}", raising(error))
    if isinstance(model, mf.MixtureOfFactorAnalyzers):
        model.set_params(max_iter=1)  # so that it warns
    keeps_its_state(model, lambda: fit(model, X[:40]), error)


# ---------------------------------------------------------------- "the same seed"


@others
def test_the_same_seed_gives_the_same_bits(estimator, X):
    first, second = (fit(clone(estimator), X[:30]) for _ in range(2))
    assert pickle.dumps(first) == pickle.dumps(second)


@others
def test_input_is_never_modified(estimator, X):
    kept, X = X.copy(), X.copy()
    X.flags.writeable = False
    model = fit(clone(estimator), X)
    if hasattr(model, "transform"):
        model.transform(X)
    assert np.array_equal(X, kept)


MANY = {
    "LaplacianEigenmaps": mf.LaplacianEigenmaps(2, n_neighbors=20),
    "LLE": mf.LLE(2, n_neighbors=20),
    "TSNE": mf.TSNE(max_iter=3, early_exaggeration=EarlyExaggeration(n_iter=2)),
}


@pytest.mark.parametrize("estimator", MANY.values(), ids=MANY)
def test_another_number_of_threads_changes_rounding_only(estimator, same_up_to_sign):
    """With so many points, neighbors, blocks and pairs are distributed to threads."""
    rng = np.random.default_rng(0)
    X = (rng.uniform(size=(2500, 3)) * [8, 4, 1]) @ rng.normal(size=(3, 20))
    found = []
    for threads in (1, 3):
        with threadpool_limits(threads, "blas"):
            model = clone(estimator).set_params(n_jobs=threads).fit(X[:2400])
            found.append((model.embedding_, model.transform(X[2400:2405])))
    for one, three in zip(*found, strict=True):
        same_up_to_sign(three, one, 1e-8)
