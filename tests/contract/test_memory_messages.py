"""The remedies of memory errors name parameters that the estimator has."""

import pickle
import re
import sys

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from manifoldry import (
    UKR,
    ClassicalMDS,
    ElasticEmbedding,
    Isomap,
    KernelPCA,
    LaplacianEigenmaps,
    SpectralEmbedding,
)
from manifoldry.eigen import Dense, SpectralProblem
from manifoldry.exceptions import LargeMatrixWarning
from manifoldry.extension.preimage import KernelRidge
from manifoldry.metrics import coranking_matrix
from manifoldry.objectives import elastic
from manifoldry.spectral import gram
from manifoldry.util import validation
from manifoldry.util.memory import NotEnoughMemoryError, memory_remedy

pytestmark = pytest.mark.filterwarnings("ignore:.* max_iter=25 steps")


@pytest.fixture
def planned(monkeypatch):
    """What is planned, with the error that each plan would give if it were too large."""
    errors = []

    def record(n_bytes, what, remedy):
        errors.append(NotEnoughMemoryError(what, remedy))

    for name, module in list(sys.modules.items()):
        if name.startswith("manifoldry.") and hasattr(module, "plan_memory"):
            monkeypatch.setattr(module, "plan_memory", record)
    return errors


def parameters_in(message):
    """Names followed by a value, and names of two or more words, except within values."""
    message = re.sub(r"'[^']*'|\([^)]*\)", "", message)
    return set(re.findall(r"\b[a-z]+_[a-z_]+\b|\b\w+(?==)|\bperplexity\b", message))


def fails_at(monkeypatch, position, fit):
    """The error of a fit whose plan number `position` does not fit into memory; None if none."""
    count = 0

    def available():
        nonlocal count
        count += 1
        return 0 if count == position + 1 else None

    monkeypatch.setattr(validation, "SMALL_PLAN", 0)
    monkeypatch.setattr(validation, "available_memory", available)
    try:
        fit()
    except MemoryError as error:
        return error
    return None


@pytest.mark.once_per_class
def test_remedies_name_parameters_of_the_estimator(method, X, planned, monkeypatch):
    method.make().fit(method.input(X))
    different = {str(error): position for position, error in reversed(list(enumerate(planned)))}
    monkeypatch.undo()
    for position in different.values():
        model = method.make()
        error = fails_at(monkeypatch, position, lambda model=model: model.fit(method.input(X)))
        assert isinstance(error, NotEnoughMemoryError), planned[position]
        own = {name.split("__")[-1] for name in model.get_params()}
        assert parameters_in(error.remedy) <= own, str(error)


def test_ukr_does_not_name_parameters_of_its_starts(X, monkeypatch):
    def refuse(shape, bytes_per_entry, what, remedy):
        raise NotEnoughMemoryError(what, remedy)

    monkeypatch.setattr(gram, "plan_matrix", refuse)
    expected = r"^the eigenproblem of all pairs of \d+ points; pass init='pca'$"
    with pytest.raises(MemoryError, match=expected):
        UKR().fit(X)


def test_the_error_survives_another_process():
    """joblib pickles the errors of its workers."""
    with pytest.raises(MemoryError) as caught, memory_remedy("use less"):
        raise NotEnoughMemoryError("a matrix needs 3 GiB", "pass n_landmarks")
    again = pickle.loads(pickle.dumps(caught.value))
    assert str(again) == "a matrix needs 3 GiB; use less"


ANNOUNCED = {
    "KernelPCA": (lambda X: KernelPCA().fit(X), "fit a sample"),
    "ClassicalMDS": (lambda X: ClassicalMDS(metric="cityblock").fit(X), "fit a sample"),
    "Isomap": (lambda X: Isomap().fit(X), "n_landmarks"),
    "Isomap, dense": (lambda X: Isomap(eigen_solver="dense").fit(X), "n_landmarks"),
    "Laplacian, dense": (
        lambda X: LaplacianEigenmaps(eigen_solver=Dense(planned_above=10)).fit(X),
        "eigen_solver='auto'",
    ),
    "SpectralEmbedding": (lambda X: SpectralEmbedding(affinity="rbf").fit(X), "affinity="),
    "nearly full graph": (lambda X: LaplacianEigenmaps(n_neighbors=40).fit(X), "fewer neighbors"),
    "repulsion by distances": (
        lambda X: ElasticEmbedding(repulsion="squared_distance").fit(X),
        "repulsion='uniform'",
    ),
    "given repulsion": (
        lambda X: elastic(cdist(X, X) / cdist(X, X).sum(), repulsion=cdist(X, X), weight=1.0),
        "sparse matrix",
    ),
    "kernel ridge": (
        lambda X: KernelRidge(X[:, :2], X, None).predict(X[:1, :2]),
        "inverse='regression'",
    ),
    "dense eigenproblem": (
        lambda X: Dense(planned_above=10).solve(
            SpectralProblem(X @ X.T, "largest"), 2, np.random.default_rng(0)
        ),
        "eigen_solver='auto'",
    ),
    "ranks": (lambda X: coranking_matrix(X, X[:, :2], n_neighbors=40), "n_neighbors"),
}


@pytest.mark.parametrize("what", ANNOUNCED)
@pytest.mark.filterwarnings("error::manifoldry.exceptions.LargeMatrixWarning")
def test_matrices_of_many_pairs_are_announced(what, X, monkeypatch):
    """With their size and the alternative, before they are computed; no method switches."""
    compute, alternative = ANNOUNCED[what]
    X = X[:60]
    compute(X)
    monkeypatch.setattr(validation, "ANNOUNCED_ABOVE", 10)
    with pytest.raises(LargeMatrixWarning, match=r"needs about .* GiB of memory") as caught:
        compute(X)
    assert alternative in str(caught.value)
