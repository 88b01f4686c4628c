"""Line searches, against the inequalities they must satisfy."""

import numpy as np
import pytest

from manifoldry.optimize.line_search import Armijo, Ray, StrongWolfe
from manifoldry.optimize.optimizer import Evaluator

SEEDS = range(40)


@pytest.fixture
def ray(function):
    """Make the ray of a function of one variable t, f(t) and f'(t), from t = 0 to the right."""

    def make(f, df, dtype=np.float64):
        objective = function(1, lambda Y: (f(float(Y[0, 0])), np.array([[df(float(Y[0, 0]))]])))
        evaluator = Evaluator(objective)
        return Ray(evaluator, evaluator.at(np.zeros((1, 1), dtype)), np.ones((1, 1), dtype))

    return make


@pytest.fixture
def wavy(ray):
    """A random sum of waves on a parabola, falling at zero: many minima, bounded below."""

    def make(seed):
        rng = np.random.default_rng(seed)
        a, w, p = rng.normal(size=6), rng.uniform(0.2, 4, 6), rng.uniform(0, 6, 6)
        tilt = float((a * w * np.cos(p)).sum()) + rng.uniform(0.1, 2)
        return ray(
            lambda t: 0.05 * t**2 - tilt * t + float((a * np.sin(w * t + p)).sum()),
            lambda t: 0.1 * t - tilt + float((a * w * np.cos(w * t + p)).sum()),
        )

    return make


@pytest.mark.parametrize("first", [1e-6, 1.0, 1e6])
@pytest.mark.parametrize("c2", [0.9, 0.1, 1e-4])
def test_strong_wolfe_conditions_hold(wavy, first, c2):
    for seed in SEEDS:
        line = wavy(seed)
        trial = StrongWolfe(c1=1e-5, c2=c2).search(line, first)
        start = line.start
        assert (
            trial.point.value
            <= start.value + 1e-5 * trial.length * line.slope + start.rounding_error
        )
        assert abs(trial.slope) <= c2 * abs(line.slope)


@pytest.mark.parametrize("first", [1e-6, 1.0, 1e6])
@pytest.mark.parametrize("c", [0.1, 0.4])
def test_armijo_condition_holds(wavy, first, c):
    for seed in SEEDS:
        line = wavy(seed)
        trial = Armijo(c=c).search(line, first)
        assert trial.point.value <= line.start.value + c * trial.length * line.slope


@pytest.mark.parametrize("search", [Armijo(), StrongWolfe()])
def test_point_and_slope_are_those_of_the_accepted_length(wavy, search):
    for seed in SEEDS:
        line = wavy(seed)
        trial = search.search(line, 0.3)
        again = line.at(trial.length)
        assert again.point.value == trial.point.value
        assert again.slope == trial.slope
        assert np.array_equal(again.point.Y, trial.point.Y)


@pytest.mark.parametrize("search", [Armijo(), StrongWolfe(), StrongWolfe(c2=1e-3)])
@pytest.mark.parametrize("first", [1e-3, 1.0, 1e3])
def test_never_evaluates_a_point_twice(wavy, search, first):
    for seed in SEEDS:
        line = wavy(seed)
        search.search(line, first)
        evaluated = line.evaluator.objective.evaluated
        assert len(set(evaluated)) == len(evaluated) == line.evaluator.count


@pytest.mark.parametrize("search", [Armijo(), StrongWolfe(c2=0.1)])
def test_leaves_a_saddle_in_one_search(ray, search):
    """f = (u² − 1)², u = 1e-8 + 1e-8·t: steps of 1 change nothing, steps of 1e8 are needed."""
    line = ray(
        lambda t: ((1e-8 + 1e-8 * t) ** 2 - 1) ** 2,
        lambda t: 4e-8 * (1e-8 + 1e-8 * t) * ((1e-8 + 1e-8 * t) ** 2 - 1),
    )
    assert search.search(line, 1.0).point.value < 0.95


@pytest.mark.parametrize("search", [Armijo(), StrongWolfe()])
@pytest.mark.parametrize("beyond", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("wall", [1e-3, 2.0])
def test_steps_back_from_values_that_are_not_finite(ray, search, beyond, wall):
    line = ray(lambda t: -t if t < wall else beyond, lambda t: -1.0 if t < wall else np.nan)
    trial = search.search(line, 1e5)
    assert 0 < trial.length < wall
    assert trial.point.value == -trial.length


def test_exact_minimum_of_a_parabola_in_two_trials(ray):
    line = ray(lambda t: (t - 3) ** 2, lambda t: 2 * (t - 3))
    trial = StrongWolfe(c1=1e-13, c2=1e-12).search(line, 1.0)
    assert trial.length == pytest.approx(3, rel=1e-12)
    assert line.evaluator.count == 3  # the start included


@pytest.mark.parametrize("search", [Armijo(), StrongWolfe(c2=0.1)])
@pytest.mark.parametrize(("dtype", "curvature"), [(np.float64, 1e-18), (np.float32, 1e-8)])
def test_slopes_decide_if_the_decrease_is_below_rounding_error(ray, search, dtype, curvature):
    """All values round to one; only the slope shows that t = 1 is the minimum."""
    f = (lambda t: dtype(1 + curvature * (t - 1) ** 2), lambda t: 2 * curvature * (t - 1))
    trial = search.search(ray(*f, dtype=dtype), 4.0)
    assert trial.point.value == 1
    assert abs(trial.length - 1) < 0.9


@pytest.mark.parametrize("search", [Armijo(), StrongWolfe()])
def test_fails_if_the_gradient_does_not_match_the_value(ray, search):
    line = ray(lambda t: 1 + t, lambda t: -1.0)
    assert search.search(line, 1.0) is None
    assert line.evaluator.count < 70


@pytest.mark.parametrize("search", [Armijo(), StrongWolfe()])
def test_the_number_of_trials_is_bounded_if_there_is_no_minimum(ray, search):
    line = ray(lambda t: -t, lambda t: -1.0)
    assert search.search(line, 1.0).length > 1e6
    assert line.evaluator.count < 70


def test_without_expansion_a_short_first_step_stays(ray):
    line = ray(lambda t: (t - 3) ** 2, lambda t: 2 * (t - 3))
    assert Armijo(expand=1).search(line, 1e-3).length == 1e-3
    assert Armijo().search(line, 1e-3).length > 0.2


@pytest.mark.parametrize(
    ("make", "parameters", "message"),
    [
        (Armijo, {"c": 0.5}, "c=0.5 must be less than 0.5"),
        (Armijo, {"c": 0}, "c=0 must be greater than 0"),
        (Armijo, {"shrink": 1.0}, "shrink=1 must be less than 1"),
        (Armijo, {"expand": 0.5}, "expand=0.5 must be at least 1"),
        (Armijo, {"max_trials": 0}, "max_trials=0 must be at least 1"),
        (StrongWolfe, {"c2": 1.0}, "c2=1 must be less than 1"),
        (StrongWolfe, {"c1": 0.2, "c2": 0.1}, "c1=0.2 must be less than 0.1"),
        (StrongWolfe, {"expand": 1.0}, "expand=1.0 must be greater than 1"),
    ],
)
def test_parameters_out_of_bounds(make, parameters, message):
    with pytest.raises(ValueError, match=message):
        make(**parameters)
