"""Spectra, learning curves, and what happens without matplotlib."""

import subprocess
import sys
from types import SimpleNamespace

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.colors import to_rgba

from manifoldry.plotting import plot_embedding, plot_learning_curve, plot_spectrum
from manifoldry.plotting._style import PALETTE

FALLING = [5.0, 4.5, 4.0, 1.0, 0.8, 0.1]


def kept_dots(ax):
    colors = ax.collections[-1].get_facecolors()
    return int((colors == to_rgba(PALETTE[0])).all(axis=1).sum())


def gap_text(ax):
    return [text.get_text() for text in ax.texts]


# Spectra


def test_spectrum_shows_every_value_and_the_widest_gap():
    ax = plot_spectrum(FALLING, title="values")
    assert np.array_equal(np.asarray(ax.collections[-1].get_offsets())[:, 1], FALLING)
    assert kept_dots(ax) == 3
    assert gap_text(ax) == ["gap 3"]
    assert ax.get_title(loc="left") == "values"
    ax.figure.canvas.draw()


def test_spectrum_marks_the_requested_gap():
    ax = plot_spectrum(FALLING, n_components=2)
    assert kept_dots(ax) == 2
    assert gap_text(ax) == ["gap 0.5"]


def test_spectrum_of_rising_and_negative_values():
    assert gap_text(plot_spectrum([0.0, 0.1, 0.9, 1.0])) == ["gap 0.8"]
    assert gap_text(plot_spectrum([3.0, 2.0, -2.0])) == ["gap 4"]


def test_spectrum_on_a_logarithmic_axis_measures_ratios():
    ax = plot_spectrum([1e-4, 2e-4, 2e-2, 5e-1], log=True)
    assert ax.get_yscale() == "log"
    assert gap_text(ax) == ["gap ×100"]
    ax.figure.canvas.draw()
    with pytest.raises(
        ValueError, match="log=True needs positive eigenvalues, but the smallest is 0"
    ):
        plot_spectrum([1.0, 0.0], log=True)


def test_spectrum_without_a_next_value_has_no_gap():
    for values, kept in (([2.0], 1), (FALLING, 6)):
        ax = plot_spectrum(values, n_components=kept)
        assert kept_dots(ax) == kept
        assert not gap_text(ax)
    assert not gap_text(plot_spectrum([1.0]))


def test_spectrum_of_an_estimator_keeps_its_columns():
    model = SimpleNamespace(eigenvalues_=np.array(FALLING), embedding_=np.ones((9, 2)))
    assert kept_dots(plot_spectrum(model)) == 2
    assert kept_dots(plot_spectrum(model, n_components=4)) == 4
    model.eigenvalues_ = np.array([2.0])
    assert kept_dots(plot_spectrum(model)) == 1


@pytest.mark.parametrize(
    ("values", "options", "words"),
    [
        (np.ones((2, 2)), {}, r"eigenvalues have shape \(2, 2\)"),
        ([], {}, r"eigenvalues have shape \(0,\)"),
        ([1.0, np.nan], {}, "NaN or infinity in 1 of 2"),
        (FALLING, {"n_components": 7}, r"n_components=7 must be in 1\.\.6"),
        (FALLING, {"n_components": 0}, "n_components=0"),
    ],
)
def test_wrong_spectra_are_named(values, options, words):
    with pytest.raises(ValueError, match=words):
        plot_spectrum(values, **options)
    assert not plt.get_fignums()


# Learning curves


def test_curves_are_drawn_with_names_and_bands():
    x = np.array([1.0, 2, 4])
    curves = {"y": [3, 2, 1], "xy": (x, x**2), "band": (x, x, x / 10), "two": (x, x, [x, 0 * x])}
    ax = plot_learning_curve(curves, xlabel="n", ylabel="score", title="t")
    assert [line.get_label() for line in ax.lines] == list(curves)
    assert ax.lines[0].get_xdata().tolist() == [1, 2, 3]
    assert ax.lines[1].get_ydata().tolist() == [1, 4, 16]
    assert len(ax.collections) == 2
    band = ax.collections[0].get_paths()[0].vertices
    assert (band[:, 1].min(), band[:, 1].max()) == pytest.approx((0.9, 4.4))
    lower = ax.collections[1].get_paths()[0].vertices
    assert (lower[:, 1].min(), lower[:, 1].max()) == pytest.approx((0, 4))
    assert [text.get_text() for text in ax.get_legend().get_texts()] == list(curves)
    assert (ax.get_xlabel(), ax.get_ylabel(), ax.get_title(loc="left")) == ("n", "score", "t")


@pytest.mark.parametrize("log", ["", "x", "y", "xy"])
def test_curves_on_logarithmic_axes(log):
    ax = plot_learning_curve({"a": [3, 2, 1]}, log=log)
    assert (ax.get_xscale() == "log") == ("x" in log)
    assert (ax.get_yscale() == "log") == ("y" in log)
    ax.figure.canvas.draw()


def test_one_curve_needs_no_legend_and_many_differ():
    assert plot_learning_curve({"a": [1, 2]}).get_legend() is None
    assert plot_learning_curve({"a": [1, 2], "b": [2, 1]}, legend=False).get_legend() is None
    ax = plot_learning_curve({str(i): [i, i] for i in range(20)})
    assert len({(line.get_color(), line.get_linestyle()) for line in ax.lines}) == 20


def test_lines_are_drawn_on_given_axes():
    figure, axes = plt.subplots(1, 2)
    assert plot_spectrum(FALLING, ax=axes[0]) is axes[0]
    assert plot_learning_curve({"a": [1, 2]}, ax=axes[1]) is axes[1]
    assert plt.get_fignums() == [figure.number]


@pytest.mark.parametrize(
    ("curves", "options", "words"),
    [
        ({}, {}, "at least one name"),
        ([1, 2], {}, "must be a mapping"),
        ({"a": ([1, 2], [1, 2, 3])}, {}, r"curves\['a'\] has x of shape \(2,\)"),
        ({"a": ([1],)}, {}, r"curves\['a'\] has 1 parts"),
        ({"a": ([1, 2], [1, 2], [1])}, {}, r"error of curves\['a'\] has shape \(1,\)"),
        ({"a": np.ones((2, 2))}, {}, "vectors of equal length"),
        ({"a": [1, 2]}, {"log": "z"}, "log='z' must be"),
    ],
)
def test_wrong_curves_are_named(curves, options, words):
    with pytest.raises(ValueError, match=words):
        plot_learning_curve(curves, **options)
    assert not plt.get_fignums()


# Without matplotlib


def test_importing_plotting_does_not_import_matplotlib():
    code = "import sys, manifoldry.plotting; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {"matplotlib", "sklearn", "scipy"} & set(done.stdout.split())


def test_missing_matplotlib_names_the_remedy(monkeypatch):
    for module in ("matplotlib.pyplot", "matplotlib.colors"):
        monkeypatch.setitem(sys.modules, module, None)
    for plot in (plot_spectrum, plot_embedding, lambda y: plot_embedding(y, "black")):
        with pytest.raises(ImportError, match=r'pip install "manifoldry\[plot\]"'):
            plot(FALLING)


def test_spectrum_of_an_estimator_shows_the_gap_behind_its_coordinates():
    from manifoldry import PCA

    X = np.random.default_rng(0).normal(size=(40, 5)) * [9, 7, 1, 1, 1]
    model = PCA(2).fit(X)
    (text,) = plot_spectrum(model).texts
    gap = model.computed_eigenvalues_[1] - model.computed_eigenvalues_[2]
    assert text.get_text() == f"gap {gap:.3g}"
