"""Plots of quality metrics."""

import numpy as np
import pytest

from manifoldry import PCA, NeighborGraph
from manifoldry.datasets import make_swiss_roll
from manifoldry.metrics import assess, compare, coranking, shepard
from manifoldry.plotting import plot_assessment, plot_comparison, plot_coranking, plot_shepard

X, SHEET = make_swiss_roll(300, random_state=0)


def test_curves_are_those_of_the_embeddings():
    curves = {"sheet": coranking(X, SHEET), "PCA": coranking(X, PCA(2).fit(X))}
    ax = plot_coranking(curves, title="rolls")
    for line, curve in zip(ax.lines, curves.values(), strict=True):
        np.testing.assert_array_equal(line.get_ydata(), curve.r_nx)
        np.testing.assert_array_equal(line.get_xdata(), np.arange(1, 299))
    assert ax.get_xscale() == "log"
    assert ax.get_title(loc="left") == "rolls"
    names = [text.get_text() for text in ax.get_legend().get_texts()]
    assert names == [f"{name}: {curve.area:.2f}" for name, curve in curves.items()]
    assert len(plot_coranking(curves["PCA"]).lines) == 1


def test_shepard_counts_all_pairs():
    diagram = shepard(X, SHEET)
    ax = plot_shepard(diagram)
    [cells] = ax.collections
    assert cells.get_array().sum() == len(diagram.data_distances) == 300 * 299 / 2
    assert f"{diagram.spearman:.2f}" in ax.get_title(loc="left")


def test_assessment_has_four_panels():
    axes = plot_assessment(assess(X, SHEET))
    assert axes.shape == (4,)
    assert len(axes[2].lines) == 2  # the embedding and PCA
    axes[0].figure.canvas.draw()


@pytest.mark.parametrize("columns", [1, 3])
def test_assessments_of_lines_and_spaces(columns):
    Y = np.hstack([SHEET, SHEET[:, :1] * SHEET[:, 1:]])[:, :columns]
    plot_assessment(assess(X, Y))[0].figure.canvas.draw()


def test_points_that_were_not_embedded_and_graphs():
    Y = SHEET.copy()
    Y[:5] = np.nan
    plot_assessment(assess(X, Y))[0].figure.canvas.draw()
    along = plot_assessment(assess(NeighborGraph.build(X, 6), SHEET))
    assert along[1].get_title(loc="left") == "continuity of each point"


@pytest.mark.parametrize("plot", [plot_assessment, plot_coranking, plot_shepard])
def test_other_types_are_refused(plot):
    with pytest.raises(TypeError, match=r"manifoldry\.metrics|CoRanking"):
        plot(SHEET)


def test_a_comparison_is_drawn_aligned_with_its_metrics():
    rng = np.random.default_rng(0)
    data = rng.normal(size=(60, 4))
    turned = 5 * data[:, 1::-1] + 7
    found = compare(data, {"plain": data[:, :2], "turned": turned}, rng.integers(0, 2, 60))
    axes = plot_comparison(found, metrics=("stress",))
    stress = found.metrics["plain"]["stress"]
    assert axes[0].get_title(loc="left") == f"plain\nstress {stress:.3g}"
    drawn = [np.vstack([c.get_offsets() for c in ax.collections]) for ax in axes]
    np.testing.assert_allclose(drawn[0], drawn[1])
    flat = plot_comparison(compare(data, {"line": data[:, 0], "plane": data[:, :2]}))
    drawn = flat[1].collections[0].get_offsets()
    assert np.linalg.matrix_rank(drawn - drawn.mean(axis=0)) == 2
    with pytest.raises(TypeError, match=r"result of manifoldry\.compare"):
        plot_comparison({"plain": turned})
