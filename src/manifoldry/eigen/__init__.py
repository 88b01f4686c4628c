"""Eigenvalue problems and their solvers.

A spectral method defines a :class:`SpectralProblem`. An :class:`EigenSolver` computes its
:class:`Spectrum` and compares the residuals with the gaps between eigenvalues.
"""

from manifoldry.eigen.auto import Auto, Choice, resolve_solver
from manifoldry.eigen.chebyshev import ChebyshevSubspace
from manifoldry.eigen.components import ComponentSolver, Spectra
from manifoldry.eigen.dense import Dense, dense_basis
from manifoldry.eigen.distributed import (
    DistributedLobpcg,
    DistributedProblem,
    DistributedSpectrum,
)
from manifoldry.eigen.gram import Gram
from manifoldry.eigen.lanczos import Lanczos, ProbeLimits
from manifoldry.eigen.lobpcg import Lobpcg
from manifoldry.eigen.problem import SpectralProblem
from manifoldry.eigen.randomized import Randomized
from manifoldry.eigen.shift_invert import ShiftInvertLanczos
from manifoldry.eigen.solver import EigenSolver, PairSolver, SolverFailed
from manifoldry.eigen.spectrum import Spectrum
from manifoldry.eigen.standard import StandardProblem

__all__ = [
    "Auto",
    "ChebyshevSubspace",
    "Choice",
    "ComponentSolver",
    "Dense",
    "DistributedLobpcg",
    "DistributedProblem",
    "DistributedSpectrum",
    "EigenSolver",
    "Gram",
    "Lanczos",
    "Lobpcg",
    "PairSolver",
    "ProbeLimits",
    "Randomized",
    "ShiftInvertLanczos",
    "SolverFailed",
    "Spectra",
    "SpectralProblem",
    "Spectrum",
    "StandardProblem",
    "dense_basis",
    "resolve_solver",
]
