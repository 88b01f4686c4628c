"""Minimize objectives: filters of the gradient, optimizers, spectral guidance, homotopies.

Every optimizer takes an :class:`~manifoldry.objectives.Objective`, a function of the embedding Y
with its gradient. All objects here are small frozen dataclasses: construct one and call
:meth:`~Optimizer.minimize`, or pass it to an estimator as ``optimizer=``. Embeddings may be arrays
of any array API namespace, such as CuPy's, if the objective accepts them: the search then runs on
their device, except for filters that use sparse matrices, which run on the CPU.

**Filters.** The search direction is −F·G, with the gradient G and a positive semidefinite F, so
that it never ascends. :class:`Identity` is the gradient itself; :class:`Jacobi` divides by the
degrees of the attraction (the fixed-point iteration), :class:`DiagonalHessian` by the diagonal of
the Hessian, and :class:`SpectralDirection` solves a linear system with the Hessian of the
attraction, a constant Laplacian that is factorized once where this pays.

**Optimizers** turn filtered gradients into steps, each with any filter: :class:`GradientDescent`,
:class:`ConjugateGradient`, :class:`LBFGS`, and :class:`Momentum`, which has no line search.
:func:`resolve_optimizer` makes them by name. :class:`Stopping` holds the maximum number of steps
and the tolerances, and :class:`Constrained` wraps an optimizer to keep the covariance of the
embedding fixed. They return a :class:`Solution`: the embedding, whether the search converged and
why it stopped, and every :class:`Step`.

**Line searches** choose the length of a step by the objective and its directional derivative,
whatever the filter: :class:`Armijo` shortens the step until the value decreases sufficiently,
:class:`StrongWolfe` also requires a small directional derivative, as conjugate gradients and
L-BFGS need it.

**Guidance** is a filter that changes during the search: at first it keeps only smooth functions of
the data, the leading eigenvectors of a matrix M (:func:`graph_matrix`, :func:`clustering_matrix`,
:func:`kernel_pca_matrix`), later more and more. :class:`Projector` increases the number of
eigenvectors, :class:`Power` uses M^ν with decreasing ν, :class:`DeflatedPower` the same with a
separate direction for every coordinate, :class:`Heat` exp(−s·L) with decreasing s. It helps if
the start is poor.

**Schedules** define when guidance advances to its next stage: :class:`OnSlowProgress`,
:class:`EveryStep`, :class:`Never`.

**Homotopies** minimize a series of objectives, each from the minimizer of the one before, and
record the embeddings in a :class:`Path`: :class:`Homotopy` starts from a single point,
:class:`ConstrainedHomotopy` from Laplacian eigenmaps. :class:`EarlyExaggeration` describes the
first phase of t-SNE.

**Callbacks.** :class:`Callback` sets which function an estimator calls during the search, how
often, and what happens after Ctrl-C. :class:`Checkpoint` also saves the state of the fit in a file
at intervals, from which an interrupted fit continues.

Examples
--------
Four points in a row: neighbors attract each other, all pairs repel each other. The spectral
direction and plain L-BFGS find the same minimum.

>>> import numpy as np
>>> from manifoldry.objectives import elastic
>>> from manifoldry.optimize import LBFGS, Armijo, GradientDescent, SpectralDirection, Stopping
>>> W = np.diag(np.ones(3) / 6, 1) + np.diag(np.ones(3) / 6, -1)
>>> objective = elastic(W, weight=5.0)
>>> start = np.array([[0.0], [0.1], [0.2], [0.3]])
>>> plain = LBFGS(stopping=Stopping(tol=1e-8)).minimize(objective, start)
>>> spectral = GradientDescent(SpectralDirection(), Armijo()).minimize(objective, start)
>>> plain.converged, spectral.converged, bool(np.isclose(plain.value, spectral.value))
(True, True, True)

The same objects in an estimator:

>>> from manifoldry import SNE
>>> from manifoldry.optimize import Heat
>>> model = SNE(init="random", optimizer=LBFGS(Heat(start=5.0), memory=20))
"""

from manifoldry.optimize.checkpoint import Checkpoint
from manifoldry.optimize.constrained import Constrained, ConstrainedHomotopy
from manifoldry.optimize.filter import DiagonalHessian, Filter, Identity, Jacobi
from manifoldry.optimize.guidance import EveryStep, Guidance, Never, OnSlowProgress, Schedule
from manifoldry.optimize.guidance_filters import DeflatedPower, Heat, Power, Projector
from manifoldry.optimize.guidance_matrix import clustering_matrix, graph_matrix, kernel_pca_matrix
from manifoldry.optimize.homotopy import (
    EarlyExaggeration,
    Homotopy,
    HomotopyRun,
    Path,
    PathStep,
)
from manifoldry.optimize.line_search import Armijo, StrongWolfe
from manifoldry.optimize.methods import LBFGS, ConjugateGradient, GradientDescent, Momentum
from manifoldry.optimize.optimizer import Callback, Iterate, Optimizer, Solution, Step
from manifoldry.optimize.resolve import resolve_optimizer
from manifoldry.optimize.spectral_direction import SpectralDirection
from manifoldry.optimize.stopping import Stopping

__all__ = [
    "LBFGS",
    "Armijo",
    "Callback",
    "Checkpoint",
    "ConjugateGradient",
    "Constrained",
    "ConstrainedHomotopy",
    "DeflatedPower",
    "DiagonalHessian",
    "EarlyExaggeration",
    "EveryStep",
    "Filter",
    "GradientDescent",
    "Guidance",
    "Heat",
    "Homotopy",
    "HomotopyRun",
    "Identity",
    "Iterate",
    "Jacobi",
    "Momentum",
    "Never",
    "OnSlowProgress",
    "Optimizer",
    "Path",
    "PathStep",
    "Power",
    "Projector",
    "Schedule",
    "Solution",
    "SpectralDirection",
    "Step",
    "Stopping",
    "StrongWolfe",
    "clustering_matrix",
    "graph_matrix",
    "kernel_pca_matrix",
    "resolve_optimizer",
]
