"""Settings for tests of devices."""

import numpy as np
import pytest

from manifoldry.device import using_device


@pytest.fixture
def in_use(device):
    """The device, inside its context."""
    with using_device(device):
        yield device


@pytest.fixture(autouse=True)
def same_numbers_in_any_order(request, monkeypatch):
    """The random numbers of a test do not depend on which tests ran before it."""
    if hasattr(request.module, "RNG"):
        monkeypatch.setattr(request.module, "RNG", np.random.default_rng(0))
