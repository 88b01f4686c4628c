"""Disconnected graphs: layout of the components, and transform of new points."""

import warnings
from itertools import pairwise

import numpy as np
import pytest
from scipy import sparse
from scipy.spatial.distance import cdist

from manifoldry import LaplacianEigenmaps, NeighborGraph
from manifoldry.exceptions import DisconnectedGraphError, DisconnectedGraphWarning, RankWarning
from manifoldry.spectral.posed import coupled_components

AT = np.array([[0.0, 0, 0], [30, 0, 0], [0, 40, 0]])
SIZES = (60, 40, 30)
SPREADS = (2.0, 1.0, 0.5)


def blobs(seed=0):
    """Three blobs with known centers and sizes, the largest first."""
    rng = np.random.default_rng(seed)
    parts = [
        rng.normal(scale=s, size=(n, 3)) + c for n, s, c in zip(SIZES, SPREADS, AT, strict=True)
    ]
    return np.vstack(parts), np.repeat([0, 1, 2], SIZES)


def rms_radius(A):
    return np.sqrt(np.square(A - A.mean(axis=0)).sum(axis=1).mean())


def fitted(X, **params):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DisconnectedGraphWarning)
        return LaplacianEigenmaps(**params).fit(X)


def centers(Y, labels):
    return np.array([Y[labels == c].mean(axis=0) for c in range(labels.max() + 1)])


@pytest.mark.parametrize("normalization", ["rw", "sym", "none"])
def test_separate_keeps_positions_and_sizes(normalization):
    X, labels = blobs()
    pattern = r"has 3 connected components \(of 60, 40, 30 points\).*each was embedded separately"
    with pytest.warns(DisconnectedGraphWarning, match=pattern):
        model = LaplacianEigenmaps(normalization=normalization).fit(X)
    Y = model.embedding_
    assert np.array_equal(model.component_labels_, labels)
    # Three centers lie in a plane, so two coordinates hold their distances exactly.
    assert np.allclose(cdist(*[centers(Y, labels)] * 2), cdist(*[centers(X, labels)] * 2))
    for c in range(3):
        assert np.isclose(rms_radius(Y[labels == c]), rms_radius(X[labels == c]))


def test_components_are_embedded_as_if_alone():
    X, labels = blobs()
    model = fitted(X, n_neighbors=8, gamma=0.3)
    for c in range(3):
        part = X[labels == c]
        alone = LaplacianEigenmaps(n_neighbors=8, gamma=0.3).fit(part).embedding_
        component = model.embedding_[labels == c]
        component = (component - component.mean(axis=0)) / rms_radius(component)
        alone = (alone - alone.mean(axis=0)) / rms_radius(alone)
        assert np.allclose(np.abs(component), np.abs(alone), atol=1e-8)
    largest = LaplacianEigenmaps(n_neighbors=8, gamma=0.3).fit(X[labels == 0])
    assert np.allclose(model.eigenvalues_, largest.eigenvalues_)
    losses = [
        LaplacianEigenmaps(n_neighbors=8, gamma=0.3).fit(X[labels == c]).loss_ for c in range(3)
    ]
    assert np.isclose(model.loss_, sum(losses))


def test_two_concentric_rings_share_their_center():
    t = np.linspace(0, 2 * np.pi, 80, endpoint=False)
    ring = np.column_stack([np.cos(t), np.sin(t)])
    model = fitted(np.vstack([ring, 5 * ring]), n_neighbors=4)
    inner, outer = np.split(model.embedding_, 2)
    assert np.allclose(inner.mean(axis=0), outer.mean(axis=0), atol=1e-9)
    assert np.isclose(rms_radius(inner), 1)
    assert np.isclose(rms_radius(outer), 5)
    # Each is a ring again: all its points have one distance from the center.
    for part in (inner, outer):
        radii = np.linalg.norm(part - part.mean(axis=0), axis=1)
        assert radii.std() < 1e-6 * radii.mean()


def test_new_points_go_to_the_right_component():
    X, labels = blobs()
    model = fitted(X)
    new, truth = blobs(seed=5)
    placed = model.transform(new)
    homes = centers(model.embedding_, labels)
    assert np.array_equal(cdist(placed, homes).argmin(axis=1), truth)
    for c in range(3):
        nearest = cdist(new[truth == c], X[labels == c]).argmin(axis=1)
        apart = placed[truth == c] - model.embedding_[labels == c][nearest]
        assert np.linalg.norm(apart, axis=1).mean() < rms_radius(X[labels == c])
    assert np.array_equal(model.transform(X), model.embedding_)
    assert model.extension_error(X) < 1e-12


def test_inverse_transform():
    X, labels = blobs()
    model = fitted(X)
    back = model.inverse_transform(model.embedding_)
    assert np.array_equal(cdist(back, AT).argmin(axis=1), labels)
    _, remoteness = model.inverse_transform(
        centers(model.embedding_, labels).mean(axis=0)[None], return_distance=True
    )
    assert remoteness[0] > 3  # between components there are no data


def test_the_same_layout_from_distances_alone():
    X, labels = blobs()
    model = fitted(cdist(X, X), metric="precomputed")
    Y = model.embedding_
    assert np.allclose(cdist(*[centers(Y, labels)] * 2), cdist(*[centers(X, labels)] * 2))
    for c in range(3):
        assert np.isclose(rms_radius(Y[labels == c]), rms_radius(X[labels == c]))


def test_from_a_graph():
    X, _ = blobs()
    on_graph = fitted(NeighborGraph.build(X, n_neighbors=10))
    assert np.array_equal(on_graph.embedding_, fitted(X, n_neighbors=10).embedding_)


def test_largest_leaves_the_others_out():
    X, labels = blobs()
    with pytest.warns(DisconnectedGraphWarning, match="only the largest was embedded.*are NaN"):
        model = LaplacianEigenmaps(disconnected="largest").fit(X)
    assert np.array_equal(np.isnan(model.embedding_).all(axis=1), labels > 0)
    assert np.array_equal(model.component_labels_, np.where(labels == 0, 0, -1))
    placed = model.transform(X + 1e-3)
    assert np.array_equal(np.isnan(placed).any(axis=1), labels > 0)
    assert np.array_equal(model.transform(X), model.embedding_, equal_nan=True)
    back = model.inverse_transform(model.embedding_[:60])
    assert np.linalg.norm(back, axis=1).max() < 10
    assert model.extension_error(X) < 1e-12


def test_join_makes_one_component():
    X, labels = blobs()
    with pytest.warns(DisconnectedGraphWarning, match="joined by the shortest edges"):
        model = LaplacianEigenmaps(disconnected="join", affinity="binary").fit(X)
    assert not model.component_labels_.any()
    extra = model.affinity_.toarray() * (labels[:, None] != labels[None])
    bridges = np.argwhere(np.triu(extra))
    assert len(bridges) == 2  # a tree over three components
    D = cdist(X, X)
    for pair in {tuple(sorted(labels[b])) for b in bridges}:
        a, b = (labels == c for c in pair)
        i, j = next(bridge for bridge in bridges if set(labels[bridge]) == set(pair))
        assert np.isclose(D[i, j], D[np.ix_(a, b)].min())
    assert np.isfinite(model.transform(X + 0.01)).all()


def test_join_refuses_edges_of_zero_weight():
    X, _ = blobs()
    with (
        pytest.warns(DisconnectedGraphWarning),
        pytest.raises(DisconnectedGraphError, match=r"affinity, but not.*smaller gamma"),
    ):
        LaplacianEigenmaps(disconnected="join", gamma=1e3).fit(X)


def test_error_refuses():
    X, _ = blobs()
    pattern = r"has 3 connected components \(of 60, 40, 30 points\); raise n_neighbors"
    with pytest.raises(DisconnectedGraphError, match=pattern):
        LaplacianEigenmaps(disconnected="error").fit(X)


def test_isolated_points_of_a_radius_graph():
    X, _ = blobs()
    X = np.vstack([X[:60], [[0.0, 0, 50]]])
    with pytest.warns(DisconnectedGraphWarning, match="2 connected components"):
        model = LaplacianEigenmaps(radius=4.0).fit(X)
    assert model.component_labels_[60] == 1
    apart = np.linalg.norm(model.embedding_[60] - model.embedding_[:60].mean(axis=0))
    assert np.isclose(apart, np.linalg.norm(X[60] - X[:60].mean(axis=0)))
    beside = model.transform(X[60:] + 0.1)
    assert np.allclose(beside, model.embedding_[60:])
    with pytest.raises(ValueError, match="no training point within the radius"):
        model.transform(np.full((1, 3), 500.0))


def test_small_components_have_fewer_coordinates():
    """Components of two points and three coordinates: the others are zero, with a warning."""
    pairs = np.repeat(np.arange(4)[:, None] * 100.0, 2, axis=0) + np.tile([[0.0], [1.0]], (4, 1))
    with pytest.warns(RankWarning, match="largest connected component has 2 points, so only 1"):
        model = fitted(np.hstack([pairs, pairs**2 / 100]), n_components=3, n_neighbors=1)
    assert np.isfinite(model.embedding_).all()
    assert np.array_equal(model.component_labels_, np.repeat(np.arange(4), 2))
    assert (model.residuals_ <= 1e-3 * model.gaps_).all()


def test_disconnected_affinities():
    """If distances are unknown, components are placed side by side without overlap."""
    W = sparse.block_diag([np.ones((6, 6)), np.ones((5, 5)), [[0.0]]]).toarray()
    W += np.random.default_rng(0).uniform(size=W.shape) * (W > 0)
    W = (W + W.T) / 2
    model = fitted(W, n_components=2, affinity="precomputed")
    first = model.embedding_[:, 0]
    assert np.array_equal(model.component_labels_, np.repeat([0, 1, 2], [6, 5, 1]))
    spans = [
        (first[model.component_labels_ == c].min(), first[model.component_labels_ == c].max())
        for c in range(3)
    ]
    spans.sort()
    assert all(a[1] < b[0] for a, b in pairwise(spans))


def test_small_weights_connect():
    """Blobs connected by weights that are small but above rounding are one component."""
    X, labels = blobs()
    W = np.exp(-(cdist(X, X) ** 2)) * (labels[:, None] == labels[None])
    np.fill_diagonal(W, 0)
    W[0, 60] = W[60, 0] = W[60, 100] = W[100, 60] = 1e-6
    model = LaplacianEigenmaps(2, affinity="precomputed").fit(W)
    assert not model.component_labels_.any()
    # The first two coordinates then separate the blobs.
    Y = model.embedding_
    for c in range(3):
        assert rms_radius(Y[labels == c]) < 1e-2 * rms_radius(Y)


@pytest.mark.parametrize("normalization", ["rw", "sym", "none"])
@pytest.mark.parametrize("far", [[1e3], [400.0, 1.6e5, 6.4e7]], ids=["one", "three"])
def test_weights_of_outliers_that_underflow_are_not_an_error(far, normalization):
    """The others are embedded as without the outliers."""
    X = np.random.default_rng(0).normal(size=(199, 3))
    outliers = np.outer(far, [1.0, 0, 0])
    with pytest.warns(DisconnectedGraphWarning):
        model = LaplacianEigenmaps(2, normalization=normalization).fit(np.vstack([X, outliers]))
    assert np.array_equal(model.component_labels_ == 0, np.arange(199 + len(far)) < 199)
    assert np.isfinite(model.embedding_).all()
    alone = LaplacianEigenmaps(2, normalization=normalization).fit(X)
    np.testing.assert_allclose(model.eigenvalues_, alone.eigenvalues_)


@pytest.mark.filterwarnings("ignore::manifoldry.exceptions.ManifoldryWarning")
@pytest.mark.parametrize("seed", range(4, 8))
def test_heavy_tails_are_embedded(seed):
    X = np.random.default_rng(seed).standard_cauchy((500, 3))
    assert np.isfinite(LaplacianEigenmaps(2).fit_transform(X)).all()


@pytest.mark.parametrize("representation", [np.asarray, sparse.csr_array])
def test_entries_far_below_the_largest_connect_nothing(representation):
    """Their squares would underflow in an eigenproblem of their own."""
    A = np.diag([1.0, 1.0, 1e-130, 1e-130])
    A[0, 1] = A[1, 0] = -1
    A[2, 3] = A[3, 2] = -1e-130
    assert len(np.unique(coupled_components(representation(A))[2:])) == 2
    A[2:, 2:] *= 1e20
    assert np.array_equal(coupled_components(representation(A)), [0, 0, 1, 1])


def test_compiled_components_agree_with_scipy():
    rng = np.random.default_rng(0)
    i, j = rng.integers(400, size=(2, 350))
    A = sparse.coo_array((10.0 ** -rng.uniform(0, 30, 350), (i, j)), shape=(400, 400))
    A = sparse.csr_array(A + A.T + sparse.diags_array(np.full(400, 1e-8)))
    labels = coupled_components(A)
    compiled = coupled_components(A, compile_above=0)
    assert labels.max() > 100
    assert len(set(zip(labels, compiled, strict=True))) == labels.max() + 1 == compiled.max() + 1


@pytest.mark.parametrize("affinity", ["gaussian", "binary", "self_tuning"])
def test_identical_points_are_refused(affinity):
    with pytest.raises(ValueError, match=r"rows coincides with all its neighbors.*drop dup"):
        LaplacianEigenmaps(affinity=affinity).fit(np.ones((30, 3)))


def test_identical_points_with_a_given_width():
    with pytest.raises(ValueError, match="rows coincides with all its neighbors"):
        LaplacianEigenmaps(gamma=1.0).fit(np.ones((30, 3)))


def test_groups_of_duplicates_are_points():
    """Many duplicates of three points are three components of size zero, at these points."""
    X = np.repeat([[0.0, 0], [3, 0], [0, 4]], 20, axis=0)
    X[0, 0] -= 1e-9  # one that differs, so that there is a nonzero distance
    model = fitted(X, affinity="binary", n_neighbors=5)
    D = cdist(model.embedding_[[5, 25, 45]], model.embedding_[[5, 25, 45]])
    assert np.allclose(D, [[0, 3, 4], [3, 0, 5], [4, 5, 0]], atol=1e-6)
    for start in (0, 20, 40):
        assert rms_radius(model.embedding_[start : start + 20]) < 1e-6
