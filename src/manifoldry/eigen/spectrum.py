"""Eigenpairs together with the evidence that they are right."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from manifoldry.util.typing import Array, IntArray

_EPS = float(np.finfo(np.float64).eps)
# Double precision carries A v to a few units of eps‖A‖: no solver can promise less.
ROUNDING = 4 * _EPS
# Directions whose eigenvalue is below this fraction of the largest carry only rounding.
RANK_TOLERANCE = 1e-12


@dataclass(frozen=True)
class Acceptance:
    """How small a residual has to be for an eigenvector to be believed.

    Parameters
    ----------
    angle : float
        A residual r perturbs an eigenvector by about r / gap: the largest such angle accepted.
    stop_angle : float
        The angle at which iterations stop, far stricter: all solvers then agree in every digit a
        user sees, and in the signs.
    unknown_gap : float
        Stand-in for the gap, relative to ‖A‖, where no eigenvalue outside a cluster is known.
    """

    angle: float = 1e-3
    stop_angle: float = 1e-7
    unknown_gap: float = 1e-6

    def finite_gaps(self, gaps: Array, norm: float) -> Array:
        """Return the gaps, with the stand-in for infinite ones."""
        return np.where(np.isfinite(gaps), gaps, self.unknown_gap * norm)


DEFAULT_ACCEPTANCE = Acceptance()


@dataclass(frozen=True, eq=False)
class Spectrum:
    """The k eigenpairs of a spectral problem at its end, and how far they can be trusted.

    Attributes
    ----------
    values : array of shape (k,)
        Eigenvalues, from the wanted end inwards: ascending for "smallest".
    vectors : array of shape (n, k)
        Eigenvectors f with fᵀBf = 1; the entry of largest modulus is positive.
    residuals : array of shape (k,)
        ‖P(A g − λ g)‖ in the standard form g = B^{1/2} f.
    gaps : array of shape (k,)
        Distance from each value's cluster to the nearest known eigenvalue outside it; infinite
        if there is none.
    next_value : float
        The (k+1)-th eigenvalue, or NaN where there are only k.
    norm : float
        Estimate of the norm of the operator in standard form: the yardstick of rounding.
    solver, reason : str
        Who solved it, and why that solver.
    acceptance : Acceptance
        How small the residuals have to be.
    beyond : array
        Eigenvalues beyond the (k+1)-th that came at no cost.

    Examples
    --------
    >>> import numpy as np
    >>> from manifoldry.eigen import Dense, SpectralProblem
    >>> problem = SpectralProblem(np.diag([3.0, 1.0, 1.0, 5.0]), end="smallest")
    >>> spectrum = Dense().solve(problem, 1, np.random.default_rng(0))
    >>> spectrum.accepted, spectrum.splits_cluster
    (True, True)
    """

    values: Array
    vectors: Array
    residuals: Array
    gaps: Array
    next_value: float
    norm: float
    solver: str = ""
    reason: str = ""
    acceptance: Acceptance = DEFAULT_ACCEPTANCE
    beyond: Array = field(default_factory=lambda: np.empty(0))

    @property
    def k(self) -> int:
        """Number of eigenpairs."""
        return len(self.values)

    @property
    def tolerances(self) -> Array:
        """Largest residual accepted for each pair: a fraction of the gap, but not below rounding."""
        gaps = self.acceptance.finite_gaps(self.gaps, self.norm)
        return np.maximum(self.acceptance.angle * gaps, ROUNDING * self.norm)

    @property
    def worst(self) -> int:
        """Index of the pair whose residual is largest against what is accepted."""
        return int(np.argmax(self._excess))

    @property
    def worst_ratio(self) -> float:
        """The largest residual relative to what is accepted; at most 1 when accepted."""
        return float(self._excess.max())

    @property
    def accepted(self) -> bool:
        """Whether every residual is small against the gap."""
        return bool(self.worst_ratio <= 1)

    @cached_property
    def clusters(self) -> tuple[IntArray, ...]:
        """Indices of the values, grouped: inside a group only the subspace is determined."""
        labels = cluster_labels(self.values, cluster_width(self.norm, self.acceptance.angle))
        return tuple(np.flatnonzero(labels == c) for c in np.unique(labels))

    @property
    def splits_cluster(self) -> bool:
        """Whether the (k+1)-th value belongs to the last cluster.

        If so the last vectors are one choice out of a larger eigenspace.
        """
        return bool(
            abs(self.next_value - self.values[-1])
            <= cluster_width(self.norm, self.acceptance.angle)
        )

    @property
    def significant(self) -> NDArray[np.bool_]:
        """Which eigenvalues are positive beyond rounding, so that they have a square root."""
        return np.asarray(self.values > RANK_TOLERANCE * np.abs(self.values).max())

    @property
    def dual_vectors(self) -> Array:
        """v/√ℓ for Nyström's formula where coordinates are √ℓ·v; zero where ℓ is not positive."""
        return self.vectors * np.where(self.significant, self.values, np.inf) ** -0.5

    @property
    def _excess(self) -> Array:
        with np.errstate(invalid="ignore"):
            ratio = self.residuals / self.tolerances
        # 0 / 0 is the zero operator, solved exactly; any other NaN is a failure.
        ratio[self.residuals == 0] = 0.0
        return np.where(np.isnan(ratio), np.inf, ratio)

    def first(self, k: int) -> Spectrum:
        """The first k pairs of a spectrum that may have more."""
        if self.k == k:
            return self
        return replace(
            self,
            values=self.values[:k],
            vectors=self.vectors[:, :k],
            residuals=self.residuals[:k],
            gaps=self.gaps[:k],
            next_value=float(self.values[k]),
            beyond=np.concatenate([self.values[k + 1 :], [self.next_value], self.beyond]),
        )

    def padded(self, k: int) -> Spectrum:
        """The spectrum with zeros for pairs that there are not, up to k."""
        missing = (0, k - self.k)
        return replace(
            self,
            values=np.pad(self.values, missing),
            vectors=np.pad(self.vectors, ((0, 0), missing)),
            residuals=np.pad(self.residuals, missing),
            gaps=np.pad(self.gaps, missing),
        )

    @property
    def computed(self) -> Array:
        """All eigenvalues that are known, those beyond the k-th too."""
        values = np.concatenate([self.values, [self.next_value], self.beyond])
        return values[np.isfinite(values)]

    def summary(self) -> str:
        """Return one line: who solved it, why, and the worst residual with its gap."""
        i = self.worst
        return (
            f"{self.solver}: {self.reason}; worst pair {i}: eigenvalue {self.values[i]:.6g}, "
            f"residual {self.residuals[i]:.1e}, gap {self.gaps[i]:.1e} "
            f"({'accepted' if self.accepted else 'not accepted'})"
        )


def cluster_width(norm: float, angle: float = DEFAULT_ACCEPTANCE.angle) -> float:
    """Return the distance below which two eigenvalues count as one.

    The rounding of A, about ROUNDING·‖A‖, turns an eigenvector by that much over its gap. Beyond
    `angle` the vector itself is no longer determined: hence the quotient of the two, 4e3·eps·‖A‖.
    There is deliberately no term relative to |λ|: adding a multiple of the identity changes |λ|
    and no eigenvector. With one, the leading eigenvalues of I − L (all next to 1, apart by the
    tiny gaps of L) would be a cluster, and those of L would not.
    """
    return ROUNDING / angle * norm


def cluster_labels(values: Array, width: float) -> IntArray:
    """Return the number of each sorted value's cluster; a cluster is a chain of close values.

    Examples
    --------
    >>> import numpy as np
    >>> from manifoldry.eigen.spectrum import cluster_labels
    >>> cluster_labels(np.array([0.0, 1.0, 1.0, 2.0]), 1e-6)
    array([0, 1, 1, 2])
    """
    breaks = np.abs(np.diff(values)) > width
    return np.concatenate([[0], np.cumsum(breaks)])


def cluster_gaps(values: Array, width: float) -> Array:
    """Return each sorted value's distance from its cluster to the nearest value outside it.

    Examples
    --------
    >>> import numpy as np
    >>> from manifoldry.eigen.spectrum import cluster_gaps
    >>> cluster_gaps(np.array([0.0, 1.0, 1.0, 3.0]), 1e-6)
    array([1., 1., 1., 2.])
    """
    labels = cluster_labels(values, width)
    steps = np.abs(np.diff(values))[np.diff(labels) > 0]  # one per border between clusters
    borders = np.concatenate([[np.inf], steps, [np.inf]])
    return np.minimum(borders[labels], borders[labels + 1])


def fixed_signs(V: Array, tie: float = 1e-6) -> Array:
    """Return V with the entry of largest modulus of each column positive.

    Among entries tied to within the fraction `tie` the first decides: an odd eigenvector has two
    entries of equal modulus, and rounding must not choose between them.
    """
    modulus = np.abs(V)
    first = np.argmax(modulus >= (1 - tie) * modulus.max(axis=0), axis=0)
    signs = np.sign(V[first, np.arange(V.shape[1])])
    return V * np.where(signs == 0, 1.0, signs)
