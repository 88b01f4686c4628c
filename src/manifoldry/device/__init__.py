"""Processors with memory of their own, such as a GPU: what runs on them, and what is where.

Only the methods of :class:`Device` know the hardware. Everything above them is written for arrays
of any namespace, and runs on a GPU when the arrays are there.
"""

from manifoldry.device.base import (
    Device,
    MissingDeviceError,
    current_device,
    device_of,
    on_current_device,
    resolve_device,
    say_on_cpu,
    using_device,
)

__all__ = [
    "Device",
    "MissingDeviceError",
    "current_device",
    "device_of",
    "on_current_device",
    "resolve_device",
    "say_on_cpu",
    "using_device",
]
