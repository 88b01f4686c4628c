"""The kernels for which devices have compiled sums."""

from manifoldry.device.primitives import KernelShape
from manifoldry.objectives.pair_kernel import Kernel, kernel_constants


def kernel_shape(kernel: Kernel) -> KernelShape | None:
    """The constants of a kernel for which devices have compiled sums, else None."""
    constants = kernel_constants(kernel)
    if constants is None or constants.rate is None:
        return None if constants is None else KernelShape()
    return KernelShape(constants.rate, 1.0 if constants.power is None else constants.power)
