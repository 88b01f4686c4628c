"""The affinity that the parameters `affinity` and `gamma` of an estimator describe."""

from typing import Any

from manifoldry.affinity.base import Affinity
from manifoldry.affinity.gaussian import Binary, Gaussian, SelfTuning

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
    known = isinstance(affinity, str) and affinity in options
    if not (known or isinstance(affinity, Affinity)):
        names = ", ".join(map(repr, options))
        raise ValueError(
            f"affinity={affinity!r} must be one of {names}, or an object such as "
            "manifoldry.affinity.Entropic(30)"
        )
    if affinity == "gaussian":
        return Gaussian(gamma=gamma)
    if gamma is not None:
        raise ValueError(
            f"gamma={gamma} is not used by affinity={affinity!r}; pass affinity='gaussian' or no "
            "gamma"
        )
    named: dict[Any, Affinity] = {"binary": Binary(), "self_tuning": SelfTuning()}
    return affinity if isinstance(affinity, Affinity) else named[affinity]
