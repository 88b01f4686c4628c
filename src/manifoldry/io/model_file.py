"""Files of fitted models that can be loaded safely, and read in part.

The header of a file (see `model_layout`) has the class, the parameters and facts about the training
data, and the tree of the model's objects (see `model_tree`).
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import scipy
import sklearn
from sklearn.base import BaseEstimator

from manifoldry.exceptions import VersionWarning, warn
from manifoldry.io.model_decoder import Decoder
from manifoldry.io.model_layout import (
    FORMAT,
    INCONSISTENT,
    file_size,
    opened_file,
    read_arrays,
    reporting_damage,
    stored_array,
    write_file,
)
from manifoldry.io.model_tree import Encoder
from manifoldry.io.model_values import Tree, UnsavableError
from manifoldry.util.saved import package_version
from manifoldry.util.text import short_line
from manifoldry.util.typing import Array


@dataclass(frozen=True)
class ModelInfo:
    """What a model file says about its model, without loading it.

    Parameters
    ----------
    estimator : str
        Class of the model.
    parameters : dict of str to str
        Parameters as text, by name; those of nested estimators with double underscores.
    training : dict
        Facts about the training data and the result, such as n_samples and loss.
    versions : dict of str to str
        Versions of manifoldry and of the libraries that wrote the file.
    created : str
        Time at which it was written, in UTC.
    format : int
        Version of the file format.
    n_bytes : int
        Size of the file.

    See Also
    --------
    manifoldry.read_info : reads it from a file.

    Examples
    --------
    >>> import tempfile, numpy as np, manifoldry
    >>> model = manifoldry.PCA(2).fit(np.random.default_rng(0).normal(size=(50, 4)))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     info = manifoldry.read_info(manifoldry.save(model, f"{folder}/pca.model"))
    >>> info.estimator, info.parameters["n_components"], info.training["n_samples"]
    ('PCA', '2', 50)
    """

    estimator: str
    parameters: dict[str, str]
    training: dict[str, Any]
    versions: dict[str, str]
    created: str
    format: int
    n_bytes: int


def save(
    model: BaseEstimator,
    path: str | os.PathLike[str],
    *,
    facts: Mapping[str, Any] | None = None,
) -> Path:
    """Write a fitted model to a file that can be loaded safely.

    The file contains numbers, text and the names of known classes; no code. It appears under its
    name when it is complete, so that a previous file survives whatever interrupts the writing. Of a
    model that was fitted to a Dask collection it has what places new rows, not ``embedding_``.

    Parameters
    ----------
    model : estimator
        A fitted estimator of manifoldry, or a scikit-learn pipeline with scalers, imputers or PCA
        in front of one. Functions as parameters, such as a metric of your own, cannot be saved.
    path : str or path
        The file, conventionally with the suffix ``.model``.
    facts : mapping from str to what JSON can store, optional
        Further facts about the training data, such as where they came from, for
        :func:`~manifoldry.read_info`.

    Returns
    -------
    pathlib.Path
        The file that was written.

    Raises
    ------
    UnsavableError
        If a part of the model cannot be saved; the message names it.

    See Also
    --------
    manifoldry.load : loads the model.
    manifoldry.read_info : reads what the file says about it.

    Examples
    --------
    >>> import tempfile, pathlib, numpy as np, manifoldry
    >>> X = np.random.default_rng(0).normal(size=(50, 4))
    >>> model = manifoldry.PCA().fit(X)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = manifoldry.save(model, pathlib.Path(folder) / "pca.model")
    ...     same = manifoldry.load(path)
    >>> np.array_equal(same.transform(X), model.transform(X))
    True
    """
    if not isinstance(model, BaseEstimator):
        raise TypeError(f"model must be an estimator, not {type(model).__name__}")
    tree, arrays = _encoded(model)
    header = {
        "format": FORMAT,
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "versions": {
            "manifoldry": package_version(), "numpy": np.__version__, "scipy": scipy.__version__,
            "scikit-learn": sklearn.__version__,
        },
        "estimator": type(model).__name__,
        "parameters": {k: short_line(repr(v)) for k, v in model.get_params().items()},
        "training": _training(model) | dict(facts or {}),
        "tree": tree,
    }  # fmt: skip
    write_file(path, header, arrays)
    return Path(path)


def load(path: str | os.PathLike[str], *, verify: bool | None = None) -> Any:
    """Load a model that :func:`~manifoldry.save` has written; nothing in the file is run.

    Parameters
    ----------
    path : str or path
        The file.
    verify : bool, optional
        Whether to compare the checksums of all arrays. By default files of up to 64 MB are read
        and verified; larger ones are mapped into memory, where parts are read when needed, and
        only their header is verified.

    Returns
    -------
    estimator
        The fitted model, as it was saved.

    Raises
    ------
    DamagedModelError
        If the file is no model file, or was changed.

    See Also
    --------
    manifoldry.save : writes a model.
    manifoldry.read_info : class and parameters of a model that is not loaded.

    Notes
    -----
    As long as a model of a mapped file is used, the file must not be shortened or written to in
    place. :func:`~manifoldry.save` does neither: it makes a new file under the old name.

    Examples
    --------
    >>> import tempfile, numpy as np, manifoldry
    >>> X = np.random.default_rng(0).normal(size=(50, 4))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = manifoldry.save(manifoldry.Isomap(n_neighbors=8).fit(X), f"{folder}/map.model")
    ...     model = manifoldry.load(path)
    >>> model.n_neighbors, model.transform(X[:3]).shape
    (8, (3, 2))
    """
    path = Path(path)
    with opened_file(path) as (header, start, file), reporting_damage(path):
        arrays = read_arrays(file, header, start, verify)
        model = Decoder(arrays).model(header["tree"])
        writer = str(header["versions"]["manifoldry"])
    _compare_versions(writer, path)
    return model


def read_info(path: str | os.PathLike[str]) -> ModelInfo:
    """Read class, parameters and training data of a saved model, without loading it.

    Parameters
    ----------
    path : str or path
        The file.

    Returns
    -------
    ModelInfo
        What the file says.

    Raises
    ------
    DamagedModelError
        If the file is no model file, or its header was changed.

    See Also
    --------
    manifoldry.load : loads the model.

    Examples
    --------
    >>> import tempfile, numpy as np, manifoldry
    >>> model = manifoldry.Isomap().fit(np.random.default_rng(0).normal(size=(50, 4)))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = manifoldry.save(model, f"{folder}/map.model", facts={"source": "mice.csv"})
    ...     info = manifoldry.read_info(path)
    >>> info.estimator, info.training["source"]
    ('Isomap', 'mice.csv')
    """
    path = Path(path)
    with opened_file(path) as (header, _, file), reporting_damage(path):
        return ModelInfo(
            str(header["estimator"]), _texts(header["parameters"]), dict(header["training"]),
            _texts(header["versions"]), str(header["created"]), header["format"], file_size(file),
        )  # fmt: skip


def _texts(values: Mapping[str, Any]) -> dict[str, str]:
    return {name: str(value) for name, value in values.items()}


def _encoded(model: BaseEstimator) -> tuple[Tree, list[Array]]:
    """The tree of a model and its arrays; an error if they could not be loaded again."""
    name, encoder = type(model).__name__, Encoder()
    try:
        tree = encoder.encode(model, name)
        arrays = [stored_array(a) for a in encoder.arrays]
        Decoder(arrays).model(tree)
    except UnsavableError:
        raise
    except INCONSISTENT as error:
        raise UnsavableError(f"{name} cannot be saved: {error}") from error
    return tree, arrays


def _training(model: Any) -> dict[str, Any]:
    """Facts about a fitted model that are single numbers or texts, and names of features."""
    names = getattr(model, "feature_names_in_", None)  # of a pipeline, those of its first step
    facts: dict[str, Any] = {}
    if hasattr(model, "steps"):
        facts["method"], model = model.steps[-1]
    if (embedding := getattr(model, "embedding_", None)) is not None:
        facts["n_samples"], facts["n_coordinates"] = map(int, np.shape(embedding))
    for name, value in vars(model).items():
        plain = isinstance(value, (bool, int, float, str, np.number)) and name.endswith("_")
        if plain and not name.startswith("_"):
            value = value.item() if isinstance(value, np.number) else value
            if not isinstance(value, float) or math.isfinite(value):
                facts[name.rstrip("_")] = float(value) if isinstance(value, float) else value
    if names is not None:
        facts["feature_names"] = [str(name) for name in names]
    return facts


def _compare_versions(writer: str, path: Path) -> None:
    own = package_version()
    if writer != own:
        warn(
            f"{path} was written by manifoldry {short_line(writer, 40)} and is loaded by {own}, "
            "whose attributes may differ; fit the model again with this version if its results do",
            VersionWarning,
        )
