"""Diffusion maps."""

from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from manifoldry.affinity import Affinity, Entropic, Gaussian
from manifoldry.affinity.distributed import DistributedWeights
from manifoldry.affinity.entropic import DEFAULT_PERPLEXITY
from manifoldry.affinity.gaussian import GaussianWeights
from manifoldry.affinity.growth import fastest_growth
from manifoldry.base.docs import shared_docs
from manifoldry.base.input import Input
from manifoldry.device import Device
from manifoldry.eigen import EigenSolver, Spectra, SpectralProblem
from manifoldry.eigen.problem import LARGEST_ENTRY
from manifoldry.exceptions import RankWarning, warn
from manifoldry.extension.base import KernelExtension
from manifoldry.extension.laplacian import (
    GraphWeights,
    LaplacianExtension,
    Normalization,
    WeightRows,
)
from manifoldry.extension.layout import Layout
from manifoldry.extension.random_walk import RandomWalkWeights
from manifoldry.neighbors.distributed_graph import DistributedGraph
from manifoldry.neighbors.graph import NeighborGraph
from manifoldry.spectral.distributed_eigenmaps import CoordinateScale
from manifoldry.spectral.distributed_laplacian import WeightsInParts
from manifoldry.spectral.laplacian_eigenmaps import (
    LaplacianEigenmaps,
    PosedLaplacian,
    TrainingWeights,
)
from manifoldry.spectral.pseudotime import pseudotime_from
from manifoldry.spectral.random_walk import (
    check_normalized,
    density_factors,
    distributed_walk,
    divided_by_density,
)
from manifoldry.util.array_like import array_like
from manifoldry.util.checks import check_below, check_count, check_nonnegative
from manifoldry.util.typing import Array, IntArray, Matrix, RandomState


@shared_docs
class DiffusionMaps(LaplacianEigenmaps):
    """Diffusion maps: the leading eigenvectors of a random walk on the data.

    Euclidean distances in the embedding approximate diffusion distances, which compare the
    distributions of a random walk after `t` steps from two points. Transition probabilities are
    proportional to the weights of neighbors, divided by the density at both points to the power
    `alpha`; coordinates are the right eigenvectors of the transition matrix times their
    eigenvalues to the power `t`. By default steps are as long as the local density requires, so
    that no coordinate shows a single outlier; every region counts by its number of points. With
    ``alpha=1`` steps are equally long everywhere, and the result does not depend on the density,
    but on outliers.
    Use it for branches and slow processes; :meth:`pseudotime` orders points along them.

    Parameters
    ----------
    {n_components}
    n_neighbors : int, default=None
        Number of neighbors of each point. None means the number that an `affinity` object needs,
        or else 20, or all points if there are fewer.
    {metric}
    {metric_params}
    {graph_affinity}
        The same holds with an `alpha`. Otherwise None means entropic weights: a Gaussian around
        each point, as wide as a perplexity of two thirds of the number of neighbors, at most 30,
        requires.
    gamma : float, default=None
        Coefficient of ``affinity="gaussian"``. None means the value at which the logarithm of the
        sum of all weights changes fastest with log gamma.
    alpha : float, default=None
        Exponent of the density normalization: 0 means none; with ``affinity="gaussian"``, ½ gives
        Fokker–Planck diffusion and 1 the Laplace–Beltrami operator, whatever the density. None
        means 1 with ``affinity="gaussian"`` and 0 otherwise: bandwidths that follow the density
        leave `alpha` almost nothing to do. A given value therefore makes ``"gaussian"`` the
        default of `affinity`.
    t : float, default=1.0
        Number of steps of the random walk.
    disconnected : {"separate", "join", "largest", "error"}, default="separate"
        {disconnected}
    {eigen_solver}
    {extension}
    {inverse}
    {random_state}
    {n_jobs}
    {device}

    Attributes
    ----------
    {n_components_}
    embedding_ : array of shape (n_samples, n_components)
        Coordinates ℓᵗ·ψ of the training points; the eigenvectors ψ have unit variance under the
        stationary distribution of the random walk.
    alpha_ : float
        Value of alpha that was used.
    gamma_ : float or None
        Value of gamma that was used; None with other affinities.
    transition_eigenvalues_ : array of shape (n_components,)
        Largest eigenvalues ℓ of the transition matrix after the trivial 1.
    affinity_ : sparse array of shape (n_samples, n_samples)
        Weights after the density normalization, with those of self-transitions.
    {extension_}
    {inverse_}
    eigenvalues_ : array of shape (n_components,)
        1 − ℓ, of the largest connected component.
    {neighbor_search_}
    {component_labels_}
    loss_ : float
        Twice the sum of the eigenvalues 1 − ℓ of all connected components.
    {computed_eigenvalues_}
    {residuals_}
    {solver_}
    {dimension_hint_}

    See Also
    --------
    LaplacianEigenmaps : the method for evenly sampled data.
    NonRedundant : coordinates that do not repeat each other.
    manifoldry.tl.diffmap : for cells in an AnnData.

    References
    ----------
    R. R. Coifman and S. Lafon, "Diffusion maps", Applied and Computational Harmonic Analysis 21
    (2006).

    Examples
    --------
    >>> import numpy as np
    >>> from manifoldry import DiffusionMaps
    >>> turn = np.linspace(0, 2 * np.pi, 300, endpoint=False)
    >>> angle = turn + 0.7 * np.sin(turn)  # six times denser on one side than on the other
    >>> X = np.column_stack([np.cos(angle), np.sin(angle)])
    >>> for alpha in (0, 1):  # how far the map is from a circle, with and without the density
    ...     Y = DiffusionMaps(alpha=alpha).fit_transform(X)
    ...     radius = np.linalg.norm(Y, axis=1)
    ...     print(round(radius.std() / radius.mean(), 2))
    0.74
    0.0
    """

    def __init__(
        self,
        n_components: int | None = None,
        *,
        n_neighbors: int | None = None,
        metric: Any = "euclidean",
        metric_params: dict[str, Any] | None = None,
        affinity: str | Affinity | None = None,
        gamma: float | None = None,
        alpha: float | None = None,
        t: float = 1.0,
        disconnected: str = "separate",
        eigen_solver: str | EigenSolver = "auto",
        extension: Any = None,
        inverse: Any = None,
        random_state: RandomState = None,
        n_jobs: int | None = None,
        device: str | Device | None = None,
    ) -> None:
        self.n_components = n_components
        self.n_neighbors = n_neighbors
        self.metric = metric
        self.metric_params = metric_params
        self.affinity = affinity
        self.gamma = gamma
        self.alpha = alpha
        self.t = t
        self.disconnected = disconnected
        self.eigen_solver = eigen_solver
        self.extension = extension
        self.inverse = inverse
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.device = device

    # Default number of neighbors: more would connect the layers of a rolled-up manifold, fewer
    # would not remove the effect of the density.
    _usual_neighbors = 20
    # Perplexity of the default weights, from docs/studies/diffusion_widths.py.
    _perplexity_per_neighbor = 2 / 3

    # Parameters of the parent class that are fixed here.
    radius = None
    normalization: Normalization = "rw"

    def _default_neighbors(self, n: int) -> int:
        return super()._default_neighbors(n) or min(self._usual_neighbors, n - 1)

    def _training_weights(self, data: Input) -> TrainingWeights:
        if self.alpha is not None:
            check_nonnegative("alpha", self.alpha)
        weighted = super()._training_weights(data)
        self.gamma_ = _gamma_of(weighted.affinity)
        fixed = isinstance(getattr(weighted.source, "weights", None), GaussianWeights)
        self.alpha_ = alpha = self._resolve_alpha(fixed)
        own = _self_weights(weighted.source, data)
        W = sparse.csr_array(weighted.matrix) + sparse.diags_array(own)
        density = np.asarray(W.sum(axis=1)).ravel()
        density[density == 0] = 1.0  # isolated points of a given matrix
        max_density = float(density.max())
        factors = density_factors(density, max_density, alpha)
        factor, normalized = sparse.diags_array(factors), divided_by_density(W, factors)
        if max_density <= LARGEST_ENTRY:  # otherwise the given weights are too large
            check_normalized(normalized, alpha, max_density / float(density.min()))
        return weighted._replace(
            matrix=normalized,
            source=RandomWalkWeights(weighted.source, own, factor, alpha, max_density),
        )

    def _resolve_alpha(self, fixed_width: bool) -> float:
        if self.alpha is not None:
            return check_nonnegative("alpha", self.alpha)
        return 1.0 if fixed_width else 0.0

    def _weights_in_parts(self, affinity: Affinity, graph: DistributedGraph) -> WeightsInParts:
        check_nonnegative("t", self.t)
        alpha = self._resolve_alpha(isinstance(affinity, Gaussian))
        weights = DistributedWeights.of(affinity, graph)
        matrix = distributed_walk(weights, graph.order.bounds, alpha)
        return WeightsInParts(matrix, {"alpha_": alpha, "gamma_": _gamma_of(affinity)})

    def _coordinate_scale(self, values: Array) -> CoordinateScale:
        return CoordinateScale(0.5, decay(values, float(self.t)))

    def _default_affinity(self, graph: NeighborGraph) -> Affinity:
        if self.alpha is not None:  # it has an effect only on weights of one width
            return Gaussian()
        perplexity = self._perplexity_per_neighbor * float(np.median(np.diff(graph.indptr)))
        return Entropic(min(DEFAULT_PERPLEXITY, max(1.0, perplexity)))

    def _affinity_of(self, graph: NeighborGraph) -> Affinity:
        affinity = super()._affinity_of(graph)
        if not isinstance(affinity, Gaussian):
            return affinity
        if affinity.gamma is None and affinity is not self.affinity:
            affinity = Gaussian(gamma=fastest_growth(graph))
        return affinity

    def _components(self, problem: SpectralProblem, weighted: TrainingWeights) -> list[IntArray]:
        # A weight is negligible in comparison with self-transitions, which the Laplacian omits.
        with_loops = problem.operator + sparse.diags_array(weighted.matrix.diagonal())
        return super()._components(replace(problem, operator=with_loops), weighted)

    def pseudotime(self, root: Any) -> Array:
        """Return the diffusion pseudotime of the training points: their distance from a root.

        It compares how often random walks of all lengths from two points visit each point
        (Haghverdi et al. 2016): √Σₖ (ℓₖ/(1 − ℓₖ))²·(ψₖ(i) − ψₖ(root))². Use it to order points
        along a process that starts at the root, such as cells that differentiate. The sum has the
        `n_components` eigenpairs of the fit, so distances are lower bounds. A warning says if the
        last of them is not negligible; 15 usually suffice. The number of steps `t` does not
        matter.

        Parameters
        ----------
        root : int or array of shape (n_features,)
            Index of a training point, or a row of data, which is embedded like a new point.

        Returns
        -------
        array of shape (n_samples,)
            Distances, not scaled; infinite for points in other connected components than the
            root, NaN for points that are not embedded.

        Examples
        --------
        >>> import numpy as np
        >>> from manifoldry import DiffusionMaps
        >>> time = np.linspace(0, 1, 200)
        >>> X = np.column_stack([np.cos(3 * time), np.sin(3 * time)])
        >>> order = DiffusionMaps(15).fit(X).pseudotime(root=0)
        >>> bool(np.corrcoef(np.argsort(order), np.arange(200))[0, 1] > 0.99)
        True
        """
        check_is_fitted(self)
        if "landmark_model_" in vars(self):
            raise ValueError(
                "pseudotime needs rows in memory, but this model was fitted to distributed data; "
                "call landmark_model_.pseudotime(root) for that of its landmarks, with a row of "
                "data as the root"
            )
        extension = self.extension_
        if not isinstance(extension, LaplacianExtension):
            raise ValueError(
                "pseudotime needs the eigenfunctions of the random walk, but the extension is a "
                f"{type(extension).__name__}; fit DiffusionMaps itself, with extension=None"
            )
        return pseudotime_from(*self._functions_at(root, extension), extension)

    def _functions_at(self, root: Any, extension: LaplacianExtension) -> tuple[Array, int]:
        """Return the functions of the extension at a root, and its connected component."""
        if isinstance(root, Integral):
            bound = len(self.embedding_)
            known = int(check_below("root", check_count("root", root, 0), bound, "n_samples"))
        else:
            row = self._root_row(root)
            known = int(self._identical_training_rows(row)[0])
        if known >= 0:
            F, labels = extension.functions[[known]], self.component_labels_[[known]]
        else:
            F, labels = extension.functions_at(row)
        if labels[0] < 0:
            what = f"training point {known}" if known >= 0 else "a new row"
            raise ValueError(
                f"the root, {what}, is not embedded, because it is not in the largest connected "
                "component; pass another one, or disconnected='separate'"
            )
        return F[0], int(labels[0])

    def _root_row(self, root: Any) -> Matrix:
        """Return a root that is not an index as a matrix of one row."""
        root = array_like(root, "root")
        if np.ndim(root) == 0:
            raise TypeError(
                f"root={root!r} must be the index of a training point, an int, or a row of data, "
                f"an array of n_features={self.n_features_in_} values"
            )
        if np.ndim(root) == 1 and len(root) != self.n_features_in_:
            raise ValueError(
                f"root has {len(root)} values, but a row of data has {self.n_features_in_}; pass "
                "one row, or the index of one training point"
            )
        row = self._read_new(np.reshape(root, (1, -1)) if np.ndim(root) == 1 else root)
        if row.shape[0] != 1:
            raise ValueError(f"root has {row.shape[0]} rows; pass one")
        self._distance_from_data.warn_if_far(row)
        return row

    def _make_posed(self, **fields: Any) -> "PosedRandomWalk":
        return PosedRandomWalk(**fields, t=check_nonnegative("t", self.t))

    def _warn_about(self, posed: Any, spectra: Spectra) -> None:
        super()._warn_about(posed, spectra)
        vanished = int((decay(spectra.values[0], float(self.t)) == 0).sum())
        if vanished:
            warn(
                f"{vanished} of n_components={self.n_components_} coordinates are zero: their "
                f"eigenvalues to the power t={self.t} vanish. Lower n_components or t",
                RankWarning,
            )


@dataclass(frozen=True, eq=False)
class PosedRandomWalk(PosedLaplacian):
    """A random walk on a weighted graph, after `t` steps."""

    t: float

    def functions(self, spectra: Spectra) -> Array:
        """Return ψ, (n, k), for each component."""
        F = super().functions(spectra)
        for rows in self.components:
            F[rows] *= np.sqrt(self.degree[rows].sum())
        return F

    def coordinates(self, spectra: Spectra) -> Array:
        # Rows that are not embedded have the label -1; their functions are zero.
        return self.functions(spectra) * decay(spectra.values, self.t)[self.labels]

    def extend(self, spectra: Spectra, layout: Layout, embedding: Array) -> KernelExtension:
        extension: Any = super().extend(spectra, layout, embedding)
        return replace(extension, scales=decay(spectra.values, self.t))

    def fitted_attributes(self, spectra: Spectra, Y: Array, extension: Any) -> dict[str, Any]:
        found = super().fitted_attributes(spectra, Y, extension)
        return found | {"transition_eigenvalues_": 1 - spectra.values[0]}


def _gamma_of(affinity: Affinity | None) -> float | None:
    return affinity.gamma if isinstance(affinity, Gaussian) else None


def decay(values: Array, t: float) -> Array:
    """Return ℓᵗ for eigenvalues 1 − ℓ of the Laplacian."""
    return np.asarray(np.maximum(1 - values, 0.0) ** t)


def _self_weights(source: WeightRows, data: Input) -> Array:
    """Weights of self-transitions: those of the kernel at distance zero, or those given."""
    if isinstance(source, GraphWeights):
        return source.self_weights
    return np.asarray(data.rows.diagonal(), dtype=np.float64)
