"""Any data: densities, wrappers, neighbor graphs and estimates of the dimension."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.spatial.distance import cdist

import manifoldry as mf
from manifoldry import dimension

from .outcomes import Refusal, attempt
from .samples import samples

DENSITIES = {
    "ManifoldParzen": mf.ManifoldParzen,
    "MixtureOfFactorAnalyzers": lambda: mf.MixtureOfFactorAnalyzers(2, max_iter=20, random_state=0),
}
WRAPPERS = {
    "FromDensity": lambda: mf.FromDensity(mf.PCA(1), mf.ManifoldParzen(), 20, random_state=0),
    "ConformalInverse": lambda: mf.ConformalInverse(mf.PCA(1), random_state=0),
}
ESTIMATES = [
    "correlation_dimension",
    "gram_rank",
    "local_pca",
    "maximum_likelihood",
    "pca_dimension",
    "two_nn",
]


@pytest.mark.parametrize("name", DENSITIES)
@given(samples())
def test_densities_are_finite(name, sample):
    X = sample.points
    density = attempt(lambda: DENSITIES[name]().fit(X))
    assume(not isinstance(density, Refusal))
    logarithms = attempt(lambda: density.score_samples(X))
    if not isinstance(logarithms, Refusal):
        assert logarithms.shape == (len(X),)
        assert np.isfinite(logarithms).all()
    drawn = attempt(lambda: density.sample(7, random_state=0))
    if not isinstance(drawn, Refusal):
        assert np.isfinite(drawn[0] if isinstance(drawn, tuple) else drawn).all()


@pytest.mark.parametrize("name", WRAPPERS)
@given(samples())
def test_wrappers_are_finite(name, sample):
    X = sample.points
    wrapper = attempt(lambda: WRAPPERS[name]().fit(X))
    assume(not isinstance(wrapper, Refusal))
    Z = attempt(lambda: wrapper.transform(X))
    assume(not isinstance(Z, Refusal))
    assert np.isfinite(Z).all()
    back = attempt(lambda: wrapper.inverse_transform(Z))
    assert isinstance(back, Refusal) or np.isfinite(back).all()


def scaled_distances(X, metric):
    """Distances between all rows, and the unit they are in, in which no square over- or underflows.

    Canberra distances have no unit, and those by the cosine do not depend on the unit of a row.
    """
    X = X.astype(np.float64)
    if metric == "canberra":
        return cdist(X, X, metric), 1.0
    largest = np.abs(X).max(axis=1, keepdims=True)
    if metric == "cosine":
        return cdist(X / largest, X / largest, metric), 1.0
    unit = largest.max() or 1.0
    return cdist(X / unit, X / unit, metric), unit


@given(
    samples(),
    st.integers(1, 12),
    st.sampled_from(["euclidean", "cityblock", "chebyshev", "cosine", "canberra"]),
)
def test_graphs_hold_the_nearest_neighbors(sample, k, metric):
    X = sample.points
    graph = attempt(lambda: mf.NeighborGraph.build(X, k, metric=metric))
    assume(not isinstance(graph, Refusal))
    assert np.array_equal(np.diff(graph.indptr), np.full(len(X), k))
    assert np.isfinite(graph.distances).all()
    assert (graph.distances >= 0).all()
    indices, distances = (part.reshape(-1, k) for part in (graph.indices, graph.distances))
    assert (np.diff(distances, axis=1) >= 0).all()
    assert (indices != np.arange(len(X))[:, None]).all()
    assert all(len(set(row)) == k for row in indices)
    expected, unit = scaled_distances(X, metric)
    np.fill_diagonal(expected, np.inf)
    # Distances are multiples of the smallest number.
    tolerances = {"rtol": 1e-9, "atol": 1e-12 + 4 * np.nextafter(0, 1) / unit}
    own = np.take_along_axis(expected, indices, axis=1)
    np.testing.assert_allclose(distances / unit, own, **tolerances)
    np.testing.assert_allclose(own, np.sort(expected, axis=1)[:, :k], **tolerances)


@pytest.mark.parametrize("name", ESTIMATES)
@given(samples())
def test_dimensions_are_not_negative(name, sample):
    X = sample.points
    found = attempt(lambda: getattr(dimension, name)(X))
    assert isinstance(found, Refusal) or float(found) >= 0
