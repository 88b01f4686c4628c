"""Any data: ``fit`` gives finite coordinates, reproducibly, or a clear error."""

import copy
import pickle
from collections import Counter

import numpy as np
from hypothesis import assume, event, given
from hypothesis import strategies as st
from sklearn.base import clone

from .formats import SPARSE, dense_formats
from .models import DOUBTFUL, WRONG, invalid_models, models
from .outcomes import Refusal, attempt, embedded, fitted
from .samples import samples


def takes_data(method):
    return method.takes == "data"


def check_embedding(estimator, X):
    Y = estimator.embedding_
    assert Y.dtype == X.dtype
    assert Y.shape == (len(X), estimator.n_components_)
    assert Y.shape[1] >= 1
    assert np.isfinite(Y[embedded(estimator)]).all()
    assert embedded(estimator).any()


def test_finite_coordinates_or_a_clear_error():
    """And most are no errors, or else little would be tested here."""
    counts = Counter()

    @given(models(), samples())
    def check(model, sample):
        estimator = fitted(model, sample.points)
        counts[type(estimator) is Refusal] += 1
        if not isinstance(estimator, Refusal):
            check_embedding(estimator, sample.points)

    check()
    assert counts[False] > 2 * counts[True]


@given(invalid_models(WRONG), samples(least=5))
def test_wrong_parameters_are_refused(model, sample):
    assert isinstance(fitted(model, sample.points), Refusal)


@given(invalid_models(DOUBTFUL), samples(least=5))
def test_doubtful_parameters_are_refused_clearly_or_valid(model, sample):
    estimator = fitted(model, sample.points)
    event("refused" if isinstance(estimator, Refusal) else "fitted")
    if not isinstance(estimator, Refusal):
        check_embedding(estimator, sample.points)


def same_outcome(first, second):
    """Both refused in the same words, or the same bits."""
    if isinstance(first, Refusal) or isinstance(second, Refusal):
        assert first == second
        return
    np.testing.assert_array_equal(first.embedding_, second.embedding_)


@given(models(takes_data), samples(), st.data())
def test_the_format_changes_no_bit(model, sample, data):
    X = sample.points
    formats = dense_formats(X)
    name = data.draw(st.sampled_from(sorted(formats)), label="format")
    other = attempt(lambda: model.make().fit(formats[name](X)))
    same_outcome(attempt(lambda: model.make().fit(X)), other)


@given(models(takes_data), samples(), st.sampled_from(sorted(SPARSE)))
def test_the_sparse_format_changes_no_bit(model, sample, name):
    X = sample.points
    plain = attempt(lambda: model.make().fit(SPARSE["csr_matrix"](X)))
    same_outcome(plain, attempt(lambda: model.make().fit(SPARSE[name](X))))
    if not isinstance(plain, Refusal):
        check_embedding(plain, X)


@given(models(lambda method: method.takes != "data"), samples())
def test_the_layout_of_matrices_changes_no_bit(model, sample):
    M = model.input(sample.points)
    other = attempt(lambda: model.make().fit(np.asfortranarray(M)))
    same_outcome(attempt(lambda: model.make().fit(M)), other)


@given(models(), samples(least=2))
def test_same_seed_same_bits_and_the_input_is_kept(model, sample):
    given_ = model.input(sample.points)
    before = given_.copy()
    first = attempt(lambda: model.make(random_state=1).fit(given_))
    np.testing.assert_array_equal(given_, before)
    assume(not isinstance(first, Refusal))
    again = attempt(lambda: clone(first).fit_transform(given_))
    np.testing.assert_array_equal(again, first.embedding_)
    second = attempt(lambda: copy.deepcopy(first).fit(given_))
    np.testing.assert_array_equal(second.embedding_, first.embedding_)


@given(models(), samples(least=8), samples())
def test_a_failed_refit_keeps_the_former_model(model, sample, other):
    estimator = fitted(model, sample.points)
    assume(not isinstance(estimator, Refusal))
    state = dict(vars(estimator))
    refit = attempt(lambda: estimator.fit(model.input(other.points)))
    if isinstance(refit, Refusal):
        assert vars(estimator).keys() == state.keys()
        assert all(value is state[name] for name, value in vars(estimator).items())
    else:
        check_embedding(estimator, other.points)


@given(models(), samples(least=4))
def test_saved_models_are_equal(model, sample):
    estimator = fitted(model, sample.points)
    assume(not isinstance(estimator, Refusal))
    again = pickle.loads(pickle.dumps(estimator))
    new = model.between(sample.points[:3] * 1.01, sample.points)
    places = [attempt(lambda e=e: e.transform(new)) for e in (estimator, again)]
    np.testing.assert_equal(*places)
