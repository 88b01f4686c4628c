"""Sums over all pairs of points on a map: the one place where repulsion costs n²."""

from typing import NamedTuple

import numpy as np

from manifoldry._typing import Array
from manifoldry._validation import row_blocks


class PairSums(NamedTuple):
    """Of every target: sums over the sources other than itself."""

    mass: Array
    """Σₘ aₘ κ(d²), (n_targets,), in double precision."""
    force: Array
    """Σₘ aₘ κ′(d²)·(yₙ − yₘ), (n_targets, d); κ′ = κ, for Student's kernel κ·(1 + d²/α)⁻¹."""


def gaussian_sums(
    targets: Array, sources: Array | None = None, charges: Array | None = None
) -> PairSums:
    """Sums with κ = exp(−d²); without `sources` the targets act on each other, not on themselves.

    Parameters
    ----------
    targets, sources : arrays of shape (n_targets, d) and (n_sources, d)
    charges : array of shape (n_sources,), default=None
        The aₘ; one by default.
    """
    return _reference(targets, sources, charges, None)


def student_sums(
    targets: Array,
    sources: Array | None = None,
    charges: Array | None = None,
    dof: float = 1.0,
) -> PairSums:
    """Sums with κ = (1 + d²/α)^{−(α+1)/2}, α being the degrees of freedom `dof`."""
    return _reference(targets, sources, charges, dof)


def weighted_gaussian_sums(Y: Array, W: Array) -> PairSums:
    """Sums with Wₙₘ·exp(−d²), W a dense symmetric matrix whose diagonal does not count."""
    mass, force = np.empty(len(Y)), np.empty_like(Y)
    for block in row_blocks(len(Y), 4 * len(Y)):
        D = ((Y[block, None] - Y) ** 2).sum(axis=2)
        K = np.exp(-D) * W[block]
        K[np.arange(len(K)), np.arange(len(Y))[block]] = 0
        mass[block] = K.sum(axis=1)
        force[block] = K.sum(axis=1)[:, None] * Y[block] - K @ Y
    return PairSums(mass, force)


def _reference(
    targets: Array, sources: Array | None, charges: Array | None, dof: float | None
) -> PairSums:
    """The sums by blocks of rows, in numpy."""
    others = targets if sources is None else sources
    mass, force = np.empty(len(targets)), np.empty_like(targets)
    for block in row_blocks(len(targets), 4 * len(others)):
        D = ((targets[block, None] - others) ** 2).sum(axis=2)
        pull = np.ones_like(D) if dof is None else 1 / (1 + D / dof)
        K = np.exp(-D) if dof is None else pull ** ((dof + 1) / 2)
        if charges is not None:
            K *= charges
        if sources is None:
            K[np.arange(len(K)), np.arange(len(targets))[block]] = 0
        mass[block] = K.sum(axis=1)
        K *= pull
        force[block] = K.sum(axis=1)[:, None] * targets[block] - K @ others
    return PairSums(mass, force)
