"""Every estimator can be written to a model file and is the same after loading."""

import numpy as np
import pytest

import manifoldry as mf


@pytest.fixture
def saved(tmp_path):
    """A model after saving and loading."""

    def again(model):
        return mf.load(mf.save(model, tmp_path / "fitted.model"))

    return again


def test_new_points_have_the_same_bits(method, fitted, saved, X, X_new):
    model = fitted(method)
    same, new = saved(model), method.between(X_new, X)
    assert np.array_equal(same.embedding_, model.embedding_)
    placed = model.transform(new)
    assert np.array_equal(same.transform(new), placed)
    if method.takes == "data":
        assert np.array_equal(same.inverse_transform(placed), model.inverse_transform(placed))


def test_all_attributes_come_back(method, fitted, saved):
    model = fitted(method)
    for name in dir(type(model)):  # some properties keep what they compute
        if isinstance(getattr(type(model), name), property):
            getattr(model, name, None)
    same = saved(model)
    assert vars(same).keys() == vars(model).keys()
    assert repr(same) == repr(model)
    for name, value in vars(model).items():
        loaded = getattr(same, name)
        assert type(loaded) is type(value), name
        if isinstance(value, np.ndarray):
            assert loaded.dtype == value.dtype
            same_bits = loaded.tobytes() == value.tobytes()
            assert np.array_equal(loaded, value) if value.dtype == object else same_bits, name
        elif isinstance(value, (int, float, str)):
            assert loaded == value or value != value, name
