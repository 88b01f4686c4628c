"""The remedies of memory errors name parameters that the estimator has."""

import pickle
import re
import sys

import pytest

from manifoldry import UKR
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
    """Names followed by a value, and names of two or more words."""
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
    def refuse(n_bytes, what, remedy):
        raise NotEnoughMemoryError(what, remedy)

    monkeypatch.setattr(gram, "plan_memory", refuse)
    with pytest.raises(MemoryError, match=r"^the Gram matrix of \d+ points; pass init='pca'$"):
        UKR().fit(X)


def test_the_error_survives_another_process():
    """joblib pickles the errors of its workers."""
    with pytest.raises(MemoryError) as caught, memory_remedy("use less"):
        raise NotEnoughMemoryError("a matrix needs 3 GiB", "pass n_landmarks")
    again = pickle.loads(pickle.dumps(caught.value))
    assert str(again) == "a matrix needs 3 GiB; use less"
