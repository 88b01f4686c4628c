"""Return types of the loaders and generators, `Dataset` and `ManifoldSample`."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from manifoldry.datasets.registry import DataFile
from manifoldry.util.checks import as_generator, check_count
from manifoldry.util.typing import Array, IntArray, RandomState


def _no_names() -> NDArray[np.str_]:
    return np.array([], dtype=np.str_)


@dataclass(frozen=True, eq=False, repr=False)
class Dataset:
    """Real data with their labels, known coordinates and origin.

    Unpacks as ``X, y = load_mnist()``. Pixels are float32 in 0..1; `raw` has the rows as stored,
    usually bytes.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
        The data as float32, images flattened.
    y : ndarray of shape (n_samples,) or None
        Class of each row, an integer.
    raw : ndarray
        The chosen rows as stored.
    indices : ndarray of shape (n_samples,)
        Indices of the rows in the stored file, ascending.
    coordinates : ndarray of shape (n_samples, n_coordinates) or None
        Known coordinates of the rows, such as the angle of view.
    coordinate_names : tuple of str
        Names of the columns of `coordinates`.
    target_names : ndarray of str
        Names of classes 0, 1, …, so that ``target_names[y]`` has one for each row; empty if
        classes have no names.
    sample_names : ndarray of str or None
        A name for each row.
    image_shape : tuple of int or None
        Height and width, if rows are images.
    name : str, default="data"
        Name of the data set.
    source, license : str, default=""
        Origin of the data, and its license if known.

    See Also
    --------
    ManifoldSample : generated data, with true coordinates.

    Examples
    --------
    >>> from manifoldry.datasets import load_pbmc
    >>> cells = load_pbmc()  # doctest: +SKIP
    >>> cells  # doctest: +SKIP
    Dataset(pbmc68k_reduced: 700 samples, 50 features)
    >>> X, y = cells  # doctest: +SKIP
    >>> str(cells.labels[0])  # doctest: +SKIP
    'CD14+ Monocyte'
    """

    X: Array
    y: IntArray | None
    raw: NDArray[Any]
    indices: IntArray
    coordinates: Array | None = None
    coordinate_names: tuple[str, ...] = ()
    target_names: NDArray[np.str_] = field(default_factory=_no_names)
    sample_names: NDArray[np.str_] | None = None
    image_shape: tuple[int, int] | None = None
    name: str = field(default="data", kw_only=True)
    source: str = field(default="", kw_only=True)
    license: str = field(default="", kw_only=True)

    def __iter__(self) -> Iterator[Any]:
        yield self.X
        yield self.y

    def __repr__(self) -> str:
        height_width = "×".join(map(str, self.image_shape or ()))
        kind = f"images of {height_width} pixels" if height_width else f"{self.X.shape[1]} features"
        return f"{type(self).__name__}({self.name}: {len(self.X)} samples, {kind})"

    @property
    def images(self) -> Array:
        """The rows as images of shape (n_samples, height, width), a view of `X`."""
        if self.image_shape is None:
            raise AttributeError(f"{self.name} has no images; use X instead")
        return self.X.reshape(-1, *self.image_shape)

    @property
    def labels(self) -> NDArray[Any] | None:
        """The class names of the rows if there are names, else `y`."""
        return self.y if self.y is None or not len(self.target_names) else self.target_names[self.y]


def dataset_of(
    file: DataFile,
    stored: NDArray[Any],
    rows: IntArray | None = None,
    *,
    y: NDArray[Any] | None = None,
    coordinates: NDArray[Any] | None = None,
    **more: Any,
) -> Dataset:
    """Make a Dataset from selected rows of the stored arrays."""
    rows = np.arange(len(stored)) if rows is None else rows
    raw = stored[rows]
    if stored.ndim == 3:
        more.setdefault("image_shape", stored.shape[1:])
    return Dataset(
        as_features(raw),
        None if y is None else y[rows].astype(np.int64),
        raw,
        rows,
        None if coordinates is None else _columns(coordinates[rows]),
        name=file.name,
        source=file.source,
        license=file.license,
        **more,
    )


def as_features(raw: NDArray[Any]) -> Array:
    """Flatten rows to float32; integers are divided by 255."""
    flat = raw.reshape(len(raw), math.prod(raw.shape[1:])).astype(np.float32)
    if raw.dtype.kind in "iu":
        flat /= 255
    return flat


def choose_rows(rows: IntArray, n_samples: int | None, random_state: RandomState) -> IntArray:
    """Draw `n_samples` of the rows without replacement, keeping their order; None keeps all."""
    if n_samples is None:
        return rows
    n_samples = check_count("n_samples", n_samples)
    if n_samples > len(rows):
        raise ValueError(
            f"n_samples={n_samples} must be at most {len(rows)}, the number of rows; "
            f"pass n_samples={len(rows)} or fewer, or None for all"
        )
    return np.sort(as_generator(random_state).choice(rows, n_samples, replace=False))


def _columns(coordinates: NDArray[Any]) -> Array:
    return coordinates.reshape(len(coordinates), -1).astype(np.float64)


@dataclass(frozen=True, eq=False, repr=False)
class ManifoldSample:
    """Points on a manifold together with the coordinates that generated them.

    Unpacks as scikit-learn's generators do: ``X, coordinates = make_swiss_roll(1000)``.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
        The points, with noise.
    coordinates : ndarray of shape (n_samples, n_coordinates)
        The true coordinates on the manifold; always two-dimensional, also for curves.
    names : tuple of str
        Names of the columns of `coordinates`.
    embed : callable
        Parametrization of the manifold: maps coordinates of shape (m, n_coordinates) to points
        without noise, for example to draw the surface.
    labels : ndarray of shape (n_samples,) or None
        Index of the connected component of each point, if the manifold has several.

    See Also
    --------
    Dataset : real data.
    make_swiss_roll : generates one.

    Examples
    --------
    >>> from manifoldry.datasets import make_swiss_roll
    >>> sample = make_swiss_roll(500, random_state=0)
    >>> sample
    ManifoldSample(500 points in 3 dimensions; coordinates: arc length, height)
    >>> X, coordinates = sample
    >>> X.shape, coordinates.shape
    ((500, 3), (500, 2))
    """

    X: Array
    coordinates: Array
    names: tuple[str, ...]
    embed: Callable[[Array], Array]
    labels: IntArray | None = None

    def __iter__(self) -> Iterator[Array]:
        return iter((self.X, self.coordinates))

    def __getitem__(self, i: int) -> Array:
        return (self.X, self.coordinates)[i]

    def __repr__(self) -> str:
        n_samples, n_features = self.X.shape
        return (
            f"{type(self).__name__}({n_samples} points in {n_features} dimensions; "
            f"coordinates: {', '.join(self.names)})"
        )


def sample_of(
    embed: Callable[[Array], Array],
    coordinates: Array,
    names: tuple[str, ...],
    noise: float,
    rng: np.random.Generator,
    labels: IntArray | None = None,
) -> ManifoldSample:
    """Map the coordinates to points and add isotropic Gaussian noise."""
    X = embed(coordinates)
    if noise > 0:
        X = X + noise * rng.standard_normal(X.shape)
    return ManifoldSample(X, coordinates, names, embed, labels)
