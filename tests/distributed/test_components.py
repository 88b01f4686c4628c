"""Connected components of graphs in parts, against scipy."""

from itertools import pairwise

import dask
import numpy as np
import pytest
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from manifoldry.distributed.components import DistributedComponents
from manifoldry.distributed.exchange import DistributedMatrix


@pytest.mark.parametrize("seed", range(8))
def test_are_those_of_the_whole(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 80))
    density = min(1.0, rng.uniform(0, 3) / n)
    A = sparse.random_array((n, n), density=density, format="csr", random_state=rng)
    bounds = np.sort(np.concatenate([[0, n], rng.integers(0, n + 1, rng.integers(0, 6))]))
    blocks = [dask.delayed(A[a:b]) for a, b in pairwise(bounds)]
    found = DistributedComponents.of(DistributedMatrix.of(blocks, bounds))
    count, labels = connected_components(A, directed=False)
    sizes = np.sort(np.bincount(labels))[::-1]
    inside = np.concatenate(dask.compute(*found.inside))
    assert found.count == count
    assert found.sizes == sizes[:6].tolist()
    assert inside.sum() == sizes[0]
    assert len(np.unique(labels[inside])) == 1
