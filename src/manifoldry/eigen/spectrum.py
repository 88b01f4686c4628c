"""Eigenpairs with their residuals and gaps, and the test of their accuracy."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from manifoldry.util.cached import cached_property
from manifoldry.util.typing import Array, IntArray

_EPS = float(np.finfo(np.float64).eps)
# Rounding error of A v relative to ‖A‖; no solver can reach a smaller residual.
ROUNDING = 4 * _EPS
# Eigenvalues below this fraction of the largest are rounding errors.
RANK_TOLERANCE = 1e-12


@dataclass(frozen=True)
class Acceptance:
    """Tolerances on the residuals of eigenpairs.

    Parameters
    ----------
    angle : float
        Largest accepted angle between computed and true eigenvector, estimated as
        residual / gap.
    stop_angle : float
        Angle at which iterations stop. It is much smaller than `angle`, so that all solvers agree
        in the displayed digits and in the signs.
    next_angle : float
        The same for the first pair that is not wanted, which only measures a gap.
    extra_angle : float
        The same for extra eigenvalues. Their error is about its square times the gap.
    unknown_gap : float
        Value used for the gap, relative to ‖A‖, if no eigenvalue outside a cluster is known.
    """

    angle: float = 1e-3
    stop_angle: float = 1e-7
    next_angle: float = 1e-3
    extra_angle: float = 0.03
    unknown_gap: float = 1e-6

    def stop_angles(self, count: int, extra: int) -> Array:
        """Return the angles at which iterations for `count` pairs stop, the `extra` ones last."""
        angles = np.full(count, self.extra_angle)
        angles[: count - extra] = self.next_angle
        angles[: count - extra - 1] = self.stop_angle
        return angles

    def finite_gaps(self, gaps: Array, norm: float) -> Array:
        """Return the gaps with infinite ones replaced."""
        return np.where(np.isfinite(gaps), gaps, self.unknown_gap * norm)


DEFAULT_ACCEPTANCE = Acceptance()


@dataclass(frozen=True, eq=False)
class Spectrum:
    """The first k eigenpairs of a spectral problem, with residuals and gaps.

    Parameters
    ----------
    values : array of shape (k,)
        Eigenvalues from the wanted end: ascending for "smallest", descending for "largest".
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
        Estimate of the norm of the operator in standard form; rounding errors are relative to it.
    solver, reason : str, default=""
        Name of the solver and why it was chosen.
    precision : str, default=""
        For data in single precision: in which precision products were computed, and why.
    acceptance : Acceptance, optional
        Tolerances on the residuals.
    further_values : array, optional
        Further eigenvalues, after the (k+1)-th, that the solver computed.
    energy_errors : array of shape (k,), optional
        Relative errors of energies (least values of the problem that was solved for a pair), by
        estimate, of pairs that are accepted for them instead of their residuals; NaN for others.

    See Also
    --------
    EigenSolver : computes it.
    SpectralProblem : turns it into coordinates.
    Spectra : spectra of all connected components.

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
    precision: str = ""
    acceptance: Acceptance = DEFAULT_ACCEPTANCE
    further_values: Array = field(default_factory=lambda: np.empty(0))
    energy_errors: Array | None = None

    @property
    def k(self) -> int:
        """Number of eigenpairs."""
        return len(self.values)

    @property
    def tolerances(self) -> Array:
        """Largest accepted residual of each pair: a fraction of the gap, at least rounding."""
        gaps = self.acceptance.finite_gaps(self.gaps, self.norm)
        return np.maximum(self.acceptance.angle * gaps, ROUNDING * self.norm)

    @property
    def worst(self) -> int:
        """Index of the pair with the largest ratio of residual to tolerance."""
        return int(np.argmax(self._excess))

    @property
    def worst_ratio(self) -> float:
        """Largest ratio of residual to tolerance; at most 1 if accepted.

        Pairs that are accepted for the error of their energy count as 0.
        """
        return float(self._excess.max())

    @property
    def accepted(self) -> bool:
        """Whether all residuals are within tolerance."""
        return bool(self.worst_ratio <= 1)

    @cached_property
    def clusters(self) -> tuple[IntArray, ...]:
        """Groups of indices of equal eigenvalues; only the subspace of a group is determined."""
        labels = cluster_labels(self.values, cluster_width(self.norm, self.acceptance.angle))
        return tuple(np.flatnonzero(labels == c) for c in np.unique(labels))

    @property
    def splits_cluster(self) -> bool:
        """Whether the (k+1)-th value belongs to the last cluster.

        If so, the last vectors are not unique: they span only part of an eigenspace.
        """
        return bool(
            abs(self.next_value - self.values[-1])
            <= cluster_width(self.norm, self.acceptance.angle)
        )

    @property
    def significant(self) -> NDArray[np.bool_]:
        """Mask of the eigenvalues that are positive beyond rounding."""
        return np.asarray(self.values > RANK_TOLERANCE * np.abs(self.values).max())

    @property
    def dual_vectors(self) -> Array:
        """Vectors v/√λ, for Nyström's formula with coordinates √λ·v.

        They are zero where λ is not positive.
        """
        return self.vectors * np.where(self.significant, self.values, np.inf) ** -0.5

    @property
    def _excess(self) -> Array:
        with np.errstate(invalid="ignore"):
            ratio = self.residuals / self.tolerances
        # 0 / 0 occurs for the zero operator, which is solved exactly; any other NaN is a failure.
        ratio[(self.residuals == 0) | self._by_energy] = 0.0
        return np.where(np.isnan(ratio), np.inf, ratio)

    @property
    def errors_of_energies(self) -> Array:
        """Estimated errors of energies; NaN for pairs that are judged by their residuals."""
        return np.full(self.k, np.nan) if self.energy_errors is None else self.energy_errors

    @property
    def _by_energy(self) -> NDArray[np.bool_]:
        return np.isfinite(self.errors_of_energies)

    def first(self, k: int) -> Spectrum:
        """Return the spectrum restricted to its first k pairs.

        Parameters
        ----------
        k : int
            Number of pairs, at most those of the spectrum.

        Returns
        -------
        Spectrum
            The first k pairs; ``next_value`` and ``further_values`` have the other eigenvalues.
        """
        if self.k == k:
            return self
        return replace(
            self,
            values=self.values[:k],
            vectors=self.vectors[:, :k],
            residuals=self.residuals[:k],
            gaps=self.gaps[:k],
            energy_errors=self.errors_of_energies[:k],
            next_value=float(self.values[k]),
            further_values=np.concatenate(
                [self.values[k + 1 :], [self.next_value], self.further_values]
            ),
        )

    def padded(self, k: int) -> Spectrum:
        """Return the spectrum padded with zeros to k pairs.

        Parameters
        ----------
        k : int
            Number of pairs.

        Returns
        -------
        Spectrum
            The spectrum with k pairs.
        """
        if self.k == k:
            return self
        missing = (0, k - self.k)
        return replace(
            self,
            values=np.pad(self.values, missing),
            vectors=np.pad(self.vectors, ((0, 0), missing)),
            residuals=np.pad(self.residuals, missing),
            gaps=np.pad(self.gaps, missing),
            energy_errors=np.pad(self.errors_of_energies, missing, constant_values=np.nan),
        )

    @property
    def computed(self) -> Array:
        """All computed eigenvalues, including those after the k-th."""
        values = np.concatenate([self.values, [self.next_value], self.further_values])
        return values[np.isfinite(values)]

    def summary(self) -> str:
        """Return one line with the solver, the reason, and the worst residual with its gap.

        Of pairs that are accepted for the error of their energy, it states that error.

        Returns
        -------
        str
            The line.
        """
        parts = [f"{self.solver}: {self.reason}"]
        if self.precision:
            parts.append(self.precision)
        by_energy = self._by_energy
        if not by_energy.all():
            i = int(np.argmax(np.where(by_energy, -1.0, self._excess)))
            parts.append(
                f"worst pair {i}: eigenvalue {self.values[i]:.6g}, "
                f"residual {self.residuals[i]:.1e}, gap {self.gaps[i]:.1e} "
                f"({'accepted' if self.accepted else 'not accepted'})"
            )
        if by_energy.any():
            pairs = ", ".join(map(str, np.flatnonzero(by_energy)))
            largest = self.errors_of_energies[by_energy].max()
            parts.append(f"energies to {100 * largest:.2g} %, by estimate, of pairs {pairs}")
        return "; ".join(parts)


def cluster_width(norm: float, angle: float = DEFAULT_ACCEPTANCE.angle) -> float:
    """Return the distance below which two eigenvalues count as equal.

    A rounding error of ROUNDING·‖A‖ rotates an eigenvector by ROUNDING·‖A‖ / gap. If this exceeds
    `angle`, the vector is not determined: hence the width ROUNDING·‖A‖ / `angle`, about
    4e3·eps·‖A‖. There is no term relative to |λ|, since adding a multiple of the identity changes
    |λ| but no eigenvector. With such a term, the leading eigenvalues of I − L (all close to 1,
    separated by the small gaps of L) would form a cluster, and those of L would not.
    """
    return ROUNDING / angle * norm


def cluster_labels(values: Array, width: float) -> IntArray:
    """Return cluster labels of sorted values; neighbors closer than `width` share a cluster.

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
    """Return, for each sorted value, the distance from its cluster to the nearest other value.

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


def fixed_signs(V: Array) -> Array:
    """Return V with the entry of largest modulus of each column positive; see `leading_entries`."""
    signs = np.sign(leading_entries(V))
    return V * np.where(signs == 0, 1.0, signs)


def leading_entries(V: Array, tie: float = 1e-6) -> Array:
    """Return the entry of largest modulus of each column.

    Among entries equal to within the fraction `tie`, the first one is used: an odd eigenvector has
    two entries of equal modulus, and the choice must not depend on rounding.

    Examples
    --------
    >>> import numpy as np
    >>> from manifoldry.eigen.spectrum import leading_entries
    >>> leading_entries(np.array([[1.0, 2.0], [-3.0, -2.0]]))
    array([-3.,  2.])
    """
    modulus = np.abs(V)
    first = np.argmax(modulus >= (1 - tie) * modulus.max(axis=0), axis=0)
    return np.asarray(V[first, np.arange(V.shape[1])])
