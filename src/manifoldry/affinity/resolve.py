"""The affinity that the parameters `affinity` and `gamma` of an estimator describe."""

from typing import Any

from manifoldry.affinity.base import Affinity
from manifoldry.affinity.gaussian import Binary, Gaussian, SelfTuning
from manifoldry.util.checks import check_option

AFFINITIES = ("gaussian", "binary", "self_tuning")


def resolve_affinity(
    affinity: str | Affinity | None,
    gamma: float | None,
    default: Affinity,
    options: tuple[str, ...] = AFFINITIES,
) -> Affinity:
    """Return the affinity of a given name, or an object as it is.

    None means `default`, or ``"gaussian"`` if `gamma` is given. Other affinities have no `gamma`.
    """
    if affinity is None:
        return default if gamma is None else Gaussian(gamma=gamma)
    if not isinstance(affinity, Affinity):
        check_option("affinity", affinity, options)
    if affinity == "gaussian":
        return Gaussian(gamma=gamma)
    if gamma is not None:
        raise ValueError(
            f"gamma={gamma} is not used by affinity={affinity!r}; pass affinity='gaussian' or no "
            "gamma"
        )
    named: dict[Any, Affinity] = {"binary": Binary(), "self_tuning": SelfTuning()}
    return affinity if isinstance(affinity, Affinity) else named[affinity]
