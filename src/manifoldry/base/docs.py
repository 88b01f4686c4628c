"""Descriptions of parameters and attributes that several estimators or metrics share."""

import re
from collections.abc import Callable
from textwrap import indent
from typing import Any, TypeVar

_RESIDUALS = """\
Residual norm of each eigenpair, and the distance from its eigenvalue to the nearest other
one, 0 if the eigenvalue is repeated beyond the last coordinate. A coordinate is reliable if its
residual is much smaller than its gap."""

_CLONED_INIT = """\
A model without ``transform`` must have been fitted on the same rows. ``clone``, and so
``GridSearchCV``, makes an unfitted copy of a model; to prevent that, wrap it in
:class:`sklearn.frozen.FrozenEstimator`."""
_FITTED_INIT = f"""
The start from a fitted model is its ``transform`` of the data: its embedding if it was fitted
on the same data, while a model of a sample places all points. It is rescaled if that lowers
the objective by more than one percent.
{_CLONED_INIT}"""

SHARED = {
    # Parameters.
    "n_components": """\
n_components : int, default=None
    Number of coordinates, at most ``n_samples - 1``. None means 2, or ``n_samples - 1`` if that
    is smaller.""",
    "intrinsic_components": """\
n_components : int, default=None
    Number of coordinates, which is the dimension of the tangent spaces. None means 2, or the
    maximum that the numbers of samples and features allow if that is smaller.""",
    "n_neighbors": """\
n_neighbors : int, default=None
    Number of neighbors of each point. None means 10, or ``n_samples // 2`` if that is smaller.""",
    "radius": """\
radius : float, default=None
    Connect all points within this distance instead of the `n_neighbors` nearest ones.""",
    "metric": """\
metric : str or callable, default="euclidean"
    Metric of the neighbor search, as in :class:`sklearn.neighbors.NearestNeighbors`;
    ``"precomputed"`` if `X` holds distances, dense or as a sparse neighbor graph.""",
    "search_metric": """\
metric : str or callable, default="euclidean"
    Metric of the neighbor search, as in :class:`sklearn.neighbors.NearestNeighbors`. All
    computations within a neighborhood use Euclidean distances, regardless of the metric.""",
    "metric_params": """\
metric_params : dict, default=None
    Additional keyword arguments of the metric.""",
    "reg": """\
reg : float, default=1e-3
    Regularization of the local weights, relative to the trace of the local Gram matrix.""",
    "laplacian_weight": """\
laplacian_weight : float, default=None
    Weight, from 0 to 1, of the Laplacian of the neighbor graph in the objective. Data that do not
    lie near a surface need it: without it, one point may hold most of the variance of a
    coordinate. None means 0 if tangent spaces fit the data, else a value that depends on how badly
    they do, with a warning.""",
    "laplacian_weight_": """\
laplacian_weight_ : float
    The weight of the Laplacian of the neighbor graph.""",
    "metric_fit": """\
metric_fit : bool, default=True
    Apply the linear map that best restores the lengths of short edges, so that the embedding
    has the scale of the data. If False, each coordinate has unit variance.""",
    "graph_affinity": """\
affinity : str or Affinity, default=None
    Weights of the edges. ``"self_tuning"``: Gaussian with a bandwidth that adapts to the local
    density, so that outliers stay connected. ``"gaussian"``: exp(−gamma·d²). ``"binary"``: 1
    for each edge. ``"precomputed"``: `X` is a symmetric matrix of weights. Or an object of
    :mod:`manifoldry.affinity`. With a `gamma`, None means ``"gaussian"``.""",
    "disconnected": """\
What to do if the neighbor graph is not connected; see
:class:`~manifoldry.neighbors.DisconnectedPolicy`.""",
    "eigen_solver": """\
eigen_solver : str or EigenSolver, default="auto"
    The eigensolver, by name or as an object; see :func:`manifoldry.eigen.resolve_solver`.""",
    "extension": """\
extension : regressor, default=None
    How ``transform`` computes the coordinates of new points: a scikit-learn regressor that is
    fitted to predict ``embedding_`` from `X`. None uses the formula of the method.""",
    "inverse": """\
inverse : regressor, default=None
    How ``inverse_transform`` computes data from coordinates: a scikit-learn regressor that is
    fitted to predict `X` from ``embedding_``. None uses the inverse of the method.""",
    "regression_inverse": """\
inverse : {"regression"} or regressor, default=None
    How ``inverse_transform`` computes data from coordinates: by local regression, the default,
    since the method defines no inverse of its own; or by a scikit-learn regressor that is fitted
    to predict `X` from ``embedding_``.""",
    "callback": """\
callback : callable or Callback, default=None
    Called after every iteration with an :class:`~manifoldry.optimize.Iterate`; the optimizer
    stops if it returns True. A :class:`~manifoldry.optimize.Callback` also sets how often it is
    called and what happens on Ctrl-C.""",
    "verbose": """\
verbose : bool, default=False
    Show the phase, the step, the value of the objective and the time left. A fit that will take
    longer than five minutes says so in any case.""",
    "random_state": """\
random_state : int, RandomState, Generator or None, default=None
    Seed of the start vectors of iterative eigensolvers. None means a fixed seed.""",
    "random_start": """\
random_state : int, RandomState, Generator or None, default=None
    Seed of the initial embedding. None means a fixed seed.""",
    "n_jobs": """\
n_jobs : int, default=None
    Number of threads. None or -1 means one per core. BLAS threads are not affected.""",
    "device": """\
device : str or Device, default=None
    Where to compute: ``"cpu"``, ``"cuda"`` for a GPU, or ``"cuda:1"`` for the second one. None
    means the device of :func:`~manifoldry.using_device`, or else the one that holds `X`. Results
    are arrays like `X`, of CuPy or PyTorch for example. Fitted attributes are always arrays of
    numpy, so that models work on every machine; ``set_params(device=None)`` takes them to one
    without a GPU.""",
    "n_components_two": """\
n_components : int, default=2
    Number of coordinates.""",
    "sne_perplexity": """\
perplexity : float, default=None
    Effective number of neighbors of each point; by default 10, or a third of the points if that
    is less. The graph has three times as many neighbors.""",
    "sne_affinity": """\
affinity : str or Affinity, default=None
    Weights of neighbors, instead of bandwidths set by `perplexity`. ``"gaussian"``:
    exp(−gamma·d²), one bandwidth for all points; ``"self_tuning"``; ``"binary"``; or an object of
    :mod:`manifoldry.affinity`. All points are neighbors if the bandwidth is given, else as many as
    by default; pass a :class:`~manifoldry.NeighborGraph` to ``fit`` for another number.""",
    "sne_gamma": """\
gamma : float, default=None
    Coefficient of ``affinity="gaussian"``, which it implies. None means one over the median
    squared distance to the farthest neighbor.""",
    "fitted_init": _FITTED_INIT,
    "cloned_init": _CLONED_INIT,
    "sne_init": f"""\
init : {{"spectral", "pca", "random"}}, estimator or array, default=None
    Start of the search: Laplacian eigenmaps, principal components, Gaussian noise, or the
    embedding of an estimator that is not fitted, all scaled to the smallest value of the
    objective; an array of shape (n_samples, n_components), which is used as it is; or a fitted
    model. By default a homotopy is followed, which has its own start; a single search starts
    from ``"spectral"``.
{indent(_FITTED_INIT, "    ")}""",
    "sne_optimizer": """\
optimizer : str, Optimizer or Homotopy, default=None
    The search: a name, see :func:`~manifoldry.optimize.resolve_optimizer`, an
    :class:`~manifoldry.optimize.Optimizer`, which also holds the tolerances, or a
    :class:`~manifoldry.optimize.Homotopy`, which starts at a weight of repulsion at which the
    embedding is nearly a single point and raises it step by step. ``"homotopy"`` is
    ``Homotopy(n_steps=20)``, and the default unless `init` is given: it ends in better minima.
    Each search is ``"spectral-lbfgs"`` by default.""",
    "max_iter": """\
max_iter : int, default=None
    Maximum number of steps, for a homotopy of each of its searches; by default that of the
    optimizer.""",
    # Attributes.
    "n_components_": """\
n_components_ : int
    Number of coordinates.""",
    "embedding_": """\
embedding_ : array of shape (n_samples, n_components)
    Coordinates of the training points.""",
    "scaled_embedding_": """\
embedding_ : array of shape (n_samples, n_components)
    Coordinates of the training points, in the units of the data.""",
    "sheet_embedding_": """\
embedding_ : array of shape (n_samples, n_components)
    Coordinates of the training points. With ``metric_fit=True`` they are in the units of the
    data and along the principal axes, the largest variance first.""",
    "affinity_": """\
affinity_ : sparse array of shape (n_samples, n_samples)
    Symmetric weights W of the edges of the neighbor graph.""",
    "extension_": """\
extension_ : Extension
    Computes the coordinates of new points.""",
    "inverse_": """\
inverse_ : Inverse or None
    Computes data from coordinates; None if `X` was precomputed.""",
    "eigenvalues_": """\
eigenvalues_ : array of shape (n_components,)
    Smallest nonzero eigenvalues of the largest connected component.""",
    "computed_eigenvalues_": """\
computed_eigenvalues_ : array of shape (n_computed,)
    ``eigenvalues_`` and the further eigenvalues that the solver computed. Those of an iterative
    solver are accurate to a hundredth of their gaps, and a repeated one may be listed once.""",
    "residuals": _RESIDUALS,
    "residuals_": f"""\
residuals_, gaps_ : arrays of shape (n_components,)
{indent(_RESIDUALS, "    ")}""",
    "solver_": """\
solver_ : str
    Which eigensolver was used, why, how accurate it was, and in which precision products were
    computed if the data are in single precision.""",
    "dimension_hint_": """\
dimension_hint_ : int
    Estimate of the intrinsic dimension: the number of eigenvalues before the largest ratio of
    successive ones.""",
    "component_labels_": """\
component_labels_ : array of shape (n_samples,)
    Connected component of each point, 0 for the largest, -1 for points that are not embedded.""",
    "pairs_": """\
pairs_ : str
    How the sums over all pairs of embedded points are computed, and why.""",
    "neighbor_search_": """\
neighbor_search_ : str
    Which neighbor index was used, why, and its recall if it is approximate.""",
    "perplexity_": """\
perplexity_ : float or None
    The perplexity; None if an `affinity` without one is given.""",
    "objective_": """\
objective_ : Pairwise
    The objective that the embedding minimizes.""",
    "bifurcation_": """\
bifurcation_ : Bifurcation
    Critical weight of the repulsion, below which all points coincide, with its published bounds;
    computed on first use.""",
    "learned_affinity_": """\
learned_affinity_ : array or sparse array of shape (n_samples, n_samples)
    Attraction minus repulsion of every pair at the embedding: a dense matrix for at most 5000
    points, else on the edges of ``affinity_``. Computed at every access.""",
    "converged_": """\
converged_ : bool
    Whether the optimizer converged.""",
    "status_": """\
status_ : str
    Why the optimizer stopped.""",
    "n_iter_": """\
n_iter_, n_evaluations_ : int
    Number of iterations, and of evaluations of the objective.""",
    "repulsion_trace_": """\
trace_ : structured array
    One entry per step, and one for the start of every search if there are several:
    ``iteration``, ``value``, ``gradient_norm``, ``length`` of the step, ``evaluations`` so far
    and ``parameter``, the factor of the repulsion, which a homotopy raises to one; NaN without
    a homotopy. Values at different factors belong to different objectives.""",
    "path_": """\
path_ : Path or None
    The embeddings along the homotopy; None without one.""",
    "joint_affinity_": """\
affinity_ : sparse array of shape (n_samples, n_samples)
    Joint probabilities P of pairs: symmetric, summing to one.""",
    # Parameters and results of methods.
    "return_distance": """\
return_distance : bool, default=False
    Also return the distance of each row from the training data; see :meth:`novelty`.""",
    "coordinates": """\
array of shape (n_samples, n_components)
    The coordinates; with `return_distance` a pair, with the distances second.""",
    "distances": """\
array of shape (n_samples,)
    The distances: about 1 for rows like the training data, above 2 for rows unlike them.""",
    "return_map_distance": """\
return_distance : bool, default=False
    Also return the distance of each row from the embedded training points, relative to their
    spacing: about 1 among them, and above 2 for 1 % of them; beyond, the result is an
    extrapolation.""",
    "restored_data": """\
array of shape (n_samples, n_features)
    The data; with `return_distance` a pair, with the distances second.""",
    # Parameters and results of the metrics.
    "compared_data": """\
X : array, sparse matrix or frame of shape (n_samples, n_features), or an AnnData
    The data; an AnnData stands for its ``X``, a pair ``(adata, key)`` for ``adata.obsm[key]``.""",
    "compared_data_or_graph": """\
X : array, sparse matrix or frame of shape (n_samples, n_features), NeighborGraph or AnnData
    The data. With a :class:`~manifoldry.NeighborGraph`, distances in the data are shortest paths
    along it. An AnnData stands for its ``X``, a pair ``(adata, key)`` for ``adata.obsm[key]``.""",
    "compared_embedding": """\
embedding : array of shape (n_samples, n_components), fitted estimator, or str
    The embedding, made by any package, or its key in an AnnData's ``obsm``. Rows of NaN are
    points that were not embedded. That of a fitted pipeline is compared with the data that its
    last step sees: the steps before are applied to `X`.""",
    "data_metric": """\
metric : str or callable, default="euclidean"
    Metric of the distances in the data; ``"precomputed"`` if `X` is a distance matrix.""",
    "metric_neighbors": """\
n_neighbors : int, default=None
    Neighborhood size; by default 15, or fewer if there are not enough points.""",
    "metric_sample": """\
sample : {"auto", "all"} or int, default="auto"
    Points at which the metric is evaluated, always with neighbors among all points: by
    default all of up to 10 000 points, else 2000 drawn at random, with a confidence interval.
    ``"all"`` takes time n_samples² · n_features and memory proportional to n_samples.""",
    "per_point": """\
per_point : bool, default=False
    Return the value of each point instead of the mean, for all points regardless of
    `sample`; NaN for points that were not embedded.""",
    "sample_seed": """\
random_state : int, RandomState, Generator or None, default=None
    Seed of the sample; ``None`` is a fixed seed, so that results are reproducible.""",
    "mean_or_values": """\
Estimate or array of shape (n_samples,)
    The mean, a float with its 95 % confidence interval; with `per_point`, the value of each
    point.""",
}

_PLACEHOLDER = re.compile(r"^( *)\{(\w+)\}$", re.MULTILINE)

Documented = TypeVar("Documented", bound=Callable[..., Any])


def shared_docs(documented: Documented) -> Documented:
    """Decorator that replaces each line ``{name}`` of the docstring by ``SHARED[name]``."""
    text = documented.__doc__
    if text is not None:  # ``python -OO`` removes docstrings
        documented.__doc__ = _PLACEHOLDER.sub(lambda line: indent(SHARED[line[2]], line[1]), text)
    return documented
