"""Select coordinates by regression on the earlier ones, or by the independence of gradients."""

from itertools import combinations
from math import comb
from typing import Any

import numpy as np
from scipy import sparse
from scipy.spatial.distance import cdist, pdist

from manifoldry.util.checks import check_count, check_nonnegative
from manifoldry.util.typing import Array, IntArray, Matrix
from manifoldry.util.validation import (
    check_nonnegative_entries,
    check_square,
    check_symmetric,
    read_array,
    row_blocks,
    spread_rows,
)


def regression_errors(embedding: Any, *, n_rows: int = 2000, n_distances: int = 1000) -> Array:
    """Error of predicting each coordinate from all before it, as Dsilva et al. (2018) measure it.

    Local linear regression on the earlier coordinates, with weights exp(−d²/ε²) and ε a third of
    their median distance, leaving each point out; the root mean squared error is divided by the
    coordinate's standard deviation. The bandwidth is fixed and wide, so that functions which
    oscillate fast are not recognized; :func:`manifoldry.metrics.unpredictability` adapts its
    bandwidth.

    Parameters
    ----------
    embedding : array of shape (n_samples, n_components)
        The coordinates, in any units.
    n_rows : int, default=2000
        Maximum number of rows in the mean error, evenly spread.
    n_distances : int, default=1000
        Maximum number of rows from which the median distance is computed.

    Returns
    -------
    array of shape (n_components,)
        Near 0 for a function of the earlier coordinates, near 1 for a new direction. The first
        coordinate gets 1, a constant 0.

    Examples
    --------
    >>> import numpy as np
    >>> from manifoldry.nonredundant.baselines import regression_errors
    >>> x, y = np.random.default_rng(0).uniform(size=(2, 300))
    >>> regression_errors(np.column_stack([x, x**2, y])).round(1)
    array([1., 0., 1.])
    """
    Y = standardized(_check_map(embedding))
    errors = np.ones(Y.shape[1])
    for k in range(1, Y.shape[1]):
        before = Y[:, :k][:, Y[:, :k].any(axis=0)]
        if not Y[:, k].any():
            errors[k] = 0.0
        elif before.shape[1]:
            errors[k] = _leave_one_out_error(before, Y[:, k], n_rows, n_distances)
    return errors


def select_by_regression(
    embedding: Any, n_components: int | None = None, *, threshold: float | None = None
) -> IntArray:
    """Select the coordinates that the earlier ones predict worst (Dsilva et al. 2018).

    Compute more coordinates than are needed; this keeps the first and those of largest
    :func:`regression_errors`, each predicted from all earlier ones, kept or not.

    Parameters
    ----------
    embedding : array of shape (n_samples, n_candidates)
        Many coordinates, smoothest first.
    n_components : int, default=None
        How many to keep.
    threshold : float, default=None
        Alternatively, keep all coordinates whose error exceeds this.

    Returns
    -------
    array of int
        Columns to keep, ascending.

    References
    ----------
    C. J. Dsilva, R. Talmon, R. R. Coifman and I. G. Kevrekidis, "Parsimonious representation of
    nonlinear dynamical systems through manifold learning: a chemotaxis case study", Applied and
    Computational Harmonic Analysis 44 (2018).

    Examples
    --------
    >>> from manifoldry import LaplacianEigenmaps
    >>> from manifoldry.datasets import make_strip
    >>> from manifoldry.nonredundant.baselines import select_by_regression
    >>> Y = LaplacianEigenmaps(8).fit_transform(make_strip(400, aspect=2.5, random_state=0).X)
    >>> select_by_regression(Y, 2)
    array([0, 2])
    """
    if (n_components is None) == (threshold is None):
        raise ValueError(
            f"n_components={n_components} and threshold={threshold} both determine how many "
            "coordinates to keep; pass exactly one"
        )
    Y = _check_map(embedding)
    if threshold is not None:
        wanted = regression_errors(Y) > check_nonnegative("threshold", threshold)
        wanted[0] = True
        return np.flatnonzero(wanted)
    count = _check_kept(n_components, Y.shape[1])
    errors = regression_errors(Y)
    errors[0] = np.inf
    return np.sort(np.argsort(-errors, kind="stable")[:count])


def select_independent(
    embedding: Any,
    affinity: Any,
    n_components: int,
    *,
    dimension: int | None = None,
    zeta: float = 0.01,
    max_sets: int = 1000,
    n_rows: int = 2000,
) -> IntArray:
    """Select coordinates whose gradients span the tangent spaces (Chen and Meilă 2019).

    At every point i the matrix of all Γ(fⱼ, fₗ)ᵢ = Σₖ Wᵢₖ (fⱼₖ − fⱼᵢ)(fₗₖ − fₗᵢ) / Σₖ Wᵢₖ holds the
    inner products of the coordinates' gradients (the dual metric). Its leading `dimension`
    eigenvectors Uᵢ, (n_candidates, dimension), are an orthonormal basis of the tangent space in the
    candidate coordinates. The score of a set S is the volume spanned by the columns of the rows S
    of Uᵢ, scaled to unit length: 1 if tangent directions stay orthogonal, 0 if two of them
    collapse. The result maximizes, over all sets that contain the first coordinate,

        meanᵢ log vol Uᵢ[S] − zeta · Σ_{k∈S} λₖ/λ₁,

    where λₖ is the Rayleigh quotient of fₖ on the graph: the second term prefers smooth coordinates
    among equally independent ones.

    Parameters
    ----------
    embedding : array of shape (n_samples, n_candidates)
        Many coordinates, smoothest first, in any units.
    affinity : array or sparse matrix of shape (n_samples, n_samples)
        Symmetric weights W, such as ``LaplacianEigenmaps.affinity_``.
    n_components : int
        How many to keep.
    dimension : int, default=None
        Dimension of the manifold, by default `n_components`, which has to be at least that.
    zeta : float, default=0.01
        Weight of the penalty on rough coordinates.
    max_sets : int, default=1000
        If there are at most this many sets all are tried; otherwise coordinates are added greedily.
    n_rows : int, default=2000
        Maximum number of rows in the mean, evenly spread.

    Returns
    -------
    array of int of shape (n_components,)
        Columns to keep, ascending.

    References
    ----------
    Y.-C. Chen and M. Meilă, "Selecting the independent coordinates of manifolds with large aspect
    ratios", NeurIPS 2019.

    Examples
    --------
    >>> from manifoldry import LaplacianEigenmaps
    >>> from manifoldry.datasets import make_strip
    >>> from manifoldry.nonredundant.baselines import select_independent
    >>> model = LaplacianEigenmaps(8).fit(make_strip(400, aspect=2.5, random_state=0).X)
    >>> select_independent(model.embedding_, model.affinity_, 2)
    array([0, 2])
    """
    Y = _check_map(embedding)
    W = _check_affinity(affinity, len(Y))
    count = _check_kept(n_components, Y.shape[1])
    dimension = count if dimension is None else check_count("dimension", dimension)
    if dimension > count:
        raise ValueError(
            f"dimension={dimension} must be at most n_components={count}, since fewer coordinates "
            f"cannot span the tangent space; pass n_components={dimension} or more"
        )
    zeta = check_nonnegative("zeta", zeta)
    Y = standardized(Y)
    cost = zeta * _roughness(Y, W)
    bases = _tangents(Y, W, dimension, check_count("n_rows", n_rows))
    if comb(Y.shape[1] - 1, count - 1) <= check_count("max_sets", max_sets, minimum=0):
        sets = [[0, *rest] for rest in combinations(range(1, Y.shape[1]), count - 1)]
        return np.array(_best(sets, bases, cost))
    chosen = [0]
    while len(chosen) < count:
        rest = [k for k in range(Y.shape[1]) if k not in chosen]
        chosen = _best([[*chosen, k] for k in rest], bases, cost)
    return np.sort(chosen)


def _check_map(embedding: Any) -> Array:
    Y: Array = read_array(embedding, "embedding", dtype=np.float64, ensure_min_samples=3)
    return Y


def _check_kept(n_components: Any, n_candidates: int) -> int:
    count = check_count("n_components", n_components)
    if count > n_candidates:
        raise ValueError(
            f"n_components={count} must be at most the {n_candidates} columns of embedding; pass "
            "fewer, or compute more coordinates"
        )
    return count


def standardized(Y: Array) -> Array:
    """Coordinates of mean zero and unit variance; a constant becomes exactly zero."""
    constant = (Y[:1] == Y).all(axis=0)
    spread = np.where(constant, np.inf, Y.std(axis=0))
    return (Y - Y.mean(axis=0)) / spread


def kernel_rows(Z: Array, rows: Any, width: float, without_self: bool = False) -> Array:
    """Kernel weights exp(−d²/width²) of all points at Z[rows], normalized to row sum one."""
    D2 = cdist(Z[rows], Z, "sqeuclidean")
    if without_self:
        D2[np.arange(len(D2)), rows] = np.inf
    D2 -= D2.min(
        axis=1, keepdims=True
    )  # the nearest point has weight 1 before normalization, which avoids 0/0
    w = np.exp(-D2 / width**2)
    return np.asarray(w / w.sum(axis=1, keepdims=True))


def degrees(W: Matrix) -> Array:
    """Sum of every row."""
    return np.asarray(W.sum(axis=1)).ravel()


# Regression on earlier coordinates


def _leave_one_out_error(Z: Array, f: Array, n_rows: int, n_distances: int) -> float:
    """Root mean squared leave-one-out error of a local linear regression of f on Z."""
    rows = spread_rows(len(Z), check_count("n_rows", n_rows))
    width = _median_distance(Z, n_distances) / 3
    squares = (Z[:, :, None] * Z[:, None, :]).reshape(len(Z), -1)
    terms = np.column_stack([f, Z, Z * f[:, None], squares])
    predicted = []
    for block in row_blocks(len(rows), 2 * len(Z) + terms.shape[1]):
        w = kernel_rows(Z, rows[block], width or 1.0, without_self=True)
        predicted.append(_line_at(Z[rows[block]], w @ terms))
    return float(np.sqrt(np.mean((np.concatenate(predicted) - f[rows]) ** 2)))


def _median_distance(Z: Array, n_distances: int) -> float:
    among = spread_rows(len(Z), check_count("n_distances", n_distances, minimum=2))
    return float(np.median(pdist(Z[among])))


def _line_at(z: Array, moments: Array, flat: float = 1e-6) -> Array:
    """Value at z, (n_rows, p), of linear fits, given weighted means of f, Z, Z·f and Z·Zᵀ.

    It is f̄ + (z − Z̄)ᵀ C⁺ c, with C the covariance of Z and c that of Z and f. Moments about the
    origin are accurate enough, since Z is standardized and the kernel wide. Directions with less
    than the fraction `flat` of the largest variance are ignored.
    """
    n, p = z.shape
    f, Z, Zf, ZZ = np.split(moments, [1, 1 + p, 1 + 2 * p], axis=1)
    C = ZZ.reshape(n, p, p) - Z[:, :, None] * Z[:, None, :]
    slope = np.linalg.pinv(C, rcond=flat, hermitian=True) @ (Zf - Z * f)[:, :, None]
    return np.asarray(f[:, 0] + ((z - Z) * slope[:, :, 0]).sum(axis=1))


def _check_affinity(affinity: Any, n: int) -> sparse.csr_array:
    W = read_array(affinity, "affinity", accept_sparse="csr", dtype=np.float64)
    check_square(W, "affinities")
    check_nonnegative_entries(W, "affinities")
    check_symmetric(W, "affinities")
    if W.shape[0] != n:
        raise ValueError(
            f"affinity is of {W.shape[0]} points and embedding of {n}; pass the weights between "
            "the embedded points"
        )
    W = sparse.csr_array(W)
    alone = np.flatnonzero(degrees(W) == 0)
    if len(alone):
        raise ValueError(
            f"affinity has no positive weight in {len(alone)} of {n} rows (first: row {alone[0]}), "
            "so that gradients are undefined there; drop those points"
        )
    return W


def _roughness(Y: Array, W: sparse.csr_array) -> Array:
    """Rayleigh quotients fᵀ(D − W)f / fᵀDf, relative to the first."""
    degree = degrees(W)[:, None]
    Y = Y - (degree * Y).sum(axis=0) / degree.sum()
    energy = (Y * (degree * Y - W @ Y)).sum(axis=0)
    mass = (degree * Y**2).sum(axis=0)
    values = energy / np.where(mass > 0, mass, np.inf)
    return np.asarray(values / (values[0] if values[0] > 0 else 1.0))


def _tangents(Y: Array, W: sparse.csr_array, dimension: int, n_rows: int) -> Array:
    """Leading eigenvectors of the dual metric at some points, (n_rows, n_candidates, dimension)."""
    rows = spread_rows(len(Y), n_rows)
    n_numbers = 2 * (W.nnz // len(Y) + 1) * Y.shape[1] ** 2
    blocks = row_blocks(len(rows), n_numbers)
    H = np.concatenate([_dual_metric(Y, W, rows[block]) for block in blocks])
    return np.linalg.eigh(H)[1][:, :, ::-1][:, :, :dimension]


def _dual_metric(Y: Array, W: sparse.csr_array, rows: IntArray) -> Array:
    """Γ(fⱼ, fₗ) at some points, (n_rows, n_candidates, n_candidates)."""
    part = sparse.csr_array(W[rows])
    steps = Y[part.indices] - np.repeat(Y[rows], np.diff(part.indptr), axis=0)
    products = steps[:, :, None] * steps[:, None, :]  # of every edge
    edges = np.arange(len(steps))
    sums = sparse.csr_array((part.data, edges, part.indptr), shape=(len(rows), len(steps)))
    H = sums @ products.reshape(len(steps), -1) / degrees(part)[:, None]
    return np.asarray(H).reshape(len(rows), *products.shape[1:])


def _best(sets: list[list[int]], bases: Array, cost: Array) -> list[int]:
    return max(sets, key=lambda S: _mean_log_volume(bases[:, S]) - cost[S].sum())


def _mean_log_volume(U: Array, no_volume: float = 1e-12) -> float:
    """Mean logarithm of the volume of U's columns, (n, |S|, dimension), each of unit length.

    If the set is smaller than the dimension, only as many leading directions are used. Volumes are
    bounded below by `no_volume`, so that the logarithm is finite.
    """
    U = U[:, :, : U.shape[1]]
    lengths = np.linalg.norm(U, axis=1, keepdims=True)
    U = U / np.where(lengths > 0, lengths, 1.0)
    volumes = np.sqrt(np.maximum(np.linalg.det(U.transpose(0, 2, 1) @ U), 0.0))
    return float(np.log(np.maximum(volumes, no_volume)).mean())
