"""Smallest curvatures, saddle points, and bifurcations of homotopies (E5.5)."""

import numpy as np
import pytest
from scipy.linalg import eigh, eigvalsh
from scipy.optimize import brentq, minimize
from scipy.spatial.distance import cdist

from manifoldry import SNE, ElasticEmbedding, SymmetricSNE
from manifoldry.datasets import make_swiss_roll
from manifoldry.objectives import elastic, sne
from manifoldry.objectives.weights import graph_laplacian
from manifoldry.optimize import LBFGS, Homotopy, SpectralDirection, Stopping
from manifoldry.optimize.saddle import leave_saddle, smallest_curvature, thinnest_axis

N = 40
X = make_swiss_roll(N, random_state=0).X
ESTIMATORS = {"elastic": ElasticEmbedding(weight=1.0), "sne": SNE(), "symmetric": SymmetricSNE()}


def weights(n=N):
    D = cdist(X[:n], X[:n], "sqeuclidean")
    W = np.exp(-D / np.median(D) * 10)
    np.fill_diagonal(W, 0)
    return W


def elastic_hessian(W, weight, Y):
    """δᵢⱼ·4(L⁺ − λL̃⁻) + 8λ·lap(w̃⁻(yᵢ)(yⱼ)), as published; (n·d, n·d) in the order of Y.ravel()."""
    n, d = Y.shape
    R = weight / (n * (n - 1)) * np.exp(-cdist(Y, Y, "sqeuclidean"))
    np.fill_diagonal(R, 0)
    H = np.zeros((n, d, n, d))
    for i in range(d):
        for j in range(d):
            T = R * np.subtract.outer(Y[:, i], Y[:, i]) * np.subtract.outer(Y[:, j], Y[:, j])
            H[:, i, :, j] = 8 * (np.diag(T.sum(axis=1)) - T)
        H[:, i, :, i] += 4 * (np.diag((W - R).sum(axis=1)) - (W - R))
    return H.reshape(n * d, n * d)


def differences(objective, Y, h=1e-5):
    """The Hessian by central differences of the gradient, column by column."""
    columns = []
    for e in np.eye(Y.size):
        V = h * e.reshape(Y.shape)
        forward, backward = (objective.value_and_gradient(Y + s * V)[1] for s in (1, -1))
        columns.append(((forward - backward) / (2 * h)).ravel())
    H = np.array(columns)
    return (H + H.T) / 2


def without_rigid_motions(H, Y):
    """Eigenvalues of H orthogonal to translations and rotations of the map."""
    n, d = Y.shape
    Y = Y - Y.mean(axis=0)
    moves = [np.tile(axis, n) for axis in np.eye(d)]
    turns = [(Y @ (A - A.T)).ravel() for A in (np.eye(d, k=k) for k in range(1, d)) if A.any()]
    Q = np.linalg.qr(np.array([m for m in moves + turns if np.abs(m).max() > 0]).T, "complete")[0]
    Q = Q[:, len(moves) + sum(np.abs(t).max() > 0 for t in turns) :]
    return eigvalsh(Q.T @ H @ Q)


MAPS = {
    "a saddle": np.random.default_rng(0).normal(size=(N, 2)),
    "a line": np.random.default_rng(1).normal(size=(N, 1)) * [0.5, 0.0],
    "a point": np.zeros((N, 2)),
    "one coordinate": np.random.default_rng(2).normal(size=(N, 1)),
}


@pytest.mark.parametrize("Y", MAPS.values(), ids=MAPS.keys())
@pytest.mark.parametrize("weight", [0.1, 20.0])
def test_against_the_published_hessian(Y, weight):
    W = weights() / weights().sum()
    objective = elastic(W, weight=weight)
    H = elastic_hessian(W, weight, Y)
    found = smallest_curvature(objective, Y)
    assert found.value == pytest.approx(without_rigid_motions(H, Y)[0], abs=1e-5 * found.scale)
    v = found.direction.ravel()
    assert np.linalg.norm(v) == pytest.approx(1)
    assert v @ H @ v == pytest.approx(found.value, abs=1e-5 * found.scale)
    assert found.is_negative == (found.value < -1e-5 * found.scale)


@pytest.mark.parametrize("n", [5, 20, 32, 33, 40])
def test_against_differences_of_the_gradient_for_few_points_and_many(n):
    P = weights(n)
    objective = sne(P / P.sum(axis=1, keepdims=True))
    Y = np.random.default_rng(n).normal(size=(n, 2))
    expected = without_rigid_motions(differences(objective, Y), Y)[0]
    found = smallest_curvature(objective, Y)
    assert found.value == pytest.approx(expected, abs=1e-5 * found.scale)


@pytest.mark.parametrize("dense_up_to", [N, 0])
def test_along_one_axis_against_the_published_hessian(dense_up_to):
    W, axis = weights() / weights().sum(), np.array([0.0, 0.6, 0.8])
    Y = np.random.default_rng(1).normal(size=(N, 1)) * [0.5, 0.0, 0.0]
    across = np.kron(np.eye(N), axis[:, None])  # displacements of the points along the axis
    Q = np.linalg.svd(np.hstack([np.ones((N, 1)), Y[:, :1]]))[0][:, 2:]  # no rigid motions
    H = Q.T @ across.T @ elastic_hessian(W, 20.0, Y) @ across @ Q
    found = smallest_curvature(
        elastic(W, weight=20.0), Y, axis=axis, dense_up_to=dense_up_to, max_iter=500
    )
    assert found.value == pytest.approx(eigvalsh(H)[0], abs=1e-5 * found.scale)
    assert np.allclose(found.direction, (found.direction @ axis)[:, None] * axis)


def test_the_thinnest_axis():
    Y = np.random.default_rng(0).normal(size=(30, 2)) * [3.0, 0.2]
    turn = np.array([[0.6, -0.8], [0.8, 0.6]])
    assert np.allclose(np.abs(thinnest_axis(Y @ turn)), np.abs(turn[1]), atol=0.05)
    assert np.linalg.norm(thinnest_axis(np.ones((3, 5)))) == pytest.approx(1)
    many = np.tile(Y, (10_000, 1))  # a square matrix of this order would take 720 GB
    assert np.allclose(np.abs(thinnest_axis(many)), np.abs(thinnest_axis(Y)))


def test_where_lobpcg_fails(monkeypatch):
    """scipy raises ValueError if its block becomes linearly dependent; Lanczos does not."""

    def fail(*_, **__):
        raise ValueError("eigh has failed in lobpcg postprocessing")

    monkeypatch.setattr("manifoldry.optimize.saddle.lobpcg", fail)
    W, Y = weights() / weights().sum(), MAPS["a saddle"]
    expected = without_rigid_motions(elastic_hessian(W, 20.0, Y), Y)[0]
    found = smallest_curvature(elastic(W, weight=20.0), Y)
    assert found.value == pytest.approx(expected, abs=1e-4 * found.scale)


@pytest.mark.filterwarnings("ignore::manifoldry.exceptions.ManifoldryWarning")
def test_many_coordinates_have_one_unknown_per_point(monkeypatch):
    """With n·d of them, 39 coordinates of 40 points took 104 s."""
    sizes = []

    def noted(moves, *_):
        sizes.append(moves.size)
        return 1.0, np.zeros(moves.size)

    for solver in ("_dense", "_iterated"):
        monkeypatch.setattr(f"manifoldry.optimize.saddle.{solver}", noted)
    X = np.random.default_rng(0).normal(size=(40, 3))
    ElasticEmbedding(39, max_iter=2, optimizer=Homotopy(n_steps=3)).fit(X)
    assert set(sizes) == {40}


@pytest.mark.parametrize("method", [SNE, SymmetricSNE])
@pytest.mark.filterwarnings("ignore::manifoldry.exceptions.ManifoldryWarning")
def test_two_distinct_rows(method):
    """They coincide on the map as well, or nearly: what is found is a minimum."""
    Y = method().fit(np.repeat([[0.0], [1.0]], [16, 17], axis=0)).embedding_
    assert np.ptp(Y[:16], axis=0).max() + np.ptp(Y[16:], axis=0).max() < np.ptp(Y)


def test_leaving_a_saddle_lowers_the_value_on_either_side():
    W = weights() / weights().sum()
    objective = elastic(W, weight=5.0)
    Y = np.zeros((N, 2))
    lowest = smallest_curvature(objective, Y)
    assert lowest.is_negative
    for sign in (1, -1):
        lower = leave_saddle(objective, Y, sign * lowest.direction)
        assert objective.value(lower) < objective.value(Y)
    assert np.array_equal(leave_saddle(objective.with_weight(0.0), Y, lowest.direction), Y)


def test_minima_of_a_path_are_minima():
    model = ElasticEmbedding(
        weight=3.0,
        repulsion="uniform",
        perplexity=8,
        optimizer=Homotopy(
            n_steps=15,
            curvature=True,
            optimizer=LBFGS(SpectralDirection(), stopping=Stopping(tol=1e-7)),
        ),
    ).fit(X)
    Y = model.embedding_
    H = elastic_hessian(model.affinity_.toarray(), 3.0, Y)
    expected = without_rigid_motions(H, Y)[0]
    last = model.path_.steps[-1]
    assert last.curvature == pytest.approx(expected, abs=1e-6)
    assert expected > 0
    assert (model.path_.column("curvature") > -1e-6).all()


@pytest.mark.parametrize("estimator", ESTIMATORS.values(), ids=ESTIMATORS.keys())
def test_dimensions_come_at_bifurcations_where_the_curvature_vanishes(estimator):
    critical = (
        estimator.set_params(perplexity=8, optimizer="spectral-lbfgs").fit(X).bifurcation_.weight
    )
    values = tuple(critical * np.geomspace(0.8, 4, 34))  # 5 % from one to the next
    path = estimator.set_params(optimizer=Homotopy(values=values, curvature=True)).fit(X).path_
    (first, one), (second, two) = path.bifurcations
    assert (one, two) == (1, 2)
    assert critical < first <= 1.051 * critical
    curvature, at, ranks = (path.column(c) for c in ("curvature", "parameter", "rank"))
    assert (curvature > -1e-6).all()
    line = np.flatnonzero(ranks == 1)
    highest = curvature[line].max()
    # The curvature decreases towards both ends of the interval of rank one and grows beyond.
    assert curvature[line[0]] < 0.6 * highest
    assert curvature[line[-1]] < 0.25 * highest
    assert curvature[line[-1] + 3] > 2 * curvature[line[-1]]
    # The last curvatures, extrapolated, vanish where the rank becomes two.
    slope, offset = np.polyfit(at[line[-3:]], curvature[line[-3:]], 1)
    assert slope < 0
    assert at[line[-1]] <= 1.01 * (-offset / slope)
    assert -offset / slope <= 1.01 * second


@pytest.mark.parametrize("curvature", [False, True])
def test_second_bifurcation_of_the_elastic_embedding_against_scipy(curvature):
    """A line becomes a saddle where the Laplacian of its learned affinities does."""
    model = ElasticEmbedding(weight=1.0, perplexity=8).fit(X)
    critical = model.bifurcation_.weight
    V = eigh(graph_laplacian(model.affinity_).toarray())[1][:, 1]

    def sideways(weight):
        objective = model.objective_.with_weight(weight)

        def flat(y):
            value, G = objective.value_and_gradient(y[:, None])
            return value, G.ravel()

        y = minimize(flat, 3 * V, jac=True, method="BFGS", options={"gtol": 1e-9}).x
        A = objective.learned_affinity(y[:, None])
        L = np.diag(A.sum(axis=1)) - A
        Q = np.linalg.qr(np.column_stack([np.ones(N), y]), "complete")[0][:, 2:]
        return eigvalsh(Q.T @ L @ Q)[0]

    expected = brentq(sideways, 1.1 * critical, 4 * critical, rtol=1e-4)
    values = tuple(np.geomspace(0.95 * expected, 1.05 * expected, 11))
    path = (
        ElasticEmbedding(
            perplexity=8, weight=1.0, optimizer=Homotopy(values=values, curvature=curvature)
        )
        .fit(X)
        .path_
    )
    [(second, rank)] = path.bifurcations
    assert rank == 2
    assert second / 1.011 <= expected <= second * 1.001
