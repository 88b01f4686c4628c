"""The weight of repulsion at which a collapsed map opens, and the directions in which it does."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import eigh, eigvalsh
from scipy.sparse.csgraph import connected_components
from scipy.sparse.linalg import LinearOperator, eigsh

from manifoldry.eigen import Auto, SpectralProblem
from manifoldry.eigen.inverse import ShiftedInverse, estimated_fill
from manifoldry.eigen.problem import End
from manifoldry.eigen.spectrum import fixed_signs
from manifoldry.objectives.pairwise import PairwiseObjective
from manifoldry.objectives.repulsion import Repulsion, UniformRepulsion
from manifoldry.objectives.weights import laplacian
from manifoldry.util.checks import as_generator, check_at_most, check_count
from manifoldry.util.typing import Array, IntArray, Matrix, RandomState
from manifoldry.util.validation import plan_memory

# Order up to which matrices are dense and all their eigenvalues are looked at, and the share of
# entries beyond which attraction is treated as a dense matrix at any order.
_DENSE, _FULL = 500, 0.1
# Stand-in for zero eigenvalues of attraction, relative to the mean degree, where its graph falls
# into pieces; and the shift of a factor, which is projected out.
_NULL, _SHIFT = 1e-9, 1e-12
_CLEAR = 1e-12  # share of the largest below which figures of repulsion are zero but for rounding
_TOLERANCE = 1e-10  # of the eigenvalues that directions belong to
_BYTES_PER_ENTRY = 26  # of a sparse factor


@dataclass(frozen=True, eq=False, repr=False)
class Bifurcation:
    """Where the map Y = 0 ceases to be a minimiser as the weight λ of repulsion grows.

    Up to `weight` everything collapses to a point. Just above it the map is a line, along the
    first of the `directions`: that is where a homotopy starts.

    Attributes
    ----------
    weight : float
        The critical λ: the smallest eigenvalue of (L⁺, L⁻), the Laplacians of attraction and of
        repulsion at the collapsed map, on vectors that sum to zero. It is exactly zero if the
        graph of attraction falls into pieces that repel each other.
    directions : array of shape (n, n_components)
        Eigenvectors of the smallest eigenvalues, of unit length and mean zero. Where the graph
        falls into pieces, the first ones are constant on each.
    lower, upper : float
        Published bounds between which `weight` lies; for more than 500 points those of them that
        need the first and last eigenvalues only.

    References
    ----------
    M. Á. Carreira-Perpiñán, "The elastic embedding algorithm for dimensionality reduction",
    ICML 2010.

    Examples
    --------
    Two points open when λ exceeds one.

    >>> import numpy as np
    >>> from manifoldry.objectives.bifurcation import Bifurcation
    >>> from manifoldry.objectives.elastic import ElasticObjective
    >>> objective = ElasticObjective(np.array([[0, 0.5], [0.5, 0]]))
    >>> round(Bifurcation.of(objective, n_components=1).weight, 12)
    1.0
    """

    weight: float
    directions: Array
    lower: float
    upper: float

    def __repr__(self) -> str:
        return f"Bifurcation(weight={self.weight:.6g}, bounds {self.lower:.6g} to {self.upper:.6g})"

    @classmethod
    def of(
        cls,
        objective: PairwiseObjective,
        n_components: int = 2,
        random_state: RandomState = None,
    ) -> Bifurcation:
        """Find the critical weight of an objective and its first directions.

        `random_state` seeds iterative eigensolvers; None is a fixed seed.
        """
        check_count("n_components", n_components)
        check_at_most("n_components", n_components, objective.n - 1, "one less than n_samples")
        rng = as_generator(random_state, unset=0)
        L, repulsion = laplacian(objective.attraction), objective.collapsed_repulsion
        pieces, labels = connected_components(objective.attraction, directed=False)
        torn = pieces > 1 and _repel(labels, repulsion)
        if isinstance(repulsion, UniformRepulsion):
            values, V = _extreme(L, "smallest", n_components, rng)
            weight = max(float(values[0]), 0.0) / (repulsion.each * repulsion.n)
            bounds = weight, weight
        else:
            V = _directions(L, repulsion, n_components, pieces > 1, rng)
            weight = _quotient(L, repulsion, V[:, 0])
            bounds = _bounds(L, repulsion, rng)
        if torn:
            return cls(0.0, V, 0.0, max(bounds[1], 0.0))
        return cls(weight, V, *bounds)


def _repel(labels: IntArray, repulsion: Repulsion) -> bool:
    """Whether points with different labels repel each other."""
    v = labels.astype(np.float64)
    return float(v @ repulsion.laplacian_product(v)) > 0


def _extreme(L: Matrix, end: End, k: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """Eigenpairs of a Laplacian other than the constant."""
    problem = SpectralProblem(L, end=end, deflate=np.ones(L.shape[0]), bounds=(0.0, np.inf))
    spectrum = Auto(dense_up_to=_DENSE).solve(problem, k, rng)
    return spectrum.values, spectrum.vectors


def _directions(
    L: Matrix, repulsion: Repulsion, k: int, in_pieces: bool, rng: np.random.Generator
) -> Array:
    """Eigenvectors of the largest eigenvalues of L⁻v = μ·B·v, B = L⁺ + ε·I + τ·11ᵀ/n.

    The constant, on which L⁻ is zero, does not come up, whatever the τ > 0 that makes B regular
    on it.
    """
    tau = float(L.diagonal().mean())
    epsilon = _NULL * tau if in_pieces else 0.0
    dense = repulsion.n <= _DENSE or L.nnz > _FULL * repulsion.n**2
    solve = _dense_directions if dense else _lanczos_directions
    V = solve(L, repulsion, k, tau, epsilon, rng)
    V -= V.mean(axis=0)
    return fixed_signs(V / np.linalg.norm(V, axis=0))


def _dense_directions(
    L: Matrix, repulsion: Repulsion, k: int, tau: float, epsilon: float, rng: np.random.Generator
) -> Array:
    n = repulsion.n
    B = L.toarray() + epsilon * np.eye(n) + tau / n
    return np.asarray(eigh(repulsion.laplacian(), B, subset_by_index=(n - k, n - 1))[1][:, ::-1])


def _lanczos_directions(
    L: Matrix, repulsion: Repulsion, k: int, tau: float, epsilon: float, rng: np.random.Generator
) -> Array:
    n = repulsion.n
    plan_memory(
        _BYTES_PER_ENTRY * estimated_fill(L),
        f"a factor of the Laplacian of {n} points",
        "pass repulsion='uniform', which needs none",
    )
    inverse = ShiftedInverse(L, -max(epsilon, _SHIFT * tau), "smallest")

    def product(x: Array) -> Array:
        return L @ x + epsilon * x + tau * x.mean()

    def divide(x: Array) -> Array:
        mean = x.mean()
        y = inverse.solve(x - mean)
        return y - y.mean() + mean / tau

    B, inverted = (LinearOperator((n, n), f, dtype=np.float64) for f in (product, divide))
    start = rng.standard_normal(n)
    values, V = eigsh(
        repulsion.operator(), k, B, Minv=inverted, which="LA", v0=start, tol=_TOLERANCE
    )
    return np.asarray(V[:, np.argsort(-values)])


def _quotient(L: Matrix, repulsion: Repulsion, v: Array) -> float:
    """vᵀL⁺v / vᵀL⁻v, in which errors of v count only by their square."""
    return float(v @ (L @ v)) / float(v @ repulsion.laplacian_product(v))


def _bounds(L: Matrix, repulsion: Repulsion, rng: np.random.Generator) -> tuple[float, float]:
    """Bounds of the critical weight by eigenvalues, by weights of pairs and by degrees."""
    found = _all_eigenvalues if repulsion.n <= _DENSE else _end_eigenvalues
    plus, minus, last, least = found(L, repulsion, rng)
    lower = max(float(plus[0]) / last, least, 0.0)
    return lower, min(_least(plus, minus), _least(L.diagonal(), repulsion.degrees))


def _all_eigenvalues(
    L: Matrix, repulsion: Repulsion, rng: np.random.Generator
) -> tuple[Array, Array, float, float]:
    """Eigenvalues of both Laplacians, the last one, and the least ratio of weights."""
    A, R = L.toarray(), repulsion.laplacian()
    minus = eigvalsh(R)[1:]
    off = ~np.eye(len(A), dtype=bool)
    return eigvalsh(A)[1:], minus, float(minus[-1]), _least(-A[off], -R[off])


def _end_eigenvalues(
    L: Matrix, repulsion: Repulsion, rng: np.random.Generator
) -> tuple[Array, Array, float, float]:
    """The first eigenvalues and the last; some pair of a sparse graph has no weight."""
    R = repulsion.operator()
    plus, minus = (_extreme(M, "smallest", 1, rng)[0] for M in (L, R))
    return plus, minus, float(_extreme(R, "largest", 1, rng)[0][0]), 0.0


def _least(over: Array, under: Array) -> float:
    """The least ratio, where the denominator is not zero up to rounding."""
    clear = under > _CLEAR * under.max()
    return float((over[clear] / under[clear]).min(initial=np.inf))
