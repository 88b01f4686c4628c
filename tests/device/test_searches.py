"""Searches on devices: no iteration copies an array between host and device."""

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from manifoldry import SNE, TSNE, UKR, ElasticEmbedding, SymmetricSNE
from manifoldry.datasets import make_swiss_roll
from manifoldry.device import using_device
from manifoldry.device.emulated import LONG_COPIES, EmulatedDevice
from manifoldry.objectives import Exact, FFTInterpolation, elastic, sne, tsne, using_pair_sums
from manifoldry.optimize import Homotopy
from manifoldry.optimize.saddle import leave_saddle, smallest_curvature, thinnest_axis

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")

X = np.random.default_rng(0).normal(size=(120, 6))
ELASTIC = {"repulsion": "uniform", "weight": 10.0}
SEARCHES = {
    "TSNE": (TSNE, {}),
    "TSNE momentum": (TSNE, {"optimizer": "momentum", "init": "pca"}),
    "SNE": (SNE, {"init": "pca"}),
    "SymmetricSNE": (SymmetricSNE, {"init": "pca"}),
    "ElasticEmbedding": (ElasticEmbedding, {"init": "pca", **ELASTIC}),
    "squared_distance": (ElasticEmbedding, {**ELASTIC, "repulsion": "squared_distance"}),
    "UKR": (UKR, {"init": "pca"}),
    "UKR box": (UKR, {"init": "pca", "box": 3.0}),
    "homotopy of SymmetricSNE": (SymmetricSNE, {"optimizer": Homotopy(n_steps=4)}),
    "homotopy of UKR": (UKR, {"init": "pca", "box": 3.0, "optimizer": Homotopy(n_steps=4)}),
    "weight of ElasticEmbedding": (ElasticEmbedding, {"repulsion": "uniform"}),
}


def long_copies(work):
    """The copies of more than 64 numbers, by direction and shape."""
    LONG_COPIES.clear()
    found = work()
    return dict(LONG_COPIES), found


@pytest.mark.parametrize("pair_sums", [Exact(), FFTInterpolation()], ids=["exact", "fft"])
@pytest.mark.parametrize("name", SEARCHES)
def test_more_iterations_take_no_more_copies(name, pair_sums):
    make, options = SEARCHES[name]
    if make is UKR and not isinstance(pair_sums, Exact):
        pytest.skip("it has no sums over pairs that could be interpolated")

    def fit(max_iter):
        model = make(max_iter=max_iter, random_state=0, device=EmulatedDevice(), **options)
        return model.fit(X)

    with using_pair_sums(pair_sums):
        few, first = long_copies(lambda: fit(3))
        many, second = long_copies(lambda: fit(9))
    assert second.n_iter_ >= first.n_iter_ + 6
    assert many == few


@pytest.mark.parametrize("flat", [False, True])
@pytest.mark.parametrize("loss", [elastic, tsne, sne])
class TestSaddlePoints:
    """Homotopies leave them along the direction of smallest curvature."""

    def posed(self, loss, flat):
        data = make_swiss_roll(150, random_state=0).X
        D = cdist(data, data, "sqeuclidean")
        W = np.exp(-10 * D / np.median(D))
        np.fill_diagonal(W, 0)
        W /= W.sum(axis=1, keepdims=True) if loss is sne else W.sum()
        Y = data[:, :2] / 5 * [1.0, 1e-6 if flat else 1.0]
        return loss(W), Y, thinnest_axis(Y) if flat else None

    def test_curvature(self, device, loss, flat):
        objective, Y, axis = self.posed(loss, flat)
        expected = smallest_curvature(objective, Y, axis=axis)
        with using_device(device):
            found = smallest_curvature(objective, Y, axis=axis)
        assert type(found.direction) is np.ndarray
        # Displacements of a flat embedding are differences of small numbers, with all their digits;
        # others are changes of forces, which a GPU computes in single precision.
        tol = 1e-4 if flat or device.name == "emulated" else 0.1
        assert found.value == pytest.approx(expected.value, rel=tol, abs=1e-5 * expected.scale)
        if tol < 0.1:
            assert abs((found.direction * expected.direction).sum()) > 1 - 1e-4

    def test_a_lower_value(self, device, loss, flat):
        objective, Y, axis = self.posed(loss, flat)
        direction = smallest_curvature(objective, Y, axis=axis).direction
        with using_device(device):
            found = leave_saddle(objective, Y, direction)
        assert type(found) is np.ndarray
        assert objective.value(found) < objective.value(Y)
        np.testing.assert_allclose(found, leave_saddle(objective, Y, direction), atol=1e-9)

    def test_iterations_copy_small_matrices(self, loss, flat):
        objective, Y, axis = self.posed(loss, flat)
        with using_device(EmulatedDevice()):
            few, many = (
                long_copies(lambda n=n: smallest_curvature(objective, Y, axis=axis, max_iter=n))[0]
                for n in (1, 5)
            )
        assert all(n == few[key] for key, n in many.items() if len(Y) in key[1])
        more = [key[1] for key, n in many.items() if n > few.get(key, 0)]
        assert max(map(np.prod, more)) <= 72
