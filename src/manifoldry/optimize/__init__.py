"""Minimizing objectives: filters of the gradient, searches, guidance, homotopies.

Everything here takes an :class:`~manifoldry.objectives.Objective`, a function of the map Y with
its gradient, and is a small frozen object: say what you want, then :meth:`~Optimizer.minimize`, or
pass it to an estimator as ``optimizer=``, ``guidance=`` or ``homotopy=``. Maps may be arrays of
any namespace that follows the array API, such as CuPy's, if the objective takes them: a search
then stays on its device, but for filters by sparse matrices, which are the CPU's.

**Filters.** A search goes along −F·G, G being the gradient and F positive semidefinite, which
never ascends. :class:`Identity` is the gradient itself; :class:`Jacobi` divides by the degrees of
attraction (the fixed-point iteration), :class:`DiagonalHessian` by curvatures, and
:class:`SpectralDirection` by the whole curvature of attraction: a linear system in a Laplacian that
stays the same, so that it is factorized once where that pays.

**Optimizers** turn filtered gradients into steps, each with any filter: :class:`GradientDescent`,
:class:`ConjugateGradient`, :class:`LBFGS`, and :class:`Momentum`, which has no line search.
:func:`resolve_optimizer` makes them by name. :class:`Stopping` says when to stop, and
:class:`Constrained` around any of them holds the covariance of the map. They return a
:class:`Solution`: the map, whether the search converged and why it stopped, and every
:class:`Step`.

**Line searches** find how far to go, testing the true slope of the true objective whatever the
filter: :class:`Armijo` by steps that get shorter until the value falls enough,
:class:`StrongWolfe` until the slope has fallen, too, as conjugate gradients and L-BFGS need.

**Guidance** is a filter that changes as the search goes on: first it lets only smooth functions of
the data through, the leading eigenvectors of a matrix M (:func:`graph_matrix`,
:func:`clustering_matrix`, :func:`kernel_pca_matrix`), then ever more. :class:`Projector` takes more
and more eigenvectors, :class:`Power` M^ν with ν falling, :class:`DeflatedPower` the same with a
direction of its own for every coordinate, :class:`Heat` exp(−s·L) with s falling. It helps where
the start is poor; :func:`resolve_guidance` makes it by name.

**Schedules** say when guidance goes on to its next level: :class:`OnSlowProgress`,
:class:`EveryStep`, :class:`Never`.

**Homotopies** minimize a series of objectives, each from the minimizer of the one before, and keep
the maps on the way in a :class:`Path`: :class:`Homotopy` from a map that is one point,
:class:`ConstrainedHomotopy` from Laplacian eigenmaps.

Examples
--------
Four points in a row, each attracted by its neighbors, all repelling each other. The spectral
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
>>> model = SNE(init="random", optimizer=LBFGS(memory=20), guidance=Heat(start=5.0))
"""

from manifoldry.optimize.constrained import Constrained, ConstrainedHomotopy
from manifoldry.optimize.filter import DiagonalHessian, Filter, Identity, Jacobi
from manifoldry.optimize.guidance import EveryStep, Guidance, Never, OnSlowProgress, Schedule
from manifoldry.optimize.guidance_filters import DeflatedPower, Heat, Power, Projector
from manifoldry.optimize.guidance_matrix import clustering_matrix, graph_matrix, kernel_pca_matrix
from manifoldry.optimize.homotopy import Homotopy, Path, PathStep, Walk
from manifoldry.optimize.line_search import Armijo, StrongWolfe
from manifoldry.optimize.methods import LBFGS, ConjugateGradient, GradientDescent, Momentum
from manifoldry.optimize.optimizer import Iterate, Optimizer, Solution, Step
from manifoldry.optimize.resolve import resolve_guidance, resolve_optimizer
from manifoldry.optimize.spectral_direction import SpectralDirection
from manifoldry.optimize.stopping import Stopping

__all__ = [
    "LBFGS",
    "Armijo",
    "ConjugateGradient",
    "Constrained",
    "ConstrainedHomotopy",
    "DeflatedPower",
    "DiagonalHessian",
    "EveryStep",
    "Filter",
    "GradientDescent",
    "Guidance",
    "Heat",
    "Homotopy",
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
    "Walk",
    "clustering_matrix",
    "graph_matrix",
    "kernel_pca_matrix",
    "resolve_guidance",
    "resolve_optimizer",
]
