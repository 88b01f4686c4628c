"""One map of the explorer: where its rows are drawn, and what its model can do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Self

import numpy as np
from scipy.spatial import KDTree
from sklearn.impute import SimpleImputer

from manifoldry.exceptions import NoveltyWarning, ignoring
from manifoldry.explorer.drawing import Drawing, plane
from manifoldry.explorer.homotopy_steps import HomotopySteps
from manifoldry.extension.far_rows import FAR
from manifoldry.extension.relative_distance import DistanceOnMap
from manifoldry.methods.fitted_steps import named_like, prepared, undone
from manifoldry.util.cached import cached_property
from manifoldry.util.typing import Array, IntArray

_NEAR_THE_EDGE = 1.5  # between the typical distance of 1 and that of a position off the map


class Restored(NamedTuple):
    """Data at positions of a map, how far these are from it, and the nearest row of each."""

    data: Array
    distance: Array
    nearest: IntArray


@dataclass(frozen=True, eq=False)
class MapView:
    """Two coordinates of a map as they are drawn; never changed, so threads can share it.

    Parameters
    ----------
    shown : (int, int)
        The coordinates.
    frame : Drawing
        From these coordinates to the drawing.
    drawn : array of shape (n, 2)
        Where the rows are drawn, in single precision.
    homotopy : HomotopySteps or None
        The steps of its homotopy, if it followed one.
    """

    shown: tuple[int, int]
    frame: Drawing
    drawn: Array
    homotopy: HomotopySteps | None

    @classmethod
    def of(cls, shown: tuple[int, int], embedding: Array, reference: Any, model: Any) -> Self:
        """The view of two coordinates."""
        points = plane(embedding, shown)
        frame = Drawing.around(points, reference)
        return cls(shown, frame, frame.drawn(points).astype(np.float32), HomotopySteps.of(model))

    def nearest(self, at: Array) -> IntArray:
        """The rows that are drawn nearest to positions."""
        rows, tree = self._tree
        return np.asarray(rows[tree.query(at)[1]])

    @cached_property
    def _tree(self) -> tuple[IntArray, KDTree]:
        rows = np.flatnonzero(np.isfinite(self.drawn).all(axis=1))
        return rows, KDTree(self.drawn[rows])


@dataclass(eq=False)
class ExploredMap:
    """A map, and the fitted model that made it if it is known.

    Parameters
    ----------
    id, name : str
        What messages and people call it.
    embedding : array of shape (n, n_components)
        The coordinates; rows that are not embedded are NaN.
    model : estimator, optional
        The fitted model without the steps before it.
    steps : sequence of transformers
        The fitted steps before the model.
    method : str, optional
        Name of the method on the command line.
    reference : array of shape (n, 2), optional
        The drawing that it is turned to match.
    fitted_here : bool
        Whether the explorer fitted it to the data that it shows.
    """

    id: str
    name: str
    embedding: Array
    model: Any = None
    steps: Sequence[Any] = ()
    method: str | None = None
    reference: Array | None = None
    fitted_here: bool = False
    redrawn: int = 0
    evidence: Any = None
    stability: Any = None
    colors: dict[str, Any] = field(default_factory=dict)  # evidence of each row, by name

    def __post_init__(self) -> None:
        if not np.isfinite(self.embedding).all(axis=1).any():
            raise ValueError(f"the map {self.name} has no row with finite coordinates")
        self.view = self._view((0, min(1, self.embedding.shape[1] - 1)))

    def _view(self, shown: tuple[int, int]) -> MapView:
        return MapView.of(shown, self.embedding, self.reference, self.model)

    @property
    def drawn(self) -> Array:
        """Where the rows are drawn, in single precision."""
        return self.view.drawn

    def show(self, first: int, second: int) -> None:
        """Draw two other coordinates."""
        count = self.embedding.shape[1]
        for each in (first, second):
            if not 0 <= each < count:
                raise ValueError(f"coordinate {each} must be 0 to {count - 1}")
        if count > 1 and first == second:
            raise ValueError(f"coordinate {first} is given twice; choose two different ones")
        self.view = self._view((first, second))
        self.redrawn += 1

    def positions(self, step: int | None) -> Array:
        """Where rows are drawn, at a step of the homotopy or for the map itself."""
        view = self.view
        if step is None:
            return view.drawn
        if view.homotopy is None:
            raise ValueError(f"the map {self.name} has no homotopy")
        return view.homotopy.drawn(step, view.drawn, view.shown)

    @property
    def key(self) -> str:
        """Name of columns and files."""
        return (self.method or self.name).lower().replace("-", "_").replace(" ", "_")

    @property
    def can_place(self) -> bool:
        """Whether new rows get positions."""
        return hasattr(self.model, "transform")

    @property
    def can_invert(self) -> bool:
        """Whether positions give data."""
        if getattr(self.model, "inverse_", True) is None or self._not_undone:
            return False
        return hasattr(self.model, "inverse_transform")

    @property
    def _not_undone(self) -> list[Any]:
        """Steps before the model that have no inverse; an imputer has nothing to undo."""
        return [
            step
            for step in self.steps
            if not (isinstance(step, SimpleImputer) or hasattr(step, "inverse_transform"))
        ]

    @property
    def why_not(self) -> str:
        """Why it cannot place rows or give data; empty if it can do both."""
        if self.can_place and self.can_invert:
            return ""
        if self.model is None:
            return "Only its coordinates are known, not the model: pass a fitted estimator."
        name = type(self.model).__name__
        if self._not_undone:
            return f"{type(self._not_undone[0]).__name__}, before {name}, has no inverse."
        if self.can_place and not hasattr(self.model, "inverse_transform"):
            return f"{name} has no inverse_transform."
        if self.can_place:
            return f"{name} has no inverse here, as it was fitted without data."
        return f"{name} has no transform for new rows."

    def place(self, X: Any) -> tuple[Array, Array | None]:
        """Where new rows are drawn, and their novelty if the model knows it."""
        rows = named_like(self.model, prepared(self.steps, X))
        with ignoring(NoveltyWarning):  # the page says it row by row
            embedding = np.asarray(self.model.transform(rows))
        novelty = np.asarray(self.model.novelty(rows)) if hasattr(self.model, "novelty") else None
        view = self.view
        return view.frame.drawn(plane(embedding, view.shown)).astype(np.float32), novelty

    def invert(self, at: Array) -> Restored:
        """Data at positions of the drawing.

        Coordinates that are not shown are those of the row that is drawn nearest.
        """
        view = self.view
        nearest = view.nearest(at)
        Z: Array = self.embedding[nearest].astype(np.float64)
        wanted = view.frame.coordinates(at)
        for j, place in enumerate(view.shown[: Z.shape[1]]):
            Z[:, place] = wanted[:, j]
        with ignoring(NoveltyWarning):
            distance = self._distance.of(Z, requested=True)
            data = undone(self.steps, self.model.inverse_transform(Z))
        assert distance is not None
        return Restored(data, distance, nearest)

    @cached_property
    def _distance(self) -> DistanceOnMap:
        return DistanceOnMap(self.embedding)


def caution(distance: float) -> str:
    """What to say about data at a position that is so far from the map; empty if it is on it."""
    if not np.isfinite(distance):
        return "The distance from the map is not known."
    if distance > FAR:
        return (
            f"Off the map: {distance:.1f} times the usual distance between its points, so this is "
            "extrapolated."
        )
    if distance > _NEAR_THE_EDGE:
        return f"Near the edge of the map: {distance:.1f} times the usual distance of its points."
    return ""
