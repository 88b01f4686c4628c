"""The smallest eigenvalue of the Hessian at an embedding, and steps that leave saddle points."""

import warnings
from dataclasses import dataclass
from itertools import combinations
from typing import NamedTuple

import numpy as np
from scipy.linalg import LinAlgError, eigh
from scipy.sparse.linalg import LinearOperator, eigsh, lobpcg

from manifoldry.device import device_of
from manifoldry.device.vectors import centered
from manifoldry.objectives.base import Objective
from manifoldry.optimize.descent import placed_for
from manifoldry.optimize.saddle_on_device import smallest_pair
from manifoldry.optimize.spectral_direction import SpectralDirection
from manifoldry.util.arrays import cast, double, like, to_numpy
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
    axis: Array | None = None,
    dense_up_to: int = 64,
    tol: float = 1e-4,
    block: int = 2,
    max_iter: int = 200,
) -> Curvature:
    """The smallest eigenvalue of the objective's Hessian at an embedding, with its eigenvector.

    Computed by LOBPCG, for which the Laplacian of the attraction is a very good preconditioner: it
    takes tens of products with the Hessian where Lanczos takes hundreds. It runs on the current
    device, if there is one.

    Parameters
    ----------
    objective : Objective
    Y : array of shape (n, d)
        The embedding.
    axis : array of shape (d,), default=None
        Consider only displacements of the points along this unit vector; by default all of them.
    dense_up_to : int, default=64
        Number of coordinates that may be displaced, n·d or n, up to which the Hessian is computed
        as a dense matrix.
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
    given, Y = Y, double(placed_for(objective, Y))
    moves = _Displacements(objective, Y, np.eye(Y.shape[1]) if axis is None else axis[:, None])
    R = moves.rigid_motions()
    scale = 4 * float(objective.attraction.sum()) / objective.n or 1.0
    if moves.size <= dense_up_to:
        value, v = _dense(moves, R)
    elif device_of(Y) is not None:
        value, V = _iterated_on_device(moves, R, tol * scale, block, max_iter)
        return Curvature(value, like(V, given), scale)
    else:
        value, v = _iterated(moves, R, tol * scale, block, max_iter)
    return Curvature(value, like(moves.lift(v), given), scale)


def thinnest_axis(Y: Array) -> Array:
    """The unit vector (d,) along which an embedding (n, d) extends least."""
    C = to_numpy(double(centered(Y)))
    # By the (d, d) covariance, since a singular value decomposition takes memory for n² numbers.
    return np.asarray(np.linalg.eigh(C.T @ C)[1][:, 0])


def leave_saddle(objective: Objective, Y: Array, direction: Array, max_halvings: int = 40) -> Array:
    """An embedding of lower value along ±`direction` of negative curvature; `Y` if none is found.

    The first trial moves points by one, the width of the kernel, in the root mean square; each
    further trial moves them half as far.
    """
    here = placed_for(objective, Y)
    value, V = objective.value(here), Y.shape[0] ** 0.5 * like(direction, here)
    for k in range(max_halvings):
        sides = [cast(here + s * 0.5**k * V, here.dtype) for s in (1, -1)]
        values = [objective.value(side) for side in sides]
        if min(values) < value:
            return like(sides[int(np.argmin(values))], Y)
    return Y


@dataclass(frozen=True, eq=False)
class _Displacements:
    """Displacements of all points along some axes, as vectors of length n·m."""

    objective: Objective
    Y: Array  # (n, d)
    axes: Array  # (d, m), orthonormal columns

    @property
    def size(self) -> int:
        return int(self.Y.shape[0] * self.axes.shape[1])

    def lift(self, v: Array) -> Array:
        """The displacement as an array of the shape and on the device of the embedding."""
        return like(v.reshape(-1, self.axes.shape[1]) @ self.axes.T, self.Y)

    def restrict(self, V: Array) -> Array:
        return np.asarray(to_numpy(V) @ self.axes).ravel()

    def hessian_product(self, v: Array) -> Array:
        return self.restrict(self.objective.hessian_product(self.Y, self.lift(v)))

    def rigid_motions(self) -> Array:
        """Orthonormal basis of the translations and rotations, as far as they are along the axes.

        Rotations move a point along one axis in proportion to its coordinate on another.
        """
        n, m = self.Y.shape[0], self.axes.shape[1]
        if not self.objective.translation_invariant:
            return np.zeros((self.size, 0))
        Y = to_numpy(centered(self.Y))
        motions: list[Array] = [np.outer(np.ones(n), e).ravel() for e in np.eye(m)]
        if m == 1:
            motions += list((Y - Y @ self.axes @ self.axes.T).T)
        for i, j in combinations(range(m), 2):
            turn = np.zeros((n, m))
            turn[:, i], turn[:, j] = Y @ self.axes[:, j], -Y @ self.axes[:, i]
            motions.append(turn.ravel())
        U, s, _ = np.linalg.svd(np.array(motions).T, full_matrices=False)
        return np.asarray(U[:, s > 1e-12 * s[0]])


def _dense(moves: _Displacements, R: Array) -> tuple[float, Array]:
    H = np.array([moves.hessian_product(e) for e in np.eye(moves.size)])
    Q = np.linalg.svd(R)[0][:, R.shape[1] :]  # orthogonal to the rigid motions
    if Q.shape[1] == 0:  # all displacements are rigid motions
        return 0.0, np.zeros(moves.size)
    values, V = eigh(Q.T @ (H + H.T) @ Q / 2)
    return float(values[0]), Q @ V[:, 0]


def _iterated(
    moves: _Displacements, R: Array, tol: float, block: int, max_iter: int
) -> tuple[float, Array]:
    filter = SpectralDirection().operator_for(moves.objective)
    square = (moves.size, moves.size)

    def product(v: Array) -> Array:
        Hv = moves.hessian_product(v)
        return Hv - R @ (R.T @ Hv)  # rotations are eigenvectors only at minima

    def precondition(v: Array) -> Array:
        return moves.restrict(filter.apply(moves.lift(v), moves.Y))

    H = LinearOperator(square, product, dtype=np.float64)
    M = LinearOperator(square, precondition, dtype=np.float64)
    start = np.random.default_rng(0).standard_normal((moves.size, block))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # LOBPCG warns if it ends short of tol
        try:
            values, V = lobpcg(
                H, start, M=M, Y=R if R.size else None, tol=tol, maxiter=max_iter, largest=False
            )
        except (ValueError, LinAlgError):  # its block became linearly dependent
            v0 = start[:, 0] - R @ (R.T @ start[:, 0])
            values, V = eigsh(H, 1, which="SA", v0=v0, tol=tol)
    least = int(np.argmin(values))
    return float(values[least]), V[:, least]


def _iterated_on_device(
    moves: _Displacements, R: Array, tol: float, block: int, max_iter: int
) -> tuple[float, Array]:
    """The same as `_iterated`, where the embedding is; the displacement has its shape."""
    filter, Y = SpectralDirection().operator_for(moves.objective), moves.Y
    motions, axes = like(R.T, Y), like(moves.axes, Y)

    def product(V: Array) -> Array:
        return moves.objective.hessian_product(Y, V @ axes.T) @ axes

    def precondition(V: Array) -> Array:
        return filter.apply(V @ axes.T, Y) @ axes

    start = np.random.default_rng(0).standard_normal((block, len(Y), axes.shape[1]))
    value, V = smallest_pair(product, precondition, like(start, Y), motions, tol, max_iter)
    return value, V @ axes.T
