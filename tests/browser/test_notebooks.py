"""The widget in a real JupyterLab and a real marimo; by hand: make test-notebook."""

import json
import os
import re
import secrets
import socket
import subprocess
import sys
import urllib.request
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("playwright.sync_api", reason="needs playwright: make test-notebook")
pytest.importorskip("jupyterlab", reason="needs JupyterLab: make test-notebook")
pytest.importorskip("marimo", reason="needs marimo: make test-notebook")
anywidget = pytest.importorskip("anywidget", reason="needs anywidget: make test-notebook")
from explorer_driver import ExplorerPage, until  # noqa: E402

pytestmark = pytest.mark.slow
LONG = 120  # seconds until a kernel has imported everything, on a machine that is busy

SETUP = """\
import numpy as np
import manifoldry
from sklearn.datasets import load_digits
X, y = load_digits(return_X_y=True)
X, y = X[:200], y[:200]
model = manifoldry.PCA(2).fit(X)
explorer = manifoldry.explore(model, X, y, image_shape=(8, 8), dark_ink=True, height=520)
"""


class NotebookPage(ExplorerPage):
    """An explorer that is a widget of a larger page."""

    def _on_socket(self, socket):
        pass  # messages are those of the notebook

    def js(self, expression, argument=None):
        return self.root.evaluate(
            "(root, argument) => { const { app, positions, place, frames } = root.manifoldry;"
            f" return ({expression}); }}",
            argument,
        )

    @property
    def root(self):
        return self.page.locator(".manifoldry[data-hosted='notebook']")

    def wait_until_drawn(self):
        self.page.locator(".manifoldry[data-hosted='notebook'][data-ready]").wait_for(
            timeout=1000 * LONG
        )

    def lasso_left(self):
        """Select what is in the left part of the map; returns these rows."""
        self.root.scroll_into_view_if_needed()
        self.choose_tool("Lasso")
        box = self.plot("PCA").bounding_box()
        places = self.pixels("PCA")
        middle = np.round(np.median(places[:, 0])) + 0.3
        x, y = [box["x"] + 4, middle], [box["y"] + 4, box["y"] + box["height"] - 4]
        self.drag([(x[0], y[0]), (x[1], y[0]), (x[1], y[1]), (x[0], y[1])])
        return self.selection()


def free_port():
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        return listening.getsockname()[1]


def answers(address):
    try:
        with urllib.request.urlopen(address, timeout=2):
            return True
    except OSError:
        return False


# What notebooks keep, apart from what this machine keeps of others.
KEPT = (
    "JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR", "IPYTHONDIR",
    "XDG_CONFIG_HOME", "XDG_STATE_HOME",
)  # fmt: skip


@pytest.fixture
def notebook_server(tmp_path):
    """Function that starts a notebook server and waits until it answers."""
    started = []

    def start(*command, address):
        log = (tmp_path / "server.log").open("w")
        home = {name: str(tmp_path / name) for name in KEPT}
        # The part of anywidget that JupyterLab loads, where that is of another environment.
        home["JUPYTER_PATH"] = str(Path(anywidget.__file__).parents[4] / "share" / "jupyter")
        process = subprocess.Popen(
            [sys.executable, "-m", *command], cwd=tmp_path, stdout=log, stderr=log,
            env=os.environ | home,
        )  # fmt: skip
        started.append(process)
        until(lambda: answers(address) or process.poll() is not None, "the server answers", LONG)
        assert process.poll() is None, (tmp_path / "server.log").read_text()

    yield start
    for process in started:
        process.terminate()
        process.wait(30)


@pytest.fixture
def page(browser):
    context = browser.new_context(viewport={"width": 1400, "height": 1000})
    page = NotebookPage(context)
    page.page.set_default_timeout(1000 * LONG)
    yield page
    context.close()


def code_cell(source):
    made = {"cell_type": "code", "source": source, "metadata": {}, "outputs": []}
    return made | {"execution_count": None, "id": secrets.token_hex(4)}


@pytest.fixture
def lab(notebook_server, page, tmp_path):
    """A notebook in JupyterLab whose first cell shows the explorer, and what runs code in it."""
    cells = [code_cell(SETUP + "explorer"), *[code_cell("") for _ in range(6)]]
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    content = {"cells": cells, "metadata": kernel, "nbformat": 4, "nbformat_minor": 5}
    (tmp_path / "maps.ipynb").write_text(json.dumps(content))
    port, token = free_port(), secrets.token_hex(16)
    notebook_server(
        "jupyterlab", "--no-browser", "--allow-root", f"--port={port}",
        "--ServerApp.port_retries=0", f"--ServerApp.root_dir={tmp_path}",
        f"--IdentityProvider.token={token}", "--LabApp.news_url=",
        address=f"http://127.0.0.1:{port}/api",
    )  # fmt: skip
    page.page.goto(f"http://127.0.0.1:{port}/lab/tree/maps.ipynb?token={token}")
    page.page.get_by_text("Python 3 (ipykernel) | Idle").wait_for()
    run = LabCells(page.page, page.page.locator(".jp-Notebook .jp-CodeCell"))
    run.first()
    page.wait_until_drawn()
    return page, run


class LabCells:
    """Runs code in the cells of a notebook, one after the other."""

    def __init__(self, page, cells):
        self.page, self.cells, self.used = page, cells, 0

    def first(self):
        self._focused(0).press("Shift+Enter")

    def _focused(self, number):
        editor = self.cells.nth(number).locator(".cm-content")
        editor.click()
        return editor

    def __call__(self, code):
        """What a cell prints."""
        self.used += 1
        cell, editor = self.cells.nth(self.used), self._focused(self.used)
        editor.fill(code)
        editor.press("Shift+Enter")
        output = cell.locator(".jp-OutputArea-output")
        until(
            lambda: re.search(r"\[\d+\]", cell.locator(".jp-InputPrompt").inner_text()),
            "the cell has run",
            LONG,
        )
        return output.first.inner_text() if output.count() else ""


def test_widget_in_jupyterlab(lab):
    page, run = lab
    assert page.js("[app.start.n, app.start.hosted]") == [200, "notebook"]
    assert list(page.maps()) == ["PCA"]
    # It draws: there are colored pixels where the rows are.
    page.toggle("Class names", on=False)
    x, y = np.floor(page.pixels("PCA")).astype(int).T
    assert (page.picture()[y, x] < 250).any(axis=1).mean() > 0.95
    page.shot("jupyterlab")

    # A lasso sets explorer.selection.
    rows = page.lasso_left()
    assert 50 < len(rows) < 150
    page.shot("jupyterlab-lasso")
    assert json.loads(run("print(explorer.selection.tolist())")) == rows

    # Python selects.
    run("explorer.select([3, 5, 150])")
    until(lambda: page.selection() == [3, 5, 150], "the selection of Python is shown", LONG)
    assert "3 rows of 200 selected" in page.panel("Selection").inner_text()

    # A label is in Python, too.
    panel = page.panel("Selection")
    panel.get_by_label("Column").fill("group")
    panel.get_by_label("Value").fill("a")
    panel.get_by_role("button", name="Label", exact=True).click()
    until(lambda: "3 rows labeled" in panel.inner_text(), "it is labeled")
    found = run("print([i for i, each in enumerate(explorer.labels['group']) if each == 'a'])")
    assert json.loads(found) == [3, 5, 150]

    # A map that is fitted in the background appears, and Python has its model.
    page.root.scroll_into_view_if_needed()
    form = page.panel("Maps and work").locator("form", has_text="Add a map")
    form.get_by_label("Method").select_option("isomap")
    form.get_by_role("button", name="Fit").click()
    until(lambda: page.plot("Isomap").count() == 1, "the map is there", LONG)
    page.shot("jupyterlab-two-maps")
    assert run("print(type(explorer.models['Isomap']).__name__)").strip() == "Isomap"

    # The reconstruction goes through the kernel.
    page.choose_tool("Probe")
    page.plot("PCA").click()
    reconstruction = page.panel("Reconstruction")
    reconstruction.get_by_role("img", name="image of 8 × 8 pixels").first.wait_for()

    # The keys of the notebook are not taken for those of a map, and the other way round.
    page.plot("PCA").focus()
    page.page.keyboard.press("d")
    page.page.keyboard.press("d")  # deletes a cell of the notebook
    assert page.js("app.tool.value") == "line"
    assert run("print('still', len(explorer.labels))").strip() == "still 1"


def test_two_views_of_one_widget_in_jupyterlab(lab):
    page, run = lab
    run("explorer")
    views = page.page.locator(".manifoldry[data-hosted='notebook'][data-ready]")
    until(lambda: views.count() == 2, "two views", LONG)
    run("explorer.select([7])")
    counts = "(roots) => roots.map((root) => [...root.manifoldry.app.selection.value])"
    until(lambda: views.evaluate_all(counts) == [[7], [7]], "both show it", LONG)


MARIMO = f"""\
import marimo

app = marimo.App()


@app.cell
def _():
{"".join(f"    {line}" + chr(10) for line in SETUP.splitlines())}    return (explorer,)


@app.cell
def _(explorer):
    import marimo as mo
    widget = mo.ui.anywidget(explorer.widget)
    widget
    return (mo, widget)


@app.cell
def _(explorer, mo, widget):
    widget.value
    mo.md("selected: " + str(explorer.selection.tolist()))
    return


if __name__ == "__main__":
    app.run()
"""


def run_stale_cells(page):
    """Run all cells by the key for it, which does nothing until the kernel is connected."""

    def shown_after_a_key():
        page.locator(".cm-content").first.click()
        page.keyboard.press("Control+Shift+KeyR")
        page.wait_for_timeout(2000)
        return page.get_by_text("selected: []").count() > 0

    until(shown_after_a_key, "the cells have run", LONG)


@pytest.fixture
def open_marimo(notebook_server, page, tmp_path):
    """Function that opens a marimo notebook."""

    def open_notebook(mode, text):
        (tmp_path / "maps.py").write_text(text)
        port, token = free_port(), secrets.token_hex(16)
        notebook_server(
            "marimo", "--yes", mode, "maps.py", "--headless", f"--port={port}",
            "--host=127.0.0.1", "--token", f"--token-password={token}",
            address=f"http://127.0.0.1:{port}/health",
        )  # fmt: skip
        page.page.goto(f"http://127.0.0.1:{port}/?access_token={token}")
        if mode == "edit":
            run_stale_cells(page.page)
        page.wait_until_drawn()

    return open_notebook


@pytest.mark.parametrize("mode", ["run", "edit"])
def test_widget_in_marimo(open_marimo, page, mode):
    open_marimo(mode, MARIMO)
    assert page.js("[app.start.n, app.start.hosted]") == [200, "notebook"]
    page.toggle("Class names", on=False)
    x, y = np.floor(page.pixels("PCA")).astype(int).T
    assert (page.picture()[y, x] < 250).any(axis=1).mean() > 0.95
    rows = page.lasso_left()
    assert 50 < len(rows) < 150
    page.shot(f"marimo-{mode}")
    # A cell that depends on the widget runs again, and has the selection.
    text = page.page.get_by_text(re.compile(r"selected: \["))
    until(lambda: str(rows) in text.first.inner_text(), "Python has it", LONG)


def test_explorer_shows_itself_in_marimo(open_marimo, page):
    text = MARIMO.replace("mo.ui.anywidget(explorer.widget)", "explorer")
    open_marimo("run", text.replace("widget.value\n", "widget\n"))
    assert list(page.maps()) == ["PCA"]
    assert len(page.lasso_left()) > 50
