"""Optimizers by name."""

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


def _guidance(name: str) -> Callable[[], Filter]:
    def make() -> Filter:
        from manifoldry.optimize import guidance_filters

        filter: Filter = getattr(guidance_filters, name)()
        return filter

    return make


_METHODS: dict[str, Callable[..., Descent]] = {
    "gradient": GradientDescent,
    "cg": ConjugateGradient,
    "lbfgs": LBFGS,
    "momentum": Momentum,
}
_FILTERS: dict[str, Callable[[], Filter]] = {
    "jacobi": Jacobi,
    "diagonal": DiagonalHessian,
    "spectral": _spectral_direction,
    "projector": _guidance("Projector"),
    "power": _guidance("Power"),
    "deflated-power": _guidance("DeflatedPower"),
    "heat": _guidance("Heat"),
}


def resolve_optimizer(optimizer: str | Optimizer, stopping: Stopping | None = None) -> Optimizer:
    """Make an optimizer from its name; an optimizer is returned unchanged.

    Parameters
    ----------
    optimizer : str or Optimizer
        A method, "gradient", "cg", "lbfgs" or "momentum"; a filter, "jacobi" (the fixed-point
        iteration), "diagonal", "spectral" (the spectral direction), "projector", "power",
        "deflated-power" or "heat", which stands for gradient descent with it; or both, joined by a
        hyphen, such as "spectral-lbfgs" or "heat-cg".
    stopping : Stopping, default=None
        Stopping rule of an optimizer made from a name; by default ``Stopping()``.

    Returns
    -------
    Optimizer
        The optimizer.

    See Also
    --------
    LBFGS, GradientDescent, ConjugateGradient, Momentum : the methods.
    SpectralDirection, Jacobi, DiagonalHessian : filters.

    Examples
    --------
    >>> resolve_optimizer("lbfgs", Stopping(max_iter=100)).stopping.max_iter
    100
    >>> resolve_optimizer("heat-lbfgs").filter.start
    10.0
    """
    if isinstance(optimizer, Optimizer):
        return optimizer
    made = _make(optimizer) if isinstance(optimizer, str) else None
    if isinstance(optimizer, type) and issubclass(optimizer, Optimizer):
        raise ValueError(f"optimizer={optimizer.__name__} is a class; pass {optimizer.__name__}()")
    if made is None:
        methods, filters = (", ".join(map(repr, names)) for names in (_METHODS, _FILTERS))
        raise ValueError(
            f"optimizer={optimizer!r} must be one of {methods}, {filters}, a filter and a method "
            "such as 'spectral-lbfgs', an Optimizer or, for an estimator, 'homotopy' or a Homotopy"
        )
    return made if stopping is None else replace(made, stopping=stopping)


def _make(name: str) -> Descent | None:
    """The optimizer of that name, None if there is no such name."""
    if name in _METHODS:
        return _METHODS[name]()
    if name in _FILTERS:
        return GradientDescent(_FILTERS[name]())
    filter, _, method = name.rpartition("-")
    if filter in _FILTERS and method in _METHODS:
        return _METHODS[method](_FILTERS[filter]())
    return None
