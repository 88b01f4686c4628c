"""Extension of Laplacian eigenvectors to new points."""

from dataclasses import dataclass, replace
from typing import ClassVar, Literal, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from manifoldry.affinity.base import Weights
from manifoldry.affinity.dense import RBF
from manifoldry.exceptions import ExtensionWarning, warn_about_rows
from manifoldry.extension.base import KernelExtension, with_training_rows
from manifoldry.extension.kernel_pairs import KernelPairs
from manifoldry.extension.layout import Layout
from manifoldry.neighbors.base import UNKNOWN_AMONG
from manifoldry.neighbors.graph import NeighborGraph
from manifoldry.util.cached import cached_property, state_of_fields
from manifoldry.util.rows import RowLookup
from manifoldry.util.typing import Array, IntArray, Matrix
from manifoldry.util.validation import row_blocks

Normalization = Literal["rw", "sym", "none"]

# Nyström's formula divides by 1 − λ; smaller values would only amplify noise.
SMALLEST_DIVISOR = 0.1


class WeightRows(Protocol):
    """Weights between new points and training points."""

    @property
    def numbers_per_row(self) -> int:
        """Number of floats that the weights of one new point need."""
        ...

    def rows(self, X: Matrix) -> tuple[sparse.csr_array, Array, IntArray]:
        """Weights to the training points, row by row scaled to a maximum of one.

        Returns
        -------
        W : sparse array of shape (n_new, n_train)
            The weights divided by the largest of their row, which may underflow.
        log_scale : array of shape (n_new,)
            Logarithm of that largest weight: the weights themselves are exp(log_scale) W.
        nearest : array of shape (n_new,)
            Index of the nearest training point.
        """
        ...

    def among(self, X: Matrix, log_scale: Array) -> sparse.csr_array:
        """Weights between new points, divided by exp((log_scale[i] + log_scale[j])/2).

        A value is only needed if neither point is identical to a training point.
        """
        ...

    def identical(self, X: Matrix) -> IntArray:
        """Training point identical to each row, or -1."""
        ...


@dataclass(frozen=True, eq=False)
class GraphWeights:
    """Weights of a neighbor graph, for new points as well as for training points.

    Pass it to :class:`LaplacianExtension`.

    Parameters
    ----------
    graph : NeighborGraph
        The training graph.
    weights : Weights
        The affinity that was fitted to it.

    See Also
    --------
    LaplacianExtension : uses it.
    manifoldry.affinity.Affinity : its `fit` returns the weights.

    Examples
    --------
    Weights exp(−d²) of the point 0.4 with its neighbor, 0, and with 1, of which it is a neighbor:

    >>> import numpy as np
    >>> from manifoldry import NeighborGraph
    >>> from manifoldry.affinity import Gaussian
    >>> from manifoldry.extension import GraphWeights
    >>> graph = NeighborGraph.build(np.array([[0.0], [1.0], [3.0]]), n_neighbors=1)
    >>> source = GraphWeights(graph, Gaussian(gamma=1.0).fit(graph))
    >>> W, log_scale, nearest = source.rows(np.array([[0.4]]))
    >>> (np.exp(log_scale)[:, None] * W.toarray()).round(3), nearest
    (array([[0.852, 0.698, 0.   ]]), array([0]))
    """

    graph: NeighborGraph
    weights: Weights

    @property
    def numbers_per_row(self) -> int:
        """Number of floats that the weights of one new point need."""
        return max(64, 8 * len(self.graph.indices) // max(1, self.graph.n_query))

    @property
    def self_weights(self) -> Array:
        """Weight of each training point with itself, (n_train,)."""
        return self.weights.self_weights(self.graph)

    def rows(self, X: Matrix) -> tuple[sparse.csr_array, Array, IntArray]:
        """Return the weights between new points and training points.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_new, n_features)
            The new points.

        Returns
        -------
        W : sparse array of shape (n_new, n_train)
            The weights divided by the largest of their row, which may underflow.
        log_scale : array of shape (n_new,)
            Logarithm of that largest weight: the weights themselves are exp(log_scale) W.
        nearest : array of shape (n_new,)
            Index of the nearest training point.
        """
        own, back = self.graph.query(X)
        W, log_scale = self.weights.rows(own, back)
        nearest = _heaviest(W)
        filled = np.flatnonzero(np.diff(own.indptr))
        nearest[filled] = own.indices[own.indptr[filled]]
        return W, log_scale, nearest

    def among(self, X: Matrix, log_scale: Array) -> sparse.csr_array:
        """Return the weights between new points, divided by exp((log_scale[i] + log_scale[j])/2).

        Parameters
        ----------
        X : array or sparse matrix of shape (n_new, n_features)
            The new points.
        log_scale : array of shape (n_new,)
            Logarithms of scales, such as those of :meth:`rows`.

        Returns
        -------
        sparse array of shape (n_new, n_new)
            The weights.
        """
        return self.weights.among(self.graph.nearest_to(X), self.graph.among(X), log_scale)

    def identical(self, X: Matrix) -> IntArray:
        """Return the training point identical to each row, or -1.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_new, n_features)
            The new points.

        Returns
        -------
        array of shape (n_new,)
            Indices of training points.
        """
        return self.graph.identical(X)


@dataclass(frozen=True, eq=False)
class KernelWeights:
    """Gaussian weights to all training points."""

    kernel: RBF

    __getstate__ = state_of_fields

    @property
    def numbers_per_row(self) -> int:
        """See :class:`WeightRows`."""
        return self.kernel.n_train

    @cached_property
    def _lookup(self) -> RowLookup:
        return RowLookup.of(self.kernel.X)

    def rows(self, X: Matrix) -> tuple[sparse.csr_array, Array, IntArray]:
        """See :class:`WeightRows`."""
        exponents = self.kernel.exponents(X)
        known = self.identical(X)
        exponents[np.flatnonzero(known >= 0), known[known >= 0]] = np.inf  # no self-loops
        smallest = exponents.min(axis=1)
        nearest = exponents.argmin(axis=1)
        return sparse.csr_array(np.exp(smallest[:, None] - exponents)), -smallest, nearest

    def among(self, X: Matrix, log_scale: Array) -> sparse.csr_array:
        """See :class:`WeightRows`."""
        exponents = replace(self.kernel, X=X).exponents(X)
        np.fill_diagonal(exponents, np.inf)
        with np.errstate(over="ignore"):
            W = np.exp(-exponents - (log_scale[:, None] + log_scale) / 2)
        return sparse.csr_array(np.maximum(W, W.T))

    def identical(self, X: Matrix) -> IntArray:
        """See :class:`WeightRows`."""
        return self._lookup.identical(X)


@dataclass(frozen=True, eq=False)
class GivenWeights:
    """Weights passed by the user in place of data."""

    @property
    def numbers_per_row(self) -> int:
        """See :class:`WeightRows`."""
        return 64

    def rows(self, X: Matrix) -> tuple[sparse.csr_array, Array, IntArray]:
        """See :class:`WeightRows`."""
        W = sparse.csr_array(X, dtype=np.float64)
        largest = W.max(axis=1).toarray().ravel() if W.shape[0] else np.empty(0)
        scale = np.where(largest > 0, largest, 1.0)
        return sparse.csr_array(sparse.diags_array(1 / scale) @ W), np.log(scale), _heaviest(W)

    def among(self, X: Matrix, log_scale: Array) -> sparse.csr_array:
        """Raise ValueError: only weights with the training points are known."""
        raise ValueError(UNKNOWN_AMONG)

    def identical(self, X: Matrix) -> IntArray:
        """Return -1 for all rows, since weights do not identify training points."""
        return np.full(X.shape[0], -1, dtype=np.intp)


@dataclass(frozen=True, eq=False)
class LaplacianExtension(KernelExtension):
    """Solve the eigenvalue equation at a new point, with the training embedding fixed.

    With weights w(x, j) and degree d(x) = Σⱼ w(x, j), an eigenfunction satisfies
    (1 − λ)·d(x)·f(x) = Σⱼ w(x, j)·f(j) with normalization "rw" or "sym", and
    (d(x) − λ)·f(x) = Σⱼ w(x, j)·f(j) with "none".

    Parameters
    ----------
    source : WeightRows
        Computes the weights of new points, such as :class:`GraphWeights`.
    affinity : array or sparse array of shape (n_train, n_train)
        Weights between training points.
    degree : array of shape (n_train,)
        Degrees of the training points.
    functions : array of shape (n_train, n_components)
        The eigenfunctions f, even if the coordinates are √d·f.
    values : array of shape (n_connected, n_components)
        Eigenvalues λ of each connected component.
    normalization : {"rw", "sym", "none"}
        Which Laplacian the eigenfunctions belong to.
    layout : Layout
        Position and scale of each connected component.
    omits_constant : bool, default=True
        Whether f = 1, with eigenvalue 0, is not among the functions.
    scales : array of shape (n_connected, n_components), default=None
        Factors of f in the coordinates; None means one.

    See Also
    --------
    GraphWeights : the weights of new points.
    Nystrom : the formula for kernel methods.
    manifoldry.LaplacianEigenmaps : uses it.

    Examples
    --------
    Six points in a row. A training point keeps its coordinate, and a new point in the middle has 0,
    by symmetry:

    >>> import numpy as np
    >>> from scipy import sparse
    >>> from manifoldry import NeighborGraph
    >>> from manifoldry.affinity import Gaussian
    >>> from manifoldry.eigen import Dense, SpectralProblem
    >>> from manifoldry.extension import GraphWeights, LaplacianExtension, Layout
    >>> graph = NeighborGraph.build(np.arange(6.0)[:, None], n_neighbors=2)
    >>> weights = Gaussian().fit(graph)
    >>> W = weights.matrix(graph)
    >>> degree = W.sum(axis=1)
    >>> L = sparse.diags_array(degree) - W
    >>> problem = SpectralProblem(L, "smallest", mass=degree, deflate=np.ones(6))
    >>> spectrum = Dense().solve(problem, 1, np.random.default_rng(0))
    >>> f, values = spectrum.vectors, spectrum.values[None]
    >>> layout, source = Layout.single(np.zeros(6, dtype=int), 1), GraphWeights(graph, weights)
    >>> extension = LaplacianExtension(source, W, degree, f, values, "rw", layout)
    >>> np.abs(extension.transform(np.array([[2.0], [2.5]])).ravel().round(3))
    array([0.238, 0.   ])
    >>> abs(f[2].round(3))
    array([0.238])
    """

    source: WeightRows
    affinity: Matrix
    degree: Array
    functions: Array
    values: Array
    normalization: Normalization
    layout: Layout
    omits_constant: bool = True
    scales: Array | None = None

    # A training point is not its own neighbor, but it is a neighbor of a point near it.
    continuous_at_training: ClassVar[bool] = False

    def rows(self, X: Matrix) -> sparse.csr_array:
        W, log_scale, _ = self.source.rows(X)
        if self.normalization == "none":
            return sparse.csr_array(sparse.diags_array(np.exp(log_scale)) @ W)
        return self._normalized(W, log_scale)

    def _normalized(self, W: sparse.csr_array, log_scale: Array) -> sparse.csr_array:
        """Weights with training points divided by the square roots of both degrees."""
        own = np.exp(log_scale / 2) * _inverse_root(W.sum(axis=1))
        columns = _inverse_root(self.degree)
        return sparse.csr_array(sparse.diags_array(own) @ W @ sparse.diags_array(columns))

    def transform(self, X: Matrix) -> Array:
        out = np.empty((X.shape[0], self.functions.shape[1]))
        for block in row_blocks(X.shape[0], self.numbers_per_row):
            out[block] = self.place(*self.component_coordinates(X[block]))
        return out

    def place(self, Y: Array, component: IntArray) -> Array:
        return self.layout.place(Y, component)

    def component_coordinates(self, X: Matrix) -> tuple[Array, IntArray]:
        W, log_scale, component = self._weights_within(X)
        f, degree = self._functions_at(W, log_scale, component)
        return self._coordinates(f, degree, component), component

    def functions_at(self, X: Matrix) -> tuple[Array, IntArray]:
        """Evaluate f at new points.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_new, n_features)
            The new points.

        Returns
        -------
        values : array of shape (n_new, n_components)
            Values of the eigenfunctions.
        component : array of shape (n_new,)
            The connected component of each point.
        """
        W, log_scale, component = self._weights_within(X)
        return self._functions_at(W, log_scale, component)[0], component

    def _coordinates(self, f: Array, degree: Array, component: IntArray) -> Array:
        if self.normalization == "sym":
            f = np.sqrt(degree)[:, None] * f
        return f if self.scales is None else f * self.scales[component]

    def _weights_within(self, X: Matrix) -> tuple[sparse.csr_array, Array, IntArray]:
        """Weights with training points of the same component, their scale, and the component."""
        W, log_scale, nearest = self.source.rows(X)
        component = self.layout.labels[nearest]
        return _within_component(W, component, self.layout.labels), log_scale, component

    def _functions_at(
        self, W: sparse.csr_array, log_scale: Array, component: IntArray
    ) -> tuple[Array, Array]:
        """Values f(x), (n_new, n_components), and degrees of new points."""
        d = W.sum(axis=1)
        if (d == 0).any():
            raise ValueError(
                f"{int((d == 0).sum())} rows have no training point within the radius, so they "
                "have no coordinates; fit with n_neighbors or a larger radius, or remove them"
            )
        degree = d * np.exp(log_scale)
        divisor, oscillating = self._divisor(component, degree)
        self._warn_if_oscillating(oscillating)
        return (W @ self.functions) / d[:, None] / divisor, degree

    @property
    def numbers_per_row(self) -> int:
        return self.source.numbers_per_row

    def equivalent_kernel(self, X: Matrix, known: IntArray) -> sparse.csr_array:
        """Return the kernel whose eigenvectors are the coordinates.

        It has the weights divided by the square roots of both degrees; without normalization, μI −
        L.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_new, n_features)
            New points.
        known : array of shape (n_new,)
            Index of the training point identical to each row, or -1.

        Returns
        -------
        sparse array of shape (n_new, n_train)
            The kernel between `X` and the training points.
        """
        return with_training_rows(self.matrix(X), known, self._kernel())

    def _kernel(self) -> sparse.csr_array:
        """The kernel between training points."""
        d, K = self.degree, sparse.csr_array(self.affinity)
        if self.normalization == "none":
            return K + sparse.diags_array(2 * d.max() - d)  # μ = 2·max d bounds the spectrum of L
        return sparse.csr_array(sparse.diags_array(d**-0.5) @ K @ sparse.diags_array(d**-0.5))

    def kernel_pairs(self, X: Matrix) -> KernelPairs:
        """Return w(x, y)/√(d(x)·d(y)) at pairs of new points.

        Degrees sum over training points. The eigenfunctions are √d·f, with eigenvalues 1 − λ.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_new, n_features)
            The new points.

        Returns
        -------
        KernelPairs
            The kernel, and what the coordinates predict for it.
        """
        if self.normalization == "none":
            raise ValueError(
                "normalization='none' has the kernel μI − L, in which the constant μ is free and "
                "changes the loss; fit with normalization='rw' or 'sym'"
            )
        W, log_scale, component = self._weights_within(X)
        f, degree = self._functions_at(W, log_scale, component)
        sizes = [np.flatnonzero(self.layout.labels == c) for c in range(len(self.values))]
        norms = np.stack([self.degree[rows] @ self.functions[rows] ** 2 for rows in sizes])
        volumes = np.array([self.degree[rows].sum() for rows in sizes])
        counts = np.array([len(rows) for rows in sizes])
        v = np.sqrt(degree)[:, None] * f * _inverse_root(norms)[component]
        constant = np.sqrt(degree / volumes[component])
        return KernelPairs(
            self._among(X, W, log_scale),
            (1 - self.values[component]) * v,
            v,
            v**2 * counts[component][:, None],
            (constant, constant) if self.omits_constant else None,
            (component, component),
        )

    def _among(self, X: Matrix, W: sparse.csr_array, log_scale: Array) -> Array:
        """Kernel between new points, (n_new, n_new), infinite if the weights of both vanish.

        Rows of training points are theirs.
        """
        root = sparse.diags_array(_inverse_root(W.sum(axis=1)))
        K = (root @ self.source.among(X, log_scale) @ root).toarray()
        known = self.source.identical(X)
        old = np.flatnonzero(known >= 0)
        with_training = with_training_rows(self._normalized(W, log_scale), known, self._kernel())
        K[:, old] = with_training[:, known[old]].toarray()
        K[old] = K[:, old].T
        return K

    def at_training(self) -> Array:
        """Return the result of the formula at the training points of a single connected component.

        Returns
        -------
        array of shape (n_train, n_components)
            The eigenfunctions that the formula gives.
        """
        mean = (self.affinity @ self.functions) / self.degree[:, None]
        divisor, _ = self._divisor(self.layout.labels, self.degree)
        return self._coordinates(mean / divisor, self.degree, self.layout.labels)

    def _divisor(self, component: IntArray, degree: Array) -> tuple[Array, NDArray[np.bool_]]:
        """1 − λ or 1 − λ/d(x), replaced by one where it is near zero or negative; and where.

        Such functions oscillate between neighbors. Dividing by a small number would amplify noise,
        so the weighted mean of the neighbors is used instead.
        """
        values = self.values[component]
        if self.normalization == "none":
            # Degrees of distant points are raised to the smallest degree of a training point.
            values = values / np.maximum(degree, self.degree[self.degree > 0].min())[:, None]
        oscillating = 1 - values < SMALLEST_DIVISOR
        return np.where(oscillating, 1.0, 1 - values), oscillating

    def _warn_if_oscillating(self, oscillating: NDArray[np.bool_]) -> None:
        # Those of the fit, not of these rows, so that the blocks of rows have the same text.
        n = len(self.values)
        anywhere = self._divisor(np.arange(n), np.zeros(n))[1].any(axis=0)
        columns = ", ".join(map(str, np.flatnonzero(anywhere)))
        warn_about_rows(
            int(oscillating.any(axis=1).sum()),
            len(oscillating),
            f"coordinates {columns} oscillate between neighbors (eigenvalue near 1 or above); "
            "{count} new points got the weighted mean of their neighbors in at least one of them; "
            "use fewer components",
            ExtensionWarning,
        )


def _heaviest(W: sparse.csr_array) -> IntArray:
    """Column of the largest weight in each row."""
    if W.shape[0] == 0:
        return np.empty(0, dtype=np.intp)
    return np.asarray(W.argmax(axis=1)).ravel().astype(np.intp)


def _within_component(
    W: sparse.csr_array, component: IntArray, labels: IntArray
) -> sparse.csr_array:
    """Set weights to points outside the row's connected component to zero."""
    W = W.copy()
    rows = np.repeat(np.arange(W.shape[0]), np.diff(W.indptr))
    W.data[labels[W.indices] != component[rows]] = 0.0
    return W


def _inverse_root(d: Array) -> Array:
    return 1 / np.sqrt(np.where(d > 0, d, np.inf))
