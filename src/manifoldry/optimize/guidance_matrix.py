"""Matrices M for spectral guidance, whose leading eigenvectors are smooth on the data."""

from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import LinearOperator, eigsh

from manifoldry.affinity.dense import median_rbf
from manifoldry.affinity.gaussian import typical_length
from manifoldry.neighbors.graph import NeighborGraph
from manifoldry.util.array_like import array_like
from manifoldry.util.checks import check_positive
from manifoldry.util.typing import Array, Matrix
from manifoldry.util.validation import (
    check_square,
    check_symmetric,
    largest_modulus,
    plan_matrix,
    read_array,
    read_rows,
)


def clustering_matrix(X: Any, gamma: float | None = None) -> Array:
    """Compute D^{-½} K D^{-½} with a dense Gaussian kernel K.

    This is the matrix of spectral clustering, which Memisevic and Hinton recommend for guidance. It
    is positive definite, and its largest eigenvalue is one.

    Parameters
    ----------
    X : array or sparse matrix of shape (n_samples, n_features)
        The data.
    gamma : float, default=None
        Coefficient in exp(−gamma·d²); by default one over the squared median distance to the tenth
        neighbor.

    Returns
    -------
    array of shape (n_samples, n_samples)
        The matrix.

    See Also
    --------
    graph_matrix : the sparse counterpart.
    kernel_pca_matrix : without the constant vector.
    Guidance : takes the matrix.

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
    """Compute H K H with a dense Gaussian kernel K and the centering matrix H, as in kernel PCA.

    Its leading eigenvectors do not include the constant vector, which only translates the
    embedding. Guidance by it decreases the objective more slowly at first than
    :func:`clustering_matrix`.

    Parameters
    ----------
    X : array or sparse matrix of shape (n_samples, n_features)
        The data.
    gamma : float, default=None
        Coefficient in exp(−gamma·d²); by default one over the squared median distance to the tenth
        neighbor.

    Returns
    -------
    array of shape (n_samples, n_samples)
        The matrix.

    See Also
    --------
    clustering_matrix : decreases the objective faster at first.
    Guidance : takes the matrix.

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
    """Compute D^{-½} W D^{-½}, with ones on the diagonal for points without neighbors.

    It is I − L with the symmetric normalized Laplacian L. Its eigenvalues lie between −1 and 1.

    Parameters
    ----------
    W : array or sparse matrix of shape (n_samples, n_samples)
        Symmetric weights of a neighbor graph.

    Returns
    -------
    sparse array of shape (n_samples, n_samples)
        The matrix.

    See Also
    --------
    clustering_matrix : the dense counterpart.
    Guidance : takes the matrix.

    Examples
    --------
    >>> import numpy as np
    >>> graph_matrix(np.array([[0.0, 2, 0], [2, 0, 0], [0, 0, 0]])).toarray()
    array([[0., 1., 0.],
           [1., 0., 0.],
           [0., 0., 1.]])
    """
    W = sparse.csr_array(array_like(W, "W"), dtype=np.float64)
    degree = np.asarray(W.sum(axis=1)).ravel()
    isolated = degree == 0
    S = sparse.diags_array(1 / np.sqrt(np.where(isolated, 1.0, degree)))
    return sparse.csr_array(S @ W @ S + sparse.diags_array(isolated.astype(float)))


def lazy(M: Matrix) -> Matrix:
    """(I + M)/2, positive semidefinite if the eigenvalues of M lie between −1 and 1.

    It has the eigenvectors of M; smoothing as much as M takes about twice the power. The name is
    that of lazy random walks.

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
    """One over the squared median distance to the tenth neighbor, or the last if there are fewer.

    The kernel then covers about ten neighbors, whatever the scale of the data. Wider kernels have
    fewer and smoother leading eigenvectors.

    Examples
    --------
    >>> import numpy as np
    >>> neighborhood_gamma(np.arange(100.0)[:, None])
    0.04
    """
    X = read_rows(X, least=2)
    return float(1 / typical_length(NeighborGraph.build(X, min(10, X.shape[0] - 1))) ** 2)


def check_guidance_matrix(
    matrix: Any, n: int, *, definite: bool = False, tol: float = 1e-3
) -> Matrix:
    """Return a user's matrix in double precision, checked and scaled to norm one.

    The scale of a filter makes no difference to a line search, but its powers must not overflow or
    underflow. The extreme eigenvalues are computed to `tol` relative to the norm; a norm of one
    within `tol` is not rescaled, and with `definite`, eigenvalues below −`tol` are refused.

    Examples
    --------
    >>> import numpy as np
    >>> check_guidance_matrix(np.diag([4.0, 2.0]), 2)
    array([[1. , 0. ],
           [0. , 0.5]])
    """
    M = read_array(matrix, "matrix", accept_sparse="csr", dtype=np.float64)
    check_square(M, "guidance")
    if M.shape[0] != n:
        raise ValueError(
            f"the guidance matrix has order {M.shape[0]}, but the embedding has {n} points; "
            "pass a matrix of the same data"
        )
    check_symmetric(M, "guidance")
    largest = largest_modulus(M)
    if largest == 0:
        raise ValueError(
            "the guidance matrix is zero, so that no step is possible; pass another matrix"
        )
    M = M / largest  # so that no eigenvalue overflows
    lowest, highest = extreme_eigenvalues(M, tol)
    norm = max(-lowest, highest)
    if definite and lowest < -tol * norm:
        raise ValueError(
            f"the guidance matrix has an eigenvalue of {lowest / norm:.3g} times its norm, but "
            "must be positive semidefinite; pass lazy(matrix / norm), or use Heat"
        )
    already_one = abs(norm * largest - 1) <= tol
    return M * largest if already_one else M / norm


def _gaussian(X: Any, gamma: float | None) -> Array:
    """exp(−gamma·d²) of all pairs of points, with ones on the diagonal."""
    X = read_rows(X, least=2)
    n = X.shape[0]
    plan_matrix((n, n), 16, f"a guidance matrix of {n} points", "guide by the neighbor graph")
    gamma = neighborhood_gamma(X) if gamma is None else check_positive("gamma", gamma)
    return median_rbf(X, gamma).matrix(X)


def extreme_eigenvalues(M: Matrix, tol: float, dense_up_to: int = 300) -> tuple[float, float]:
    """The smallest and the largest eigenvalue, to `tol` relative to the larger modulus.

    Up to order `dense_up_to` all eigenvalues are computed, which costs no more than these two.
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
    # After a shift by twice this eigenvalue, the other one has the largest modulus.
    shifted = LinearOperator((n, n), matvec=lambda x: M @ x - 2 * one * x, dtype=np.float64)
    other = 2 * one + largest_by_modulus(shifted)
    return min(one, other), max(one, other)
