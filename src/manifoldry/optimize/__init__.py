"""Minimising objectives: filters of the gradient, searches, homotopies."""

from manifoldry.optimize.armijo import Armijo
from manifoldry.optimize.conjugate_gradient import ConjugateGradient
from manifoldry.optimize.constrained import Constrained
from manifoldry.optimize.constrained_homotopy import ConstrainedHomotopy
from manifoldry.optimize.deflated_power import DeflatedPower
from manifoldry.optimize.diagonal_hessian import DiagonalHessian
from manifoldry.optimize.filter import Filter, Identity
from manifoldry.optimize.gradient_descent import GradientDescent
from manifoldry.optimize.guidance import Guidance
from manifoldry.optimize.guidance_matrix import clustering_matrix, graph_matrix, kernel_pca_matrix
from manifoldry.optimize.heat import Heat
from manifoldry.optimize.homotopy import Homotopy, Walk
from manifoldry.optimize.jacobi import Jacobi
from manifoldry.optimize.lbfgs import LBFGS
from manifoldry.optimize.momentum import Momentum
from manifoldry.optimize.optimiser import Optimiser
from manifoldry.optimize.path import Path, PathStep
from manifoldry.optimize.power import Power
from manifoldry.optimize.projector import Projector
from manifoldry.optimize.resolve import resolve_optimiser
from manifoldry.optimize.schedule import EveryStep, Never, OnSlowProgress, Schedule
from manifoldry.optimize.solution import Iterate, Solution, Step
from manifoldry.optimize.spectral_direction import SpectralDirection
from manifoldry.optimize.stopping import Stopping
from manifoldry.optimize.strong_wolfe import StrongWolfe

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
    "Optimiser",
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
    "resolve_optimiser",
]
