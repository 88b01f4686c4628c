"""The version of the package in pickled estimators."""

from typing import Any

from sklearn.base import BaseEstimator

from manifoldry.exceptions import VersionWarning, warn

_KEY = "_manifoldry_version"


def state_with_version(estimator: BaseEstimator) -> dict[str, Any]:
    """Return what is pickled: the attributes, and the version that wrote them."""
    return {**BaseEstimator.__getstate__(estimator), _KEY: _version()}


def restore_state(estimator: BaseEstimator, state: dict[str, Any]) -> None:
    """Set the attributes; warn if another version wrote them."""
    attributes = {name: value for name, value in state.items() if name != _KEY}
    written = state.get(_KEY, "an unknown version")
    if written != _version():
        warn(
            f"this {type(estimator).__name__} was saved by manifoldry {written} and is loaded by "
            f"{_version()}, whose attributes may differ; fit it again with this version",
            VersionWarning,
        )
    BaseEstimator.__setstate__(estimator, attributes)


def _version() -> str:
    import manifoldry

    return manifoldry.__version__
