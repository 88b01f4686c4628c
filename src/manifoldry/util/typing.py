"""Type aliases shared by the whole package."""

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[np.floating[Any]]
IntArray: TypeAlias = NDArray[np.integer[Any]]
# A dense array or a scipy sparse matrix; scipy ships no types.
Matrix: TypeAlias = Any
RandomState: TypeAlias = int | np.random.RandomState | np.random.Generator | None
