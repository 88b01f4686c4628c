"""The smallest eigenvalue of the Hessian at an embedding, and steps that leave saddle points."""

import warnings
from typing import NamedTuple

import numpy as np
from scipy.linalg import eigh
from scipy.sparse.linalg import LinearOperator, lobpcg

from manifoldry.objectives.base import Objective
from manifoldry.optimize.spectral_direction import SpectralDirection
from manifoldry.util.arrays import cast, centered, double, like, to_numpy
from manifoldry.util.typing import Array


class Curvature(NamedTuple):
    """The smallest eigenvalue of the Hessian, excluding translations and rotations."""

    value: float
    direction: Array
    """Its eigenvector of unit length, of shape (n, d)."""
    scale: float
    """Mean curvature of the attraction, to which `tol` is relative."""
    tol: float = 1e-5
    """The embedding is a saddle point if value < −tol·scale."""

    @property
    def is_negative(self) -> bool:
        """Whether the embedding is a saddle point, beyond numerical error."""
        return self.value < -self.tol * self.scale


def smallest_curvature(
    objective: Objective,
    Y: Array,
    *,
    dense_up_to: int = 64,
    tol: float = 1e-4,
    block: int = 2,
    max_iter: int = 200,
) -> Curvature:
    """The smallest eigenvalue of the objective's Hessian at an embedding, with its eigenvector.

    Computed by LOBPCG, for which the Laplacian of the attraction is a very good preconditioner: it
    takes tens of products with the Hessian where Lanczos takes hundreds. The iteration runs on the
    CPU, products with the Hessian on the device of the embedding.

    Parameters
    ----------
    objective : Objective
    Y : array of shape (n, d)
        The embedding.
    dense_up_to : int, default=64
        Number of coordinates, n·d, up to which the Hessian is computed as a dense matrix.
    tol : float, default=1e-4
        Residual norm of the eigenvector, relative to the mean curvature of the attraction.
    block : int, default=2
        Number of eigenvectors in the block; a second one speeds up convergence if two eigenvalues
        are close.
    max_iter : int, default=200
        Maximum number of iterations.

    Examples
    --------
    Two points that coincide: attraction contributes 4, repulsion with weight 2 contributes −8.

    >>> import numpy as np
    >>> from manifoldry.objectives import elastic
    >>> objective = elastic(np.array([[0, 0.5], [0.5, 0]]), weight=2.0)
    >>> round(smallest_curvature(objective, np.zeros((2, 1))).value, 6)
    -4.0
    """
    Y = double(Y)
    motions = _rigid_motions(to_numpy(centered(Y)))
    R = motions if objective.translation_invariant else motions[:, :0]
    scale = 4 * float(objective.attraction.sum()) / objective.n or 1.0
    if Y.size <= dense_up_to:
        value, v = _dense(objective, Y, R)
    else:
        value, v = _iterated(objective, Y, R, tol * scale, block, max_iter)
    return Curvature(value, like(v.reshape(Y.shape), Y), scale)


def leave_saddle(objective: Objective, Y: Array, direction: Array, max_halvings: int = 40) -> Array:
    """An embedding of lower value along ±`direction` of negative curvature; `Y` if none is found.

    The first trial moves points by one, the width of the kernel, in the root mean square; each
    further trial moves them half as far.
    """
    value = objective.value(Y)
    V = Y.shape[0] ** 0.5 * direction
    for k in range(max_halvings):
        sides = [cast(Y + s * 0.5**k * V, Y.dtype) for s in (1, -1)]
        values = [objective.value(side) for side in sides]
        if min(values) < value:
            return sides[int(np.argmin(values))]
    return Y


def _dense(objective: Objective, Y: Array, R: Array) -> tuple[float, Array]:
    columns = [_product(objective, Y, e) for e in np.eye(Y.size)]
    H = np.array(columns)
    Q = np.linalg.svd(R)[0][:, R.shape[1] :]  # orthogonal to the rigid motions
    values, V = eigh(Q.T @ (H + H.T) @ Q / 2)
    return float(values[0]), Q @ V[:, 0]


def _iterated(
    objective: Objective, Y: Array, R: Array, tol: float, block: int, max_iter: int
) -> tuple[float, Array]:
    filter = SpectralDirection().operator_for(objective)
    square, shape = (Y.size, Y.size), Y.shape

    def product(v: Array) -> Array:
        Hv = _product(objective, Y, v)
        return Hv - R @ (R.T @ Hv)  # rotations are eigenvectors only at minima

    H = LinearOperator(square, product, dtype=np.float64)
    M = LinearOperator(
        square, lambda v: filter.apply(v.reshape(shape), Y).ravel(), dtype=np.float64
    )
    start = np.random.default_rng(0).standard_normal((Y.size, block))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # LOBPCG warns if it ends short of tol
        values, V = lobpcg(
            H, start, M=M, Y=R if R.size else None, tol=tol, maxiter=max_iter, largest=False
        )
    least = int(np.argmin(values))
    return float(values[least]), V[:, least]


def _product(objective: Objective, Y: Array, v: Array) -> Array:
    return to_numpy(objective.hessian_product(Y, like(v.reshape(Y.shape), Y))).ravel()


def _rigid_motions(Y: Array) -> Array:
    """Orthonormal basis of the translations and rotations of a centered embedding, (n·d, m)."""
    n, d = Y.shape
    motions: list[Array] = [np.outer(np.ones(n), axis).ravel() for axis in np.eye(d)]
    for i in range(d):
        for j in range(i):
            turn = np.zeros_like(Y)
            turn[:, i], turn[:, j] = Y[:, j], -Y[:, i]
            motions.append(turn.ravel())
    U, s, _ = np.linalg.svd(np.array(motions).T, full_matrices=False)
    return U[:, s > 1e-12 * s[0]]
