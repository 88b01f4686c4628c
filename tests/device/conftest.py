"""The devices that tests run on: a GPU where there is one, and one that numpy emulates."""

import os

import numpy as np
import pytest

from manifoldry.device import resolve_device, using_device
from manifoldry.device.emulated import EmulatedDevice


def cuda():
    """The first GPU; the test is skipped if there is none, unless one is required."""
    try:
        return resolve_device("cuda")
    except RuntimeError as error:
        if os.environ.get("MANIFOLDRY_NEED_GPU"):
            raise
        pytest.skip(f"no GPU: {error}")


@pytest.fixture(params=["emulated", "cuda"])
def device(request):
    return EmulatedDevice() if request.param == "emulated" else cuda()


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
