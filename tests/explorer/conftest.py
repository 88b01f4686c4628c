"""Sessions as the server has them, and requests to them."""

import time

import numpy as np
import pytest
from sklearn.datasets import load_digits, load_iris

import manifoldry
from manifoldry.explorer.actions import answer
from manifoldry.explorer.data import ExploredData
from manifoldry.explorer.session import Session
from manifoldry.io import Table

NAMES = ("sepal_length", "sepal_width", "petal_length", "petal_width")


@pytest.fixture(scope="session")
def flowers():
    """150 flowers with names, and their species."""
    bunch = load_iris()
    species = bunch.target_names[bunch.target]
    ids = np.array([f"flower{i}" for i in range(150)])
    return Table(bunch.data, NAMES, ids, {"species": species})


@pytest.fixture(scope="session")
def digits():
    """180 pictures of 8 × 8 pixels."""
    X, digit = load_digits(return_X_y=True)
    return Table(X[:180], labels={"digit": digit[:180]})


@pytest.fixture(scope="session")
def pca(flowers):
    """Its inverse and its placement of new rows are known in closed form."""
    return manifoldry.PCA(2).fit(flowers.X)


@pytest.fixture
def make_session():
    """Function that makes a session of a table or an array; all are closed in the end."""
    made = []

    def make(table, prepared=None, **options):
        table = table if isinstance(table, Table) else Table(np.asarray(table))
        data = ExploredData(table, table.X if prepared is None else prepared)
        made.append(Session(data, "test", [], **options))
        return made[-1]

    yield make
    for session in made:
        session.close()


@pytest.fixture
def session(make_session, flowers, pca):
    """Flowers on a map of PCA; no work in the background."""
    made = make_session(flowers)
    made.add_map("PCA", pca.embedding_, pca, method="pca")
    return made


@pytest.fixture
def ask():
    """Function that sends a request and returns the reply; an error of it fails the test."""

    def send(session, action, **args):
        reply = answer(session, {"id": 1, "ask": action, "with": args}, "page")
        assert "error" not in reply, reply["error"]
        return reply["reply"]

    return send


@pytest.fixture
def refused():
    """Function that sends a request and returns the text of the error that it has to get."""

    def send(session, action, **args):
        reply = answer(session, {"id": 1, "ask": action, "with": args}, "page")
        assert set(reply) == {"id", "error"}, f"{action} was not refused"
        return reply["error"]

    return send


@pytest.fixture
def until():
    """Function that waits until something holds, and fails after a minute."""

    def wait(condition, seconds=60):
        end = time.monotonic() + seconds
        while not (found := condition()):
            assert time.monotonic() < end, "waited in vain"
            time.sleep(0.01)
        return found

    return wait
