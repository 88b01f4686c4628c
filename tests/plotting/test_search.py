"""Plots of `path_` and `trace_`."""

from itertools import pairwise
from types import SimpleNamespace

import matplotlib.pyplot as plt
import numpy as np
import pytest

import manifoldry as mf
from manifoldry.datasets import make_swiss_roll
from manifoldry.optimize.homotopy import Path, PathStep
from manifoldry.plotting import plot_path, plot_trace

FIELDS = [("evaluations", int), ("value", float), ("parameter", float)]


def path_of(n_steps, budget=2.0**20, n=12):
    """A path whose embedding number i is a point cloud scaled by i."""
    path, cloud = Path(budget), np.random.default_rng(0).normal(size=(n, 2))
    for i in range(n_steps):
        path.record(PathStep(10.0**i, -i, min(i, 2), np.nan, 1, True), i * cloud)
    return path


def drawn(ax):
    """Points of a panel, in order."""
    offsets = np.concatenate([c.get_offsets() for c in ax.collections])
    return offsets[np.lexsort(offsets.T)]


def sorted_rows(Y):
    return Y[np.lexsort(Y.T)]


def trace(*searches):
    """A trace of searches, each a parameter and its values."""
    rows = [(value, parameter) for parameter, values in searches for value in values]
    return np.array([(i + 1, *row) for i, row in enumerate(rows)], dtype=FIELDS)


# Paths


def test_all_embeddings_of_a_short_path_are_drawn_with_titles():
    path = path_of(4)
    axes = plot_path(path)
    titles = [ax.get_title(loc="left") for ax in axes]
    assert titles[0] == "step 1: λ=1, rank 0"
    assert titles[-1] == "step 4: λ=1000, rank 2"
    assert len(axes) == len(axes[0].figure.axes) == 4
    for ax, Y in zip(axes, path.embeddings, strict=True):
        assert np.allclose(drawn(ax), sorted_rows(Y))


def test_a_long_path_is_spread_evenly_and_ends_at_the_last_map():
    axes = plot_path(path_of(21), n_maps=5, symbol="η")
    assert [ax.get_title(loc="left").split(":")[0] for ax in axes] == [
        f"step {i}" for i in (1, 6, 11, 16, 21)
    ]
    assert "η=1e+20" in axes[-1].get_title(loc="left")
    (last,) = plot_path(path_of(21), n_maps=1)
    assert last.get_title(loc="left").startswith("step 21")


def test_titles_belong_to_the_maps_that_were_kept():
    path = path_of(9, budget=4 * 12 * 2 * 8)
    assert len(path.kept) < 9
    for ax, number in zip(plot_path(path), path.kept, strict=True):
        assert ax.get_title(loc="left").startswith(f"step {number + 1}: λ={float(10**number):g}")


def test_colors_are_shared_and_explained_once():
    axes = plot_path(path_of(3), np.repeat(["a", "b"], 6))
    (legend,) = axes[0].figure.legends
    assert [text.get_text() for text in legend.get_texts()] == ["a", "b"]


def test_a_fitted_model_shows_its_path_and_its_trace():
    X = make_swiss_roll(60, random_state=0).X
    model = mf.SNE(perplexity=8).fit(X)
    axes = plot_path(model, n_maps=3)
    assert np.allclose(drawn(axes[-1]), sorted_rows(model.embedding_))
    ax = plot_trace(model)
    curves = ax.lines[: len(model.path_)]
    assert np.array_equal(np.concatenate([c.get_ydata() for c in curves]), model.trace_["value"])
    assert len(ax.texts) == 6


@pytest.mark.parametrize(
    ("path", "error", "words"),
    [
        (mf.TSNE(), ValueError, "TSNE is not fitted; call fit first"),
        (mf.PCA(1).fit(np.diag([3.0, 2, 1])), ValueError, "PCA has no path_; pass a fitted SNE"),
        (SimpleNamespace(path_=None), ValueError, "without a homotopy.* with optimizer='homotopy'"),
        (np.ones((3, 2)), TypeError, "of type ndarray; pass a fitted iterative estimator, or a Pa"),
        (Path(), ValueError, "no steps"),
    ],
)
def test_bad_paths_are_refused(path, error, words):
    with pytest.raises(error, match=words):
        plot_path(path)
    assert not plt.get_fignums()


# Traces


def test_the_curve_breaks_where_the_parameter_changes():
    steps = trace((0.5, [3, 2, 1]), (1.0, [5, 4]), (np.nan, [9, 8, 7, 6]))
    ax = plot_trace(steps, title="search")
    curves, marks = ax.lines[:3], ax.lines[3:]
    assert [line.get_ydata().tolist() for line in curves] == [[3, 2, 1], [5, 4], [9, 8, 7, 6]]
    assert curves[1].get_xdata().tolist() == [4, 5]
    assert [mark.get_xdata()[0] for mark in marks] == [4, 6]
    assert [text.get_text() for text in ax.texts] == ["0.5", "1"]
    assert (ax.get_xlabel(), ax.get_title(loc="left")) == ("evaluations", "search")


def test_a_search_without_a_parameter_is_one_curve():
    ax = plot_trace(SimpleNamespace(trace_=trace((np.nan, [3, 2, 1]))), log=True)
    (line,) = ax.lines
    assert line.get_ydata().tolist() == [3, 2, 1]
    assert not ax.texts
    assert ax.get_yscale() == "log"


def test_many_parameters_are_not_all_written():
    ax = plot_trace(trace(*((p, [1.0, 0.5]) for p in range(1, 41))))
    assert len(ax.lines) == 40 + 39
    texts = [text.get_text() for text in ax.texts]
    assert texts[-1] == "40"
    assert 5 < len(texts) < 40


@pytest.mark.parametrize("lengths", [[2] * 40, [1, 1, 1, 200, 1, 1], [300, 1, 1, 1, 1]])
def test_labels_of_parameters_do_not_overlap(lengths):
    # The first steps of a homotopy often take a few evaluations, the last ones hundreds.
    ax = plot_trace(trace(*((1e-4 * 1.7**i, [1.0] * n) for i, n in enumerate(lengths))))
    ax.figure.canvas.draw()
    boxes = [text.get_window_extent() for text in ax.texts]
    assert len(boxes) >= 2
    assert all(one.x1 < other.x0 for one, other in pairwise(boxes))


def test_a_trace_is_drawn_on_given_axes():
    figure, axes = plt.subplots(1, 2)
    assert plot_trace(trace((1.0, [2, 1])), ax=axes[1]) is axes[1]
    assert plt.get_fignums() == [figure.number]


@pytest.mark.parametrize(
    ("steps", "options", "error", "words"),
    [
        (mf.UKR(), {}, ValueError, "UKR is not fitted; call fit first"),
        (
            mf.PCA(1).fit(np.diag([3.0, 2, 1])),
            {},
            ValueError,
            "PCA has no trace_; pass a fitted SNE",
        ),
        (SimpleNamespace(trace_=np.ones(3)), {}, TypeError, "SimpleNamespace.trace_ must have"),
        (np.ones(3), {}, TypeError, "the fields value, evaluations, parameter"),
        (trace(), {}, ValueError, "no steps"),
        (
            trace((1.0, [1, -1])),
            {"log": True},
            ValueError,
            "positive values, but the smallest is -1",
        ),
    ],
)
def test_bad_traces_are_refused(steps, options, error, words):
    with pytest.raises(error, match=words):
        plot_trace(steps, **options)
    assert not plt.get_fignums()
