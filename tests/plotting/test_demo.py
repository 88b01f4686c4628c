"""The demonstration, `make demo`, with few digits and fast methods."""

import runpy
from pathlib import Path

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits

from manifoldry import PCA, Isomap
from manifoldry.cli.main import main
from manifoldry.io import ColumnChoice, read_table

DEMO = Path(__file__).parents[2] / "examples" / "demo.py"


def test_the_demo_describes_and_draws_models(tmp_path):
    demo = runpy.run_path(str(DEMO))
    X, y = load_digits(return_X_y=True)
    rows, new = slice(0, 200), slice(200, 240)
    models = {"PCA": PCA(), "Isomap": Isomap(n_neighbors=12)}
    for model in models.values():
        quality = demo["describe"](model, X[rows], y[rows], X[new], y[new])
        assert quality["trust"] > 0.7
    path = tmp_path / "demo.png"
    demo["draw"](models, X[rows], y[rows], X[new], path)
    assert path.stat().st_size > 10_000
    maps, strips = plt.gcf().axes[::2], plt.gcf().axes[1::2]
    assert [ax.get_title(loc="left") for ax in maps] == list(models)
    for ax, strip in zip(maps, strips, strict=True):
        assert ax.collections[-1].get_label() == "new points"
        assert len(ax.collections[-1].get_offsets()) == 25
        assert strip.images[0].get_array().shape == (8, 9 * 8)


def test_the_commands_of_the_demo_write_a_map_and_the_positions_of_unseen_digits(tmp_path, capsys):
    demo = runpy.run_path(str(DEMO))
    X, y = load_digits(return_X_y=True)
    folder = tmp_path / "demo"

    def run(*words):
        assert main(words if words[0] == "transform" else [*words, "--method", "pca"]) == 0

    files = demo["use_commands"](X[:150], y[:150], X[150:170], y[150:170], folder, run)
    assert "map: " in capsys.readouterr().out
    assert {"digits.csv", "map.csv", "map.png", "map.model", "report.html"} <= {
        file.name for file in files
    }
    choice = ColumnChoice(("pca1", "pca2"), labels=("digit", "novelty"))
    found = read_table(folder / "placed.csv", choice)
    assert list(found.labels["digit"].astype(int)) == list(y[150:170])
