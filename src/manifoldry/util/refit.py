"""Replacing the fitted attributes of an estimator."""

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def replacing_fit(estimator: Any, private: Collection[str] = ()) -> Iterator[None]:
    """Remove the attributes of an earlier fit inside this context; restore all if it raises.

    Fitted attributes end with an underscore or are named in `private`.
    """
    former = dict(vars(estimator))
    for name in former:
        if name.endswith("_") or name in private:
            delattr(estimator, name)
    try:
        yield
    except BaseException:
        vars(estimator).clear()
        vars(estimator).update(former)
        raise
