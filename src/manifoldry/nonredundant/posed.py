"""The eigenproblem of a spectral method, solved for one coordinate at a time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from manifoldry.base.input import RowMatcher
from manifoldry.eigen import Spectra, SpectralProblem
from manifoldry.exceptions import RedundantCoordinateWarning, ignoring
from manifoldry.extension.base import Extension, Inverse
from manifoldry.extension.layout import Layout
from manifoldry.extension.local import LocalWeights
from manifoldry.extension.regression import LocalRegression, regression_inverse
from manifoldry.neighbors.base import NeighborIndex
from manifoldry.neighbors.choose import choose_index
from manifoldry.neighbors.graph import NeighborGraph
from manifoldry.nonredundant.extension import CorrectedExtension, InterpolationPoints
from manifoldry.nonredundant.sequence import CoordinateSequence
from manifoldry.spectral.posed import Posed
from manifoldry.util.cached import cached_property
from manifoldry.util.rows import RowLookup
from manifoldry.util.typing import Array, IntArray, Matrix


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
        with ignoring(RedundantCoordinateWarning):  # unpredictability_ says how redundant they are
            Y = self.inner.coordinates(spectra)
        if not self.problems[0].is_gram:
            return Y
        # Coordinates are √λ·v, for which the formula of the method does not hold.
        for part, spectrum in enumerate(spectra.padded):
            rows, points = self.components[part], self.inner.problem_rows[part]
            own = self.problems[part].coordinates(spectrum) * self.unit
            if len(points) < len(rows):  # points other than landmarks are placed like new points
                Y[rows] += LocalRegression(Y[points], own - Y[points]).predict(Y[rows])
            Y[points] = own
        return Y

    def extend(self, spectra: Spectra, layout: Layout, embedding: Array) -> Extension:
        extension = self.inner.extend(spectra, layout, embedding)
        rows = self.data.rows if self.data.pairwise else self.data.points
        if rows is None:  # the formula cannot be compared with the embedding
            return extension
        formula = self.inner.extension_at_training(spectra, extension)
        points = InterpolationPoints.of(
            self._index(rows), self._first_duplicates(rows), self.labels
        )
        constrained = any(c.constrained for s in self.sequences if s for c in s.coordinates)
        placed = extension.place(formula, self.labels)
        return CorrectedExtension.of(extension, points, embedding, placed, constrained)

    def _index(self, rows: Matrix) -> NeighborIndex:
        """Finds the neighbors of new points in the metric of the method, or else by their rows."""
        matcher = self.row_matcher
        if isinstance(matcher, NeighborGraph):
            return matcher.index
        return matcher if isinstance(matcher, NeighborIndex) else choose_index(rows)

    def _first_duplicates(self, rows: Matrix) -> IntArray:
        """The first training row that is identical to each one."""
        matcher = self.row_matcher or RowLookup.of(rows)
        first = matcher.identical(rows)
        return np.where(first < 0, np.arange(len(first)), first)

    def invert(self, embedding: Array, extension: Any) -> Inverse | None:
        if not isinstance(extension, CorrectedExtension):
            return self.inner.invert(embedding, extension)
        if isinstance(extension.base, LocalWeights):  # its inverse holds for any embedding
            return self.inner.invert(embedding, extension.base)
        return regression_inverse(embedding, self.data.points)

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
