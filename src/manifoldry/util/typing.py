"""Type aliases shared by the whole package."""

from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    Array: TypeAlias = NDArray[np.floating[Any]]
    IntArray: TypeAlias = NDArray[np.integer[Any]]
else:  # `help` shows signatures, in which the parameters of NDArray take several lines
    Array = IntArray = np.ndarray
# A dense array or a scipy sparse matrix; scipy ships no types.
Matrix: TypeAlias = Any
RandomState: TypeAlias = int | np.random.RandomState | np.random.Generator | None
