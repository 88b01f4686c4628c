"""Local methods on a device: small factorizations, local problems, assembly, new points."""

import warnings

import numpy as np
import pytest
from sklearn.datasets import load_digits

from manifoldry import LLE, LTSA, HessianLLE, ModifiedLLE, NeighborGraph
from manifoldry.datasets import make_swiss_roll
from manifoldry.device import current_device, using_device
from manifoldry.device.emulated import COPIES, EmulatedDevice
from manifoldry.device.small import eigh, eigvalsh, left_vectors
from manifoldry.exceptions import ManifoldryWarning
from manifoldry.extension.kernel_regression import KernelRegressionMap
from manifoldry.extension.local import LocalAffine
from manifoldry.extension.regression import LocalRegression
from manifoldry.neighbors import neighborhoods_on_device
from manifoldry.neighbors.neighborhoods import (
    Neighborhoods,
    barycentric_weights,
    neighbor_laplacian,
    tangent_bases,
    tangent_misfit,
    weighted_sum,
)
from manifoldry.util.memory import NotEnoughMemoryError

LOCAL = [LLE, LTSA, HessianLLE, ModifiedLLE]
RNG = np.random.default_rng(0)
DIGITS = load_digits().data[:300]


def close(device, found, expected, tolerance=1e-8):
    scale = np.abs(expected).max()
    np.testing.assert_allclose(device.host(found), expected, rtol=0, atol=tolerance * scale)


# --- factorizations ------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(1, 1), (2, 2), (3, 3), (12, 3), (13, 13), (40, 20), (130, 9)])
def test_eigenvalues_and_eigenvectors(in_use, shape):
    k, rank = shape
    C = RNG.normal(size=(30, k, rank))
    A = C @ C.transpose(0, 2, 1)
    values, vectors = map(in_use.host, eigh(in_use.array(A)))
    scale = np.linalg.norm(A, axis=(1, 2)).max()
    np.testing.assert_allclose(values, np.linalg.eigvalsh(A), rtol=0, atol=1e-13 * scale)
    product = vectors.transpose(0, 2, 1) @ vectors
    np.testing.assert_allclose(product, np.broadcast_to(np.eye(k), product.shape), atol=1e-12)
    np.testing.assert_allclose(A @ vectors, vectors * values[:, None], atol=1e-12 * scale)
    np.testing.assert_allclose(in_use.host(eigvalsh(in_use.array(A))), values, atol=1e-12 * scale)


@pytest.mark.parametrize("scale", [0.0, 1e-200, 1.0, 1e150])
def test_eigenvectors_of_any_scale_and_of_equal_eigenvalues(in_use, scale):
    A = scale * np.stack([np.eye(6), np.ones((6, 6)), np.diag(np.arange(6.0))])
    values, vectors = map(in_use.host, eigh(in_use.array(A)))
    np.testing.assert_allclose(values, np.linalg.eigvalsh(A), rtol=1e-12, atol=1e-14 * scale)
    product = vectors.transpose(0, 2, 1) @ vectors
    np.testing.assert_allclose(product, np.broadcast_to(np.eye(6), product.shape), atol=1e-12)


@pytest.mark.parametrize("shape", [(1, 1), (5, 5), (13, 3), (784, 13), (3000, 20)])
def test_left_singular_vectors(in_use, shape):
    A = RNG.normal(size=(8, *shape))
    expected, sizes, _ = np.linalg.svd(A, full_matrices=False)
    vectors, values = map(in_use.host, left_vectors(in_use.array(A)))
    np.testing.assert_allclose(values, sizes, rtol=1e-12)
    angles = np.abs((vectors * expected).sum(axis=1))
    np.testing.assert_allclose(angles, 1, atol=1e-9)


def test_small_singular_values_have_small_errors(in_use):
    A = RNG.normal(size=(8, 20, 6)) * np.logspace(0, -9, 6)
    vectors, values = map(in_use.host, left_vectors(in_use.array(A)))
    np.testing.assert_allclose(values, np.linalg.svd(A, compute_uv=False), rtol=1e-6)
    product = vectors.transpose(0, 2, 1) @ vectors
    np.testing.assert_allclose(product, np.broadcast_to(np.eye(6), product.shape), atol=1e-12)


def test_no_matrices(in_use):
    values, vectors = eigh(in_use.array(np.zeros((0, 3, 3))))
    assert values.shape == (0, 3)
    assert vectors.shape == (0, 3, 3)


def test_factorizations_have_the_same_bits(in_use):
    C = RNG.normal(size=(500, 12, 5))
    A = in_use.array(C @ C.transpose(0, 2, 1))
    first, again = (in_use.host(eigh(A)[1]) for _ in range(2))
    assert first.tobytes() == again.tobytes()


# --- local problems ------------------------------------------------------------------------------


def blocks(k, m):
    """Neighborhoods in general position, with duplicates, of lower rank, and without extent."""
    local = RNG.normal(size=(12, k, m))
    local[3, 2:] = local[3, 1:2]
    local[4, 1] = local[4, 0]
    local[5] = RNG.normal(size=(k, 1)) * RNG.normal(size=m)
    local[6] = 7.0
    return local


@pytest.mark.parametrize(("k", "m"), [(8, 3), (8, 8), (6, 30), (15, 2)])
def test_weights_and_tangent_spaces_are_those_of_the_cpu(in_use, k, m):
    local = blocks(k, m)
    on_device = in_use.array(local)
    for reg in (1e-3, 1e-9):
        expected = barycentric_weights(local, reg)
        close(in_use, barycentric_weights(on_device, reg), expected, 1e-6 if reg < 1e-6 else 1e-9)
    excluded = RNG.uniform(size=(12, k)) < 0.3
    expected = barycentric_weights(local, 1e-3, excluded)
    close(in_use, barycentric_weights(on_device, 1e-3, in_use.array(excluded)), expected)
    for dimension in (1, 2):
        U = tangent_bases(local, dimension)
        V = in_use.host(tangent_bases(on_device, dimension))
        projections = [W @ W.transpose(0, 2, 1) for W in (U, V)]
        distinct = np.arange(12) != 6  # of a point, all directions are equal
        np.testing.assert_allclose(projections[1][distinct], projections[0][distinct], atol=1e-9)
        misfit = tangent_misfit(local, dimension)[distinct]
        np.testing.assert_allclose(
            in_use.host(tangent_misfit(on_device, dimension))[distinct], misfit, atol=1e-9
        )


@pytest.mark.filterwarnings("ignore::manifoldry.exceptions.ManifoldryWarning")
@pytest.mark.parametrize("method", LOCAL)
@pytest.mark.parametrize("data", ["roll", "single", "digits", "duplicates", "lattice"])
def test_alignment_matrices_are_those_of_the_cpu(device, method, data):
    X = {
        "roll": make_swiss_roll(400, random_state=0).X,
        "single": 1e4 + make_swiss_roll(400, random_state=0).X.astype(np.float32),
        "digits": DIGITS,
        "duplicates": np.vstack([DIGITS[:150], DIGITS[:30], DIGITS[:30]]),
        "lattice": np.stack(np.meshgrid(*[np.arange(15.0)] * 2), axis=-1).reshape(-1, 2),
    }[data]
    graph = NeighborGraph.build(X, 12)  # on the CPU: ties may be broken otherwise
    expected = method(2).pose(graph).problem.operator
    with using_device(device):
        found = method(2).pose(graph).problem.operator
    assert abs(found - expected).max() <= 1e-8 * abs(expected).max()
    assert found.has_sorted_indices
    assert type(found.data) is np.ndarray


def test_assembly_in_several_parts(in_use, monkeypatch):
    X, members = RNG.normal(size=(60, 3)), RNG.permuted(np.tile(np.arange(60), (60, 1)), axis=1)
    local = lambda coordinates: coordinates @ coordinates.transpose(0, 2, 1)  # noqa: E731
    hoods = Neighborhoods(X, members[:, :6])
    at_once = hoods.align(local)
    monkeypatch.setattr(neighborhoods_on_device, "_BLOCK", 7 * 36)
    monkeypatch.setattr(neighborhoods_on_device, "_MOST_ENTRIES", 600)
    in_parts, again = hoods.align(local), hoods.align(local)
    with using_device("cpu"):
        expected = hoods.align(local)
    assert abs(at_once - expected).max() < 1e-12
    assert abs(in_parts - expected).max() < 1e-12
    assert in_parts.data.tobytes() == again.data.tobytes()


def test_the_laplacian_and_sums_of_matrices(in_use):
    X = np.vstack([DIGITS[:100], DIGITS[:10]])
    graph = NeighborGraph.build(X, 7)
    L = neighbor_laplacian(graph)
    total = weighted_sum((0.25, L), (2.0, L[::-1][:, ::-1].tocsr()))
    with using_device("cpu"):
        expected = neighbor_laplacian(graph)
        assert abs(L - expected).max() < 1e-12
        both = 0.25 * expected + 2 * expected[::-1][:, ::-1]
        assert abs(total - both).max() < 1e-12


def test_the_matrix_stays_on_the_device(device):
    X = make_swiss_roll(1500, random_state=0).X
    with using_device(device):
        graph = NeighborGraph.build(X, 12)
        M = LTSA(2).pose(graph).problem.operator
        for part in (M.data, M.indices):
            held = device.held(part)
            assert held is not None
            assert device.owns(held)


def test_few_copies_between_host_and_device():
    with using_device(EmulatedDevice()):
        graph = NeighborGraph.build(make_swiss_roll(1500, random_state=0).X, 12)
        COPIES.clear()
        LTSA(2, laplacian_weight=0).pose(graph)
        # Members and the origin; extremes and the sum of the points, the three parts of the matrix,
        # and the misfit with its own members and origin.
        assert COPIES["to device"] <= 6
        assert COPIES["to host"] <= 8


def test_too_little_memory_is_said():
    graph = NeighborGraph.build(make_swiss_roll(300, random_state=0).X, 12)
    with (
        using_device(EmulatedDevice(free_memory=2**16)),
        pytest.raises(NotEnoughMemoryError, match=r"of 300 .* on emulated"),
    ):
        LLE(2).pose(graph)


def test_sparse_data_run_on_the_cpu_which_is_said_once():
    from scipy import sparse

    graph = NeighborGraph.build(sparse.csr_array(DIGITS), 12)
    expected = LLE(2).pose(graph).problem.operator
    with using_device(EmulatedDevice()), warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always", ManifoldryWarning)
        found = LLE(2).pose(graph).problem.operator
    assert abs(found - expected).max() < 1e-12
    assert sum("the local problems runs on the CPU" in str(w.message) for w in said) <= 1


# --- new points ----------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore::manifoldry.exceptions.ManifoldryWarning")
@pytest.mark.parametrize("method", LOCAL)
@pytest.mark.parametrize("data", ["roll", "digits"])
def test_new_points_and_inverse_are_those_of_the_cpu(device, method, data):
    X = make_swiss_roll(500, random_state=0).X if data == "roll" else load_digits().data[:500]
    model = method(2, n_neighbors=12).fit(X[:400])
    Z = model.embedding_[:50] + 1e-3
    expected, data_at = model.transform(X[400:]), model.inverse_transform(Z)
    rows = model.extension_.rows(X[400:])
    with using_device(device):
        assert current_device() is device
        close(device, model.transform(X[400:]), expected)
        close(device, model.inverse_transform(Z), data_at)
        assert abs(model.extension_.rows(X[400:]) - rows).max() < 1e-7 * abs(rows).max()


@pytest.mark.filterwarnings("ignore::manifoldry.exceptions.ManifoldryWarning")
def test_affine_maps_of_neighborhoods_of_lower_rank(device):
    """On a line the second tangent direction does not exist, and has no weight."""
    line = np.linspace(0, 1, 80)[:, None] * np.array([1.0, 2.0, -1.0])
    graph = NeighborGraph.build(line, 6)
    members = np.hstack([np.arange(80)[:, None], graph.indices.reshape(80, 6)])
    affine = LocalAffine(graph, RNG.normal(size=(80, 2)), members)
    new, Z = line[:30] + 1e-3, affine.embedding[:30] + 1e-4
    expected, inverted = affine.transform(new), affine.inverse(Z)
    rows = np.arange(0, 80, 3)
    error = affine.inverse_error(rows)
    with using_device(device):
        close(device, affine.transform(new), expected)
        close(device, affine.inverse(Z), inverted)
        assert affine.inverse_error(rows) == pytest.approx(error, rel=1e-8)


@pytest.mark.parametrize("case", ["plane", "duplicates", "line"])
def test_local_regression(device, case):
    Z = RNG.normal(size=(200, 2))
    if case == "duplicates":
        Z[100:160] = Z[0]
    if case == "line":
        Z[:, 1] = 0
    X = np.column_stack([Z, np.sin(Z), Z[:, 0] * Z[:, 1]]).astype(np.float32)
    regression, at = LocalRegression(Z, X), RNG.normal(size=(40, 2))
    expected, error = regression.predict(at), regression.error
    fresh = LocalRegression(Z, X)
    with using_device(device):
        found = fresh.predict(at)
        assert type(found) is np.ndarray
        assert fresh.smoother == regression.smoother
        close(device, found, expected)
        assert fresh.error == pytest.approx(error, rel=1e-8)


@pytest.mark.parametrize("kernel", ["gaussian", "student", "quartic"])
@pytest.mark.parametrize("n", [300, 2500])
def test_kernel_regression(device, kernel, n):
    Z = RNG.uniform(-20, 20, size=(n, 2))
    curve = KernelRegressionMap(Z, np.column_stack([Z, np.sin(Z)]), kernel)
    at = RNG.uniform(-22, 22, size=(50, 2))
    expected = curve.predict(at)
    with using_device(device):
        close(device, curve.predict(at), expected)
