"""Curvature filters and guidance, against explicit matrices."""

import warnings

import numpy as np
import pytest
import scipy.linalg as sla
from scipy import sparse
from scipy.spatial.distance import cdist

from manifoldry.exceptions import ConvergenceWarning
from manifoldry.objectives import elastic
from manifoldry.objectives.base import Objective
from manifoldry.objectives.weights import strongest_edges
from manifoldry.optimize import definite_inverse as routes
from manifoldry.optimize.definite_inverse import AutoInverse, conjugate_gradients
from manifoldry.optimize.filter import DiagonalHessian, Identity, Jacobi, Progress
from manifoldry.optimize.guidance import EveryStep, Never
from manifoldry.optimize.guidance_filters import DeflatedPower, Heat, Power, Projector
from manifoldry.optimize.guidance_matrix import clustering_matrix, graph_matrix, lazy
from manifoldry.optimize.matrix_power import ChebyshevPower
from manifoldry.optimize.methods import LBFGS, ConjugateGradient, GradientDescent
from manifoldry.optimize.polynomial_inverse import ChebyshevInverse
from manifoldry.optimize.spectral_direction import SpectralDirection
from manifoldry.optimize.stopping import Stopping
from manifoldry.util.compiled import kth_largest

STEP = EveryStep()


class Springs(Objective):
    """Σ Wᵢⱼ‖yᵢ − yⱼ‖², for filters, which need only its weights."""

    def __init__(self, W):
        self.W = sparse.csr_array(W)

    @property
    def n(self):
        return self.W.shape[0]

    @property
    def attraction(self):
        return self.W

    def value_and_gradient(self, Y):
        LY = laplacian(self.W) @ Y
        return 2 * float((Y * LY).sum()), 4 * LY

    def diagonal_curvature(self, Y):
        return np.repeat(4 * self.W.sum(axis=1)[:, None], Y.shape[1], axis=1)


def laplacian(W):
    return sparse.diags_array(np.asarray(W.sum(axis=1)).ravel()) - W


def neighbor_weights(X, k):
    """Gaussian weights of the symmetrized graph of k nearest neighbors."""
    D = cdist(X, X, "sqeuclidean")
    np.fill_diagonal(D, np.inf)
    near = np.sort(D, axis=1)[:, k - 1 : k] >= D
    return sparse.csr_array(np.where(near | near.T, np.exp(-D / np.median(D[near])), 0.0))


@pytest.fixture
def rng():
    return np.random.default_rng(11)


@pytest.fixture
def springs(rng):
    return Springs(neighbor_weights(rng.uniform(size=(50, 2)), 6))


@pytest.fixture(name="M")
def guiding_matrix(rng):
    return clustering_matrix(rng.uniform(size=(50, 2)))


@pytest.fixture(name="G")
def gradient(rng):
    return rng.normal(size=(50, 2))


def at_stage(chosen, objective, stage):
    bound = chosen.operator_for(objective)
    for i in range(stage):
        assert bound.advance(Progress(i + 1, 1.0, 0.5))
    return bound


# Curvature


def test_jacobi_is_the_fixed_point_of_the_elastic_embedding(rng):
    """P = −A⁻¹BX − X where 4(L⁺ − λL̃⁻) = A + B with A = 4D⁺.

    docs/mathematics.md, Gradient filters.
    """
    W = neighbor_weights(rng.uniform(size=(30, 2)), 5).toarray()
    X = rng.normal(size=(30, 2))
    K = 0.3 * (np.exp(-cdist(X, X, "sqeuclidean")) - np.eye(30))
    T = W - K
    total, A = 4 * (np.diag(T.sum(axis=1)) - T), 4 * np.diag(W.sum(axis=1))
    P = -np.linalg.solve(A, (total - A) @ X) - X
    np.testing.assert_allclose(
        -Jacobi().operator_for(Springs(W)).apply(total @ X, X), P, rtol=1e-10
    )


def test_points_without_neighbors_take_bounded_steps():
    W = np.zeros((4, 4))
    W[0, 1] = W[1, 0] = 1.0
    P = Jacobi().operator_for(Springs(W)).apply(np.ones((4, 2)), np.zeros((4, 2)))
    np.testing.assert_allclose(P[:, 0], [0.25, 0.25, 250, 250])


def test_diagonal_hessian_follows_the_map(rng):
    class Quartic(Springs):
        evaluations = 0

        def diagonal_curvature(self, Y):
            self.evaluations += 1
            return 12 * Y**2

    objective = Quartic(np.ones((5, 5)))
    bound = DiagonalHessian().operator_for(objective)
    Y, G = rng.uniform(1, 2, size=(2, 5, 2))
    for at in (Y, Y.copy(), 2 * Y):
        np.testing.assert_allclose(bound.apply(G, at), G / (12 * at**2))
    assert objective.evaluations == 2  # computed once per map
    Y *= 3  # in place: a different map
    np.testing.assert_allclose(bound.apply(G, Y), G / (12 * Y**2))


def roll_weights(n, rng):
    """The graph of a strip: ill-conditioned, with little fill-in."""
    X = np.column_stack([np.sort(rng.uniform(0, n / 10, n)), rng.uniform(size=n)])
    return neighbor_weights(X, 8)


def cloud_weights(n, rng):
    """The graph of high-dimensional data: well-conditioned, with full factors."""
    return neighbor_weights(rng.normal(size=(n, 20)), 8)


def in_components(n, rng):
    """Two strips, two points without neighbors."""
    half = n // 2 - 1
    parts = [roll_weights(half, rng), roll_weights(n - 2 - half, rng), sparse.csr_array((2, 2))]
    return sparse.csr_array(sparse.block_diag(parts))


GRAPHS = {"roll": roll_weights, "cloud": cloud_weights, "components": in_components}
# Options under which the solver is chosen, by the beginning of its reason.
ROUTES = {
    "dense factor": {"factor_up_to": 5000, "dense_fraction": 0.0},
    "sparse factor": {"factor_up_to": 5000, "dense_fraction": 2.0},
    "conjugate gradients with multigrid": {
        "factor_up_to": 0,
        "quick_iterations": 0,
        "max_fill": 0.0,
    },
}


@pytest.mark.parametrize("graph", GRAPHS)
@pytest.mark.parametrize("route", ROUTES)
def test_spectral_direction_solves_its_equation(graph, route, rng):
    W = 1e-3 * GRAPHS[graph](300, rng)  # weights have no natural unit
    inverse = AutoInverse(**ROUTES[route], tol=1e-4)
    bound = SpectralDirection(inverse=inverse).operator_for(Springs(W))
    assert bound.reason.startswith(route)
    assert bound.newton_like
    Y = rng.normal(size=(300, 2))
    G = rng.normal(size=(300, 2))
    G -= G.mean(axis=0)
    mu = 4e-6 * W.sum() / 300
    P = bound.apply(G, Y)
    assert np.linalg.norm(4 * (laplacian(W) @ P) + mu * P - G) <= 2e-4 * np.linalg.norm(G)
    assert np.abs(P.mean(axis=0)).max() <= 1e-12 * np.abs(P).max()
    np.testing.assert_allclose(bound.apply(G + 5.0, Y), P, rtol=0, atol=1e-4 * np.abs(P).max())


def test_one_step_solves_the_springs(rng):
    """For a quadratic objective, the spectral direction is Newton's up to the shift."""
    springs = Springs(cloud_weights(80, rng))
    Y = rng.normal(size=(80, 2))
    E, G = springs.value_and_gradient(Y)
    assert springs.value(Y - SpectralDirection().operator_for(springs).apply(G, Y)) <= 1e-9 * E


def test_components_take_bounded_steps(rng):
    """In directions without curvature the step is the gradient over μ, not over rounding error."""
    W = in_components(100, rng)
    G = np.zeros((100, 1))
    G[:49], G[49:98] = 1.0, -1.0
    P = SpectralDirection(shift=1e-4).operator_for(Springs(W)).apply(G, G)
    np.testing.assert_allclose(P, G / (4e-4 * W.sum() / 100), rtol=1e-8, atol=1e-6)


@pytest.mark.parametrize(
    ("graph", "route"),
    [
        ("roll", "sparse factor"),
        ("cloud", "polynomial"),
        ("components", "sparse factor"),
    ],
)
def test_the_solver_is_chosen_by_the_graph(graph, route, rng):
    bound = SpectralDirection().operator_for(Springs(GRAPHS[graph](1600, rng)))
    assert bound.reason.startswith(route)


def test_a_series_of_objectives_shares_one_factor(rng):
    W = cloud_weights(80, rng)
    first = elastic(W / W.sum(), weight=10.0)
    other = elastic(W / W.sum(), weight=10.0)
    series = LBFGS(SpectralDirection()).with_cached_filter().filter
    bound = series.operator_for(first)
    assert bound.newton_like
    assert series.newton_like
    assert series.operator_for(first.with_weight(20.0)) is bound
    assert series.operator_for(other) is not bound
    G = rng.normal(size=(80, 2))
    np.testing.assert_array_equal(
        bound.apply(G, G), SpectralDirection().operator_for(first).apply(G, G)
    )


def test_guidance_starts_anew_with_every_objective_of_a_series():
    guidance = Heat()
    assert LBFGS(guidance).with_cached_filter().filter is guidance


def test_a_shift_below_rounding_is_refused(rng):
    with pytest.raises(ValueError, match="pass a larger shift"):
        SpectralDirection(shift=1e-30).operator_for(Springs(cloud_weights(80, rng)))


@pytest.mark.parametrize("d", [1, 2])
def test_two_solves_at_once_are_two_solves(d, rng, monkeypatch):
    springs, Y = Springs(cloud_weights(80, rng)), rng.normal(size=(80, d))
    search = LBFGS(SpectralDirection(shift=1.0), stopping=Stopping(max_iter=5, gradient_tol=0.0))
    together = search.minimize(springs, Y).history("value")
    monkeypatch.setattr("manifoldry.optimize.spectral_direction._InverseOperator.columnwise", False)
    np.testing.assert_allclose(search.minimize(springs, Y).history("value"), together, rtol=1e-9)


@pytest.mark.parametrize("graph", [*GRAPHS, "pairs"])
def test_the_polynomial_is_close_to_the_inverse_where_it_should_be(graph, rng):
    """In pairs of points an eigenvalue of D⁻¹A is two, the largest possible."""
    n, rule = 120, ChebyshevInverse(n_neighbors=None)
    pairs = sparse.csr_array(np.kron(np.eye(n // 2), [[0, 1], [1, 0]]))
    W = pairs if graph == "pairs" else GRAPHS[graph](n, rng)
    A = sparse.csr_array(laplacian(W) / W.sum() * n + 1e-6 * sparse.eye_array(n))
    P = rule.solver(A)(np.eye(n))
    np.testing.assert_allclose(P, P.T, rtol=0, atol=1e-5 * np.abs(P).max())
    values, V = sla.eigh(A.toarray(), np.diag(A.diagonal()))
    filtered = V.T * A.diagonal() @ P * A.diagonal() @ V  # p(λ) on the diagonal
    assert (np.diag(filtered) > 0).all()
    np.testing.assert_allclose(filtered, np.diag(np.diag(filtered)), rtol=0, atol=1e-4)
    np.testing.assert_allclose(
        rule.solver(A)(np.eye(n)[:, :2] * [1e-200, 0])[:, 0] * 1e200, P[:, 0]
    )
    near = values >= 2 / rule.condition
    middle = (rule.condition + 1) / (rule.condition - 1)
    bound = 1 / np.cosh(rule.degree * np.arccosh(middle)) + 1e-4
    assert near.any()
    assert (np.abs(1 - values * np.diag(filtered))[near] <= bound).all()


@pytest.mark.parametrize("graph", GRAPHS)
def test_the_polynomial_without_weak_edges_is_definite(graph, rng):
    W = GRAPHS[graph](120, rng)
    A = sparse.csr_array(laplacian(W) / W.sum() * 120 + 1e-6 * sparse.eye_array(120))
    root = np.sqrt(A.diagonal())
    P = root[:, None] * ChebyshevInverse(n_neighbors=3).solver(A)(np.diag(root))
    np.testing.assert_allclose(P, P.T, rtol=0, atol=1e-5 * np.abs(P).max())
    assert np.linalg.eigvalsh(P + P.T)[0] > 0
    assert not np.allclose(P, root[:, None] * ChebyshevInverse().solver(A)(np.diag(root)))


def test_the_polynomial_leads_to_the_minimum_of_the_accurate_direction(rng):
    W = cloud_weights(1600, rng)
    objective, Y = elastic(W / W.sum(), weight=100.0), rng.normal(size=(1600, 2))
    accurate = SpectralDirection(inverse=AutoInverse(factor_up_to=1600))
    values = []
    for chosen, reason in ((accurate, "sparse factor"), (SpectralDirection(), "polynomial")):
        assert chosen.operator_for(objective).reason.startswith(reason)
        found = LBFGS(chosen).minimize(objective, Y)
        assert found.converged
        values.append(found.value)
    assert values[1] == pytest.approx(values[0], rel=2e-3)


@pytest.mark.parametrize(("option", "value"), [("degree", 4), ("condition", 1.0)])
def test_polynomials_that_are_not_positive_are_refused(option, value):
    with pytest.raises(ValueError, match=f"{option}={value} must be"):
        ChebyshevInverse(**{option: value})


def test_without_multigrid_the_preconditioner_is_diagonal(rng, monkeypatch):
    monkeypatch.setattr(routes, "multigrid", lambda A, rng: None)
    inverse = AutoInverse(**ROUTES["conjugate gradients with multigrid"])
    bound = SpectralDirection(inverse=inverse).operator_for(Springs(roll_weights(300, rng)))
    assert "install pyamg" in bound.reason
    G = rng.normal(size=(300, 2))
    assert ((bound.apply(G, G) * G).sum(axis=0) > 0).all()


def test_conjugate_gradients_descend_however_early_they_stop(rng):
    A = laplacian(roll_weights(300, rng)) + 1e-6 * sparse.eye_array(300)
    B = rng.normal(size=(300, 3)) * [1.0, 1e-200, 0.0]
    for most in (1, 3, 30):
        X, count = conjugate_gradients(A, B, lambda R: R, most)
        assert count == most
        assert ((X / [1, 1e-200, 1] * (B / [1, 1e-200, 1]))[:, :2].sum(axis=0) > 0).all()
        assert not X[:, 2].any()


def test_strongest_keeps_an_edge_that_either_end_chose(rng):
    W = neighbor_weights(rng.uniform(size=(40, 2)), 9)
    dense = W.toarray()
    largest = dense >= -np.sort(-dense, axis=1)[:, 2:3]
    expected = np.where((largest | largest.T) & (dense > 0), dense, 0.0)
    np.testing.assert_array_equal(strongest_edges(W, 3).toarray(), expected)
    np.testing.assert_array_equal(strongest_edges(W, 40).toarray(), dense)


@pytest.mark.parametrize("k", [1, 4, 6, 50])
def test_the_kth_largest_weight_of_a_row(rng, k):
    """With ties, rows of all lengths, and none at all."""
    rows = [rng.integers(1, 5, size=m).astype(float) for m in (0, 1, 3, 6, 20, 50)]
    ends, found = np.cumsum([0, *map(len, rows)]), np.empty(len(rows))
    kth_largest(ends, np.concatenate(rows), k, found, 0, len(rows))
    assert list(found) == [np.sort(row)[-k] if len(row) >= k else -np.inf for row in rows]


# Guidance


@pytest.mark.parametrize("nu", [1, 2, 5])
def test_power_is_the_matrix_power(nu, M, G, springs):
    filtered = Power(nu, matrix=M).operator_for(springs).apply(G, G)
    np.testing.assert_allclose(filtered, np.linalg.matrix_power(M, nu) @ G, rtol=1e-10, atol=1e-13)


def test_the_default_matrix_is_that_of_the_graph(G, springs):
    W = springs.W.toarray()
    root = np.sqrt(W.sum(axis=1))
    M = (np.eye(50) + W / np.outer(root, root)) / 2
    filtered = Power(3).operator_for(springs).apply(G, G)
    np.testing.assert_allclose(filtered, np.linalg.matrix_power(M, 3) @ G, rtol=1e-10, atol=1e-13)


@pytest.mark.parametrize("scale", [1e-150, 0.5, 7.0, 1e150])
def test_the_scale_of_the_matrix_does_not_matter(scale, M, G, springs):
    plain = Power(10, matrix=M).operator_for(springs).apply(G, G)
    scaled = Power(10, matrix=scale * M).operator_for(springs).apply(G, G)
    np.testing.assert_allclose(scaled, plain, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array, sparse.coo_matrix])
def test_the_matrix_may_be_sparse(kind, M, G, springs):
    for chosen in (Power, DeflatedPower, Heat, Projector):
        expected = chosen(matrix=M).operator_for(springs).apply(G, G)
        filtered = chosen(matrix=kind(M)).operator_for(springs).apply(G, G)
        np.testing.assert_allclose(filtered, expected, rtol=1e-9, atol=1e-12)


def test_the_end_of_the_power_is_the_gradient_itself(M, G, springs):
    bound = at_stage(Power(2, matrix=M, schedule=STEP), springs, 2)
    np.testing.assert_array_equal(bound.apply(G, G), G)
    assert bound.finished
    np.testing.assert_array_equal(Power(0, matrix=M).operator_for(springs).apply(G, G), G)


FRACTIONS = (0.9, 0.5, 0.1)


@pytest.mark.parametrize("stage", range(4))
@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
def test_fractional_powers(stage, kind, M, G, springs):
    """Eigenvectors against Schur and Padé (scipy), after the whole powers."""
    bound = at_stage(Power(1, FRACTIONS, matrix=kind(M), schedule=STEP), springs, stage)
    nu = (1, *FRACTIONS)[stage]
    np.testing.assert_allclose(bound.apply(G, G), sla.fractional_matrix_power(M, nu) @ G, atol=1e-8)


@pytest.mark.parametrize("nu", FRACTIONS)
def test_fractional_powers_of_sparse_matrices_by_products(nu, rng):
    """Of a positive definite matrix, to the accuracy of the series."""
    W = roll_weights(300, rng)
    M = (2 * sparse.eye_array(300) + graph_matrix(W)) / 3  # eigenvalues of 1/3 and more
    G = rng.normal(size=(300, 2))
    power = Power(0, (nu,), matrix=M, all_eigenvectors_up_to=0)
    filtered = power.operator_for(Springs(W)).apply(G, G)
    exact = sla.fractional_matrix_power(M.toarray(), nu) @ G
    assert np.linalg.norm(filtered - exact) <= 2e-6 * np.linalg.norm(G)


def test_fractional_powers_of_singular_matrices(rng):
    """Zero eigenvalues stay zero, exactly or with an error that is stated."""
    Q = np.linalg.qr(rng.normal(size=(40, 40)))[0]
    d = np.r_[np.zeros(20), np.linspace(0.1, 1, 20)]
    M, G, graph = (Q * d) @ Q.T, rng.normal(size=(40, 2)), Springs(roll_weights(40, rng))
    exact = (Q * np.sqrt(d)) @ Q.T @ G
    filtered = Power(0, (0.5,), matrix=M).operator_for(graph).apply(G, G)
    np.testing.assert_allclose(filtered, exact, atol=1e-12)
    series = Power(0, (0.5,), matrix=sparse.csr_array(M), all_eigenvectors_up_to=0)
    with pytest.warns(ConvergenceWarning, match="eigenvalues near zero") as caught:
        filtered = series.operator_for(graph).apply(G, G)
    stated = float(str(caught[0].message).split("error of ")[1].split()[0])
    assert stated < 0.01
    assert np.linalg.norm(filtered - exact) <= 1.1 * stated * np.linalg.norm(G)


@pytest.mark.parametrize("nu", [0.02, 0.25, 0.5, 0.75, 0.98])
@pytest.mark.parametrize("lowest", [0.0, 1e-4, 0.3])
def test_the_series_of_a_fractional_power_is_nowhere_negative(nu, lowest):
    """So that every direction descends, however inaccurate the series."""
    x = np.sort(np.r_[lowest, np.geomspace(max(lowest, 1e-9), 1, 20_000)])
    diagonal = sparse.diags_array(x).tocsr()
    power = ChebyshevPower(diagonal, lowest, 1.0, max_products=64, tol=1e-8)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        values = power.apply(nu, np.ones((len(x), 1)))[:, 0]
    assert values.min() >= -1e-12


@pytest.mark.parametrize("fractions", [(), (0.5,)])
def test_an_indefinite_matrix_has_no_powers(fractions, M, springs):
    indefinite = M - 0.5 * np.eye(50)
    with pytest.raises(ValueError, match="must be positive semidefinite; pass lazy"):
        Power(2, fractions, matrix=indefinite).operator_for(springs)


@pytest.mark.parametrize("fractions", [(1.0,), (0.0,), (0.5, 0.5), (0.2, 0.5), (-0.5,), ("a",)])
def test_fractions_lie_between_zero_and_one_and_decrease(fractions):
    with pytest.raises((TypeError, ValueError), match="fractions"):
        Power(2, fractions)


@pytest.mark.parametrize("fractions", [0.5, "0.5", None])
def test_one_fraction_is_a_sequence_too(fractions):
    match = f"fractions={fractions!r} must be a sequence of powers; pass fractions=.0.5,. for one"
    with pytest.raises(TypeError, match=match):
        Power(3, fractions)


def test_fractional_powers_are_not_deflated(M, G, springs):
    deflated = DeflatedPower(0, (0.5,), matrix=M).operator_for(springs).apply(G, G)
    plain = Power(0, (0.5,), matrix=M).operator_for(springs).apply(G, G)
    np.testing.assert_array_equal(deflated, plain)


@pytest.mark.parametrize("optimizer", [LBFGS, ConjugateGradient])
def test_a_filter_that_depends_on_the_gradient_warns(optimizer, G, springs):
    search = optimizer(DeflatedPower(2), stopping=Stopping(max_iter=3))
    with pytest.warns(ConvergenceWarning, match="the same filter to GradientDescent"):
        search.minimize(springs, G)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        GradientDescent(DeflatedPower(2), stopping=Stopping(max_iter=3)).minimize(springs, G)
        optimizer(Power(2), stopping=Stopping(max_iter=3)).minimize(springs, G)


def test_heat_tends_to_the_gradient_linearly_in_time(M, G, springs):
    """The limit ν → 0 for real exponents: docs/mathematics.md, Spectral gradient descent."""
    errors = [
        np.linalg.norm(Heat(s, end=s / 2, matrix=M).operator_for(springs).apply(G, G) - G)
        for s in (1e-3, 1e-6)
    ]
    assert errors[0] / errors[1] == pytest.approx(1e3, rel=1e-2)


@pytest.mark.parametrize("s", [0.1, 1.0, 10.0, 300.0])
def test_heat_is_the_exponential(s, M, G, springs):
    by_data = Heat(s, matrix=M).operator_for(springs).apply(G, G)
    np.testing.assert_allclose(by_data, sla.expm(-s * (np.eye(50) - M)) @ G, atol=1e-12)
    by_graph = Heat(s).operator_for(springs).apply(G, G)
    L = np.eye(50) - graph_matrix(springs.W).toarray()
    np.testing.assert_allclose(by_graph, sla.expm(-s * L) @ G, atol=1e-12)


def test_heat_leaves_points_without_neighbors_alone():
    W = np.zeros((3, 3))
    W[0, 1] = W[1, 0] = 2.0
    G = np.array([[1.0], [0.0], [3.0]])
    filtered = Heat(500.0).operator_for(Springs(W)).apply(G, G)
    np.testing.assert_allclose(filtered, [[0.5], [0.5], [3.0]], atol=1e-12)


def test_projector_is_the_projection(M, G, springs):
    V = np.linalg.eigh(M)[1][:, ::-1]
    for count in (1, 4, 30):
        filtered = Projector(count, matrix=M).operator_for(springs).apply(G, G)
        np.testing.assert_allclose(filtered, V[:, :count] @ (V[:, :count].T @ G), atol=1e-9)
        without = Projector(count, matrix=M, drop_first=True).operator_for(springs).apply(G, G)
        U = V[:, 1 : count + 1]
        np.testing.assert_allclose(without, U @ (U.T @ G), atol=1e-9)


def test_projector_onto_everything_is_the_identity(M, G, springs):
    np.testing.assert_array_equal(Projector(50, matrix=M).operator_for(springs).apply(G, G), G)
    bound = at_stage(Projector(1, step=20, matrix=M, schedule=STEP), springs, 3)
    np.testing.assert_array_equal(bound.apply(G, G), G)
    assert bound.finished


def test_projector_may_end_early(M, G, springs):
    chosen = Projector(1, step=2, max_eigenvectors=6, matrix=M, schedule=STEP)
    assert list(chosen.stages(50)) == [1, 3, 5]
    np.testing.assert_array_equal(at_stage(chosen, springs, 3).apply(G, G), G)


@pytest.mark.parametrize("dropped", [0, 1])
def test_a_projector_has_less_than_full_rank_at_every_stage(dropped, M, springs):
    """Its trace is the dimension of the subspace, n − 1 or n − 2 in the last stage."""
    n = springs.n
    chosen = Projector(drop_first=bool(dropped), matrix=M)
    last = chosen.smooth(chosen.prepare(springs), chosen.stages(n)[-1], np.eye(n))
    assert np.trace(last) == pytest.approx(n - 1 - dropped)


def test_projector_takes_few_vectors_of_many_points(rng, monkeypatch):
    """Beyond 4000 points, and for few of them, an iterative solver finds the same subspace."""
    W = roll_weights(400, rng)
    G = rng.normal(size=(400, 2))
    filtered = Projector(3, max_eigenvectors=4, schedule=STEP).operator_for(Springs(W)).apply(G, G)
    V = np.linalg.eigh(lazy(graph_matrix(W)).toarray())[1][:, -3:]
    np.testing.assert_allclose(filtered, V @ (V.T @ G), atol=1e-6)


def test_three_clusters_move_as_three(rng):
    """E0.3: if the eigenvectors are cluster indicators, gradients become the means of clusters."""
    sizes = (12, 20, 18)
    M = sla.block_diag(*(np.full((m, m), 1 / m) for m in sizes))
    labels = np.repeat(range(3), sizes)
    G = rng.normal(size=(50, 2))
    means = np.array([G[labels == c].mean(axis=0) for c in range(3)])
    for chosen in (Projector(3, matrix=M), Power(4, matrix=M), Heat(60.0, matrix=M)):
        filtered = chosen.operator_for(Springs(M)).apply(G, G)
        np.testing.assert_allclose(filtered, means[labels], rtol=0, atol=1e-12)


# Deflation


@pytest.mark.parametrize("nu", [1, 4])
def test_deflation_follows_the_explicit_recursion(nu, M, rng, springs):
    G = rng.normal(size=(50, 3))
    filtered = DeflatedPower(nu, matrix=M).operator_for(springs).apply(G, G)
    remaining = M
    for j in range(3):
        g = np.linalg.matrix_power(remaining, nu) @ G[:, j]
        np.testing.assert_allclose(filtered[:, j], g, rtol=1e-8, atol=1e-12)
        u = g / np.linalg.norm(g)
        out = np.eye(50) - np.outer(u, u)
        remaining = out @ remaining @ out
        assert np.linalg.eigvalsh(remaining)[0] >= -1e-12


def test_the_published_deflation_is_indefinite(M, rng):
    """M − λuuᵀ has negative eigenvalues, so that some directions ascend; without λ it is worse."""
    g = M @ rng.normal(size=50)
    u = g / np.linalg.norm(g)
    hotelling = M - (u @ M @ u) * np.outer(u, u)
    values, vectors = np.linalg.eigh(hotelling)
    assert values[0] < -1e-3
    assert vectors[:, 0] @ hotelling @ vectors[:, 0] < -1e-3  # an ascent direction
    assert np.linalg.eigvalsh(M - np.outer(g, g))[0] < values[0]
    out = np.eye(50) - np.outer(u, u)
    assert np.linalg.eigvalsh(out @ M @ out)[0] >= -1e-12


def test_one_coordinate_is_not_deflated(M, rng, springs):
    G = rng.normal(size=(50, 1))
    chosen = [
        kind(6, matrix=M, schedule=STEP).operator_for(springs) for kind in (Power, DeflatedPower)
    ]
    np.testing.assert_allclose(*(bound.apply(G, G) for bound in chosen), rtol=1e-12)


def test_high_powers_find_one_eigenvector_per_coordinate(M, springs, rng):
    """Without deflation all coordinates turn to the first eigenvector."""
    G = rng.normal(size=(50, 2))
    V = np.linalg.eigh(M)[1][:, ::-1]
    for kind, second in ((Power, 0), (DeflatedPower, 1)):
        P = kind(400, matrix=M, schedule=Never()).operator_for(springs).apply(G, G)
        assert abs(P[:, 0] @ V[:, 0]) >= 0.99 * np.linalg.norm(P[:, 0])
        assert abs(P[:, 1] @ V[:, second]) >= 0.99 * np.linalg.norm(P[:, 1])


def test_equal_columns_and_empty_columns_are_deflated_too(M, springs):
    g = np.ones(50)
    G = np.column_stack([g, np.zeros(50), g])
    P = DeflatedPower(30, matrix=M).operator_for(springs).apply(G, G)
    assert np.isfinite(P).all()
    assert not P[:, 1].any()
    assert abs(P[:, 0] @ P[:, 2]) <= 1e-12 * np.linalg.norm(P[:, 0])


# The filter after guidance, and bad input


def test_guidance_is_followed_by_a_curvature_filter(M, G, springs):
    bound = Power(1, matrix=M, schedule=STEP, final_filter=SpectralDirection()).operator_for(
        springs
    )
    assert not bound.finished
    assert not bound.newton_like
    assert bound.reason == "Power at 1, stage 1 of 1"
    bound.advance(Progress(1, 1.0, 0.5))
    expected = SpectralDirection().operator_for(springs)
    assert bound.finished
    assert bound.newton_like
    assert bound.reason == expected.reason
    np.testing.assert_array_equal(bound.apply(G, G), expected.apply(G, G))
    assert not bound.advance(Progress(2, 1.0, 0.5))


def test_guidance_may_be_followed_by_guidance(M, G, springs):
    second = Heat(1.0, end=1.0, matrix=M, schedule=STEP)
    bound = at_stage(Power(1, matrix=M, schedule=STEP, final_filter=second), springs, 1)
    assert not bound.finished
    np.testing.assert_array_equal(bound.apply(G, G), second.operator_for(springs).apply(G, G))
    assert bound.advance(Progress(2, 1.0, 0.5))
    assert bound.finished


def test_guidance_may_stay_in_the_last_stage(M, G, springs):
    bound = at_stage(Power(2, matrix=M, schedule=STEP, final_filter=None), springs, 1)
    assert bound.finished
    assert not bound.advance(Progress(2, 1.0, 0.5))
    np.testing.assert_allclose(bound.apply(G, G), M @ G, rtol=1e-12)


@pytest.mark.parametrize(
    ("matrix", "message"),
    [
        (np.eye(7), "order 7, but the embedding has 50 points"),
        (np.eye(50)[:, :49], "square"),
        (np.triu(np.ones((50, 50))), "symmetric"),
        (np.full((50, 50), np.nan), "NaN"),
        (np.zeros((50, 50)), "is zero"),
        (-np.eye(50), "eigenvalue of -1 times its norm"),
    ],
)
def test_matrices_that_are_refused(matrix, message, springs):
    with pytest.raises(ValueError, match=message):
        Power(matrix=matrix).operator_for(springs)


def test_an_indefinite_matrix_is_refused_at_any_size_but_by_heat(rng):
    W = roll_weights(400, rng)
    indefinite = graph_matrix(W)
    with pytest.raises(ValueError, match="pass lazy"):
        Power(matrix=indefinite).operator_for(Springs(W))
    for chosen in (Power(matrix=lazy(indefinite)), Heat(matrix=indefinite)):
        G = rng.normal(size=(400, 2))
        assert (chosen.operator_for(Springs(W)).apply(G, G) * G).sum() > 0


def test_guidance_by_the_identity_changes_nothing(rng):
    """The limit of a kernel so narrow that all weights between points vanish."""
    G = rng.normal(size=(400, 2))
    for chosen in (Power(matrix=np.eye(400)), Heat(matrix=sparse.eye_array(400))):
        filtered = chosen.operator_for(Springs(np.zeros((400, 400)))).apply(G, G)
        np.testing.assert_allclose(filtered, G, rtol=1e-12)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Power(-1), "start=-1 must be at least 0"),
        (lambda: Projector(0), "start=0 must be at least 1"),
        (lambda: Projector(step=0), "step=0 must be at least 1"),
        (lambda: Projector(max_eigenvectors=0), "max_eigenvectors=0 must be at least 1"),
        (lambda: Heat(-1.0), "start=-1.0 must be greater than 0"),
        (lambda: Heat(factor=1.0), "factor=1 must be less than 1"),
        (lambda: SpectralDirection(n_neighbors=0), "n_neighbors=0 must be at least 1"),
        (lambda: SpectralDirection(shift=0.0), "shift=0.0 must be greater than 0"),
    ],
)
def test_parameters_out_of_bounds(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_filters_without_arrays_compare_by_value():
    assert Jacobi() == Jacobi()
    assert Identity() == Identity()
    assert SpectralDirection(7) == SpectralDirection(n_neighbors=7) != SpectralDirection()
