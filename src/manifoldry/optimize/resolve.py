"""Optimizers and guidance by name."""

from collections.abc import Callable
from dataclasses import replace

from manifoldry.optimize.descent import Descent
from manifoldry.optimize.filter import DiagonalHessian, Filter, Jacobi
from manifoldry.optimize.methods import LBFGS, ConjugateGradient, GradientDescent, Momentum
from manifoldry.optimize.optimizer import Optimizer
from manifoldry.optimize.stopping import Stopping


def _spectral_direction() -> Filter:
    from manifoldry.optimize.spectral_direction import SpectralDirection

    return SpectralDirection()


def _guidance() -> dict[str, type[Filter]]:
    from manifoldry.optimize.guidance_filters import DeflatedPower, Heat, Power, Projector

    return {"projector": Projector, "power": Power, "deflated-power": DeflatedPower, "heat": Heat}


_NAMED: dict[str, Callable[[], Descent]] = {
    "gradient": GradientDescent,
    "jacobi": lambda: GradientDescent(Jacobi()),
    "diagonal": lambda: GradientDescent(DiagonalHessian()),
    "spectral": lambda: GradientDescent(_spectral_direction()),
    "cg": ConjugateGradient,
    "spectral-cg": lambda: ConjugateGradient(_spectral_direction()),
    "lbfgs": LBFGS,
    "spectral-lbfgs": lambda: LBFGS(_spectral_direction()),
    "momentum": Momentum,
}


def resolve_optimizer(optimizer: str | Optimizer, stopping: Stopping | None = None) -> Optimizer:
    """An optimizer by name, with a stopping rule; an optimizer is returned as it is.

    Parameters
    ----------
    optimizer : str or Optimizer
        "gradient", "jacobi" (the fixed-point iteration), "diagonal", "spectral" (the spectral
        direction), "cg", "lbfgs", the last two also as "spectral-cg" and "spectral-lbfgs", or
        "momentum".
    stopping : Stopping, default=None
        When an optimizer made from a name stops.

    Examples
    --------
    >>> resolve_optimizer("lbfgs", Stopping(max_iter=100)).stopping.max_iter
    100
    """
    if isinstance(optimizer, Optimizer):
        return optimizer
    if not isinstance(optimizer, str) or optimizer not in _NAMED:
        names = ", ".join(map(repr, _NAMED))
        raise ValueError(f"optimizer={optimizer!r} must be one of {names}, or an Optimizer")
    named = _NAMED[optimizer]()
    return named if stopping is None else replace(named, stopping=stopping)


def resolve_guidance(guidance: str | Filter) -> Filter:
    """A filter that guides a search, by name; a filter is returned as it is.

    Parameters
    ----------
    guidance : str or Filter
        "projector", "power", "deflated-power" or "heat", each with its defaults.

    Examples
    --------
    >>> resolve_guidance("heat").start
    10.0
    """
    if isinstance(guidance, Filter):
        return guidance
    named = _guidance()
    if not isinstance(guidance, str) or guidance not in named:
        names = ", ".join(map(repr, named))
        raise ValueError(
            f"guidance={guidance!r} must be one of {names}, a Filter, such as "
            "manifoldry.optimize.Heat(), or None"
        )
    return named[guidance]()
