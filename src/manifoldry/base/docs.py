"""Descriptions of parameters and attributes that several estimators have, each written once."""

import re
from textwrap import indent
from typing import TypeVar

SHARED = {
    # Parameters.
    "n_components": """\
n_components : int, default=None
    Number of coordinates, at most ``n_samples - 1``. None is 2, or fewer if the data allow fewer.""",
    "n_neighbors": """\
n_neighbors : int, default=None
    Number of neighbors of each point. None is 10, or half of the points if that is fewer.""",
    "radius": """\
radius : float, default=None
    Connect all points within this distance instead of `n_neighbors` nearest ones.""",
    "metric": """\
metric : str or callable, default="euclidean"
    Metric of the neighbor search, as in :class:`sklearn.neighbors.NearestNeighbors`;
    ``"precomputed"`` if `X` holds distances, dense or as a sparse neighbor graph.""",
    "metric_params": """\
metric_params : dict, default=None
    Additional keyword arguments of the metric.""",
    "disconnected": """\
What to do if the neighbor graph is not connected; see
:class:`~manifoldry.neighbors.DisconnectedPolicy`.""",
    "eigen_solver": """\
eigen_solver : str or EigenSolver, default="auto"
    The eigensolver, by name or as an object; see :func:`manifoldry.eigen.resolve_solver`.""",
    "extension": """\
extension : regressor, default=None
    How ``transform`` finds the coordinates of new points: a scikit-learn regressor that is
    fitted to predict ``embedding_`` from `X`. None uses the formula of the method.""",
    "inverse": """\
inverse : regressor, default=None
    How ``inverse_transform`` finds data: a scikit-learn regressor that is fitted to predict `X`
    from ``embedding_``. None uses the inverse of the method.""",
    "max_iter": """\
max_iter : int, default=None
    Maximum number of iterations. None is the default of the optimizer.""",
    "callback": """\
callback : callable or Callback, default=None
    Called after every iteration with an :class:`~manifoldry.optimize.Iterate`; the search stops
    if it returns True. A :class:`~manifoldry.optimize.Callback` also says how often to call it
    and what to do on Ctrl-C.""",
    "verbose": """\
verbose : bool, default=False
    Show a progress bar with the value of the objective.""",
    "random_state": """\
random_state : int, RandomState, Generator or None, default=None
    Seed of the start vectors of iterative eigensolvers. None is a fixed seed.""",
    "random_start": """\
random_state : int, RandomState, Generator or None, default=None
    Seed of the initial embedding. None is a fixed seed.""",
    "n_jobs": """\
n_jobs : int, default=None
    Number of threads. None is one per core; BLAS uses its own number.""",
    # Attributes.
    "n_components_": """\
n_components_ : int
    Number of coordinates.""",
    "embedding_": """\
embedding_ : array of shape (n_samples, n_components)
    Coordinates of the training points.""",
    "extension_": """\
extension_ : Extension
    Computes the coordinates of new points.""",
    "inverse_": """\
inverse_ : Inverse or None
    Computes data from coordinates; None if `X` was precomputed.""",
    "eigenvalues_": """\
eigenvalues_ : array of shape (n_components,)
    Smallest nonzero eigenvalues, of the largest connected component.""",
    "computed_eigenvalues_": """\
computed_eigenvalues_ : array of shape (n_computed,)
    ``eigenvalues_`` followed by those that the solver computed beyond them.""",
    "residuals_": """\
residuals_, gaps_ : arrays of shape (n_components,)
    Residual norm of each eigenpair, and the distance from its eigenvalue to the nearest other
    one. A coordinate is reliable if its residual is much smaller than its gap.""",
    "solver_": """\
solver_ : str
    Which eigensolver was used, why, and how accurate it was.""",
    "dimension_hint_": """\
dimension_hint_ : int
    Number of eigenvalues before the largest gap between successive ones.""",
    "component_labels_": """\
component_labels_ : array of shape (n_samples,)
    Connected component of each point, 0 for the largest, -1 for points that are not embedded.""",
    "neighbor_search_": """\
neighbor_search_ : str
    Which neighbor index was used, why, and its recall if it is approximate.""",
    "perplexity_": """\
perplexity_ : float
    The perplexity.""",
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
    points, else on the edges of ``affinity_``. Computed on first use.""",
    "converged_": """\
converged_ : bool
    Whether the optimizer converged.""",
    "status_": """\
status_ : str
    Why the optimizer stopped.""",
    "n_iter_": """\
n_iter_, n_evaluations_ : int
    Number of iterations, and of evaluations of the objective.""",
    "trace_": """\
trace_ : structured array
    One entry per iteration, and one for the start of every search: ``iteration``, ``value``,
    ``gradient_norm``, ``length`` of the step, ``evaluations`` so far and the ``parameter`` of the
    homotopy (NaN without one). Values at different parameters are of different objectives.""",
}

_PLACEHOLDER = re.compile(r"^( *)\{(\w+)\}$", re.MULTILINE)

Class = TypeVar("Class", bound=type)


def shared_docs(cls: Class) -> Class:
    """Class decorator: replace lines ``{name}`` of the docstring by the description of `name`."""
    if cls.__doc__ is not None:  # it is under ``python -OO``
        cls.__doc__ = _PLACEHOLDER.sub(lambda line: indent(SHARED[line[2]], line[1]), cls.__doc__)
    return cls
