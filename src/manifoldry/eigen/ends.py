"""The two ends of a spectrum, and what depends on which one is wanted."""

from __future__ import annotations

from enum import StrEnum

import numpy as np

from manifoldry.util.typing import Array


class SpectrumEnd(StrEnum):
    """One end of a spectrum: solvers ask it for signs, orders and bounds.

    Examples
    --------
    >>> import numpy as np
    >>> from manifoldry.eigen.ends import SpectrumEnd
    >>> SpectrumEnd("largest").inwards(np.array([1.0, 2.0, 5.0]))
    array([5., 2., 1.])
    """

    SMALLEST = "smallest"
    LARGEST = "largest"

    @property
    def other(self) -> SpectrumEnd:
        """The end that is not wanted."""
        ends = SpectrumEnd
        return ends.LARGEST if self is ends.SMALLEST else ends.SMALLEST

    @property
    def outwards(self) -> float:
        """Direction out of the spectrum, 1 or −1: times it, the wanted end is the top."""
        return 1.0 if self is SpectrumEnd.LARGEST else -1.0

    def edge(self, bounds: tuple[float, float] | None) -> float | None:
        """Return the bound (low, high) on this side, or None where it is unknown or infinite."""
        if bounds is None:
            return None
        edge = bounds[self is SpectrumEnd.LARGEST]
        return edge if np.isfinite(edge) else None

    def inwards(self, ascending: Array) -> Array:
        """Return values, or columns, that came in ascending order, from this end inwards."""
        return ascending if self is SpectrumEnd.SMALLEST else ascending[..., ::-1]
