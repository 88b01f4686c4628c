"""Plots are drawn without a screen, and no test leaves a figure behind."""

import matplotlib as mpl
import pytest

mpl.use("Agg")


@pytest.fixture(autouse=True)
def _close_figures():
    import matplotlib.pyplot as plt

    plt.close("all")  # those of examples in docstrings
    yield
    plt.close("all")
