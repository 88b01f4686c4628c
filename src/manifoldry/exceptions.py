"""Warnings and errors of manifoldry; every one says what was seen and what to do about it."""


class ManifoldryWarning(UserWarning):
    """Parent of all warnings of this package, so that one filter catches them."""


class CalibrationWarning(ManifoldryWarning):
    """There are too few data to tell how large errors may be."""


class ConvergenceWarning(ManifoldryWarning):
    """A solver returned something less accurate than was asked for."""


class DegenerateSpectrumWarning(ManifoldryWarning):
    """A repeated eigenvalue is cut in two: the coordinates are one choice among many."""


class DisconnectedGraphWarning(ManifoldryWarning):
    """The neighbor graph falls into several components."""


class ExtensionWarning(ManifoldryWarning):
    """New points were placed with less accuracy than the method normally has."""


class RankWarning(ManifoldryWarning):
    """The data have fewer directions than coordinates were asked for."""


class ShortCircuitWarning(ManifoldryWarning):
    """A few edges of the neighbor graph carry many shortest paths across a gap."""


class UniformAffinityWarning(ManifoldryWarning):
    """All pairs of points weigh nearly the same, so that weights say little about the data."""


class DisconnectedGraphError(ValueError):
    """The neighbor graph falls into several components and the policy is to refuse that."""
