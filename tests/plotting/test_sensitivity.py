"""Curves of sensitivity, their zero and their crossings."""

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.colors import to_hex

from manifoldry.metrics import Sensitivity
from manifoldry.plotting import plot_sensitivity
from manifoldry.plotting._style import PALETTE
from manifoldry.util.estimate import Estimate


def result(difference, crossing):
    nothing = np.zeros((len(difference), 2))
    fraction = np.linspace(0.1, 0.3, len(difference))
    return Sensitivity(fraction, (), (), tuple(difference), crossing, nothing, nothing, ())


RISING = result(
    [Estimate(-1, -1.5, -0.5), Estimate(1, 0, 3), Estimate(2, -np.inf, np.inf)],
    Estimate(0.15, 0.12, 0.2),
)
NEVER = result([Estimate(-1, -1.5, -0.5)] * 3, Estimate(np.inf, 0.25, np.inf))


def test_curve_zero_and_crossing():
    ax = plot_sensitivity(RISING, title="Isomap")
    curve, zero, span, dot = ax.lines
    np.testing.assert_allclose(
        curve.get_xydata(), [[0.1, -1], [0.15, 0], [0.2, 1], [0.3, 2]], atol=1e-9
    )
    assert list(zero.get_ydata()) == [0, 0]
    assert list(span.get_xdata()) == [0.12, 0.2]
    assert dot.get_xydata().tolist() == [[0.15, 0]]
    assert ax.get_title(loc="left") == "Isomap"
    assert ax.get_xlabel()
    assert ax.get_ylabel()
    assert ax.get_legend() is None
    ax.figure.canvas.draw()


def test_bands_are_the_intervals():
    corners = plot_sensitivity(RISING).collections[0].get_paths()[0].vertices
    for x, low, high in [(0.1, -1.5, -0.5), (0.2, 0, 3)]:
        heights = corners[np.isclose(corners[:, 0], x), 1]
        assert (heights.min(), heights.max()) == (low, high)


def test_several_with_their_colors_on_given_axes():
    _, ax = plt.subplots()
    assert plot_sensitivity({"one": RISING, "other": NEVER}, ax=ax) is ax
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["one", "other"]
    assert len(ax.lines) == 5  # what never crosses has no mark
    assert [to_hex(line.get_color()) for line in ax.lines[-2:]] == [PALETTE[0]] * 2


def test_a_crossing_of_nothing_is_not_drawn():
    assert len(plot_sensitivity(result([Estimate(np.nan)] * 2, Estimate(np.nan))).lines) == 2


@pytest.mark.parametrize("given", [np.ones(3), {"one": 1.0}])
def test_bad_input_opens_no_figure(given):
    with pytest.raises(TypeError, match=r"pass the result of manifoldry\.metrics\.sensitivity"):
        plot_sensitivity(given)
    assert not plt.get_fignums()
