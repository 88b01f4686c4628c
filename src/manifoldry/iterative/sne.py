"""Stochastic neighbor embedding."""

from scipy import sparse

from manifoldry.iterative.neighbor_embedder import NeighborEmbedder, Neighbors
from manifoldry.objectives.losses import sne, symmetric_sne
from manifoldry.objectives.pairwise import Pairwise
from manifoldry.optimize.homotopy import Homotopy


class SNE(NeighborEmbedder):
    """Place points so that each sees its neighbors on the map as it sees them in the data.

    Minimizes the mean over points of KL(Pᵢ‖Qᵢ): Pᵢ are the probabilities with which point i
    picks its neighbors in the data, Gaussian with a width that gives all points the same
    perplexity, and Qᵢ those on the map, Gaussian of width one. Neighbors are kept near, and the
    map has no crowds of unrelated points; clusters are less parted than by :class:`TSNE`, but
    their places relative to each other say more.

    Parameters
    ----------
    n_components : int, default=None
        Number of coordinates; by default two, or what the data allow.
    perplexity : float, default=None
        Effective number of neighbors of every point; by default 10, or a third of the
        points if those are fewer. The graph has three times as many.
    metric : str or callable, default="euclidean"
        Metric of the neighbor graph; ``"precomputed"`` for dense distances or a sparse graph
        of distances.
    metric_params : dict, default=None
        Further arguments of the metric.
    init : {"spectral", "pca", "random"}, estimator or array, default=None
        Where the search begins: Laplacian eigenmaps, principal components, a small cloud, the map
        of any estimator, or a map of shape (n_samples, n_components) as it is. All but the last
        are scaled to where the objective is lowest. By default the search
        follows a homotopy, which needs no start; if that is declined, ``"spectral"``.
    optimizer : str or Optimizer, default=None
        What searches; see :func:`manifoldry.optimize.resolve_optimizer`. By
        default L-BFGS with the spectral direction.
    guidance : str or Filter, default=None
        A filter of the gradient that changes as the search goes on, see
        :func:`manifoldry.optimize.resolve_guidance`: it holds a map from a poor start to the
        smooth functions of the data first, in place of the optimizer's own filter. A good start
        needs none.
    homotopy : bool or Homotopy, default=None
        Begin where repulsion is so weak that the map is about to leave one point, and raise it
        step by step; see :class:`~manifoldry.optimize.Homotopy`. By default yes, in 20 steps,
        unless an `init` or a `guidance` is given: maps from elsewhere end in poorer minima.
    max_iter : int, default=None
        Most steps of the search, along a homotopy of each search; by default the optimizer's own.
    tol : float, default=None
        Converged when steps move the map by less than this fraction of its size; by default the
        optimizer's own.
    warm_start : bool, default=False
        Begin from the map of the last fit, if there is one; it must have as many points and
        coordinates. What comes before the search proper, such as a homotopy, is left out then.
    callback : callable, default=None
        Called with an :class:`~manifoldry.optimize.Iterate`, that is the map and figures on the
        last step; a true result stops the search.
    callback_every : int, default=1
        Steps between two calls.
    verbose : bool, default=False
        Show the value and the gradient's norm as the search goes on.
    on_interrupt : {"raise", "keep"}, default="raise"
        After Ctrl-C the model has the best map so far either way; raise the interrupt again, or
        go on.
    random_state : int, RandomState, Generator or None, default=None
        Seed of the start; ``None`` is a fixed seed.
    n_jobs : int, default=None
        Threads, by default one per core; BLAS keeps its own number.

    Attributes
    ----------
    n_components_ : int
        Number of coordinates in use.
    embedding_ : array of shape (n_samples, n_components)
        The map.
    extension_ : Extension
        Gives new points their coordinates.
    inverse_ : Inverse or None
        Leads from the map to the data; None where the data themselves were never seen.
    objective_ : Pairwise
        What the map minimizes.
    perplexity_ : float
        The perplexity in use.
    affinity_ : sparse array of shape (n_samples, n_samples)
        The probabilities Pᵢ with which points pick each other, made symmetric and scaled to sum
        to one: what attracts.
    loss_ : float
        The mean over points of KL(Pᵢ‖Qᵢ) at the map.
    converged_ : bool
        Whether the search came to rest.
    status_ : str
        Why the search stopped, in words.
    n_iter_, n_evaluations_ : int
        Steps of the search, and evaluations of the objective they took.
    trace_ : structured array
        One entry per step, and one for the start of every search of which the fit consists:
        ``iteration``, ``value``, ``gradient_norm``, ``length`` of the step, ``evaluations`` so far
        and ``parameter``, the factor of repulsion that a homotopy raises to one; NaN without one.
        Values at different factors are of different objectives.
    path_ : Path or None
        The maps along the homotopy; None without one.
    bifurcation_ : Bifurcation
        The weight of repulsion at which the map leaves one point, with the published bounds; made
        when asked for.
    learned_affinity_ : array or sparse array of shape (n_samples, n_samples)
        Attraction minus repulsion at the map, made when asked for; dense up to 5000 points, on the
        edges of ``affinity_`` beyond.
    neighbor_search_ : str
        How neighbors were found, and why so; how many of them, where not all.

    Examples
    --------
    >>> from manifoldry import SNE
    >>> from manifoldry.datasets import make_swiss_roll
    >>> X, coordinates = make_swiss_roll(300, random_state=0)
    >>> model = SNE().fit(X)
    >>> model.embedding_.shape, model.converged_
    ((300, 2), True)
    >>> model.transform(X[:3] + 0.01).shape
    (3, 2)
    """

    _default_homotopy = Homotopy(n_steps=20)

    def _objective(self, neighbors: Neighbors, affinity: sparse.csr_array) -> Pairwise:
        return sne(neighbors.conditional)


class SymmetricSNE(NeighborEmbedder):
    """Place points so that pairs are as probable on the map as they are in the data.

    Minimizes KL(P‖Q) over all pairs at once: P are entropic affinities, made symmetric, Q is
    proportional to exp(−‖yᵢ − yⱼ‖²). Like :class:`SNE` with one normalizer for all points, which
    lets outliers go farther out.

    Parameters
    ----------
    n_components : int, default=None
        Number of coordinates; by default two, or what the data allow.
    perplexity : float, default=None
        Effective number of neighbors of every point; by default 10, or a third of the
        points if those are fewer. The graph has three times as many.
    metric : str or callable, default="euclidean"
        Metric of the neighbor graph; ``"precomputed"`` for dense distances or a sparse graph
        of distances.
    metric_params : dict, default=None
        Further arguments of the metric.
    init : {"spectral", "pca", "random"}, estimator or array, default=None
        Where the search begins: Laplacian eigenmaps, principal components, a small cloud, the map
        of any estimator, or a map of shape (n_samples, n_components) as it is. All but the last
        are scaled to where the objective is lowest. By default the search
        follows a homotopy, which needs no start; if that is declined, ``"spectral"``.
    optimizer : str or Optimizer, default=None
        What searches; see :func:`manifoldry.optimize.resolve_optimizer`. By
        default L-BFGS with the spectral direction.
    guidance : str or Filter, default=None
        A filter of the gradient that changes as the search goes on, see
        :func:`manifoldry.optimize.resolve_guidance`: it holds a map from a poor start to the
        smooth functions of the data first, in place of the optimizer's own filter. A good start
        needs none.
    homotopy : bool or Homotopy, default=None
        Begin where repulsion is so weak that the map is about to leave one point, and raise it
        step by step; see :class:`~manifoldry.optimize.Homotopy`. By default yes, in 20 steps,
        unless an `init` or a `guidance` is given: maps from elsewhere end in poorer minima.
    max_iter : int, default=None
        Most steps of the search, along a homotopy of each search; by default the optimizer's own.
    tol : float, default=None
        Converged when steps move the map by less than this fraction of its size; by default the
        optimizer's own.
    warm_start : bool, default=False
        Begin from the map of the last fit, if there is one; it must have as many points and
        coordinates. What comes before the search proper, such as a homotopy, is left out then.
    callback : callable, default=None
        Called with an :class:`~manifoldry.optimize.Iterate`, that is the map and figures on the
        last step; a true result stops the search.
    callback_every : int, default=1
        Steps between two calls.
    verbose : bool, default=False
        Show the value and the gradient's norm as the search goes on.
    on_interrupt : {"raise", "keep"}, default="raise"
        After Ctrl-C the model has the best map so far either way; raise the interrupt again, or
        go on.
    random_state : int, RandomState, Generator or None, default=None
        Seed of the start; ``None`` is a fixed seed.
    n_jobs : int, default=None
        Threads, by default one per core; BLAS keeps its own number.

    Attributes
    ----------
    n_components_ : int
        Number of coordinates in use.
    embedding_ : array of shape (n_samples, n_components)
        The map.
    extension_ : Extension
        Gives new points their coordinates.
    inverse_ : Inverse or None
        Leads from the map to the data; None where the data themselves were never seen.
    objective_ : Pairwise
        What the map minimizes.
    perplexity_ : float
        The perplexity in use.
    affinity_ : sparse array of shape (n_samples, n_samples)
        Joint probabilities P of pairs: symmetric, with sum one.
    loss_ : float
        The divergence KL(P‖Q) at the map.
    converged_ : bool
        Whether the search came to rest.
    status_ : str
        Why the search stopped, in words.
    n_iter_, n_evaluations_ : int
        Steps of the search, and evaluations of the objective they took.
    trace_ : structured array
        One entry per step, and one for the start of every search of which the fit consists:
        ``iteration``, ``value``, ``gradient_norm``, ``length`` of the step, ``evaluations`` so far
        and ``parameter``, the factor of repulsion that a homotopy raises to one; NaN without one.
        Values at different factors are of different objectives.
    path_ : Path or None
        The maps along the homotopy; None without one.
    bifurcation_ : Bifurcation
        The weight of repulsion at which the map leaves one point, with the published bounds; made
        when asked for.
    learned_affinity_ : array or sparse array of shape (n_samples, n_samples)
        Attraction minus repulsion at the map, made when asked for; dense up to 5000 points, on the
        edges of ``affinity_`` beyond.
    neighbor_search_ : str
        How neighbors were found, and why so; how many of them, where not all.

    Examples
    --------
    >>> from manifoldry import SymmetricSNE
    >>> from manifoldry.datasets import make_swiss_roll
    >>> X, coordinates = make_swiss_roll(300, random_state=0)
    >>> model = SymmetricSNE().fit(X)
    >>> model.embedding_.shape, model.converged_
    ((300, 2), True)
    >>> model.transform(X[:3] + 0.01).shape
    (3, 2)
    """

    _default_homotopy = Homotopy(n_steps=20)

    def _objective(self, neighbors: Neighbors, affinity: sparse.csr_array) -> Pairwise:
        return symmetric_sne(affinity)
