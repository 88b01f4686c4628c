"""What manifold Parzen windows try, and on how many points they measure it."""

from dataclasses import dataclass


@dataclass(frozen=True)
class ParzenOptions:
    """Rarer choices of :class:`ManifoldParzen`.

    Parameters
    ----------
    dimensions, neighbors : tuple of int
        Numbers of axes and of neighbors that are tried unless given.
    left_out : int
        Points that are left out, at most, to measure the likelihood.
    windows : int
        Windows around each of those that are looked at, at most.
    least_noise : float
        The smallest noise that is tried, in units of a typical distance between neighbors.
    noise_steps : int
        Values of the noise that are tried before the best is refined.
    noise_tolerance : float
        Of the logarithm of the noise, when it is refined.
    sum_all : int
        Windows up to which the density is the sum of all of them.
    first_nearest : int
        Of more windows, the first number of nearest ones to try; it is doubled until it does.
    lost : float
        What those may miss of the log density, on average over draws.
    draws : int
        Points on which that is measured.
    """

    dimensions: tuple[int, ...] = (1, 2, 3, 5, 8, 12)
    neighbors: tuple[int, ...] = (5, 10, 20, 40)
    left_out: int = 300
    windows: int = 2000
    least_noise: float = 1e-3
    noise_steps: int = 12
    noise_tolerance: float = 0.02
    sum_all: int = 2000
    first_nearest: int = 100
    lost: float = 1e-3
    draws: int = 100


DEFAULT_OPTIONS = ParzenOptions()
