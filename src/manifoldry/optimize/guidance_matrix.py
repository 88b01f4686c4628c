"""Matrices whose leading eigenvectors show where a map should go: M of spectral guidance."""

from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import LinearOperator, eigsh
from sklearn.utils import check_array

from manifoldry.affinity.dense import median_rbf
from manifoldry.affinity.gaussian import typical_length
from manifoldry.neighbors.graph import NeighborGraph
from manifoldry.util.checks import check_positive
from manifoldry.util.typing import Array, Matrix
from manifoldry.util.validation import (
    check_square,
    check_symmetric,
    largest_modulus,
    plan_memory,
    refuse_masked,
)


def clustering_matrix(X: Any, gamma: float | None = None) -> Array:
    """D^{-½} K D^{-½} with a dense Gaussian K: positive definite, its largest eigenvalue one.

    The matrix of spectral clustering, and the guidance of choice of Memisevic and Hinton.

    Parameters
    ----------
    X : array or sparse matrix of shape (n_samples, n_features)
        The data.
    gamma : float, default=None
        Coefficient in exp(−gamma·d²); by default :func:`neighborhood_gamma`.

    Examples
    --------
    >>> import numpy as np
    >>> M = clustering_matrix(np.array([[0.0], [1.0], [2.0]]), gamma=1.0)
    >>> np.linalg.eigvalsh(M).round(3)
    array([0.311, 0.708, 1.   ])
    """
    K = _gaussian(X, gamma)
    root = np.sqrt(K.sum(axis=1))
    K /= root[:, None]
    K /= root
    return K


def kernel_pca_matrix(X: Any, gamma: float | None = None) -> Array:
    """H K H with a dense Gaussian K and the centering H: the matrix of kernel PCA.

    The constant, which moves nothing, is not among its leading eigenvectors. As guidance it
    starts more slowly than :func:`clustering_matrix`.

    Parameters
    ----------
    X : array or sparse matrix of shape (n_samples, n_features)
        The data.
    gamma : float, default=None
        Coefficient in exp(−gamma·d²); by default :func:`neighborhood_gamma`.

    Examples
    --------
    >>> import numpy as np
    >>> M = kernel_pca_matrix(np.array([[0.0], [1.0], [2.0]]), gamma=1.0)
    >>> bool(np.abs(M.sum(axis=0)).max() < 1e-15)
    True
    """
    K = _gaussian(X, gamma)
    means = K.mean(axis=0)
    K -= means
    K -= means[:, None]
    K += means.mean()
    return K


def graph_matrix(W: Matrix) -> sparse.csr_array:
    """I − L, L the symmetric normalized Laplacian: D^{-½} W D^{-½}, one for points on their own.

    Its spectrum lies between −1 and 1; :func:`lazy` makes it positive.

    Examples
    --------
    >>> import numpy as np
    >>> graph_matrix(np.array([[0.0, 2, 0], [2, 0, 0], [0, 0, 0]])).toarray()
    array([[0., 1., 0.],
           [1., 0., 0.],
           [0., 0., 1.]])
    """
    W = sparse.csr_array(W, dtype=np.float64)
    degree = np.asarray(W.sum(axis=1)).ravel()
    isolated = degree == 0
    S = sparse.diags_array(1 / np.sqrt(np.where(isolated, 1.0, degree)))
    return sparse.csr_array(S @ W @ S + sparse.diags_array(isolated.astype(float)))


def lazy(M: Matrix) -> Matrix:
    """(I + M)/2, positive semidefinite if the spectrum of M lies between −1 and 1.

    Its eigenvectors are those of M; it takes about twice the power to smooth as much.

    Examples
    --------
    >>> import numpy as np
    >>> lazy(np.array([[0.0, 1.0], [1.0, 0.0]]))
    array([[0.5, 0.5],
           [0.5, 0.5]])
    """
    n = M.shape[0]
    if sparse.issparse(M):
        return sparse.csr_array((M + sparse.eye_array(n)) / 2)
    return (M + np.eye(n)) / 2


def neighborhood_gamma(X: Any) -> float:
    """One over the median squared distance to the tenth neighbor, as far as there are so many.

    So a point sees about ten others, and the units of the data do not matter. Wider kernels
    guide by fewer and smoother directions.

    Examples
    --------
    >>> import numpy as np
    >>> neighborhood_gamma(np.arange(100.0)[:, None])
    0.04
    """
    X = _points(X)
    return float(1 / typical_length(NeighborGraph.build(X, min(10, X.shape[0] - 1))) ** 2)


def check_guidance_matrix(
    matrix: Any, n: int, *, definite: bool = False, tol: float = 1e-3
) -> Matrix:
    """A user's matrix, checked, in double precision, and scaled to norm one.

    With a line search the scale of a filter does not matter, but powers of it should neither
    overflow nor vanish. A norm that is one already is left alone. The ends of its spectrum are
    computed to `tol`, relative to the norm: negative eigenvalues below that do no harm.

    Examples
    --------
    >>> import numpy as np
    >>> check_guidance_matrix(np.diag([4.0, 2.0]), 2)
    array([[1. , 0. ],
           [0. , 0.5]])
    """
    refuse_masked(matrix)
    M = check_array(matrix, accept_sparse="csr", dtype=np.float64, input_name="matrix")
    check_square(M, "guidance")
    if M.shape[0] != n:
        raise ValueError(
            f"matrix has order {M.shape[0]}, but the map has {n} points; pass a matrix of the data "
            "that are mapped"
        )
    check_symmetric(M, "guidance")
    largest = largest_modulus(M)
    if largest == 0:
        raise ValueError("the guidance matrix is zero and leads nowhere; pass another matrix")
    M = M / largest  # in units in which no eigenvalue overflows
    lowest, highest = _extreme_eigenvalues(M, tol)
    norm = max(-lowest, highest)
    if definite and lowest < -tol * norm:
        raise ValueError(
            f"the guidance matrix has an eigenvalue of {lowest / norm:.3g} times its norm, so that "
            "its powers may lead uphill; pass lazy(matrix / norm), or use Heat"
        )
    already_one = abs(norm * largest - 1) <= tol
    return M * largest if already_one else M / norm


def _gaussian(X: Any, gamma: float | None) -> Array:
    """exp(−gamma·d²) between all points, with a diagonal of ones."""
    X = _points(X)
    n = X.shape[0]
    plan_memory(16.0 * n * n, f"a guidance matrix of {n} points", "guide by the neighbor graph")
    gamma = neighborhood_gamma(X) if gamma is None else check_positive("gamma", gamma)
    return median_rbf(X, gamma).matrix(X)


def _points(X: Any) -> Matrix:
    refuse_masked(X)
    return check_array(X, accept_sparse="csr", dtype=[np.float64, np.float32], ensure_min_samples=2)


def _extreme_eigenvalues(M: Matrix, tol: float, dense_up_to: int = 300) -> tuple[float, float]:
    """The smallest and the largest eigenvalue, to `tol` of the larger modulus.

    Up to an order of `dense_up_to` all eigenvalues cost no more than these two.
    """
    n = M.shape[0]
    if n <= dense_up_to:
        values = np.linalg.eigvalsh(M.toarray() if sparse.issparse(M) else M)
        return float(values[0]), float(values[-1])
    start = np.random.default_rng(0).standard_normal(n)

    def largest_by_modulus(A: Any) -> float:
        found = eigsh(A, 1, which="LM", tol=tol / 4, v0=start, return_eigenvectors=False)
        return float(found[0])

    one = largest_by_modulus(M)
    # Seen from twice the one, the other end is the farthest.
    shifted = LinearOperator((n, n), matvec=lambda x: M @ x - 2 * one * x, dtype=np.float64)
    other = 2 * one + largest_by_modulus(shifted)
    return min(one, other), max(one, other)
