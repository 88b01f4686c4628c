"""The weight of the repulsion at which Y = 0 ceases to be a minimizer."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import eigh, eigvalsh
from scipy.sparse.csgraph import connected_components
from scipy.sparse.linalg import LinearOperator, eigsh

from manifoldry.device import say_on_cpu
from manifoldry.eigen import Auto, SpectralProblem
from manifoldry.eigen.inverse import ShiftedInverse, estimated_fill
from manifoldry.eigen.problem import End
from manifoldry.eigen.spectrum import fixed_signs
from manifoldry.objectives.pairwise import Pairwise
from manifoldry.objectives.repulsion import Repulsion, UniformRepulsion
from manifoldry.objectives.weights import graph_laplacian
from manifoldry.util.checks import as_generator, check_at_most, check_count
from manifoldry.util.typing import Array, IntArray, Matrix, RandomState


@dataclass(frozen=True)
class Numerics:
    """Thresholds of the eigenvalue problems behind a :class:`Bifurcation`.

    Parameters
    ----------
    dense_up_to : int, default=500
        Number of points up to which matrices are dense and all eigenvalues are computed.
    max_density : float, default=0.1
        Fraction of nonzero entries above which the attraction is stored as a dense matrix.
    null_eigenvalue : float, default=1e-9
        Value that replaces zero eigenvalues of the attraction if its graph has several connected
        components, relative to the mean degree.
    shift : float, default=1e-12
        Diagonal shift of the factorized matrix, relative to the mean degree.
    zero_tolerance : float, default=1e-12
        Values of the repulsion below this fraction of the largest are treated as zero.
    tolerance : float, default=1e-10
        Tolerance of the iterative eigensolver.
    max_fill : float, default=2e7
        Number of nonzero entries of a sparse factor above which none is computed, and directions
        are sought among combinations of eigenvectors of the attraction.
    n_eigenvectors : int, default=20
        Number of these eigenvectors.
    """

    dense_up_to: int = 500
    max_density: float = 0.1
    null_eigenvalue: float = 1e-9
    shift: float = 1e-12
    zero_tolerance: float = 1e-12
    tolerance: float = 1e-10
    max_fill: float = 2e7
    n_eigenvectors: int = 20


@dataclass(frozen=True, eq=False, repr=False)
class Bifurcation:
    """The weight λ of the repulsion above which Y = 0 is not a minimizer.

    Up to this weight all points collapse to one. Just above it the embedding is one-dimensional,
    along the first of the `directions`; a homotopy starts there.

    Parameters
    ----------
    weight : float
        The critical λ: the smallest eigenvalue of (L⁺, L⁻), the Laplacians of the attraction and
        of the repulsion at Y = 0, on vectors that sum to zero. It is exactly zero if the graph of
        the attraction has connected components that repel each other. If the repulsion is not
        uniform and the graph so large that a sparse factor would not fit, it is an upper bound:
        the smallest value among combinations of the first eigenvectors of L⁺.
    directions : array of shape (n, n_components)
        Eigenvectors of the smallest eigenvalues, of unit length and mean zero. If the graph has
        several connected components, the first ones are constant on each component.
    lower, upper : float
        Published bounds of `weight`; for more than 500 points, only those bounds that need the
        smallest and largest eigenvalues.

    See Also
    --------
    Pairwise : the objectives that have one.
    manifoldry.optimize.Homotopy : a search that starts at the critical weight.
    manifoldry.ElasticEmbedding : has it as ``bifurcation_``.

    References
    ----------
    M. Á. Carreira-Perpiñán, "The elastic embedding algorithm for dimensionality reduction",
    ICML 2010.

    Examples
    --------
    For two points the critical weight is one.

    >>> import numpy as np
    >>> from manifoldry.objectives import Bifurcation, elastic
    >>> objective = elastic(np.array([[0, 0.5], [0.5, 0]]))
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
        objective: Pairwise,
        n_components: int = 2,
        random_state: RandomState = None,
        numerics: Numerics = Numerics(),
    ) -> Bifurcation:
        """Compute the critical weight of an objective and the first directions.

        Parameters
        ----------
        objective : Pairwise
            The objective.
        n_components : int, default=2
            Number of directions.
        random_state : int, RandomState, Generator or None, default=None
            Seed of iterative eigensolvers. None means a fixed seed.
        numerics : Numerics, optional
            Thresholds of the eigenvalue problems.

        Returns
        -------
        Bifurcation
            The critical weight, with its bounds and directions.
        """
        check_count("n_components", n_components)
        check_at_most("n_components", n_components, objective.n - 1, "one less than n_samples")
        rng = as_generator(random_state, unset=0)
        L, repulsion = graph_laplacian(objective.attraction), objective.repulsion_at_zero
        components, labels = connected_components(objective.attraction, directed=False)
        separated = components > 1 and _repel(labels, repulsion)
        pencil = _Pencil(L, repulsion, components > 1, rng, numerics)
        weight, V, bounds = pencil.first(n_components)
        if separated:
            return cls(0.0, V, 0.0, max(bounds[1], 0.0))
        return cls(weight, V, *bounds)


def _repel(labels: IntArray, repulsion: Repulsion) -> bool:
    """Whether points with different labels repel each other."""
    v = labels.astype(np.float64)
    return float(v @ repulsion.laplacian_product(v)) > 0


@dataclass(frozen=True, eq=False)
class _Pencil:
    """The pencil (L⁺, L⁻): Laplacians of the attraction and the repulsion at Y = 0."""

    L: Matrix
    repulsion: Repulsion
    in_components: bool
    rng: np.random.Generator
    numerics: Numerics

    @property
    def n(self) -> int:
        return self.repulsion.n

    def first(self, k: int) -> tuple[float, Array, tuple[float, float]]:
        """Smallest eigenvalue, k eigenvectors, and bounds of the eigenvalue."""
        if isinstance(self.repulsion, UniformRepulsion):
            values, V = self._extreme(self.L, "smallest", k)
            weight = max(float(values[0]), 0.0) / (self.repulsion.pair_weight * self.n)
            return weight, V, (weight, weight)
        why = "the repulsion has a weight for every pair of points"
        say_on_cpu("the critical weight of the repulsion", why, float(self.n) ** 2)
        if self._factor_is_large():
            return self._combined(k)
        V = self._directions(k)
        return self._quotient(V[:, 0]), V, self._bounds()

    def _factor_is_large(self) -> bool:
        few = self.n <= self.numerics.dense_up_to
        return not (few or self._full) and estimated_fill(self.L) > self.numerics.max_fill

    def _combined(self, k: int) -> tuple[float, Array, tuple[float, float]]:
        """The same from combinations of the first eigenvectors of the attraction."""
        count = min(k + self.numerics.n_eigenvectors, self.n - 1)
        values, U = self._extreme(self.L, "smallest", count)
        tau = float(self.L.diagonal().mean())
        A = np.diag(np.maximum(values, self.numerics.null_eigenvalue * tau))
        R = U.T @ self.repulsion.laplacian_product(U)
        V = self._oriented(U @ eigh((R + R.T) / 2, A)[1][:, : -k - 1 : -1])
        weight = self._quotient(V[:, 0])
        # The largest eigenvalue of a Laplacian is at most twice the largest degree.
        degrees = self.repulsion.degrees
        lower = max(float(values[0]), 0.0) / (2 * float(degrees.max()))
        return weight, V, (lower, min(weight, self._least(self.L.diagonal(), degrees)))

    @property
    def _full(self) -> bool:
        return bool(self.L.nnz > self.numerics.max_density * self.n**2)

    def _extreme(self, L: Matrix, end: End, k: int) -> tuple[Array, Array]:
        """Eigenpairs of a Laplacian, without the constant eigenvector."""
        problem = SpectralProblem(L, end=end, deflate=np.ones(self.n), bounds=(0.0, np.inf))
        spectrum = Auto(dense_up_to=self.numerics.dense_up_to).solve(problem, k, self.rng)
        return spectrum.values, spectrum.vectors

    def _directions(self, k: int) -> Array:
        """Eigenvectors of the largest eigenvalues of L⁻v = μ·B·v, B = L⁺ + ε·I + τ·11ᵀ/n.

        The constant vector has eigenvalue zero for any τ > 0, so it is not among them; τ makes B
        nonsingular.
        """
        tau = float(self.L.diagonal().mean())
        epsilon = self.numerics.null_eigenvalue * tau if self.in_components else 0.0
        dense = self.n <= self.numerics.dense_up_to or self._full
        return self._oriented((self._dense if dense else self._lanczos)(k, tau, epsilon))

    @staticmethod
    def _oriented(V: Array) -> Array:
        """Vectors of mean zero and unit length, with fixed signs."""
        V = V - V.mean(axis=0)
        return fixed_signs(V / np.linalg.norm(V, axis=0))

    def _dense(self, k: int, tau: float, epsilon: float) -> Array:
        n = self.n
        B = self.L.toarray() + epsilon * np.eye(n) + tau / n
        V = eigh(self.repulsion.laplacian(), B, subset_by_index=(n - k, n - 1))[1]
        return np.asarray(V[:, ::-1])

    def _lanczos(self, k: int, tau: float, epsilon: float) -> Array:
        L, n = self.L, self.n
        inverse = ShiftedInverse(L, -max(epsilon, self.numerics.shift * tau), "smallest")

        def product(x: Array) -> Array:
            return L @ x + epsilon * x + tau * x.mean()

        def divide(x: Array) -> Array:
            mean = x.mean()
            y = inverse.solve(x - mean)
            return y - y.mean() + mean / tau

        B, inverted = (LinearOperator((n, n), f, dtype=np.float64) for f in (product, divide))
        start, tol = self.rng.standard_normal(n), self.numerics.tolerance
        R = self.repulsion.operator()
        values, V = eigsh(R, k, B, Minv=inverted, which="LA", v0=start, tol=tol)
        return np.asarray(V[:, np.argsort(-values)])

    def _quotient(self, v: Array) -> float:
        """Rayleigh quotient vᵀL⁺v / vᵀL⁻v; its error is quadratic in the error of v."""
        return float(v @ (self.L @ v)) / float(v @ self.repulsion.laplacian_product(v))

    def _bounds(self) -> tuple[float, float]:
        """Bounds of the critical weight from eigenvalues, weights of pairs and degrees."""
        few = self.n <= self.numerics.dense_up_to
        plus, minus, last, least = self._all_eigenvalues() if few else self._end_eigenvalues()
        lower = max(float(plus[0]) / last, least, 0.0)
        degrees = self._least(self.L.diagonal(), self.repulsion.degrees)
        return lower, min(self._least(plus, minus), degrees)

    def _all_eigenvalues(self) -> tuple[Array, Array, float, float]:
        """Eigenvalues of both Laplacians, largest one of L⁻, and smallest ratio of weights."""
        A, R = self.L.toarray(), self.repulsion.laplacian()
        minus = eigvalsh(R)[1:]
        off = ~np.eye(len(A), dtype=bool)
        return eigvalsh(A)[1:], minus, float(minus[-1]), self._least(-A[off], -R[off])

    def _end_eigenvalues(self) -> tuple[Array, Array, float, float]:
        """The same with extreme eigenvalues only; the smallest ratio of weights is then zero."""
        R = self.repulsion.operator()
        plus, minus = (self._extreme(M, "smallest", 1)[0] for M in (self.L, R))
        return plus, minus, float(self._extreme(R, "largest", 1)[0][0]), 0.0

    def _least(self, over: Array, under: Array) -> float:
        """Smallest ratio `over`/`under`, where the denominator is not zero up to rounding."""
        nonzero = under > self.numerics.zero_tolerance * under.max()
        return float((over[nonzero] / under[nonzero]).min(initial=np.inf))
