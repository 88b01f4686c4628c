"""The explorer in the Chromium of the system, with software WebGL, and its real server.

One browser and one server for each data set serve all tests of a worker.
"""

import shutil
import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent))
from explorer_driver import FLAGS, ExplorerPage, Server

N = 200


@pytest.fixture(scope="session")
def browser():
    sync_api = pytest.importorskip(
        "playwright.sync_api", reason="needs playwright: make test-browser"
    )
    names = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
    program = next((path for name in names if (path := shutil.which(name))), None)
    if program is None:
        pytest.skip(f"needs a browser: none of {', '.join(names)} is on this machine")
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=list(FLAGS))
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def start_server():
    """Function that starts the explorer; all are ended with the tests."""
    started = []

    def start(folder, *arguments, **options):
        started.append(Server(folder, *arguments, **options))
        return started[-1]

    yield start
    for each in started:
        each.stop()


@pytest.fixture
def open_page(browser):
    """Function that opens a page with storage and cookies of its own."""
    contexts, pages = [], []

    def open_link(link=None, **options):
        contexts.append(
            browser.new_context(**({"viewport": {"width": 1280, "height": 720}} | options))
        )
        pages.append(ExplorerPage(contexts[-1], link))
        return pages[-1]

    yield open_link
    for context in contexts:
        context.close()
    for page in pages:
        page.check_errors()


@pytest.fixture(scope="session")
def digits(tmp_path_factory):
    """200 handwritten digits in a file, and three models of them."""
    from sklearn.datasets import load_digits

    from manifoldry import PCA, ElasticEmbedding, Isomap
    from manifoldry.io import save

    X, y = load_digits(return_X_y=True)
    X, y = X[:N], np.array([f"digit {each}" for each in y[:N]])
    folder = tmp_path_factory.mktemp("digits")
    models = {
        "PCA": PCA(2).fit(X),
        "Isomap": Isomap(2, n_neighbors=12).fit(X),
        "Elastic embedding": ElasticEmbedding(2, optimizer="homotopy", random_state=0).fit(X),
    }
    for name, model in models.items():
        save(model, folder / f"{name}.model")
    ids = [f"scan-{i + 1:03d}" for i in range(N)]
    return Exploration(
        folder, "digits.csv", X, [f"p{j}" for j in range(64)], y, ids, models
    ).written()


@pytest.fixture(scope="session")
def flowers(tmp_path_factory):
    """The irises as a table of records, a model, and a turned and mirrored map from elsewhere."""
    from sklearn.datasets import load_iris

    from manifoldry import PCA
    from manifoldry.io import save

    data = load_iris()
    folder = tmp_path_factory.mktemp("flowers")
    pca = PCA(2).fit(data.data)
    save(pca, folder / "PCA.model")
    turn = 7.0 * np.array([[np.cos(2.0), np.sin(2.0)], [np.sin(2.0), -np.cos(2.0)]])
    np.save(folder / "elsewhere.npy", pca.embedding_ @ turn + [100.0, -50.0])
    names = [name.replace(" (cm)", "") for name in data.feature_names]
    ids = [f"iris-{i + 1}" for i in range(150)]
    species = data.target_names[data.target]
    return Exploration(
        folder, "flowers.csv", data.data, names, species, ids, {"PCA": pca}
    ).written()


class Exploration:
    """What is explored, and with which models."""

    def __init__(self, folder, file, X, names, labels, ids, models):
        self.folder, self.file, self.X, self.names = folder, file, X, names
        self.labels, self.ids, self.models = labels, ids, models
        self.server = None

    def written(self):
        import pandas as pd

        frame = pd.DataFrame(self.X, columns=self.names)
        frame.insert(0, "kind", self.labels)
        frame.insert(0, "name", self.ids)
        frame.to_csv(self.folder / self.file, index=False)
        return self

    @property
    def labels_file(self):
        return self.folder / "labels.csv"

    def started(self, start_server, *options):
        models = [f"{name}.model" for name in self.models]
        self.server = start_server(self.folder, self.file, *models, "-o", "labels.csv", *options)
        self.server.cancel_all()  # of evidence, for which tests ask when they want it
        return self


@pytest.fixture(scope="session")
def digits_explored(digits, start_server):
    return digits.started(start_server, "--image-shape", "8x8", "--dark-ink")


@pytest.fixture(scope="session")
def flowers_explored(flowers, start_server):
    return flowers.started(start_server, "--map", "elsewhere.npy")


@pytest.fixture(scope="session")
def shared_page(browser):
    """Function that gives the page of an exploration, which tests share, as if just opened."""
    pages = {}

    def page_of(explored):
        link = explored.server.link
        if link not in pages:
            context = browser.new_context(viewport={"width": 1280, "height": 720})
            pages[link] = ExplorerPage(context, link)
        pages[link].reset()
        return pages[link]

    yield page_of
    for page in pages.values():
        page.page.context.close()


@pytest.fixture
def digits_page(digits_explored, shared_page):
    page = shared_page(digits_explored)
    yield page
    page.check_errors()


@pytest.fixture
def flowers_page(flowers_explored, shared_page):
    page = shared_page(flowers_explored)
    yield page
    page.check_errors()
