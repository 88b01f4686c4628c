"""t-distributed stochastic neighbor embedding."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from scipy import sparse

from manifoldry.base.docs import shared_docs
from manifoldry.base.input import Input
from manifoldry.device import Device
from manifoldry.iterative.base import SearchResult
from manifoldry.iterative.forecast import Phase
from manifoldry.iterative.monitor import Monitor
from manifoldry.iterative.neighbor_embedder import NeighborEmbedder, PosedNeighbors
from manifoldry.iterative.neighbor_weights import Neighbors
from manifoldry.iterative.start import is_fitted, recognizes_rows
from manifoldry.objectives.fastest import Fastest
from manifoldry.objectives.losses import tsne
from manifoldry.objectives.pairwise import Pairwise
from manifoldry.optimize.filter import Jacobi
from manifoldry.optimize.homotopy import EarlyExaggeration, Homotopy
from manifoldry.optimize.methods import Momentum
from manifoldry.optimize.optimizer import Callback, Iterate, Optimizer, Solution
from manifoldry.optimize.stopping import Stopping
from manifoldry.util.checks import check_positive
from manifoldry.util.typing import Array, RandomState


@shared_docs
class TSNE(NeighborEmbedder):
    """T-distributed stochastic neighbor embedding (t-SNE).

    It matches probabilities of pairs in the data and, with a heavy-tailed kernel, in the embedding.
    Minimizes KL(P‖Q) over pairs: P are entropic affinities, made symmetric, Q is proportional to
    Student's kernel (1 + ‖yᵢ − yⱼ‖²/α)^{−(α+1)/2} in the embedding. Its heavy tails separate
    clusters widely: the method of choice to see clusters, but the distances between clusters and
    their sizes have little meaning. For more than 2000 points and up to three coordinates, sums
    over pairs are approximated, and time grows in proportion to n. The probabilities of a new point
    sum to one however far it is, so that it stays near its nearest training points.

    Parameters
    ----------
    {n_components}
    perplexity : float, default=None
        Effective number of neighbors of each point; by default ``n_samples / 40``, but at least 20
        and at most 30, or a third of the points if that is less. The neighbor graph has three times
        as many.
    degrees_of_freedom : float, default=1.0
        The α of the kernel: less than one separates clusters further; large values approach
        symmetric SNE.
    early_exaggeration : float or EarlyExaggeration, default=None
        Factor of the attraction in a first phase of 120 steps, during which it decreases to one
        and clusters form; 1 for no such phase.
        An :class:`~manifoldry.optimize.EarlyExaggeration` also sets the number of steps and of
        factors. A homotopy starts with this factor instead. By default 12, but no such phase if
        `init` is a t-SNE that was fitted on the same rows, from which the search then continues.
    {metric}
    {metric_params}
    init : {"spectral", "pca", "random"}, estimator or array, default=None
        Start of the search: Laplacian eigenmaps, principal components, Gaussian noise, or the
        embedding of an estimator that is not fitted, all scaled to a standard deviation of 1e-4;
        an array of shape (n_samples, n_components), which is used as it is; or a fitted model. By
        default principal components, computed from the distances if only those are given;
        Laplacian eigenmaps if only a graph is given.

        The start from a fitted model is its ``transform`` of the data. A t-SNE that was fitted on
        the same rows, in any order, is continued as it is, without early exaggeration. Any other
        model, such as a t-SNE of a sample or of other rows, sets the arrangement only: its map is
        scaled like the other starts.
        {cloned_init}
    optimizer : str, Optimizer or Homotopy, default=None
        The search: a name, see :func:`~manifoldry.optimize.resolve_optimizer`, an
        :class:`~manifoldry.optimize.Optimizer`, which also holds the tolerances, or a
        :class:`~manifoldry.optimize.Homotopy`, which lowers the exaggeration from
        `early_exaggeration` to one in many steps; `init` is not used then. By default gradient
        descent with a momentum of 0.95,
        ``Momentum(Jacobi(), learning_rate=2.0, momentum=0.95, settling_steps=25)``, with a learning
        rate of 1 from two degrees of freedom on. With momentum, searches of more than 2000 points
        are in single precision if there are at most ten degrees of freedom.
    {extension}
    {regression_inverse}
    max_iter : int, default=None
        Maximum number of steps after the first phase, for a homotopy of each of its searches; by
        default that of the optimizer; of the default optimizer 500 for up to 2000 points, fewer
        for more points, and 160 from 6250 on. The embedding still changes slowly then, so that
        ``converged_`` is usually False.
    {callback}
    {verbose}
    {random_start}
    {n_jobs}
    {device}

    Attributes
    ----------
    {n_components_}
    {embedding_}
    {extension_}
    {inverse_}
    {objective_}
    {perplexity_}
    {joint_affinity_}
    loss_ : float
        The divergence KL(P‖Q) at the embedding, without exaggeration.
    {converged_}
    {status_}
    {n_iter_}
    trace_ : structured array
        One entry per step, and one for the start of every search if there are several:
        ``iteration``, ``value``, ``gradient_norm``, ``length`` of the step, ``evaluations`` so far
        and ``parameter``, one over the exaggeration; NaN without exaggeration. Values at
        different exaggerations belong to different objectives.
    path_ : Path or None
        The embeddings along a homotopy, by one over the exaggeration; None without one.
    {bifurcation_}
    {learned_affinity_}
    {pairs_}
    {neighbor_search_}

    See Also
    --------
    SymmetricSNE : the same with a Gaussian kernel.
    ElasticEmbedding : preserves more of the global structure.
    UKR : a smooth manifold instead of clusters.
    manifoldry.tl.embed : for cells in an AnnData.

    References
    ----------
    L. van der Maaten and G. Hinton, "Visualizing data using t-SNE", Journal of Machine Learning
    Research 9 (2008).

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from manifoldry import TSNE
    >>> from manifoldry.metrics import knn_accuracy
    >>> X, digit = load_digits(n_class=5, return_X_y=True)
    >>> model = TSNE(perplexity=15, init="pca").fit(X[:300])
    >>> model.embedding_.shape
    (300, 2)
    >>> knn_accuracy(model, digit[:300]) > 0.95  # images of a digit are neighbors
    True
    >>> model.transform(X[300:303]).shape
    (3, 2)
    """

    def __init__(
        self,
        n_components: int | None = None,
        *,
        perplexity: float | None = None,
        degrees_of_freedom: float = 1.0,
        early_exaggeration: float | EarlyExaggeration | None = None,
        metric: Any = "euclidean",
        metric_params: dict[str, Any] | None = None,
        init: Any = None,
        optimizer: str | Optimizer | Homotopy | None = None,
        extension: Any = None,
        inverse: Any = None,
        max_iter: int | None = None,
        callback: Callable[[Iterate], Any] | Callback | None = None,
        verbose: bool = False,
        random_state: RandomState = None,
        n_jobs: int | None = None,
        device: str | Device | None = None,
    ) -> None:
        self.n_components = n_components
        self.perplexity = perplexity
        self.degrees_of_freedom = degrees_of_freedom
        self.early_exaggeration = early_exaggeration
        self.metric = metric
        self.metric_params = metric_params
        self.init = init
        self.optimizer = optimizer
        self.extension = extension
        self.inverse = inverse
        self.max_iter = max_iter
        self.callback = callback
        self.verbose = verbose
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.device = device

    # Learning rate, in units of the step at which a point reaches the mean of its neighbors.
    _rate = 2.0
    # After the first phase; see docs/studies/tsne_schedule.py. The value keeps decreasing slowly.
    _default_optimizer = Momentum(
        filter=Jacobi(),
        learning_rate=_rate,
        momentum=0.95,
        settling_steps=25,
        stopping=Stopping(max_iter=500, value_tol=1e-5),
    )
    # Fewer steps for many points: this number divided by n, but no fewer than the other.
    _point_steps, _fewest_steps = 10**6, 160
    # In single precision 1 + d²/α loses digits for greater α, and squares overflow for wider maps.
    _single_dof, _single_extent = 10.0, 1e15
    _early_momentum = 0.9
    _parameter_name = "1/exaggeration"
    # A search with momentum is usually stopped before it converges.
    _must_converge = False
    # Standard deviation of the start, small compared with the kernel's width.
    _spread = 1e-4

    def _default_perplexity(self, n: int) -> float:
        return min(30.0, max(20.0, n / 40))  # fewer than 30 in small data sets

    def _objective(self, neighbors: Neighbors, affinity: sparse.csr_array) -> Pairwise:
        dof = check_positive("degrees_of_freedom", self.degrees_of_freedom)
        return tsne(affinity, dof)

    def _init(self, data: Input) -> Any:
        if self.init is not None:
            return self.init
        only_graph = data.points is None and data.distances is None
        return "spectral" if only_graph else "pca"

    def _scaled(self, objective: Pairwise, Y: Array) -> Array:
        return self._spread / Y.std(axis=0).max() * Y

    def _from_model(self, objective: Pairwise, Y: Array) -> Array:
        # Without early exaggeration, points that a model of a sample has placed stay where they
        # are, and the divergence is higher; see docs/decisions.md.
        return Y if self._continues(Y) else self._scaled(objective, Y - Y.mean(axis=0))

    def _continues(self, start: Array) -> bool:
        """Whether `start` is the embedding of the same rows by a fitted t-SNE, to be continued."""
        model = getattr(self.init, "estimator", self.init)  # of a FrozenEstimator
        requested = self.early_exaggeration is not None and self._exaggeration().is_needed
        if requested or not (isinstance(model, TSNE) and is_fitted(model)):
            return False
        return recognizes_rows(model.embedding_, start)

    def _first_weight(self, posed: PosedNeighbors) -> float:
        return 1 / self._exaggeration().factor

    def _exaggeration(self) -> EarlyExaggeration:
        if isinstance(self.early_exaggeration, EarlyExaggeration):
            return self.early_exaggeration
        if self.early_exaggeration is None:
            return EarlyExaggeration()
        return EarlyExaggeration(check_positive("early_exaggeration", self.early_exaggeration))

    def _check_search(self) -> None:
        super()._check_search()
        self._exaggeration()

    def _search(self, posed: PosedNeighbors, start: Array, monitor: Monitor) -> SearchResult:
        if self._follows_homotopy(posed):
            return super()._search(posed, start, monitor)
        start = self._in_precision(start)
        if self._continues(start):
            return super()._search(posed, start, monitor)
        first = self._early_search(posed.objective, start, monitor)
        if first.interrupted:
            return SearchResult(first, posed.objective)
        return super()._search(posed, first.embedding, monitor)

    def _in_precision(self, start: Array) -> Array:
        """The start in single precision if the sums over pairs are approximate anyway.

        A line search needs double precision.
        """
        many = len(start) > Fastest.exact_up_to and isinstance(self._optimizer(), Momentum)
        exact = self.degrees_of_freedom > self._single_dof
        if not many or exact or np.abs(start).max() > self._single_extent:
            return start
        return start.astype(np.float32)

    def _early_search(self, objective: Pairwise, start: Array, monitor: Monitor) -> Solution:
        """The searches with early exaggeration."""
        last = Solution(start, np.nan, converged=True, status="no early exaggeration")
        for (factor, _), optimizer in zip(
            self._exaggeration().levels, self._early_optimizers(), strict=True
        ):
            monitor.begin(1 / factor)
            exaggerated = objective.with_exaggeration(factor)
            last = monitor.resumable(optimizer).minimize(exaggerated, last.embedding, monitor)
            if last.interrupted:
                break
        return last

    def _optimizer(self, n_samples: int | None = None) -> Optimizer:
        optimizer = super()._optimizer()
        if self.optimizer is not None or not isinstance(optimizer, Momentum):
            return optimizer
        # The attraction of distant neighbors weakens less with more degrees of freedom, so that
        # long steps would move neighbors ever farther apart.
        dof = check_positive("degrees_of_freedom", self.degrees_of_freedom)
        optimizer = replace(optimizer, learning_rate=self._rate / min(max(dof, 1.0), 2.0))
        if n_samples is None or self.max_iter is not None:
            return optimizer
        steps = max(self._fewest_steps, self._point_steps // n_samples)
        return optimizer.with_stopping(min(optimizer.max_steps, steps), None)

    def _early_optimizers(self) -> list[Optimizer]:
        """The optimizer of each factor of the exaggeration."""
        optimizer = self._optimizer()
        if isinstance(optimizer, Momentum):
            momentum = min(self._early_momentum, optimizer.momentum)
            optimizer = replace(optimizer, momentum=momentum, settling_steps=0)
        return [optimizer.with_stopping(n_iter, None) for _, n_iter in self._exaggeration().levels]

    def _phases(self, posed: PosedNeighbors, start: Array) -> list[Phase]:
        phases = super()._phases(posed, start)
        single = self._follows_homotopy(posed) or self._continues(start)
        if single or not self._exaggeration().is_needed:
            return phases
        early = [Phase.search("early exaggeration", each) for each in self._early_optimizers()]
        return [*early, *phases]
