"""Optimizers by name."""

import pytest

from manifoldry.optimize.filter import DiagonalHessian, Identity, Jacobi
from manifoldry.optimize.guidance_filters import DeflatedPower, Heat, Power, Projector
from manifoldry.optimize.methods import LBFGS, ConjugateGradient, GradientDescent, Momentum
from manifoldry.optimize.resolve import resolve_optimizer
from manifoldry.optimize.spectral_direction import SpectralDirection
from manifoldry.optimize.stopping import Stopping

METHODS = {
    "gradient": GradientDescent,
    "cg": ConjugateGradient,
    "lbfgs": LBFGS,
    "momentum": Momentum,
}
FILTERS = {
    "jacobi": Jacobi,
    "diagonal": DiagonalHessian,
    "spectral": SpectralDirection,
    "projector": Projector,
    "power": Power,
    "deflated-power": DeflatedPower,
    "heat": Heat,
}


@pytest.mark.parametrize(
    ("name", "method", "filter"),
    [
        ("gradient", GradientDescent, "Identity"),
        ("jacobi", GradientDescent, "Jacobi"),
        ("diagonal", GradientDescent, "DiagonalHessian"),
        ("spectral", GradientDescent, "SpectralDirection"),
        ("cg", ConjugateGradient, "Identity"),
        ("spectral-cg", ConjugateGradient, "SpectralDirection"),
        ("lbfgs", LBFGS, "Identity"),
        ("spectral-lbfgs", LBFGS, "SpectralDirection"),
        ("momentum", Momentum, "Identity"),
    ],
)
def test_names(name, method, filter):
    optimizer = resolve_optimizer(name, Stopping(max_iter=7))
    assert type(optimizer) is method
    assert type(optimizer.filter).__name__ == filter
    assert optimizer.stopping == Stopping(max_iter=7)
    assert resolve_optimizer(name).stopping == Stopping()


def test_an_optimizer_stays_itself():
    optimizer = LBFGS(Identity(), memory=3)
    assert resolve_optimizer(optimizer, Stopping(max_iter=7)) is optimizer


@pytest.mark.parametrize("filter", sorted(FILTERS))
@pytest.mark.parametrize("method", sorted(METHODS))
def test_a_filter_and_a_method(filter, method):
    optimizer = resolve_optimizer(f"{filter}-{method}")
    assert type(optimizer) is METHODS[method]
    assert type(optimizer.filter) is FILTERS[filter]
    assert optimizer.stopping == Stopping()


@pytest.mark.parametrize("filter", sorted(FILTERS))
def test_a_filter_alone_is_that_of_gradient_descent(filter):
    optimizer = resolve_optimizer(filter)
    assert type(optimizer) is GradientDescent
    assert type(optimizer.filter) is FILTERS[filter]


@pytest.mark.parametrize("wrong", ["newton", "heat-newton", "newton-lbfgs", "-lbfgs", 3, None])
def test_unknown_names_are_refused_with_the_known_ones(wrong):
    message = r"must be one of 'gradient', .*'momentum', 'jacobi', .*'heat', .*an Optimizer"
    with pytest.raises(ValueError, match=message):
        resolve_optimizer(wrong)
