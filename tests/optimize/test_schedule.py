"""The steps after which schedules advance."""

import numpy as np
import pytest
from scipy import sparse

from manifoldry.objectives.base import Objective
from manifoldry.optimize.filter import Progress
from manifoldry.optimize.guidance import EveryStep, Never, OnSlowProgress
from manifoldry.optimize.guidance_filters import Power


class GraphOnly(Objective):
    """A constant objective with a graph."""

    n = 4
    attraction = sparse.csr_array(np.ones((4, 4)) - np.eye(4))

    def value_and_gradient(self, Y):
        return 0.0, np.zeros_like(Y)

    def diagonal_curvature(self, Y):
        return np.ones_like(Y)


def advances(schedule, decreases, start=3):
    """Steps after which the operator has changed."""
    bound = Power(start, schedule=schedule).operator_for(GraphOnly())
    return [i for i, d in enumerate(decreases) if bound.advance(Progress(i, 1.0, d))]


def test_every_step():
    assert advances(EveryStep(), [np.inf, 0.9, 0.0, 0.5, 0.5]) == [1, 2, 3]


def test_every_third_step():
    assert advances(EveryStep(3), [np.inf] + 10 * [0.9]) == [3, 6, 9]


def test_slow_progress():
    assert advances(OnSlowProgress(), [np.inf, 0.5, 0.04, 0.06, 0.5, 0.0, 0.3]) == [2, 5]


def test_steps_that_fail_or_ascend_count_as_slow():
    assert advances(OnSlowProgress(), [np.nan, -0.1, 0.0]) == [0, 1, 2]


def test_bounds_on_the_steps_of_a_stage():
    schedule = OnSlowProgress(threshold=0.5, min_steps=2, max_steps=4)
    assert advances(schedule, [np.inf, 0.1, 0.1, 0.9, 0.9, 0.9, 0.9, 0.9]) == [2, 6]


def test_never():
    bound = Power(schedule=Never()).operator_for(GraphOnly())
    assert bound.finished
    assert not any(bound.advance(Progress(i, 1.0, 0.0)) for i in range(50))


def test_two_searches_with_one_schedule_are_independent():
    """Schedules are shared and have no state."""
    chosen = Power(2, schedule=EveryStep(2))
    one, other = chosen.operator_for(GraphOnly()), chosen.operator_for(GraphOnly())
    assert [one.advance(Progress(i, 1.0, 0.5)) for i in (1, 2)] == [False, True]
    assert [other.advance(Progress(i, 1.0, 0.5)) for i in (1, 2)] == [False, True]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: EveryStep(0), "period=0 must be at least 1"),
        (lambda: OnSlowProgress(0.0), "threshold=0.0 must be greater than 0"),
        (lambda: OnSlowProgress(min_steps=3, max_steps=2), "max_steps=2 must be at least 3"),
    ],
)
def test_parameters_out_of_bounds(make, message):
    with pytest.raises(ValueError, match=message):
        make()
