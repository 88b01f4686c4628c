"""``manifoldry.explore``: the explorer from Python."""

from __future__ import annotations

import asyncio
import os
import weakref
from collections.abc import Iterable, Iterator, Mapping, Sequence, ValuesView
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.exceptions import NotFittedError
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted

from manifoldry.exceptions import ManifoldryWarning, warn
from manifoldry.explorer.data import ExploredData, ImageStyle
from manifoldry.explorer.maps import ExploredMap
from manifoldry.explorer.selections import check_rows
from manifoldry.explorer.session import Session
from manifoldry.io import Table
from manifoldry.methods.catalog import METHODS
from manifoldry.methods.fitted_steps import divided, named_like, prepared, undone
from manifoldry.methods.preprocessing import Preprocessing
from manifoldry.metrics.pair import read_embedding
from manifoldry.reporting.maps import sample_rows
from manifoldry.reporting.source import Source
from manifoldry.reporting.words import counted
from manifoldry.util.checks import check_count
from manifoldry.util.text import error_text
from manifoldry.util.typing import IntArray

_WIDE = 10  # columns beyond which an array without data is no map
_COMPARED = 15  # rows that a model places again, to see whether the data are its own
_ELSEWHERE = 0.05  # distance in the drawing, whose side is 2
_RESTORED = 500  # rows that a model restores to know the range of each feature


class Explorer:
    """Maps to look at; result of :func:`~manifoldry.explore`.

    In a notebook it shows itself as the last value of a cell. In a script, :meth:`serve` opens it
    in a browser. It keeps references to the data and the models.

    Parameters
    ----------
    session : Session
        Data, maps and labels.
    height : int
        Height in a notebook, in pixels.

    See Also
    --------
    manifoldry.explore : makes it.

    Examples
    --------
    >>> import manifoldry
    >>> from sklearn.datasets import load_iris
    >>> X, species = load_iris(return_X_y=True)
    >>> explorer = manifoldry.explore(manifoldry.PCA(2).fit(X), X, species)
    >>> explorer
    Explorer of 150 rows: PCA
    >>> explorer.select([3, 5])
    >>> explorer.selection
    array([3, 5])
    >>> explorer.close()
    """

    def __init__(self, session: Session, height: int = 640) -> None:
        self._session = session
        self._height = height
        self._widget: Any = None
        self._end = weakref.finalize(self, session.close)

    def __repr__(self) -> str:
        names = ", ".join(each.name for each in self._session.maps.values()) or "no map yet"
        return f"Explorer of {self._session.data.n:,} rows: {names}"

    @property
    def selection(self) -> IntArray:
        """Rows that are selected, counted from 0."""
        return self._session.selection

    @property
    def labels(self) -> dict[str, Any]:
        """Labels that were made in the explorer: arrays of shape (n_samples,), None if not set."""
        return {name: values.copy() for name, values in self._session.data.own_labels.items()}

    @property
    def models(self) -> dict[str, Any]:
        """Fitted models of the maps by name; those that the explorer has fitted, too."""
        maps = self._session.maps.values()
        return {each.name: each.model for each in maps if each.model is not None}

    def select(self, rows: Any) -> None:
        """Select rows on all maps.

        Parameters
        ----------
        rows : array of int, or of bool with one entry per row
            The rows.
        """
        self._check_open()
        chosen = np.asarray(rows)
        if chosen.dtype == bool:
            if chosen.shape != (self._session.data.n,):
                raise ValueError(
                    f"rows has shape {chosen.shape}, expected ({self._session.data.n},) for a mask"
                )
            chosen = np.flatnonzero(chosen)
        self._session.selection = check_rows(chosen, self._session.data.n)
        self._session.tell("select", {"rows": self._session.selection.astype(np.uint32)})

    def add(self, name: str, embedding: Any) -> None:
        """Add a map.

        Parameters
        ----------
        name : str
            Its name.
        embedding : fitted estimator, or array of shape (n_samples, n_components)
            The map.
        """
        self._check_open()
        add_map(self._session, name, embedding)

    def _check_open(self) -> None:
        if not self._end.alive:
            raise RuntimeError("this explorer has ended; make another one with manifoldry.explore")

    @property
    def widget(self) -> Any:
        """The widget, for layouts of several widgets and for marimo's ``mo.ui.anywidget``."""
        if self._widget is None:
            from manifoldry.explorer.widget import explorer_widget

            self._widget = explorer_widget(self._session, self._height, keep=self)
        return self._widget

    def _ipython_display_(self) -> None:
        """Show it in Jupyter."""
        from IPython.display import display

        display(self.widget)

    def _display_(self) -> Any:
        """What marimo shows."""
        return self.widget

    def serve(self, port: int | None = None, *, browser: bool = True) -> None:
        """Open the explorer in a browser, and wait for Ctrl-C, which ends it.

        Parameters
        ----------
        port : int, default=None
            Port on this machine, 0 for any; by default the first free one from 7321.
        browser : bool, default=True
            Whether to open a browser; otherwise only the link is printed.
        """
        from manifoldry.explorer.serving import Address, check_installed, serve

        check_installed()
        self._check_open()
        _refuse_running_loop()
        address = Address.bound(port)
        ready = lambda: print(f"{self!r}\n{address.link}\nCtrl-C ends it.", flush=True)  # noqa: E731
        try:
            serve(self._session, address, browser=browser, ready=ready)
        finally:
            self.close()

    def close(self) -> None:
        """End all work in the background and delete temporary files."""
        self._end()


def _refuse_running_loop() -> None:
    """A server cannot begin inside another one, such as a notebook's."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return
    raise RuntimeError(
        "serve cannot be called in a notebook; write the explorer as the last line of a cell"
    )


def explore(
    maps: Any = None,
    X: Any = None,
    labels: Any = None,
    *,
    image_shape: tuple[int, ...] | None = None,
    dark_ink: bool = False,
    height: int = 640,
    random_state: int = 0,
) -> Explorer:
    """Look at maps: side by side, with linked selections, reconstruction and new points.

    The explorer colors maps by labels, features and trustworthiness, scrolls through the homotopy
    of an embedding, shows what the inverse of a model gives anywhere on the plane, places new rows,
    says what distinguishes a selection, and computes further maps and their quality in the
    background.

    Parameters
    ----------
    maps : fitted estimator, array, or mapping or list of them, default=None
        The maps. Reconstruction and new points need estimators; arrays may come from any package.
        None to begin with PCA of the data.
    X : array, sparse matrix, data frame, AnnData, Table or path, default=None
        The data, as passed to the estimators; a pipeline gets the data that it was fitted on.
        Without them there are only the maps.
    labels : str or array of shape (n_samples,), default=None
        Name of a column of labels, or a label for each row.
    image_shape : (int, int) or (int, int, 3), default=None
        Height and width of the images in the rows, if they are images.
    dark_ink : bool, default=False
        Whether high values of images are dark, as ink on paper.
    height : int, default=640
        Height in a notebook, in pixels.
    random_state : int, default=0
        Seed of methods and samples.

    Returns
    -------
    Explorer
        Shows itself in a notebook; has the selected rows and the labels that were made.

    See Also
    --------
    manifoldry.report : a page to hand on.
    manifoldry.compare : quality metrics of several embeddings.

    Examples
    --------
    >>> import manifoldry
    >>> from sklearn.datasets import load_digits
    >>> X, digit = load_digits(n_class=3, return_X_y=True)
    >>> model = manifoldry.Isomap().fit(X)
    >>> explorer = manifoldry.explore(model, X, digit, image_shape=(8, 8), dark_ink=True)
    >>> explorer
    Explorer of 537 rows: Isomap
    >>> explorer.close()
    """
    height = check_count("height", height, minimum=200)
    _refuse_data_as_maps(maps, X)
    given = _named(maps)
    if X is None and not given:
        raise ValueError("there is nothing to explore; pass a fitted estimator, or data as X")
    notes: list[str] = []
    image = None if image_shape is None else ImageStyle(_shape(image_shape), dark_ink)
    if X is None:
        data = data_of_maps(list(given.values()), labels, image)
    else:
        data = explored_data(Source.of(X, labels).table, notes, image=image, fits=not given)
        for note in notes:
            if "missing value" in note:
                warn(note, ManifoldryWarning)
    session = Session(data, f"{data.n:,} rows", notes, seed=random_state)
    try:
        for name, each in given.items():
            add_map(session, name, each)
        if not given:
            session.work.fit(METHODS[0])
    except BaseException:
        session.close()
        raise
    return Explorer(session, height)


def _refuse_data_as_maps(maps: Any, X: Any) -> None:
    """Say what is meant if the data were passed first, as to `assess` and `report`."""
    if isinstance(maps, (str, os.PathLike)):
        raise TypeError(f"maps={str(maps)!r} is a text; pass a file of data as X=, or a model")
    shape: tuple[int, ...] = np.shape(maps) if hasattr(maps, "shape") else ()
    is_wide = len(shape) == 2 and shape[1] > _WIDE
    if is_wide and (X is None or np.ndim(X) == 1):
        raise ValueError(
            f"maps has {shape[1]} columns, as data have, and X is no data; pass the data as X=, "
            "labels as labels=, and maps before them if there are any"
        )


def _shape(given: Any) -> tuple[Any, ...]:
    """The shape of images, which is checked with the data."""
    return tuple(given) if isinstance(given, Iterable) else (given,)


def _named(maps: Any) -> dict[str, Any]:
    """The maps by name."""
    if maps is None:
        return {}
    if isinstance(maps, Mapping):
        return {str(name): each for name, each in maps.items()}
    if isinstance(maps, (Iterator, ValuesView)):
        maps = list(maps)
    several = isinstance(maps, Iterable) and not hasattr(maps, "fit") and not _is_array(maps)
    found: dict[str, Any] = {}
    for each in maps if several else [maps]:
        name = title_of(divided(each)[1])
        count = sum(known.split(" (")[0] == name for known in found)
        found[f"{name} ({count + 1})" if count else name] = each
    return found


def _is_array(maps: Any) -> bool:
    """Whether it is one map, not a list of several."""
    if hasattr(maps, "__array__") or hasattr(maps, "columns"):
        return True
    return len(maps) > 0 and np.ndim(maps[0]) == 1


def title_of(model: Any) -> str:
    """Name of a map in headings."""
    name = type(model).__name__
    titles = {method.class_name: method.title for method in METHODS}
    return titles.get(name, name) if hasattr(model, "fit") else "Map"


def explored_data(
    table: Table,
    notes: list[str],
    *,
    image: ImageStyle | None = None,
    before: Preprocessing | None = None,
    fits: bool = True,
) -> ExploredData:
    """Data with the steps before methods; columns are only standardized for new maps (`fits`)."""
    missing = table.X.dtype.kind == "f" and bool(np.isnan(_values(table)).any())
    before = before or Preprocessing(scale=None if fits else False)
    if missing and before.impute is None:
        before = replace(before, impute="median")
        count = int(np.isnan(_values(table)).sum())
        notes.append(f"{counted(count, 'missing value')} replaced by the median of the column")
    before = before.decided(table.X, table.names, notes.append)
    steps, X = before.fit(table.X, notes.append)
    notes += [note for note in table.notes if note not in notes]
    if image is None and table.image_shape is not None:
        image = ImageStyle(tuple(table.image_shape))
    return ExploredData(table, X, [step for _, step in steps], image)


def _values(table: Table) -> Any:
    X: Any = table.X
    return X.data if hasattr(X, "nnz") else X


def data_of_maps(
    maps: list[Any],
    labels: Any,
    image: ImageStyle | None = None,
    names: Sequence[str] | None = None,
) -> ExploredData:
    """What is known without the data: the number of rows, names, and what a model restores."""
    embeddings = [_coordinates("of maps", each)[0] for each in maps]
    n = len(embeddings[0])
    known = (getattr(each, "feature_names_in_", None) for each in maps)
    names = names or next((list(each) for each in known if each is not None), None)
    table = Table(np.empty((n, 0)), None if names is None else tuple(map(str, names)))
    if labels is not None:
        table = replace(table, labels={"label": np.asarray(labels)})
        if isinstance(labels, str):
            raise ValueError(f"labels={labels!r} is a name; pass the data that have it as X=")
        if len(table.labels["label"]) != n:
            raise ValueError(f"labels has {len(labels)} entries, but the map has {n} rows")
    restored = next((found for each in maps if (found := restored_rows(each)) is not None), None)
    restored = np.empty((0, 0)) if restored is None else restored
    return ExploredData(table, table.X, (), image, restored)


def restored_rows(model: Any) -> Any:
    """What the inverse of a model gives for some of its rows; None without an inverse."""
    steps, last = divided(model)
    Y = getattr(last, "embedding_", None)
    if Y is None or not ExploredMap("", "", Y, last, steps).can_invert:
        return None
    rows = np.flatnonzero(np.isfinite(Y).all(axis=1))
    rows = rows[sample_rows(len(rows), _RESTORED, 0)]
    return np.asarray(undone(steps, last.inverse_transform(Y[rows])))


def add_map(session: Session, name: str, given: Any) -> None:
    """Add a map: a fitted estimator, or coordinates."""
    _check_column_order(name, given, session.data.table)
    embedding, model, steps = _coordinates(name, given, session.data)
    methods = {method.class_name: method.name for method in METHODS}
    made = session.add_map(name, embedding, model, steps=steps,
                           method=methods.get(type(model).__name__))  # fmt: skip
    if model is not None and session.data.has_data:
        _note_other_rows(session, made)
    session.work.assess_unasked(made)


def _check_column_order(name: str, given: Any, table: Table) -> None:
    """Refuse data whose columns are those of the model in another order, as scikit-learn does."""
    steps, last = divided(given)
    known = getattr((*steps, last)[0], "feature_names_in_", None)
    if known is None or table.names is None or list(known) == list(table.names):
        return
    if sorted(map(str, known)) == sorted(table.names):
        first = next(a for a, b in zip(table.names, known, strict=True) if a != b)
        raise ValueError(
            f"the columns of X are in another order than those that {name} was fitted on, from "
            f"{first!r} on; pass X[list(model.feature_names_in_)]"
        )


def _note_other_rows(session: Session, shown: ExploredMap) -> None:
    """Say so if the data do not seem to be those of the model, in their order."""
    if not shown.can_place or _takes_pairs(shown.model):
        return
    rows = sample_rows(session.data.n, _COMPARED, 0)
    X: Any = session.data.table.X if shown.steps else session.data.filled
    try:
        placed = shown.place(X[rows])[0]
    except Exception as error:  # of a model of any package; its map can be shown all the same
        session.notes.append(f"{shown.name} cannot place the rows of the data: {error_text(error)}")
        return
    away = np.linalg.norm(placed - shown.drawn[rows], axis=1)
    if np.nanmedian(away) > _ELSEWHERE:
        session.notes.append(
            f"{shown.name}: most rows of the data are not where the map has them; they should be "
            "those that the model was fitted on, in the same order"
        )


def _takes_pairs(model: Any) -> bool:
    """Whether its input are distances or weights of pairs of rows."""
    tags = get_tags(model) if hasattr(model, "__sklearn_tags__") else None
    return bool(getattr(getattr(tags, "input_tags", None), "pairwise", False))


def _coordinates(name: str, given: Any, data: ExploredData | None = None) -> tuple[Any, Any, Any]:
    """Coordinates, the model if there is one, and the steps before it."""
    if not hasattr(given, "fit"):
        return read_embedding(given), None, ()
    steps, last = divided(given)
    try:
        check_is_fitted(last)
    except NotFittedError:
        raise ValueError(f"the estimator {name} is not fitted; call its fit first") from None
    if not (hasattr(last, "embedding_") or hasattr(last, "transform")):
        raise ValueError(
            f"the estimator {name} has no embedding_ and no transform, so it makes no map; pass "
            "one that has, or coordinates as an array"
        )
    if not hasattr(last, "embedding_") and data is not None and data.has_data:
        X = prepared(steps, data.table.X if steps else data.filled)
        return np.asarray(last.transform(named_like(last, X))), last, steps
    if not hasattr(last, "embedding_"):
        raise ValueError(
            f"the estimator {name} has no embedding_, so its map is not known; pass the data "
            "as X, or what its transform gives for them as an array"
        )
    return last.embedding_, last, steps
