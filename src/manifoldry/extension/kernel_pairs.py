"""An equivalent kernel at pairs of new points, and its approximation by eigenfunctions."""

from dataclasses import dataclass

import numpy as np

from manifoldry.util.typing import Array, IntArray


@dataclass(frozen=True, eq=False)
class KernelPairs:
    """Values of an equivalent kernel at pairs of points, of which the first is new.

    The second point is another new point, or a training point. Between points of different
    connected components both the kernel and its approximation are zero.

    Parameters
    ----------
    kernel : array of shape (n_new, n_others)
        The kernel, in units of `unit`².
    left, right : arrays of shape (n_new, n_components) and (n_others, n_components)
        Functions whose products approximate the kernel: left @ right.T, which is
        Σₖ ℓₖ vₖ(x) vₖ(y) for eigenvalues ℓ and eigenfunctions v.
    squares : array of shape (n_new, n_components)
        Squares of the eigenfunctions at the new points, divided by their mean over the training
        points of the same connected component.
    omitted : pair of arrays of shapes (n_new,) and (n_others,), or None
        Factors of the eigenfunction that the embedding leaves out.
    components : pair of arrays of shapes (n_new,) and (n_others,), or None
        Connected components of the points; None if there is one.
    symmetric : bool
        Whether the second points are the new points, in the same order. Pairs of a point with
        itself do not count then.
    unit : float
        Unit of length of the kernel.
    """

    kernel: Array
    left: Array
    right: Array
    squares: Array
    omitted: tuple[Array, Array] | None = None
    components: tuple[IntArray, IntArray] | None = None
    symmetric: bool = True
    unit: float = 1.0

    @classmethod
    def of_coordinates(
        cls, kernel: Array, Z: Array, mean_squares: Array, unit: float
    ) -> "KernelPairs":
        """Pairs of new points with coordinates `Z`, √ℓ·v, in units of `unit`.

        `mean_squares` are those of the training points, (n_components,) or (n_new, n_components).
        """
        squares = np.divide(Z**2, mean_squares, out=np.zeros_like(Z), where=mean_squares > 0)
        return cls(kernel, Z, Z, squares, unit=unit)
