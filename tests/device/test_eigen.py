"""Spectral methods on devices, against the same on the CPU."""

import warnings

import numpy as np
import pytest
from scipy import sparse
from scipy.linalg import subspace_angles
from scipy.sparse.csgraph import connected_components
from sklearn.base import clone

import manifoldry as mf
from manifoldry.datasets import make_swiss_roll
from manifoldry.device.emulated import COPIES
from manifoldry.eigen import Auto, Dense, Lanczos, Randomized, SpectralProblem
from manifoldry.neighbors import NeighborGraph
from manifoldry.neighbors.components_on_device import joined_labels
from manifoldry.spectral.laplacian_eigenmaps import laplacian
from manifoldry.spectral.posed import coupled_components

RNG = np.random.default_rng(0)


@pytest.fixture(autouse=True)
def every_size(monkeypatch):
    """Small problems run on the device, too."""
    monkeypatch.setattr("manifoldry.eigen.on_device.LEAST_ENTRIES", 0)
    monkeypatch.setattr("manifoldry.spectral.on_device.LEAST_EDGES", 0)
    monkeypatch.setattr("manifoldry.neighbors.graph.LEAST_ON_DEVICE", 0)
    monkeypatch.setattr("manifoldry.affinity.base.LEAST_EDGES", 0)


def weights(n, m, loops=False):
    """Symmetric random weights with sorted rows."""
    A = sparse.random_array((n, n), density=m / n, rng=RNG, format="csr")
    W = sparse.csr_array(A + A.T)
    if not loops:
        W = sparse.csr_array(W - sparse.diags_array(W.diagonal()))
        W.eliminate_zeros()
    W.sort_indices()
    return W


@pytest.mark.parametrize("m", [0.4, 1.0, 5.0])
def test_components(in_use, m):
    W = weights(500, m)
    count, expected = connected_components(W, directed=False)
    coo = W.tocoo()
    ends = (in_use.array(part.astype(np.int32)) for part in (coo.row, coo.col))
    labels = joined_labels(in_use, *ends, 500)
    np.testing.assert_array_equal(labels, expected)
    np.testing.assert_array_equal(coupled_components(laplacian(W)), expected)
    assert labels.max() + 1 == count


def test_components_of_a_long_path(in_use):
    order = RNG.permutation(3000).astype(np.int32)
    ends = in_use.array(order[:-1]), in_use.array(order[1:])
    assert not joined_labels(in_use, *ends, 3000).any()


@pytest.mark.parametrize("loops", [False, True])
def test_laplacian(in_use, loops):
    W = weights(300, 4.0, loops)
    degree = W.sum(axis=1)
    L = laplacian(W)
    expected = np.diag(degree) - W.toarray()
    np.testing.assert_allclose(L.toarray(), expected, rtol=1e-14, atol=1e-14)
    assert L.has_canonical_format
    assert (np.diff(L.indices)[np.setdiff1d(np.arange(L.nnz - 1), L.indptr[1:-1] - 1)] > 0).all()


# Methods

ROLL = make_swiss_roll(1500, random_state=0).X
CLOUD = RNG.normal(size=(1200, 30)) * 0.8 ** np.arange(30) + 5
METHODS = {
    "laplacian_eigenmaps": (mf.LaplacianEigenmaps(3), CLOUD),
    "laplacian_eigenmaps_of_a_roll": (mf.LaplacianEigenmaps(2), ROLL),
    "symmetric": (mf.LaplacianEigenmaps(2, normalization="sym", affinity="gaussian"), CLOUD),
    "unnormalized": (mf.LaplacianEigenmaps(2, normalization="none"), CLOUD),
    "spectral_embedding": (mf.SpectralEmbedding(2), CLOUD[:600]),
    "diffusion_maps": (mf.DiffusionMaps(3), CLOUD),
    "diffusion_maps_with_alpha": (mf.DiffusionMaps(2, alpha=1), ROLL),
    "spectral_clustering": (mf.SpectralClustering(3), CLOUD),
    "pca": (mf.PCA(5), CLOUD),
    "pca_single": (mf.PCA(5), CLOUD.astype(np.float32)),
    "pca_wide": (mf.PCA(5), CLOUD[:20]),
    "pca_sparse": (mf.PCA(3), sparse.random_array((800, 60), density=0.2, rng=RNG, format="csr")),
    "kernel_pca": (mf.KernelPCA(4), CLOUD),
    "polynomial": (mf.KernelPCA(3, kernel="poly"), CLOUD),
    "classical_mds": (mf.ClassicalMDS(3, metric="manhattan"), CLOUD),
    "isomap": (mf.Isomap(2), CLOUD[:700]),
    "landmarks": (mf.Isomap(2, n_landmarks=200), ROLL),
}


@pytest.mark.parametrize("name", METHODS)
def test_methods_agree_with_the_cpu(device, monkeypatch, name):
    monkeypatch.setattr("manifoldry.spectral.gram.LEAST_ROWS", 0)
    monkeypatch.setattr("manifoldry.spectral.gram.LEAST_EDGES", 0)
    model, X = METHODS[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = clone(model).fit(X)
        there = clone(model).set_params(device=device)
        there.fit(X)
    assert device.name in there.solver_
    np.testing.assert_allclose(there.eigenvalues_, expected.eigenvalues_, rtol=1e-6, atol=1e-12)
    assert (there.residuals_ <= 1e-3 * there.gaps_).all()
    atol = 1e-5 * np.abs(expected.embedding_).max()
    np.testing.assert_allclose(there.embedding_, expected.embedding_, atol=atol)
    assert type(there.embedding_) is np.ndarray
    np.testing.assert_allclose(there.loss_, expected.loss_, rtol=1e-5, atol=1e-9)
    if sparse.issparse(X):
        return
    new = X[:50] + np.float32(0.01)
    np.testing.assert_allclose(there.transform(new), expected.transform(new), atol=3 * atol)


def test_components_are_embedded_separately(device):
    X = np.concatenate([CLOUD[:700], CLOUD[700:] + 100])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected, there = (mf.LaplacianEigenmaps(2, device=d).fit(X) for d in ("cpu", device))
    np.testing.assert_array_equal(there.component_labels_, expected.component_labels_)
    np.testing.assert_allclose(there.embedding_, expected.embedding_, atol=1e-4)


def cube(n):
    """Laplacian of random points in a cube, of whose eigenvalues some are needed."""
    W = NeighborGraph.build(np.random.default_rng(1).uniform(size=(n, 3))).matrix()
    W = sparse.csr_array(W.maximum(W.T))
    return laplacian(W), W.sum(axis=1)


@pytest.mark.parametrize("end", ["smallest", "largest"])
def test_no_vector_is_copied_in_an_iteration(in_use, end):
    if in_use.name != "emulated":
        pytest.skip("copies are counted on the emulated device")
    L, degree = cube(3000)
    ones = np.ones(3000) if end == "smallest" else None
    problem = SpectralProblem(L, end, mass=degree, deflate=ones, bounds=(0, 2))
    COPIES.clear()
    spectrum = Auto().solve(problem, 3, np.random.default_rng(0))
    assert spectrum.accepted
    assert spectrum.solver == "ChebyshevSubspace"
    large, copy = [], in_use.array

    def counted(host, *args, **options):
        if isinstance(host, np.ndarray) and type(host) is np.ndarray and host.size >= 3000:
            large.append(host.shape)
        return copy(host, *args, **options)

    in_use.array = counted
    Auto().solve(problem, 3, np.random.default_rng(0))
    # Parts of the operator, the mass, the constant, two start vectors; none per iteration.
    assert len(large) <= 12, large


def test_the_choice_names_the_device(in_use):
    A = CLOUD[:900] @ CLOUD[:900].T
    for problem, first in (
        (SpectralProblem(A, "largest"), Dense),
        (SpectralProblem(np.pad(A, (0, 200)), "largest"), Randomized),
    ):
        choice = Auto().choose(problem, 2)[0]
        assert isinstance(choice.solver, first)
        assert in_use.name in choice.reason


def test_a_solver_of_numpy_runs_on_the_cpu_and_that_is_said(in_use):
    class OwnLanczos(Lanczos):
        any_namespace = False

    problem = SpectralProblem(CLOUD[:300] @ CLOUD[:300].T, "largest")
    with pytest.warns(UserWarning, match="OwnLanczos runs on the CPU"):
        spectrum = OwnLanczos().solve(problem, 2, np.random.default_rng(0))
    expected = Dense().solve(problem, 2, np.random.default_rng(0))
    np.testing.assert_allclose(spectrum.values, expected.values)
    assert subspace_angles(spectrum.vectors, expected.vectors).max() < 1e-6


def test_memory_is_planned():
    from manifoldry.device import using_device
    from manifoldry.device.emulated import EmulatedDevice

    with using_device(EmulatedDevice(free_memory=2**20)), pytest.raises(MemoryError, match="rows"):
        mf.PCA(2).fit(np.zeros((3000, 50)) + np.arange(50))


def test_the_start_by_principal_components(device):
    from manifoldry.base.input import Points
    from manifoldry.device import using_device
    from manifoldry.iterative.start import starting_map

    X = CLOUD.astype(np.float32)
    data, graph = Points(X), NeighborGraph.build(X)
    expected = starting_map("pca", data, graph, 2, np.random.default_rng(0))
    with using_device(device):
        there = starting_map("pca", data, graph, 2, np.random.default_rng(0))
    np.testing.assert_allclose(there, expected, atol=1e-6)
