"""The best scale of an embedding of given shape."""

import numpy as np
import pytest
from scipy.spatial.distance import pdist, squareform

from manifoldry.objectives import elastic, sne, symmetric_sne, tsne
from manifoldry.objectives.scale import best_scale

N = 30
RNG = np.random.default_rng(2)
X = RNG.normal(size=(N, 3))
K = np.exp(-squareform(pdist(X, "sqeuclidean"))) - np.eye(N)
P = K / K.sum(axis=1, keepdims=True)
JOINT = (P + P.T) / (2 * N)


@pytest.mark.parametrize(
    "objective",
    [
        elastic(JOINT, squareform(pdist(X, "sqeuclidean")), 30.0),
        elastic(JOINT, weight=1e6),
        sne(P),
        symmetric_sne(JOINT),
        tsne(JOINT),
        tsne(JOINT, exaggeration=1.2, dof=0.5),
    ],
    ids=lambda objective: type(objective).__name__,
)
@pytest.mark.parametrize("unit", [1e-4, 1.0, 1e5])
def test_no_other_scale_is_better(objective, unit):
    Y = unit * X[:, :2] + 7 * unit
    s = best_scale(objective, Y)
    value = objective.value(s * Y)
    others = s * np.concatenate([np.geomspace(1e-3, 1e3, 61), [0.99, 1.01]])
    assert value <= min(objective.value(r * Y) for r in others) + 1e-12 * abs(value)


@pytest.mark.parametrize(
    "objective",
    [elastic(JOINT, weight=0.1), tsne(JOINT, exaggeration=12.0)],
    ids=lambda objective: type(objective).__name__,
)
def test_the_smallest_scale_is_best_if_the_repulsion_is_weak(objective):
    Y = 50 * X[:, :2]
    s = best_scale(objective, Y)
    values = [objective.value(r * s * Y) for r in (1, 2, 10, 100, 1000)]
    assert values == sorted(values)
    assert s > 0
    assert values[0] == pytest.approx(objective.value(0 * Y), rel=1e-4)


def test_a_diverging_embedding_gets_a_finite_scale():
    """Two connected components, each collapsed to a point."""
    half = np.kron(np.eye(2), 1 - np.eye(5))
    Y = np.repeat([[0.0, 0.0], [1.0, 0.0]], 5, axis=0)
    s = best_scale(elastic(half / half.sum(), weight=1.0), Y)
    assert 3 < s < 1e3


def test_a_point_has_no_scale():
    with pytest.raises(ValueError, match="radius 0"):
        best_scale(elastic(JOINT), np.ones((N, 2)))
