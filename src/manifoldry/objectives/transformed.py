"""Objectives in transformed variables: rescaled, confined to a box, or of fixed covariance."""

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from manifoldry.device import device_of
from manifoldry.objectives.base import Objective, check_embedding
from manifoldry.util.arrays import double, namespace
from manifoldry.util.cached import cached_property
from manifoldry.util.checks import check_positive
from manifoldry.util.typing import Array


@dataclass(frozen=True, eq=False)
class Resized(Objective):
    """Objective E(unit·U) as a function of U.

    Use it to search in other units of length than those of the objective.

    Parameters
    ----------
    objective : Objective
        The objective E.
    unit : float
        The factor of the embedding.

    See Also
    --------
    Boxed, Whitened : objectives with a constraint.
    best_scale : the factor at which an embedding has the smallest value.

    Examples
    --------
    >>> import numpy as np
    >>> from manifoldry.objectives.kernel_regression import UKRObjective
    >>> objective = UKRObjective(np.array([[0.0], [1.0], [2.0]]))
    >>> U = np.array([[-1.0], [0.0], [1.0]])
    >>> Resized(objective, 2.0).value(U) == objective.value(2 * U)
    True
    """

    objective: Objective
    unit: float

    @property
    def translation_invariant(self) -> bool:  # type: ignore[override]  # here it depends on the instance
        return self.objective.translation_invariant

    @property
    def any_namespace(self) -> bool:  # type: ignore[override]
        return self.objective.any_namespace

    @property
    def n(self) -> int:
        return self.objective.n

    @property
    def attraction(self) -> sparse.csr_array:
        return self.objective.attraction * self.unit**2

    def value(self, Y: Array) -> float:
        return self.objective.value(self.unit * Y)

    def value_and_gradient(self, Y: Array) -> tuple[float, Array]:
        value, G = self.objective.value_and_gradient(self.unit * Y)
        return value, self.unit * G

    def diagonal_curvature(self, Y: Array) -> Array:
        return self.unit**2 * self.objective.diagonal_curvature(self.unit * Y)


@dataclass(frozen=True, eq=False)
class Boxed(Objective):
    """Objective E(η·sin(Z/η)) of unconstrained variables Z, for an embedding Y within ±η.

    Unconstrained minimization over Z is minimization over embeddings Y in a box.
    :meth:`constrained` returns the embedding Y of a solution Z; near the center Y ≈ Z. A minimum at
    the boundary is an ordinary minimum in Z, at ±η·π/2, with positive curvature; with tanh it would
    lie at infinity, and searches would converge slowly. The gradient vanishes at the boundary, so a
    search must start in the interior, as :meth:`unconstrained` ensures. The value is not invariant
    to translations.

    Parameters
    ----------
    objective : Objective
        The objective of the embedding Y.
    half_width : float
        Half the side of the box, η.
    start_within : float, default=0.99
        Fraction of the box to which :meth:`unconstrained` clips positions.

    See Also
    --------
    DensityFloor : another regularization of kernel regression.
    UKRObjective : an objective that needs regularization.

    Examples
    --------
    >>> import numpy as np
    >>> from manifoldry.objectives.kernel_regression import UKRObjective
    >>> boxed = Boxed(UKRObjective(np.eye(3), leave_one_out=False), half_width=2.0)
    >>> Y = np.array([[-2.5], [0.0], [1.0]])
    >>> boxed.constrained(boxed.unconstrained(Y)).round(2)
    array([[-1.98],
           [ 0.  ],
           [ 1.  ]])
    """

    objective: Objective
    half_width: float
    start_within: float = 0.99

    translation_invariant = False

    def __post_init__(self) -> None:
        check_positive("half_width", self.half_width)

    @property
    def any_namespace(self) -> bool:  # type: ignore[override]  # here it depends on the instance
        return self.objective.any_namespace

    @property
    def n(self) -> int:
        return self.objective.n

    @property
    def attraction(self) -> sparse.csr_array:
        return self.objective.attraction

    def constrained(self, Z: Array) -> Array:
        """Return the embedding Y = η·sin(Z/η).

        Parameters
        ----------
        Z : array of shape (n, d)
            The variables.

        Returns
        -------
        array of shape (n, d)
            The embedding.
        """
        eta = Z.dtype.type(self.half_width)
        return eta * np.sin(Z / eta)

    def unconstrained(self, Y: Array) -> Array:
        """Return the variables Z of an embedding Y.

        Parameters
        ----------
        Y : array of shape (n, d)
            The embedding; it is clipped to `start_within` of the box.

        Returns
        -------
        array of shape (n, d)
            The variables.
        """
        eta = Y.dtype.type(self.half_width)
        return eta * np.arcsin(np.clip(Y / eta, -self.start_within, self.start_within))

    def value(self, Y: Array) -> float:
        return self.objective.value(self.constrained(Y))

    def value_and_gradient(self, Y: Array) -> tuple[float, Array]:
        value, G = self.objective.value_and_gradient(self.constrained(Y))
        return value, G * np.cos(Y / Y.dtype.type(self.half_width))

    def diagonal_curvature(self, Y: Array) -> Array:
        """Return the diagonal curvature by the chain rule, h·cos² + max(−g·sin/η, 0).

        Parameters
        ----------
        Y : array of shape (n, d)
            The variables.

        Returns
        -------
        array of shape (n, d)
            The curvature of every variable.
        """
        eta, inside = Y.dtype.type(self.half_width), self.constrained(Y)
        h, G = (
            self.objective.diagonal_curvature(inside),
            self.objective.value_and_gradient(inside)[1],
        )
        return h * np.cos(Y / eta) ** 2 + np.maximum(-G * inside / eta**2, 0)


@dataclass(frozen=True, eq=False)
class Whitened(Objective):
    """E at the nearest embedding of covariance size²·I, as a function of any embedding.

    The covariance is YᵀBY for centered Y, where B is a diagonal matrix of weights that sum to one.
    Unconstrained minimization of this function minimizes E subject to YᵀBY = size²·I: a step
    followed by :meth:`nearest` is the polar retraction of the Stiefel manifold, and the gradient on
    the constraint set is B·ξ, where ξ = B⁻¹G − Y·sym(YᵀG)/size² is the Riemannian gradient in the
    metric B. Optimizers and filters therefore need no change; they retract after every step.

    Parameters
    ----------
    objective : Objective
        The objective E, which must be invariant to translations and rotations.
    mass : array of shape (n,), default=None
        The diagonal of B, up to a factor; by default equal for all points.
    size : float, default=1.0
        Standard deviation of every coordinate.
    flat : float, default=1e-14
        Fraction of the largest variance below which the variance along a direction is zero.

    See Also
    --------
    manifoldry.optimize.Constrained : minimizes under this constraint.
    Boxed : a bound on every coordinate.

    Examples
    --------
    >>> import numpy as np
    >>> from manifoldry.objectives import Whitened, elastic
    >>> objective = Whitened(elastic(np.array([[0, 0.5], [0.5, 0]])), size=2.0)
    >>> objective.nearest(np.array([[5.0], [6.0]])).ravel()
    array([-2.,  2.])
    """

    objective: Objective
    mass: Array | None = None
    size: float = 1.0
    flat: float = 1e-14

    def __post_init__(self) -> None:
        check_positive("size", self.size)
        if self.mass is None:
            return
        mass = np.asarray(self.mass, dtype=np.float64)
        if mass.shape != (self.n,):
            raise ValueError(
                f"mass has shape {mass.shape}; pass one weight for each of n={self.n} points"
            )
        if not (np.isfinite(mass).all() and (mass > 0).all()):
            raise ValueError(
                f"mass has entries from {mass.min()} to {mass.max()}; pass positive, finite weights"
            )

    @property
    def any_namespace(self) -> bool:  # type: ignore[override]  # here it depends on the instance
        return self.objective.any_namespace

    @property
    def n(self) -> int:
        return self.objective.n

    @property
    def attraction(self) -> sparse.csr_array:
        return self.objective.attraction

    def nearest(self, Z: Array) -> Array:
        """Return the centered embedding of covariance size²·I nearest to `Z` in the metric B.

        Parameters
        ----------
        Z : array of shape (n, d)
            Any embedding.

        Returns
        -------
        array of shape (n, d)
            The embedding that satisfies the constraint.
        """
        Y, A = self._polar(Z)
        if not np.isfinite(A).all():
            raise ValueError(
                f"the covariance of the embedding has a rank below {A.shape[0]}, its number of "
                "coordinates; add noise, or use fewer coordinates"
            )
        return Y

    def value(self, Y: Array) -> float:
        return self.objective.value(self.nearest(Y))

    def value_and_gradient(self, Y: Array) -> tuple[float, Array]:
        X, A = self._polar(Y)
        if not np.isfinite(A).all():
            return np.inf, np.zeros_like(Y)  # a line search then shortens the step
        value, G = self.objective.value_and_gradient(X)
        return value, (self.tangent(X, G) @ A).astype(X.dtype, copy=False)

    def retract(self, Y: Array, G: Array) -> tuple[Array, Array]:
        X, A = self._polar(Y)
        solved = namespace(X).linalg.solve(A, G.T.astype(np.float64))
        return X, solved.T.astype(X.dtype, copy=False)

    def tangent(self, Y: Array, G: Array) -> Array:
        """Return B·ξ at an embedding that satisfies the constraint.

        Parameters
        ----------
        Y : array of shape (n, d)
            The embedding.
        G : array of shape (n, d)
            The gradient of E.

        Returns
        -------
        array of shape (n, d)
            The gradient on the constraint set.
        """
        Y, G = double(Y), double(G)
        M = Y.T @ G
        T: Array = G - self._mass_near(Y) * Y @ (M + M.T) / (2 * self.size**2)
        return T

    def diagonal_curvature(self, Y: Array) -> Array:
        return self.objective.diagonal_curvature(self.nearest(Y))

    @cached_property
    def _normalized_mass(self) -> Array:
        """Diagonal of B, (n, 1), which sums to one."""
        mass = np.ones(self.n) if self.mass is None else np.asarray(self.mass, dtype=np.float64)
        mass = mass / mass.max()  # so that the sum cannot overflow
        return (mass / mass.sum())[:, None]

    def _mass_near(self, Y: Array) -> Array:
        """The diagonal of B in the memory of the embedding."""
        device = device_of(Y)
        if device is None:
            return self._normalized_mass
        if device.name not in self._copies:
            self._copies[device.name] = device.array(self._normalized_mass)
        return self._copies[device.name]

    @cached_property
    def _copies(self) -> dict[str, Array]:
        return {}

    def _polar(self, Z: Array) -> tuple[Array, Array]:
        """Nearest embedding and A = size·(ZᵀBZ)^{-1/2}, (d, d); NaN if ZᵀBZ is singular."""
        centered = check_embedding(Z, self.n).astype(np.float64, copy=False)
        mass = self._mass_near(centered)
        centered = centered - (mass * centered).sum(axis=0)
        unit = float(np.abs(centered).max()) or 1.0  # scaled so that squares do not overflow
        centered /= unit
        variances, Q = namespace(centered).linalg.eigh(centered.T @ (mass * centered))
        flat = variances <= self.flat * variances[-1]
        A = (Q * (self.size / np.sqrt(np.where(flat, np.nan, variances)))) @ Q.T
        return (centered @ A).astype(Z.dtype, copy=False), A / unit
