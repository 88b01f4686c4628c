"""The version of the package in pickled estimators."""

import threading
import weakref
from copy import deepcopy
from inspect import signature
from typing import Any, TypeVar

from sklearn.base import BaseEstimator

from manifoldry.exceptions import VersionWarning, warn
from manifoldry.util.lazy import is_lazy

_KEY = "_manifoldry_version"
_loading = threading.local()
Estimator = TypeVar("Estimator", bound=BaseEstimator)


class SavedVersion:
    """The version that saved an estimator, which warns on loading if it is another one.

    It is the first item of a pickled state. So that of an estimator is loaded before those of the
    estimators inside it, and it exists until all of these are loaded: only the first one warns.
    """

    def __init__(self, estimator: str, version: str) -> None:
        self.estimator = estimator
        self.version = version

    def __reduce__(self) -> Any:
        return _load_version, (self.estimator, self.version)


def state_with_version(estimator: BaseEstimator) -> dict[str, Any]:
    """Return what is pickled: the version that writes it, then the attributes."""
    version = SavedVersion(type(estimator).__name__, package_version())
    return {_KEY: version} | lasting_state(estimator)


def lasting_state(estimator: BaseEstimator) -> dict[str, Any]:
    """Return the attributes of an estimator that can be stored.

    A Dask array of the embedding cannot: it is on a cluster, or would bring the data along.
    """
    state = BaseEstimator.__getstate__(estimator)
    return {name: each for name, each in state.items() if not is_lazy(each)}


def shallow_copied(estimator: Estimator) -> Estimator:
    """Return what `copy.copy` makes of an estimator; it keeps what cannot be stored."""
    copy = object.__new__(type(estimator))
    vars(copy).update(vars(estimator))
    return copy


def deep_copied(estimator: Estimator, memo: dict[int, Any]) -> Estimator:
    """Return what `copy.deepcopy` makes of an estimator; it shares Dask arrays."""
    copy = object.__new__(type(estimator))
    memo[id(estimator)] = copy
    for name, value in vars(estimator).items():
        vars(copy)[name] = value if is_lazy(value) else deepcopy(value, memo)
    return copy


def restore_state(estimator: BaseEstimator, state: dict[str, Any]) -> None:
    """Set the attributes; warn if no version was saved with them."""
    if _KEY not in state:
        _warn(type(estimator).__name__, "an unknown version of manifoldry")
    attributes = {name: value for name, value in state.items() if name != _KEY}
    set_attributes(estimator, attributes)


def set_attributes(estimator: BaseEstimator, attributes: dict[str, Any]) -> None:
    """Set the attributes of a loaded estimator; parameters that it did not have get defaults."""
    BaseEstimator.__setstate__(estimator, attributes)  # compares scikit-learn's versions
    for name, parameter in signature(type(estimator)).parameters.items():
        if parameter.default is not parameter.empty and not hasattr(estimator, name):
            setattr(estimator, name, parameter.default)


def _load_version(estimator: str, version: str) -> SavedVersion:
    first = getattr(_loading, "first", lambda: None)
    saved = SavedVersion(estimator, version)
    if first() is None:
        if version != package_version():
            _warn(estimator, f"manifoldry {version}")
        # A weak reference: it ends with the loading, also if that fails.
        _loading.first = weakref.ref(saved)
    return saved


def _warn(estimator: str, writer: str) -> None:
    warn(
        f"this {estimator} was saved by {writer} and is loaded by {package_version()}, whose "
        "attributes may differ; fit it again with this version",
        VersionWarning,
    )


def package_version() -> str:
    """The version of this package."""
    import manifoldry

    return manifoldry.__version__
