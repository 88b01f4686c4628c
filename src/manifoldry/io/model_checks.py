"""What must hold in a model from a file before it is used, since compiled loops check no bounds.

Whatever else is wrong, a method raises an ordinary error.
"""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from typing import Any

from sklearn.base import BaseEstimator

from manifoldry.io.model_values import DamagedModelError
from manifoldry.neighbors.geodesics import Geodesics
from manifoldry.neighbors.graph import NeighborGraph
from manifoldry.objectives.factored_weights import FactoredWeights

# Properties that are saved with the fields of a class, since they cannot always be computed again,
# or not in less time than a fit takes.
_SAVED_PROPERTIES = {
    "RelativeDistance": {"unit", "_distinct"},
    "RowLookup": {"order", "keys"},
}
# Arrays of scikit-learn's estimators with one column per feature, which its loops rely on.
_FEATURE_COLUMNS = ("cluster_centers_", "_fit_X")


def is_saved(kind: type, name: str) -> bool:
    """Whether a file contains the attribute of this name of an object of this class.

    Of a dataclass these are its fields; what it computes from them is computed again. Attributes of
    an estimator must not replace its methods and properties.
    """
    if is_dataclass(kind):
        saved = {field.name for field in fields(kind)}
        return name in saved | _SAVED_PROPERTIES.get(kind.__name__, set())
    replaced = getattr(kind, name, None)
    special = name.startswith("__") or callable(replaced) or hasattr(replaced, "__get__")
    return name.isidentifier() and not special


def check_object(made: Any) -> None:
    """Raise an error if compiled loops could read beyond the arrays of an object."""
    if isinstance(made, (NeighborGraph, Geodesics, FactoredWeights)):
        made.check()
    if isinstance(made, BaseEstimator):
        _check_estimator(made)


def _check_estimator(made: Any) -> None:
    attributes = vars(made)
    if attributes.get("memory") is not None:
        raise DamagedModelError(
            f"{type(made).__name__}.memory is a folder, from which fit would load Python objects; "
            "pass memory=None"
        )
    n_features = attributes.get("n_features_in_")
    for name in _FEATURE_COLUMNS:
        shape = getattr(attributes.get(name), "shape", None)
        if shape is not None and (len(shape) != 2 or shape[1] != n_features):
            raise DamagedModelError(
                f"{name} of a {type(made).__name__} has the shape {shape}, but there are "
                f"{n_features} features"
            )
