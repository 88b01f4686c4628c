"""Data and metrics for several workloads. Large packages are imported inside the functions."""

import time
from contextlib import contextmanager

from benchmarks.workload import Missing


def roll(n, dtype="float64"):
    """A Swiss roll and its true coordinates."""
    from manifoldry.datasets import make_swiss_roll

    X, coordinates = make_swiss_roll(n, random_state=0)
    return {"X": X.astype(dtype), "_truth": coordinates}


def mnist(n=None):
    """MNIST, all of it or a sample."""
    from manifoldry.datasets import load_mnist

    return {"X": _stored(load_mnist, n_samples=n, random_state=0)}


def digits():
    """scikit-learn's 1797 digits."""
    from sklearn.datasets import load_digits

    return {"X": load_digits().data}


def pbmc():
    """700 blood cells."""
    from manifoldry.datasets import load_pbmc

    return {"X": _stored(load_pbmc)}


def _stored(load, **options):
    from manifoldry.datasets import DataNotFoundError

    try:
        return load(**options).X
    except DataNotFoundError as error:
        raise Missing(f"{load.__name__} finds no data; set MANIFOLDRY_DATA") from error


def trust(arrays, result, k=12, n_sample=1000):
    """Trustworthiness of an embedding, on a sample of its points.

    One minus the penalty for points that are neighbors in the embedding but not in the data
    (Venna and Kaski 2001), with ranks among all points.
    """
    import numpy as np
    from scipy.spatial.distance import cdist

    X, Y = arrays["X"].astype(float), result["embedding"].astype(float)
    n = len(X)
    sample = np.random.default_rng(0).choice(n, min(n, n_sample), replace=False)
    penalty = 0.0
    for rows in np.array_split(sample, max(1, len(sample) // 200)):
        here = np.arange(len(rows))
        ranks = np.argsort(np.argsort(_others(cdist(X[rows], X), rows), axis=1), axis=1) + 1
        near = np.argpartition(_others(cdist(Y[rows], Y), rows), k, axis=1)[:, :k]
        penalty += np.maximum(ranks[here[:, None], near] - k, 0).sum()
    return {"trust": 1 - 2 * penalty / (len(sample) * k * (2 * n - 3 * k - 1))}


def trust_of_sample(arrays, result, n_sample=5000):
    """Trustworthiness within a sample of the points, for data too many to compare all."""
    from manifoldry.metrics import trustworthiness

    step = max(1, len(arrays["X"]) // n_sample)
    return trustworthiness(arrays["X"][::step], result["embedding"][::step])


def _others(distances, rows):
    import numpy as np

    distances[np.arange(len(rows)), rows] = np.inf
    return distances


def sheet_error(arrays, result):
    """Procrustes error of an embedding and the true coordinates, after an affine map."""
    from manifoldry.metrics import procrustes

    return {"error": procrustes(result["embedding"], arrays["_truth"], "affine").error}


@contextmanager
def timing(owner, name):
    """Add up the seconds spent in ``owner.name``; yields a list of them."""
    original, spent = getattr(owner, name), []

    def timed(*args, **kwargs):
        start = time.perf_counter()
        try:
            return original(*args, **kwargs)
        finally:
            spent.append(time.perf_counter() - start)

    setattr(owner, name, timed)
    try:
        yield spent
    finally:
        setattr(owner, name, original)


def few(X, n=200):
    """The first rows, and for distances also the first columns."""
    return X[:n, :n].copy() if X.shape[0] == X.shape[1] else X[:n].copy()


def fitted(module, estimator, **options):
    """Contestant: fit an estimator named ``module.estimator`` and return its embedding.

    A fit of a few points is not timed, for ours and for peers: it includes imports and
    compilation at the first call, which ``startup`` measures separately.
    """

    def run(X, **_):
        from importlib import import_module

        make = getattr(import_module(module), estimator)
        make(**options).fit_transform(few(X))
        yield
        return {"embedding": make(**options).fit_transform(X)}

    return run
