"""Barycentric and local affine extensions: separate components, and folded directions."""

import numpy as np
import pytest

from manifoldry import LLE, LTSA, NeighborGraph
from manifoldry.datasets import make_strip
from manifoldry.exceptions import DisconnectedGraphWarning
from manifoldry.extension.local import LocalAffine


@pytest.mark.parametrize("method", [LLE, LTSA])
def test_a_new_point_stays_with_its_component(method):
    """The small component has fewer points than a new one has neighbors."""
    X = np.vstack([make_strip(120, random_state=0).X, make_strip(11, random_state=1).X + 40.0])
    with pytest.warns(DisconnectedGraphWarning):
        model = method(n_neighbors=10).fit(X)
    small = model.embedding_[120:]
    placed = model.transform(X[120:] + 1e-3)
    assert np.abs(placed - small).max() < 0.05 * np.ptp(model.embedding_, axis=0).max()
    with_more = model.extension_
    if method is LLE:
        rows = with_more.rows(X[120:] + 30.0)  # now most neighbors would be on neither side
        assert not rows[:, :120].toarray()[rows[:, 120:].sum(axis=1) > 0.5].any()


def test_a_new_point_between_components_belongs_to_the_nearer_one():
    """It has neighbors in both; those in the other component must have weight zero."""
    rng = np.random.default_rng(0)
    X = np.vstack([rng.uniform(size=(12, 2)), rng.uniform(size=(12, 2)) + np.array([3, 0])])
    with pytest.warns(DisconnectedGraphWarning):
        model = LLE(n_neighbors=6).fit(X)
    between = np.array([[1.95, 0.5], [2.05, 0.5]])
    near = np.argsort(np.linalg.norm(between[:, None] - X, axis=2), axis=1)[:, :6] >= 12
    assert near[:, 0].tolist() == [False, True]
    assert (near.any(axis=1) & ~near.all(axis=1)).all()
    W = model.extension_.rows(between).toarray()
    assert not W[0, 12:].any()
    assert not W[1, :12].any()
    np.testing.assert_allclose(W.sum(axis=1), 1)


def test_folded_directions_are_not_amplified():
    """One direction is lost up to rounding; the inverse must not divide by it."""
    X, _ = make_strip(200, random_state=0)
    rng = np.random.default_rng(0)
    Y = np.column_stack([X[:, 0], 1e-9 * rng.normal(size=200)])
    graph = NeighborGraph.build(X, 8)
    members = np.hstack([np.arange(200)[:, None], graph.indices.reshape(200, 8)])
    back = LocalAffine(graph, Y, members).inverse(Y + np.array([0.0, 1e-6]))
    assert np.abs(back - X).max() < 1.0


def test_neighbors_outside_the_embedded_component_have_no_weight():
    """The graph is connected, the alignment is not: four neighbors have no coordinates."""
    X = 1.0 * (np.random.default_rng(1).normal(size=(9, 2)) > 0)
    with pytest.warns(DisconnectedGraphWarning):
        model = LTSA(disconnected="largest", metric_fit=False).fit(X)
    embedded = np.isfinite(model.embedding_).all(axis=1)
    assert 0 < embedded.sum() < 9
    back = model.inverse_transform(model.embedding_[embedded])
    np.testing.assert_allclose(back, X[embedded], atol=0.01)
    assert np.isfinite(model.transform(X[embedded] + 1e-3)).all()
    assert np.isfinite(model.score(X))


def test_tiny_data_are_placed_like_others():
    """Reciprocals of lengths of 1e-310 are infinite."""
    X, _ = make_strip(200, curl=1.0, random_state=0)
    plain, tiny = (LTSA(2, n_neighbors=10).fit(s * X) for s in (1.0, 1e-310))
    new = X[:50] + 0.01
    np.testing.assert_allclose(tiny.transform(1e-310 * new) / 1e-310, plain.transform(new))
    back = tiny.inverse_transform(tiny.embedding_[:50]) / 1e-310
    np.testing.assert_allclose(back, plain.inverse_transform(plain.embedding_[:50]), atol=1e-9)
    np.testing.assert_allclose(tiny.score(1e-310 * X), plain.score(X))
