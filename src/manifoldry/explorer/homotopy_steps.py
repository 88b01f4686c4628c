"""The steps of a homotopy as drawings that follow each other smoothly."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np

from manifoldry.explorer.drawing import Drawing, plane
from manifoldry.util.typing import Array

_SYMBOLS = {"TSNE": "1 / exaggeration"}  # all others have the λ of their literature
_SAME = 1e-6  # relative difference of parameters that are equal but for rounding


@dataclass(eq=False)
class HomotopySteps:
    """Embeddings along a homotopy, one of which is the map itself.

    Each is scaled to fit and turned to match the next, so that a slider shows how the shape
    develops, not how it grows or turns.

    Parameters
    ----------
    symbol : str
        Name of the parameter.
    parameters : list of float
        Its value at every step.
    embeddings : list of arrays of shape (n, n_components)
        The embedding at every step.
    own : int
        The step that is the map itself.
    """

    symbol: str
    parameters: list[float]
    embeddings: list[Array]
    own: int
    _drawn: dict[int, Array] = field(default_factory=dict)

    @classmethod
    def of(cls, model: Any) -> Self | None:
        """The steps that a fitted model has kept; None without a homotopy."""
        path = getattr(model, "path_", None)
        if path is None or len(path.kept) < 2:
            return None
        parameters = [float(p) for p in path.column("parameter")[path.kept]]
        embeddings = list(path.embeddings)
        own = float(getattr(model, "weight_", parameters[-1]))
        gaps = [abs(p - own) for p in parameters]
        place = int(np.argmin(gaps))
        if gaps[place] > _SAME * max(abs(own), 1e-300):  # not among those that were kept
            place += int((own > parameters[place]) == (parameters[-1] > parameters[0]))
            parameters.insert(place, own)
            embeddings.insert(place, model.embedding_)
        embeddings[place] = model.embedding_
        return cls(_SYMBOLS.get(type(model).__name__, "λ"), parameters, embeddings, place)

    def labels(self) -> list[str]:
        """What the slider says at each step."""
        return [f"{self.symbol} = {p:.3g}" for p in self.parameters]

    def drawn(self, step: int, own: Array, shown: tuple[int, int]) -> Array:
        """Where a step is drawn, given how the map itself is drawn."""
        if not 0 <= step < len(self.parameters):
            raise ValueError(
                f"step={step} must be 0 to {len(self.parameters) - 1}, the steps of this homotopy"
            )
        self._drawn.setdefault(self.own, own)
        toward = 1 if step > self.own else -1
        for each in range(self.own + toward, step + toward, toward):
            if each not in self._drawn:
                points = plane(np.asarray(self.embeddings[each]), shown)
                frame = Drawing.around(points, self._drawn[each - toward])
                self._drawn[each] = frame.drawn(points).astype(np.float32)
        return self._drawn[step]
