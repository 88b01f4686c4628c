"""The `color` argument of plots: None, one color, classes, or continuous values."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from manifoldry.exceptions import ManifoldryWarning, warn
from manifoldry.plotting._style import (
    CLASSES_PER_MARKER,
    MARKERS,
    ON_LIGHT,
    PALETTE,
    import_matplotlib,
    tones,
)
from manifoldry.plotting.point_labels import (
    Mask,
    categories_of,
    inferred,
    missing_entries,
    sorted_names,
    spread,
)
from manifoldry.util.array_like import annotated_of, array_like, named_values
from manifoldry.util.typing import Array, IntArray

MAX_LABELS = 40  # whole numbers with more different values are not labels
MISSING = "missing"  # class of the points without a label


@dataclass(frozen=True, eq=False)
class Coloring:
    """How points are colored.

    `kind` selects the attribute that applies: `single`, one color for all points; `values`,
    numbers for a color map, NaN if missing; or, for classes, `codes`, indices into `classes`. With
    `has_missing` some points have no label or value and are drawn gray; they are the last class.
    """

    kind: Literal["single", "classes", "values"]
    single: Any = PALETTE[0]
    values: Array | None = None
    codes: IntArray | None = None
    classes: tuple[str, ...] = ()
    has_missing: bool = False
    gray: str = ON_LIGHT.missing

    @property
    def categorical(self) -> bool | None:
        """Whether there are classes; None if all points have one color."""
        return None if self.kind == "single" else self.kind == "classes"

    @property
    def styles(self) -> list[tuple[str, str]]:
        """Color and marker of each class."""
        styles = [
            (PALETTE[i % len(PALETTE)], MARKERS[i // CLASSES_PER_MARKER % len(MARKERS)])
            for i in range(len(self.classes))
        ]
        return [*styles[:-1], (self.gray, MARKERS[0])] if self.has_missing else styles

    def rgba(self, chosen: IntArray) -> Any:
        """Colors of the chosen points, if they have classes."""
        assert self.codes is not None
        from matplotlib.colors import to_rgba_array

        return to_rgba_array([color for color, _ in self.styles])[self.codes[chosen]]

    def on(self, ax: Any) -> Coloring:
        """The same with a gray for missing labels that stays in the background of these axes."""
        return replace(self, gray=tones(ax).missing)

    @property
    def missing(self) -> Mask | None:
        """Which points have no label or value; None if all have."""
        if not self.has_missing:
            return None
        if self.values is not None:
            return np.asarray(np.isnan(self.values))
        return np.asarray(self.codes == len(self.classes) - 1)

    def counts(self) -> IntArray:
        """Number of points of each class."""
        assert self.codes is not None
        return np.bincount(self.codes, minlength=len(self.classes))

    def bar_label(self, label: str | None) -> str | None:
        """Label of the color bar, which says what gray points are if there are any."""
        if not self.has_missing:
            return label
        return f"{label}; gray: {MISSING}" if label else f"gray: {MISSING}"


def read_color(color: Any, label: str | None, *embeddings: Any) -> tuple[Any, str | None]:
    """Return the color as a string or array-like, and the title of its legend.

    A string is a column of ``obs``, or a name in ``var_names``, if an embedding is from an AnnData
    that has it; this name is then the default title.
    """
    if color is None or not isinstance(color, str):
        return (color if color is None else array_like(color, "color")), label
    found = [each for each in map(annotated_of, embeddings) if each is not None]
    values = named_values(found[0], color) if found else None
    if values is not None:
        return values, label or color
    if found and not import_matplotlib("matplotlib.colors").is_color_like(color):
        columns = ", ".join(map(repr, found[0].obs))
        raise ValueError(
            f"color={color!r} is neither a column of obs, which has {columns}, nor one of the "
            f"{len(getattr(found[0], 'var_names', ()))} names in var_names, nor a color"
        )
    return color, label


def resolve_color(
    color: Any, n: int, categorical: bool | None = None, drawn: Mask | None = None
) -> Coloring:
    """Interpret the `color` argument, for the points in the mask `drawn`, by default all.

    Classes do not depend on the mask, so that panels with different points have the same colors.
    Strings, booleans, categories of pandas and whole numbers with at most 40 different values are
    classes; other numbers are values. `categorical` overrides this. None and NaN are missing.
    """
    if color is None:
        return Coloring("single")
    if isinstance(color, str):
        return Coloring("single", single=_known_color(color))
    drawn = np.ones(n, dtype=bool) if drawn is None else drawn
    given = categories_of(color)
    if given is not None and categorical is not False:
        return _classes(_column(given[0], n), given[1], drawn)
    array = _column(color, n)
    missing = missing_entries(array)
    known = inferred(array[~missing])
    if categorical is False and known.dtype.kind not in "iuf":
        raise TypeError(
            f"color has dtype {array.dtype}, which is not numeric; pass categorical=True"
        )
    _check_finite(known)
    if not len(known) or categorical or (categorical is None and _looks_categorical(known)):
        names, codes = sorted_names(known)
        return _classes(spread(codes, missing, -1), names, drawn)
    values = spread(known.astype(float), missing, np.nan)[drawn]
    return Coloring("values", values=values, has_missing=bool(np.isnan(values).any()))


def _column(color: Any, n: int) -> Any:
    # In an array of strings, None and NaN of a list would become "None" and "nan".
    array = np.asarray(array_like(color, "color"))
    if isinstance(color, list | tuple) and array.dtype.kind in "US":
        array = np.asarray(color, dtype=object)
    array = array[:, 0] if array.ndim == 2 and array.shape[1] == 1 else array
    if array.shape != (n,):
        raise ValueError(
            f"color has shape {array.shape}, expected ({n},): one label or value per point"
        )
    return array


def _looks_categorical(array: Any) -> bool:
    if array.dtype.kind not in "iu":
        return array.dtype.kind != "f"
    count = len(np.unique(array))
    if count > MAX_LABELS:
        warn(
            f"color has {count} different whole numbers, more than {MAX_LABELS}, so they are drawn "
            "as values, with a color bar; pass categorical=True if they are labels, "
            "categorical=False if they are not",
            ManifoldryWarning,
        )
    return count <= MAX_LABELS


def _classes(codes: IntArray, names: list[str], drawn: Mask) -> Coloring:
    """Classes that have points, from indices into `names`, or -1 if the label is missing."""
    used = np.unique(codes[codes >= 0])
    classes = [names[i] for i in used]
    codes = np.where(codes < 0, len(used), np.searchsorted(used, codes))[drawn]
    if has_missing := bool((codes == len(used)).any()):
        classes.append(MISSING)
    return Coloring("classes", codes=codes, classes=tuple(classes), has_missing=has_missing)


def _check_finite(known: Any) -> None:
    infinite = np.isinf(known).sum() if known.dtype.kind == "f" else 0
    if infinite:
        raise ValueError(
            f"color has infinity in {infinite} entries; drop these points, or replace these "
            "entries by NaN, which is drawn gray"
        )


def _known_color(color: str) -> str:
    if not import_matplotlib("matplotlib.colors").is_color_like(color):
        raise ValueError(
            f"color={color!r} is not a matplotlib color; pass a color, or one label per point"
        )
    return color
