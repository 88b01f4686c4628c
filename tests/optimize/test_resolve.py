"""Optimizers and guidance by name."""

import pytest

from manifoldry.optimize.filter import Identity
from manifoldry.optimize.guidance_filters import DeflatedPower, Heat, Power, Projector
from manifoldry.optimize.methods import LBFGS, ConjugateGradient, GradientDescent, Momentum
from manifoldry.optimize.resolve import resolve_guidance, resolve_optimizer
from manifoldry.optimize.stopping import Stopping


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


@pytest.mark.parametrize("wrong", ["newton", 3, None])
def test_unknown_names_are_refused_with_the_known_ones(wrong):
    with pytest.raises(ValueError, match=r"must be one of 'gradient', .*'momentum', or an Optim"):
        resolve_optimizer(wrong)


@pytest.mark.parametrize(
    ("name", "kind"),
    [("projector", Projector), ("power", Power), ("deflated-power", DeflatedPower), ("heat", Heat)],
)
def test_guidance_by_name(name, kind):
    assert type(resolve_guidance(name)) is kind


def test_a_filter_stays_itself():
    filter = Heat(start=3.0)
    assert resolve_guidance(filter) is filter


@pytest.mark.parametrize("wrong", ["jacobi", 3, None])
def test_unknown_guidance_is_refused_with_the_known_names(wrong):
    with pytest.raises(ValueError, match=r"must be one of 'projector', .*'heat', a Filter"):
        resolve_guidance(wrong)
