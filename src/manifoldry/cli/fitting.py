"""Fitting an estimator so that Ctrl-C keeps the best map so far."""

from __future__ import annotations

import time
from typing import Any, NamedTuple

from manifoldry.cli.console import Console
from manifoldry.optimize import Callback


class FittedMap(NamedTuple):
    """A fitted estimator, the seconds that it took, and whether Ctrl-C ended it."""

    model: Any
    seconds: float
    interrupted: bool


def fit_estimator(estimator: Any, X: Any, console: Console) -> FittedMap:
    """Fit an estimator with progress on the screen."""
    params = estimator.get_params(deep=False)
    watched = {"verbose": console.is_interactive, "callback": Callback(on_interrupt="keep")}
    watched = {name: value for name, value in watched.items() if name in params}
    estimator.set_params(**watched)
    start = time.perf_counter()
    what = f"fitting {type(estimator).__name__} to {X.shape[0]} rows of {X.shape[1]} features"
    if "verbose" in watched:  # it has a progress bar of its own
        estimator.fit(X)
    else:
        with console.working(what):
            estimator.fit(X)
    estimator.set_params(**{name: params[name] for name in watched})
    interrupted = getattr(estimator, "status_", "") == "interrupted"
    return FittedMap(estimator, time.perf_counter() - start, interrupted)
