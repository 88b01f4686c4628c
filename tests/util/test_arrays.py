"""Arrays of numpy and of another namespace."""

import array_api_strict
import numpy as np
import pytest

from manifoldry.device import vectors
from manifoldry.util import arrays

NAMESPACES = pytest.mark.parametrize("xp", [np, array_api_strict], ids=["numpy", "strict"])


class Device:
    """An array like those of older versions of CuPy: no namespace, converted by `get`."""

    __cuda_array_interface__ = None

    def __init__(self, X):
        self.X = X

    def get(self):
        return self.X


@NAMESPACES
def test_reductions_are_python_floats(xp):
    A = xp.asarray([[3.0, -4.0], [0.0, 0.0]])
    for value in (vectors.inner(A, A), vectors.norm(A), arrays.largest(A)):
        assert type(value) is float
    assert vectors.norm(A) == 5.0
    assert vectors.norm(vectors.centered(A)) == pytest.approx(np.sqrt(12.5))
    assert arrays.precision(A) == np.finfo(float).eps


@NAMESPACES
def test_precision_changes_only_if_necessary(xp):
    single = xp.asarray([[1.0], [2.0]], dtype=xp.float32)
    assert arrays.double(single).dtype == xp.float64
    assert arrays.cast(single, xp.float32) is single or xp is array_api_strict
    assert arrays.is_floating(single)
    assert not arrays.is_floating(xp.asarray([1, 2]))
    halved = arrays.on_host(lambda G: G / 2, single)
    assert halved.dtype == xp.float32
    assert type(halved) is type(single)


@NAMESPACES
def test_copies_are_copies(xp):
    A = xp.asarray([[1.0, 2.0]])
    B = arrays.copied(A)
    assert arrays.equal(A, B)
    B[0, 0] = 5.0
    assert not arrays.equal(A, B)
    assert not arrays.equal(A, A[:, :1])
    assert arrays.hstack_columns(A, B).shape == (1, 4)


def test_numpy_arrays_are_not_copied():
    A = np.ones((2, 2))
    assert not arrays.read_only(A).flags.writeable
    assert A.flags.writeable
    assert arrays.like(A, A) is A
    assert arrays.to_numpy(A) is A


def test_lists_become_numpy_arrays_and_device_arrays_are_unchanged():
    there = Device(np.ones(2))
    assert arrays.as_array(there) is there
    assert isinstance(arrays.as_array([[1.0]]), np.ndarray)
    np.testing.assert_array_equal(arrays.to_numpy(there), np.ones(2))
    assert arrays.namespace(there).__name__ == Device.__module__.partition(".")[0]
