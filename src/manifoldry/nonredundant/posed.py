"""A spectral method solved for one coordinate at a time: what its solution then means."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from manifoldry.base.input import Lookup
from manifoldry.eigen import Spectra, SpectralProblem
from manifoldry.extension.base import Extension, Inverse
from manifoldry.extension.pieces import Pieces
from manifoldry.extension.regression import regression
from manifoldry.nonredundant.extension import (
    CorrectedExtension,
    Correction,
    GradientRow,
    HasWeights,
    PieceSteps,
    over,
)
from manifoldry.nonredundant.sequence import Run, tall_products
from manifoldry.spectral.posed import Posed
from manifoldry.util.typing import Array, IntArray


@dataclass(frozen=True, eq=False)
class PosedInSequence(Posed):
    """Another posed method, whose coordinates are those of runs, one for every piece."""

    inner: Posed
    runs: list[Run | None]

    @property
    def problems(self) -> list[SpectralProblem]:
        return self.inner.problems

    @property
    def unit(self) -> float:
        return self.inner.unit

    @property
    def pieces(self) -> list[IntArray]:
        return self.inner.pieces

    @property
    def has_lengths(self) -> bool:
        return self.inner.has_lengths

    def spectra(self, k: int) -> Spectra:
        """The coordinates as spectra, of k pairs each."""
        return Spectra([None if run is None else run.spectrum for run in self.runs], k)

    def coordinates(self, spectra: Spectra) -> Array:
        Y = self.inner.coordinates(spectra)
        if not self._is_gram:
            return Y
        for part in range(len(self.runs)):
            rows, sites = self.pieces[part], self.inner.sites[part]
            if len(sites) == len(rows):
                Y[rows] = self._at_sites(spectra, part)
            else:  # beside landmarks the others are placed as new points are
                Y[rows] = self._steps(spectra, part, Y[sites], None).corrected(Y[rows], None)
        return Y

    @property
    def _is_gram(self) -> bool:
        """Whether coordinates are lengths √ℓ·v, and the method's formula gives others."""
        return self.problems[0].is_gram

    def _at_sites(self, spectra: Spectra, part: int) -> Array:
        """The coordinates at the points of a piece's problem."""
        if not self._is_gram:
            return self.inner.coordinates(spectra)[self.inner.sites[part]]
        return self.problems[part].coordinates(spectra.padded[part]) * self.unit

    def extend(self, spectra: Spectra, layout: Pieces, embedding: Array) -> Extension:
        extension = self.inner.extend(spectra, layout, embedding)
        with tall_products(self.problems[0]):
            bare = self.inner.formula(spectra, extension)
            if bare is None:  # new points follow their neighbours, whatever the coordinates are
                return extension
            parts = [
                self._steps(spectra, part, bare[sites], extension)
                for part, sites in enumerate(self.inner.sites)
            ]
        return CorrectedExtension(extension, parts)

    def _steps(
        self, spectra: Spectra, part: int, bare: Array, extension: Extension | None
    ) -> PieceSteps:
        """What leads from the formula's values at the sites of a piece to its coordinates."""
        run, sites = self.runs[part], self.inner.sites[part]
        if run is None:
            return PieceSteps(sites, np.ones(spectra.k), [])
        Y, F = self._at_sites(spectra, part), spectra.padded[part].vectors
        norm = np.linalg.norm(F, axis=0)
        size = np.linalg.norm(Y, axis=0) / np.where(norm > 0, norm, 1.0)
        bare = np.where(size > 0, over(bare, size), 0.0)
        F = np.where(size > 0, F, 0.0)
        steps: list[Correction | GradientRow] = []
        for i, c in enumerate(run.coordinates[1:], start=1):
            mass = run.problem.mass
            if c.penalty is not None and mass is not None and isinstance(extension, HasWeights):
                energy = run.problem.operator @ c.f
                steps.append(GradientRow.of(c.penalty, c.f, mass, energy, c.functions))
            else:
                missing = F[:, i] - bare[:, i]
                steps.append(Correction.of(c.functions, missing, bare[:, i], F[:, :i]))
        return PieceSteps(sites, size, steps)

    def invert(self, embedding: Array, extension: Any) -> Inverse | None:
        if isinstance(extension, CorrectedExtension):
            return regression(embedding, self.data.points)
        return self.inner.invert(embedding, extension)

    @cached_property
    def lookup(self) -> Lookup | None:
        # A linear map returns training rows to their place by itself; a corrected one does not.
        return self.inner.lookup or self.data.lookup

    def loss(self, spectra: Spectra) -> float:
        return self.inner.loss(spectra)

    def evidence(self, spectra: Spectra, Y: Array, extension: Any) -> dict[str, Any]:
        return self.inner.evidence(spectra, Y, getattr(extension, "base", extension))
