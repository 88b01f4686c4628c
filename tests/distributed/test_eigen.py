"""Eigenpairs of matrices in parts, against those of scipy in memory."""

import pickle
from itertools import pairwise

import dask
import numpy as np
import pytest
from dask.callbacks import Callback
from scipy import sparse
from scipy.linalg import subspace_angles
from sklearn.datasets import load_digits

from manifoldry.affinity import SelfTuning
from manifoldry.datasets import make_swiss_roll
from manifoldry.distributed.exchange import DistributedMatrix
from manifoldry.eigen import DistributedLobpcg, DistributedProblem, SpectralProblem
from manifoldry.eigen.distributed_preconditioner import SparseInverse, TwoLevel
from manifoldry.eigen.spectrum import fixed_signs
from manifoldry.exceptions import ConvergenceWarning
from manifoldry.neighbors import NeighborGraph
from manifoldry.util.progress import listening


def sorted_along(values, *edges):
    """Points in the order of cells of a mesh, so that parts are nearby."""
    cells = [np.digitize(v, np.quantile(v, e)) for v, e in zip(values.T, edges, strict=True)]
    return np.lexsort(cells[::-1])


def laplacian_of(W):
    """Laplacian I − D^-½ W D^-½ and D^½ 1."""
    root = np.sqrt(np.asarray(W.sum(axis=1)).ravel())
    S = sparse.diags_array(1 / root)
    return sparse.csr_array(sparse.eye_array(len(root)) - S @ W @ S), root


def self_tuning(X):
    graph = NeighborGraph.build(X, 10)
    return sparse.csr_array(SelfTuning().fit(graph).matrix(graph))


def in_parts(values, bounds):
    return [dask.delayed(values[a:b]) for a, b in pairwise(bounds)]


def posed(L, root, bounds, mass=None):
    bounds = np.asarray(bounds)
    known = root[:, None] if root.ndim == 1 else root
    return DistributedProblem(
        DistributedMatrix.of(in_parts(L, bounds), bounds),
        bounds,
        2.0,
        in_parts(known, bounds),
        None if mass is None else in_parts(mass, bounds),
    )


def roll(n):
    X, coordinates = make_swiss_roll(n, random_state=0)
    order = sorted_along(coordinates, np.linspace(0, 1, 9)[1:-1], [0.5])
    return laplacian_of(self_tuning(X[order]))


def smallest(L, t, k):
    """The k smallest eigenpairs after t zeros, by scipy."""
    values, vectors = sparse.linalg.eigsh(L, t + k, sigma=-1e-6, v0=np.ones(L.shape[0]))
    order = np.argsort(values)[t:]
    return values[order], vectors[:, order]


def gathered(parts):
    return np.concatenate(dask.compute(*parts))


def check(L, spectrum, t=1):
    k = spectrum.pairs.k
    values, vectors = smallest(L, t, k)
    np.testing.assert_allclose(spectrum.values, values, rtol=1e-9, atol=1e-14)
    assert spectrum.converged
    V = gathered(spectrum.vectors)
    np.testing.assert_allclose(V.T @ V, np.eye(k), atol=1e-9)
    assert subspace_angles(V, vectors).max() < 1e-6
    R = L @ V - V * spectrum.values
    np.testing.assert_allclose(np.linalg.norm(R, axis=0), spectrum.pairs.residuals, atol=1e-14)
    return V, vectors


@pytest.mark.parametrize(
    "bounds",
    [[0, 2000], np.linspace(0, 2000, 9).astype(int), [0, 3, 1000, 1000, 1700, 1999, 2000]],
    ids=["one part", "equal parts", "unequal and empty parts"],
)
def test_roll(bounds):
    L, root = roll(2000)
    spectrum = DistributedLobpcg().solve(posed(L, root, bounds), 5, np.random.default_rng(0))
    V, vectors = check(L, spectrum)
    np.testing.assert_allclose(V, fixed_signs(vectors), atol=1e-6)
    assert spectrum.pairs.next_value == pytest.approx(smallest(L, 1, 6)[0][5], rel=1e-6)


def test_digits():
    X = load_digits().data
    L, root = laplacian_of(self_tuning(X[np.argsort(X @ np.arange(64.0))]))
    bounds = [0, 300, 900, 1500, 1797]
    spectrum = DistributedLobpcg().solve(posed(L, root, bounds), 6, np.random.default_rng(0))
    check(L, spectrum)


def test_iterations_do_not_grow_with_rows():
    counts = []
    for n in (2000, 8000):
        L, root = roll(n)
        problem = posed(L, root, np.linspace(0, n, 9).astype(int))
        spectrum = DistributedLobpcg().solve(problem, 4, np.random.default_rng(0))
        assert spectrum.converged
        counts.append(spectrum.n_iter)
    assert max(counts) < 40
    assert counts[1] < 1.3 * counts[0]


def test_masses():
    L, root = roll(800)
    problem = posed(L, root, [0, 300, 800], mass=root**2)
    f = gathered(DistributedLobpcg().solve(problem, 3, np.random.default_rng(0)).vectors)
    np.testing.assert_allclose((f.T * root**2) @ f, np.eye(3), atol=1e-9)
    expected = fixed_signs(smallest(L, 1, 3)[1] / root[:, None])
    np.testing.assert_allclose(f, expected, atol=1e-6)


def test_components():
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.uniform(size=(500, 2)), 10 + rng.uniform(size=(300, 2))])
    L, root = laplacian_of(self_tuning(X))
    assert sparse.csgraph.connected_components(L)[0] == 2
    known = np.zeros((800, 2))
    known[:500, 0], known[500:, 1] = root[:500], root[500:]
    problem = posed(L, known, [0, 400, 800])  # the first part ends within a component
    check(L, DistributedLobpcg().solve(problem, 4, np.random.default_rng(0)), t=2)


def test_zeros_without_known_vectors():
    rng = np.random.default_rng(0)
    L = laplacian_of(self_tuning(rng.uniform(size=(600, 2))))[0]
    bounds = np.array([0, 200, 600])
    matrix = DistributedMatrix.of(in_parts(L, bounds), bounds)
    problem = DistributedProblem(matrix, bounds, 2.0)
    spectrum = DistributedLobpcg().solve(problem, 4, np.random.default_rng(0))
    np.testing.assert_allclose(spectrum.values, smallest(L, 0, 4)[0], rtol=1e-8, atol=1e-14)


@pytest.mark.parametrize("n", [1000, 20_000])
def test_ring(n):
    """All eigenvalues are double, and tiny: 1e-7 at 20 000 vertices."""
    W = sparse.diags_array([1.0, 1.0, 1.0, 1.0], offsets=[-1, 1, n - 1, 1 - n], shape=(n, n))
    L, root = laplacian_of(sparse.csr_array(W))
    problem = posed(L, root, np.linspace(0, n, 6).astype(int))
    spectrum = DistributedLobpcg().solve(problem, 4, np.random.default_rng(0))
    expected = 2 * np.sin(np.pi * np.array([1, 1, 2, 2]) / n) ** 2
    # The entries of the matrix are rounded, hence an error of an eps that no solver can avoid.
    np.testing.assert_allclose(spectrum.values, expected, rtol=1e-9, atol=np.finfo(float).eps)
    assert spectrum.converged
    assert [group.tolist() for group in spectrum.pairs.clusters] == [[0, 1], [2, 3]]
    angle = 2 * np.pi * np.arange(n) / n
    V = gathered(spectrum.vectors)
    for j in (1, 2):
        pair = np.stack([np.cos(j * angle), np.sin(j * angle)], axis=1)
        assert subspace_angles(V[:, 2 * j - 2 : 2 * j], pair).max() < 1e-5


@pytest.mark.parametrize("k", [1, 3, 7])
def test_tiny_matrix(k):
    W = np.random.default_rng(0).uniform(size=(8, 8))
    L, root = laplacian_of(sparse.csr_array(np.triu(W, 1) + np.triu(W, 1).T))
    spectrum = DistributedLobpcg().solve(posed(L, root, [0, 1, 5, 8]), k, np.random.default_rng(0))
    expected = np.linalg.eigvalsh(L.toarray())[1 : k + 1]
    np.testing.assert_allclose(spectrum.values, expected, rtol=1e-10)
    assert np.isnan(spectrum.pairs.next_value) == (k == 7)


def test_too_many_pairs():
    L, root = roll(100)
    with pytest.raises(ValueError, match="pass k between 1 and 99"):
        DistributedLobpcg().solve(posed(L, root, [0, 100]), 100, np.random.default_rng(0))


def test_other_norms():
    """The Laplacian D − W, whose diagonal varies, in a unit that is far from 1."""
    W = 1e6 * self_tuning(np.random.default_rng(0).normal(size=(900, 2)))
    degree = np.asarray(W.sum(axis=1)).ravel()
    L = sparse.csr_array(sparse.diags_array(degree) - W)
    bounds = np.array([0, 300, 900])
    matrix = DistributedMatrix.of(in_parts(L, bounds), bounds)
    known = in_parts(np.ones((900, 1)), bounds)
    problem = DistributedProblem(matrix, bounds, 2 * degree.max(), known)
    spectrum = DistributedLobpcg().solve(problem, 3, np.random.default_rng(0))
    expected = np.linalg.eigvalsh(L.toarray())[1:4]
    np.testing.assert_allclose(spectrum.values, expected, rtol=1e-9)
    assert spectrum.converged


@pytest.mark.parametrize("scale", [1e-200, 1e-158, 1e150, np.inf, np.nan])
def test_squares_that_leave_the_range_are_refused(scale):
    """As in memory: with 1e-158, eigenvalues would be wrong in the ninth digit."""
    L = sparse.diags_array([1.0, 2.0, 3.0], format="csr")
    with np.errstate(invalid="ignore"), pytest.raises(ValueError, match="square leaves the range"):
        DistributedProblem(DistributedMatrix.of([dask.delayed(L)], [0, 3]), [0, 3], 3 * scale)
    with pytest.raises(ValueError, match=r"rescale the data|NaN or infinite"):
        SpectralProblem(scale * L, end="smallest")


def test_zero_matrix():
    bounds = np.array([0, 3])
    matrix = DistributedMatrix.of([dask.delayed(sparse.csr_array((3, 3)))], bounds)
    with pytest.raises(ValueError, match="norm is 0, so that all vectors are eigenvectors"):
        DistributedProblem(matrix, bounds, 0.0)


@pytest.mark.parametrize("scale", [1e-135, 1e135])
def test_scales_in_range(scale):
    L = scale * roll(500)[0]
    bounds = np.array([0, 200, 500])
    matrix = DistributedMatrix.of(in_parts(L, bounds), bounds)
    problem = DistributedProblem(matrix, bounds, 2 * scale, in_parts(roll(500)[1][:, None], bounds))
    spectrum = DistributedLobpcg().solve(problem, 3, np.random.default_rng(0))
    expected = np.linalg.eigvalsh(L.toarray() / scale)[1:4]
    np.testing.assert_allclose(spectrum.values / scale, expected, rtol=1e-9)
    assert spectrum.converged


def test_tasks_of_an_iteration():
    """The scheduler keeps them all; as many as the module says."""
    L, root = roll(2000)
    n_parts = 8
    problem = posed(L, root, np.linspace(0, 2000, n_parts + 1).astype(int))
    n_pairs = sum(map(len, problem.matrix.exchange.sources))

    def n_tasks(max_iter):
        keys = set()
        with (
            Callback(pretask=lambda key, *_: keys.add(key)),
            pytest.warns(ConvergenceWarning),
        ):
            DistributedLobpcg(max_iter=max_iter).solve(problem, 3, np.random.default_rng(0))
        return len(keys)

    of_five = n_tasks(8) - n_tasks(3)
    assert 0 < of_five <= 5 * (6 * n_parts + n_pairs + n_parts / 7 + 1)


def test_start_saves_iterations():
    L, root = roll(2000)
    bounds = np.linspace(0, 2000, 6).astype(int)
    vectors = smallest(L, 1, 6)[1]
    noise = np.random.default_rng(0).normal(scale=1e-6, size=vectors.shape)
    solver, problem = DistributedLobpcg(), posed(L, root, bounds)
    start = in_parts(vectors + noise, bounds)
    near = solver.solve(problem, 5, np.random.default_rng(0), start=start)
    far = solver.solve(problem, 5, np.random.default_rng(0))
    np.testing.assert_allclose(near.values, far.values, rtol=1e-9)
    assert near.n_iter < far.n_iter


def test_too_few_iterations():
    L, root = roll(1000)
    solver = DistributedLobpcg(max_iter=2)
    with pytest.warns(ConvergenceWarning, match=r"pass DistributedLobpcg\(max_iter=1000\)"):
        spectrum = solver.solve(posed(L, root, [0, 500, 1000]), 4, np.random.default_rng(0))
    assert not spectrum.converged
    assert "not accepted" in spectrum.summary()


def test_progress_is_at_its_end():
    L, root = roll(300)
    shown = []
    with listening(lambda fraction, text: shown.append((fraction, text))):
        problem = posed(L, root, [0, 150, 300])
        spectrum = DistributedLobpcg().solve(problem, 2, np.random.default_rng(0))
    assert shown[-1] == (1.0, f"eigenvectors: {spectrum.n_iter} iterations")
    assert spectrum.n_iter == len(shown) - 1


def test_blocks_with_full_factors_are_divided():
    X = np.random.default_rng(0).normal(size=(1500, 12))
    L, root = laplacian_of(self_tuning(X))
    solver = DistributedLobpcg(preconditioner=TwoLevel(fill=3.0))
    spectrum = solver.solve(posed(L, root, [0, 1500]), 3, np.random.default_rng(0))
    whole = DistributedLobpcg(preconditioner=TwoLevel(fill=1e9))
    one = whole.solve(posed(L, root, [0, 1500]), 3, np.random.default_rng(0))
    assert one.n_iter < spectrum.n_iter  # an exact inverse needs fewer iterations
    check(L, spectrum)


def test_factor_is_pickled():
    L = roll(300)[0]
    inverse = pickle.loads(pickle.dumps(SparseInverse(L, 1e-3)))
    x = np.random.default_rng(0).normal(size=300)
    np.testing.assert_allclose(L @ inverse.solve(x) + 1e-3 * inverse.solve(x), x, atol=1e-9)


def test_on_workers(client):
    """The bits are those of the threads of this process."""
    L, root = roll(1000)
    bounds = [0, 200, 500, 1000]

    def solved():
        return DistributedLobpcg().solve(posed(L, root, bounds), 3, np.random.default_rng(0))

    there = solved()
    V = gathered(there.vectors)
    with dask.config.set(scheduler="threads"):
        here = solved()
        expected = gathered(here.vectors)
    np.testing.assert_array_equal(there.values, here.values)
    np.testing.assert_array_equal(V, expected)
    np.testing.assert_allclose(there.values, smallest(L, 1, 3)[0], rtol=1e-9)
