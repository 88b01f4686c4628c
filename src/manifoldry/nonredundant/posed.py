"""The eigenproblem of a spectral method, solved for one coordinate at a time."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from manifoldry.base.input import RowMatcher
from manifoldry.eigen import Spectra, SpectralProblem
from manifoldry.extension.base import Extension, Inverse
from manifoldry.extension.layout import Layout
from manifoldry.extension.regression import regression_inverse
from manifoldry.nonredundant.criteria import Coordinate
from manifoldry.nonredundant.extension import (
    ComponentCorrections,
    CorrectedExtension,
    Correction,
    GradientEquation,
    HasWeights,
    divided_by,
)
from manifoldry.nonredundant.sequence import CoordinateSequence, blas_threads_for
from manifoldry.spectral.posed import Posed
from manifoldry.util.typing import Array, IntArray


@dataclass(frozen=True, eq=False)
class PosedNonRedundant(Posed):
    """The eigenproblem of a method, solved for one coordinate after another in every component."""

    inner: Posed
    sequences: list[CoordinateSequence | None]

    @property
    def problems(self) -> list[SpectralProblem]:
        return self.inner.problems

    @property
    def unit(self) -> float:
        return self.inner.unit

    @property
    def components(self) -> list[IntArray]:
        return self.inner.components

    @property
    def preserves_scale(self) -> bool:
        return self.inner.preserves_scale

    def spectra(self, k: int) -> Spectra:
        """The coordinates of all components, as spectra of k pairs each."""
        return Spectra(
            [None if sequence is None else sequence.spectrum for sequence in self.sequences], k
        )

    def coordinates(self, spectra: Spectra) -> Array:
        Y = self.inner.coordinates(spectra)
        if not self._is_gram:
            return Y
        for part, own in enumerate(self._at_problem_rows(spectra)):
            rows, points = self.components[part], self.inner.problem_rows[part]
            if len(points) == len(rows):
                Y[rows] = own
            else:  # points other than landmarks are placed like new points
                Y[rows] = self._corrections(spectra, part, own, Y[points], None).apply(
                    Y[rows], None
                )
        return Y

    @property
    def _is_gram(self) -> bool:
        """Whether coordinates are √λ·v, for which the formula of the method does not hold."""
        return self.problems[0].is_gram

    def _at_problem_rows(self, spectra: Spectra) -> list[Array]:
        """Coordinates at the points of the problem of every component."""
        if not self._is_gram:
            Y = self.inner.coordinates(spectra)
            return [Y[points] for points in self.inner.problem_rows]
        pairs = zip(self.problems, spectra.padded, strict=True)
        return [problem.coordinates(spectrum) * self.unit for problem, spectrum in pairs]

    def extend(self, spectra: Spectra, layout: Layout, embedding: Array) -> Extension:
        extension = self.inner.extend(spectra, layout, embedding)
        with blas_threads_for(self.problems[0]):
            uncorrected = self.inner.extension_at_training(spectra, extension)
            if uncorrected is None:  # new points are interpolated from any coordinates
                return extension
            parts = [
                self._corrections(
                    spectra, part, own, uncorrected[self.inner.problem_rows[part]], extension
                )
                for part, own in enumerate(self._at_problem_rows(spectra))
            ]
        constrained = any(c.constrained for s in self.sequences if s for c in s.coordinates)
        return CorrectedExtension(extension, parts, constrained)

    def _corrections(
        self, spectra: Spectra, part: int, Y: Array, uncorrected: Array, extension: Extension | None
    ) -> ComponentCorrections:
        """Corrections from the formula's values to the coordinates `Y` of a component."""
        sequence, points = self.sequences[part], self.inner.problem_rows[part]
        if sequence is None:
            return ComponentCorrections(points, np.ones(spectra.k), [])
        F = spectra.padded[part].vectors
        norm = np.linalg.norm(F, axis=0)
        scale = np.linalg.norm(Y, axis=0) / np.where(norm > 0, norm, 1.0)
        F = np.where(scale > 0, F, 0.0)
        uncorrected = np.where(scale > 0, divided_by(uncorrected, scale), 0.0)
        gradients = sequence.problem.mass is not None and isinstance(extension, HasWeights)
        corrections = [
            _gradient_equation(sequence, c)
            if gradients and c.penalty is not None
            else Correction.of(
                c.functions, F[:, i] - uncorrected[:, i], uncorrected[:, i], F[:, :i]
            )
            for i, c in enumerate(sequence.coordinates[1:], start=1)
        ]
        return ComponentCorrections(points, scale, corrections)

    def invert(self, embedding: Array, extension: Any) -> Inverse | None:
        if isinstance(extension, CorrectedExtension):
            return regression_inverse(embedding, self.data.points)
        return self.inner.invert(embedding, extension)

    @cached_property
    def row_matcher(self) -> RowMatcher | None:
        # A linear map maps training rows to their coordinates exactly; a corrected one does not.
        return self.inner.row_matcher or self.data.row_matcher

    def check_connected(self) -> None:
        self.inner.check_connected()

    def loss(self, spectra: Spectra) -> float:
        return self.inner.loss(spectra)

    def fitted_attributes(self, spectra: Spectra, Y: Array, extension: Any) -> dict[str, Any]:
        return self.inner.fitted_attributes(spectra, Y, getattr(extension, "base", extension))


def _gradient_equation(sequence: CoordinateSequence, coordinate: Coordinate) -> GradientEquation:
    """The equation of a coordinate with a penalty on its gradient."""
    mass, penalty = sequence.problem.mass, coordinate.penalty
    assert mass is not None  # the caller checks both
    assert penalty is not None
    energy = sequence.problem.operator @ coordinate.f
    return GradientEquation.of(penalty, coordinate.f, mass, energy, coordinate.functions)
