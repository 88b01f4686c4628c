"""What an action may come to: a result, or an error that was raised on purpose."""

import linecache
import traceback
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.linalg import LinAlgError

import manifoldry
from manifoldry.exceptions import ManifoldryWarning

OWN = str(Path(manifoldry.__file__).parent)
# scikit-learn's checks of input and parameters have clear messages of their own.
CHECKS = ("sklearn/utils/validation.py", "sklearn/utils/_param_validation.py")
CLEAR = (ValueError, TypeError, MemoryError)


@dataclass(frozen=True)
class Refusal:
    """The error with which an action was refused."""

    error: type[BaseException]
    message: str


def attempt(action) -> Any:
    """Return the result of an action, or the `Refusal` if it raised a clear error.

    Any other error is a fault, as is a warning that is not one of this package. Those of this
    package are recorded, not ignored, so that what they need is computed.
    """
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        outcome = _outcome(action)
    foreign = [str(w) for w in caught if not issubclass(w.category, ManifoldryWarning)]
    assert not foreign, foreign
    return outcome


def _outcome(action):
    try:
        return action()
    except CLEAR as error:
        if isinstance(error, LinAlgError) or not is_deliberate(error):
            raise
        return Refusal(type(error), str(error))
    except RuntimeError as error:
        # The eigensolver that was asked for cannot solve this problem.
        if "eigen_solver=" in str(error) and is_deliberate(error):
            return Refusal(type(error), str(error))
        raise


def is_deliberate(error):
    """Whether a ``raise`` in this package or in scikit-learn's checks raised an error."""
    last = traceback.extract_tb(error.__traceback__)[-1]
    ours = last.filename.startswith(OWN) or any(check in last.filename for check in CHECKS)
    line = linecache.getline(last.filename, last.lineno).strip()
    return ours and line.startswith("raise")


def fitted(model, X):
    """Return the fitted estimator or the `Refusal`."""
    return attempt(lambda: model.make().fit(model.input(X)))


def embedded(estimator):
    """Rows that are embedded; ``disconnected="largest"`` leaves points out, as it says."""
    Y = estimator.embedding_
    if getattr(estimator, "disconnected", None) == "largest":
        return np.isfinite(Y).all(axis=1)
    return np.ones(len(Y), dtype=bool)
