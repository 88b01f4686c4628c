"""Base class of the objectives that optimizers minimize."""

from abc import ABC, abstractmethod
from typing import ClassVar

import numpy as np
from scipy import sparse

from manifoldry.util.arrays import as_array, double, largest
from manifoldry.util.typing import Array, IntArray


class Objective(ABC):
    """Base class of functions E(Y) of the coordinates of n points, (n, d).

    A subclass defines `n` and `value_and_gradient`, which searches without a filter need. Filters
    need more: `attraction` (:class:`~manifoldry.optimize.SpectralDirection`,
    :class:`~manifoldry.optimize.Jacobi`, guidance without a matrix) or `diagonal_curvature`
    (:class:`~manifoldry.optimize.DiagonalHessian`).

    E is invariant to rotations of Y and, if `translation_invariant` is True, to translations;
    every column of the gradient then sums to zero. Gradients have the dtype of `Y`; values are
    computed in double precision.

    See Also
    --------
    Pairwise : objectives with attraction and repulsion.
    manifoldry.optimize.Optimizer : minimizes an objective.

    Examples
    --------
    Raw stress, the squared differences between distances in the embedding and given ones, here
    those of a right triangle:

    >>> import numpy as np
    >>> from scipy.spatial.distance import pdist
    >>> from manifoldry.objectives import Objective
    >>> from manifoldry.optimize import LBFGS
    >>> class RawStress(Objective):
    ...     def __init__(self, distances):
    ...         self.distances = distances
    ...     @property
    ...     def n(self):
    ...         return len(self.distances)
    ...     def value_and_gradient(self, Y):
    ...         differences = Y[:, None] - Y
    ...         D = np.sqrt((differences**2).sum(axis=2)) + np.eye(self.n)
    ...         errors = np.where(np.eye(self.n), 0, D - self.distances)
    ...         gradient = 2 * ((errors / D)[:, :, None] * differences).sum(axis=1)
    ...         return 0.5 * (errors**2).sum(), gradient
    >>> stress = RawStress(np.array([[0.0, 3, 4], [3, 0, 5], [4, 5, 0]]))
    >>> solution = LBFGS().minimize(stress, np.array([[0.0, 0], [1, 0], [0, 1]]))
    >>> pdist(solution.embedding).round(3)
    array([3., 4., 5.])
    """

    translation_invariant: bool = True
    """Whether translations of Y do not change E."""

    any_namespace: ClassVar[bool] = False
    """Whether it accepts embeddings of any array namespace, such as those on a GPU."""

    @property
    @abstractmethod
    def n(self) -> int:
        """Number of points."""

    @abstractmethod
    def value_and_gradient(self, Y: Array) -> tuple[float, Array]:
        """Return E(Y) and its gradient.

        Parameters
        ----------
        Y : array of shape (n, d)
            The embedding.

        Returns
        -------
        value : float
            E(Y).
        gradient : array of shape (n, d)
            Its gradient, in the dtype of `Y`.
        """

    def value(self, Y: Array) -> float:
        """Return E(Y).

        Parameters
        ----------
        Y : array of shape (n, d)
            The embedding.

        Returns
        -------
        float
            E(Y).
        """
        return self.value_and_gradient(Y)[0]

    def sampled_value(self, Y: Array, rows: IntArray) -> float:
        """Estimate E(Y) from the terms of some points; E(Y) itself unless overridden.

        Parameters
        ----------
        Y : array of shape (n, d)
            The embedding.
        rows : array of int
            The points.

        Returns
        -------
        float
            The estimate.
        """
        return self.value(Y)

    @property
    def attraction(self) -> sparse.csr_array:
        """Symmetric weights W ≥ 0; four times their Laplacian is the Hessian of the attraction.

        Exact if the attraction is Σ Wᵢⱼ‖yᵢ − yⱼ‖²; otherwise the Hessian at Y = 0. An objective
        without attraction returns the neighbor graph of the data.
        """
        raise NotImplementedError(self._missing("attraction"))

    @property
    def attraction_degrees(self) -> Array:
        """Sums of the rows of :attr:`attraction`, (n,)."""
        return np.asarray(self.attraction.sum(axis=1), dtype=np.float64).ravel()

    def diagonal_curvature(self, Y: Array) -> Array:
        """Return the positive part of the Hessian's diagonal.

        Parameters
        ----------
        Y : array of shape (n, d)
            The embedding.

        Returns
        -------
        array of shape (n, d)
            The curvature of every coordinate.
        """
        raise NotImplementedError(self._missing("diagonal_curvature"))

    def _missing(self, name: str) -> str:
        return (
            f"{type(self).__name__} does not define {name}, which the filter of this search needs; "
            "define it, or use a search without a filter, such as LBFGS()"
        )

    def retract(self, Y: Array, G: Array) -> tuple[Array, Array]:
        """Retract `Y` to the constraint set, and transform the gradient `G` accordingly.

        The value of the objective does not change. Unconstrained objectives return `Y` and `G`.

        Parameters
        ----------
        Y : array of shape (n, d)
            The embedding.
        G : array of shape (n, d)
            The gradient at it.

        Returns
        -------
        Y : array of shape (n, d)
            The nearest embedding that satisfies the constraint.
        G : array of shape (n, d)
            The gradient there.
        """
        return Y, G

    def hessian_product(
        self, Y: Array, V: Array, step: float = float(np.finfo(float).eps ** (1 / 3))
    ) -> Array:
        """Multiply the Hessian by a direction, by central differences of the gradient.

        Parameters
        ----------
        Y : array of shape (n, d)
            The embedding.
        V : array of shape (n, d)
            The direction.
        step : float, optional
            Step of the differences, relative to the largest entry of `Y`.

        Returns
        -------
        array of shape (n, d)
            The Hessian at `Y` times `V`.
        """
        Y, V = double(as_array(Y)), double(as_array(V))
        length = largest(V)
        if length == 0:
            return 0.0 * V
        h = step * max(largest(Y), 1.0) / length
        forward, backward = (self.value_and_gradient(Y + s * V)[1] for s in (h, -h))
        return (forward - backward) / (2 * h)


def check_embedding(Y: Array, n: int) -> Array:
    """Return `Y` as an array of n rows, or raise a ValueError."""
    Y = as_array(Y)
    if Y.ndim != 2 or len(Y) != n:
        raise ValueError(f"the embedding has shape {Y.shape}; pass an array with {n} rows")
    return Y
