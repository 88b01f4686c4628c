import numpy as np
import pytest
from scipy import sparse

from manifoldry.util.sparse_products import product
from manifoldry.util.threads import threads_allowed


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("density", [0.02, 0.25])
def test_products_are_those_of_scipy_with_any_number_of_threads(dtype, density):
    rng = np.random.default_rng(0)
    entries = rng.random((1200, 1000), dtype=dtype) * (rng.random((1200, 1000)) < density)
    entries[::400] = 0  # three rows without entries
    A = sparse.csr_array(entries.astype(dtype))
    X = rng.standard_normal((1000, 2)).astype(dtype)
    results = []
    for n_threads in (1, 2):
        with threads_allowed(n_threads):
            results.append(product(A, X))
    assert results[0].dtype == dtype
    np.testing.assert_allclose(results[0], A @ X, rtol=0, atol=100 * np.finfo(dtype).eps)
    np.testing.assert_array_equal(*results)


def test_an_array_of_other_length_is_refused():
    A = sparse.csr_array(np.ones((500, 500)))
    with pytest.raises(ValueError, match="X has 499 rows, but the matrix has 500 columns"):
        product(A, np.ones((499, 2)))
