"""The threads and the device that the parameters of an estimator name."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from manifoldry.device import using_device
from manifoldry.util.threads import threads_allowed


@contextmanager
def resources(estimator: Any) -> Iterator[None]:
    """Compute with the threads and on the device of an estimator's parameters in this context."""
    device = getattr(estimator, "device", None)
    with threads_allowed(getattr(estimator, "n_jobs", None)), using_device(device):
        yield
