"""Checkpoints: files from which an interrupted fit continues."""

import json
import os
import tempfile
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from manifoldry.optimize.optimizer import (
    Callback,
    Iterate,
    SearchState,
    Solution,
    Step,
    trace_array,
)
from manifoldry.util.checks import check_nonnegative
from manifoldry.util.typing import Array
from manifoldry.util.writing import written_at_once

_FORMAT = 1  # number of the file format; other numbers are refused
_CURRENT = "current"


@dataclass(frozen=True)
class Checkpoint(Callback):
    """Save the state of a fit in a file at intervals, and continue from that file.

    Pass it as the `callback` of an iterative estimator. If the file exists, the fit continues where
    that of the file ended, so that a script that was interrupted only has to be run again: the
    result is the same, bit for bit, with the same number of threads. The neighbor graph and the
    start are computed again; pass a :class:`~manifoldry.NeighborGraph` to ``fit`` to save that
    time. A file of other data or other parameters is refused. With ``verbose=True`` the estimator
    says how many steps the file has.

    A search continues at its last saved step, with the velocity of :class:`Momentum` or the memory
    of :class:`LBFGS`. With guidance, or an optimizer from elsewhere that has no ``saved_state``, it
    starts again; the searches of a homotopy before it do not.

    The file is also written when the fit ends, after Ctrl-C, and if a callback raises an error. It
    is replaced as a whole, so that a crash while writing leaves the one before. It holds plain
    arrays (nothing is unpickled), among them the embedding of every search of a homotopy, which are
    kept in memory too. It is not deleted at the end.

    Parameters
    ----------
    path : str or path
        The file, in the npz format of NumPy. The folder must exist; ``~`` is the home folder.
    function : callable, default=None
        Called with an :class:`Iterate`, as that of a :class:`Callback`.
    every : int, default=1
        Number of steps between two calls of the function.
    on_interrupt : {"raise", "keep"}, default="raise"
        What ``fit`` does after Ctrl-C, as for a :class:`Callback`.
    every_seconds : float, default=300.0
        Time between two checkpoints, which are written after a step; 0 for one after every step.
    resume : bool, default=True
        Whether to continue from the file if it exists; False overwrites it.

    See Also
    --------
    Callback : without a file.
    manifoldry.save : saves a fitted model.

    Examples
    --------
    >>> from manifoldry import TSNE
    >>> from manifoldry.optimize import Checkpoint
    >>> model = TSNE(callback=Checkpoint("digits.npz", every_seconds=60))
    """

    function: Callable[[Iterate], Any] | None = field(default=None, kw_only=True)
    path: str | os.PathLike[str] = field(kw_only=False)
    every_seconds: float = field(default=300.0, kw_only=True)
    resume: bool = field(default=True, kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        check_nonnegative("every_seconds", self.every_seconds)
        if not isinstance(self.path, str | os.PathLike):
            raise TypeError(f"path={self.path!r} must be the path of a file; pass a string")

    @property
    def file(self) -> Path:
        """The path, with ``~`` replaced by the user's home folder."""
        try:
            return Path(self.path).expanduser()
        except RuntimeError as error:
            raise FileNotFoundError(
                f"path={str(self.path)!r} starts with the home folder of an unknown user; pass "
                "another path"
            ) from error

    def open(self, fit: Mapping[str, str]) -> "SavedSearches":
        """Return the searches in the file, or none if the fit starts anew.

        Parameters
        ----------
        fit : dict
            Describes the data and the parameters; those of the file must be the same.

        Returns
        -------
        SavedSearches
            The searches.
        """
        path = self.file
        _check_writable(path)
        if not (self.resume and path.exists()):
            return SavedSearches(dict(fit))
        saved = SavedSearches.read(path)
        different = [
            f"{name} was {_short(saved.fit.get(name))} and is {_short(fit.get(name))}"
            for name in {**saved.fit, **fit}
            if saved.fit.get(name) != fit.get(name)
        ]
        if different:
            raise ValueError(
                f"{path} is the checkpoint of another fit: {'; '.join(different)}; pass what that "
                "fit had, or another path, or Checkpoint(path, resume=False) to overwrite it"
            )
        return saved


def _check_writable(path: Path) -> None:
    """Raise an error if a checkpoint cannot be written: the first one may be due much later."""
    if not path.parent.is_dir():
        raise FileNotFoundError(f"{path.parent} is not a folder; make it, or pass another path")
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder; pass the path of a file")
    try:
        with tempfile.TemporaryFile(dir=path.parent):
            pass
    except OSError as error:
        text = f"{path} cannot be written ({error.strerror}); make {path.parent} writable, or pass "
        raise OSError(error.errno, text + "another path") from error


def _short(text: str | None, length: int = 80) -> str:
    text = text or "missing"
    return text if len(text) <= length else text[: length - 3] + "..."


@dataclass
class SavedSearches:
    """The searches of a fit: those that have ended, and the state of the current one."""

    fit: dict[str, str]
    """The data and the parameters, in words."""
    finished: list[Solution] = field(default_factory=list)
    parameters: list[float] = field(default_factory=list)
    """The parameter of each search that has ended, NaN if there is none."""
    state: SearchState | None = None
    """State of the current search; None if it starts anew."""

    def write(self, path: Path) -> None:
        """Replace the file as a whole."""
        arrays = {
            "format": np.array(_FORMAT),
            "fit": np.array(json.dumps(self.fit)),
            "parameters": np.array(self.parameters, dtype=float),
        }
        for i, solution in enumerate(self.finished):
            arrays |= _named(str(i), vars(solution))
        arrays |= _named(_CURRENT, self.state or {})
        with written_at_once(path) as file:
            np.savez(file, **arrays)  # type: ignore[arg-type]

    @classmethod
    def read(cls, path: Path) -> "SavedSearches":
        """Read a file; ValueError if it is not a checkpoint of this format."""
        try:
            with np.load(path, allow_pickle=False) as file:
                arrays = {name: file[name] for name in file.files}
            number = int(arrays["format"])
        except (OSError, EOFError, KeyError, ValueError, TypeError, zipfile.BadZipFile) as error:
            raise ValueError(
                f"{path} is not a checkpoint, or a damaged one ({type(error).__name__}); pass "
                "another path, or Checkpoint(path, resume=False) to overwrite it"
            ) from error
        if number != _FORMAT:
            raise ValueError(
                f"{path} has the format {number}, but this version of manifoldry reads format "
                f"{_FORMAT}; continue with the version that wrote it, or delete it"
            )
        parameters = arrays["parameters"].tolist()
        finished = [_solution(_of(str(i), arrays)) for i in range(len(parameters))]
        fit = json.loads(str(arrays["fit"]))
        return cls(fit, finished, parameters, _of(_CURRENT, arrays) or None)


def _named(search: str, values: Mapping[str, Any]) -> dict[str, Array]:
    """The values of a search as arrays, by their names in the file."""
    return {
        f"{search}/{name}": trace_array(value) if name == "trace" else np.asarray(value)
        for name, value in values.items()
    }


def _of(search: str, arrays: Mapping[str, Array]) -> dict[str, Any]:
    """The values of a search in a file, by name."""
    prefix = f"{search}/"
    values: dict[str, Any] = {
        name.removeprefix(prefix): array
        for name, array in arrays.items()
        if name.startswith(prefix)
    }
    if "trace" in values:
        values["trace"] = [Step(*row) for row in values["trace"].tolist()]
    return values


def _solution(values: Mapping[str, Any]) -> Solution:
    return Solution(
        **{
            name: value.item() if isinstance(value, np.ndarray) and value.ndim == 0 else value
            for name, value in values.items()
        }
    )
