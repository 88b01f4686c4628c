"""Sparse, wrong and unusual input of estimators on a device: the same as on the CPU."""

import warnings

import numpy as np
import pytest
from scipy import sparse

import manifoldry as mf
from manifoldry import metrics
from manifoldry.device import using_device
from manifoldry.exceptions import ManifoldryWarning

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")

WITH_NAN = "NaN in a row"
WRONG = {
    WITH_NAN: lambda A: np.where(np.arange(len(A))[:, None] == 3, np.nan, A),
    "infinity": lambda A: np.where(np.arange(len(A))[:, None] == 3, np.inf, A),
    "one row": lambda A: A[:1],
    "no rows": lambda A: A[:0],
    "no features": lambda A: A[:, :0],
    "one feature less": lambda A: A[:, :-1],
    "a vector": lambda A: A[:, 0],
    "three dimensions": lambda A: A[None],
    "complex": lambda A: A.astype(complex),
    "integers": lambda A: (10 * A).astype(int),
    "booleans": lambda A: A.mean() < A,
}


def outcome(work):
    """The error of a function, in words; "none" if there is none."""
    try:
        work()
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return "none"


def there(device, array):
    return device.array(array, keep=False)


@pytest.mark.representatives
class TestErrors:
    """An error names the same problem, and the same remedy, wherever the array is."""

    @pytest.mark.parametrize("name", WRONG)
    def test_of_fit(self, method, emulated, X, name):
        wrong = WRONG[name](method.input(X))
        expected = outcome(lambda: method.make().fit(wrong))
        assert outcome(lambda: method.make(device=emulated).fit(wrong)) == expected
        assert outcome(lambda: method.make().fit(there(emulated, wrong))) == expected

    def test_of_new_points_and_coordinates(self, method, emulated, fitted, X, X_new):
        model = fitted(method)
        methods = [(model.transform, method.between(X_new, X))]
        if model.inverse_ is not None:
            methods.append((model.inverse_transform, model.embedding_))
        for call, right in methods:
            for make in WRONG.values():
                wrong = make(right)
                expected = outcome(lambda call=call, wrong=wrong: call(wrong))
                found = outcome(lambda call=call, wrong=wrong: call(there(emulated, wrong)))
                assert found == expected


@pytest.mark.parametrize(
    "measure",
    [metrics.trustworthiness, metrics.continuity, metrics.stress, mf.assess, metrics.procrustes],
    ids=lambda f: f.__name__,
)
def test_errors_of_metrics(measure, emulated, X):
    cases = [(make(X), X[:, :2]) for make in WRONG.values()]
    cases += [(X[:-1], X[:, :2]), (X, WRONG[WITH_NAN](X[:, :2])), (X[:0], X[:0, :2])]
    for data, embedding in cases:
        expected = outcome(lambda data=data, Y=embedding: measure(data, Y))
        placed = there(emulated, data), there(emulated, embedding)
        assert outcome(lambda placed=placed: measure(*placed)) == expected


@pytest.mark.parametrize(
    "build",
    [
        lambda X: mf.NeighborGraph.build(X, 5),
        lambda X: mf.NeighborGraph.build(X, radius=2.0),
        mf.estimate_dimension,
    ],
    ids=["neighbors", "radius", "dimension"],
)
def test_errors_of_functions(build, emulated, X):
    for make in WRONG.values():
        wrong = make(X)
        expected = outcome(lambda wrong=wrong: build(wrong))
        assert outcome(lambda wrong=wrong: build(there(emulated, wrong))) == expected


@pytest.mark.representatives
def test_arrays_that_are_not_contiguous(method, emulated, fitted, X, X_new):
    A, new = method.input(X), method.between(X_new, X)
    transposed = there(emulated, np.ascontiguousarray(A.T)).T
    strided = there(emulated, np.repeat(A, 2, axis=0))[::2]
    assert not transposed.flags.c_contiguous
    assert not strided.flags.c_contiguous
    models = [method.make().fit(given) for given in (there(emulated, A), transposed, strided)]
    for model in models[1:]:
        np.testing.assert_array_equal(model.embedding_, models[0].embedding_)
    found = models[0].transform(there(emulated, np.ascontiguousarray(new.T)).T)
    expected = models[0].transform(there(emulated, new))
    np.testing.assert_array_equal(emulated.host(found), emulated.host(expected))


@pytest.mark.once_per_class
def test_sparse_data(data_method, emulated, X, X_new, same_up_to_sign, assert_searched_alike):
    """They are embedded rightly; what runs on the CPU is said, or they are refused as there."""
    given, new = sparse.csr_array(X), sparse.csr_array(X_new)
    expected = outcome(lambda: data_method.make().fit(given))
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        assert outcome(lambda: data_method.make(device=emulated).fit(given)) == expected
    if expected != "none":
        return
    reference, model = data_method.make().fit(given), data_method.make(device=emulated).fit(given)
    said = [str(each.message) for each in seen if "runs on the CPU" in str(each.message)]
    assert len(said) == len(set(said))
    if getattr(model, "neighbor_search_", None) is not None and not data_method.unfolds:
        assert any("sparse" in each for each in said)
    if data_method.iterative and not data_method.unfolds:
        assert_searched_alike(model, reference, never_up=not isinstance(model, mf.TSNE))
        return
    same_up_to_sign(model.embedding_, reference.embedding_, 1e-5)
    same_up_to_sign(model.transform(new), reference.transform(new), 1e-4)


def test_sparse_data_of_functions(emulated, X):
    given, Y = sparse.csr_array(X), X[:, :2]
    graph = mf.NeighborGraph.build(given, 5)
    score = metrics.trustworthiness(given, Y)
    with using_device(emulated):
        with pytest.warns(ManifoldryWarning, match=r"neighbor search runs on the CPU.*toarray"):
            found = mf.NeighborGraph.build(given, 5)
        with pytest.warns(ManifoldryWarning, match=r"comparison of all pairs runs on the CPU"):
            assert metrics.trustworthiness(given, Y) == score
    np.testing.assert_array_equal(found.indices, graph.indices)
