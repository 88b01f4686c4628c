"""Maximum variance unfolding as a problem: edges, how far they may give, what is spread."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import sparse

from manifoldry._typing import Array, IntArray
from manifoldry.objectives.unfolding import Unfolding
from manifoldry.semidefinite.edge_lengths import EdgeLengths


@dataclass(frozen=True, eq=False)
class UnfoldingProblem:
    """Maximise Σ mᵢ‖rᵢ − r̄‖² over maps R of any dimension that keep the lengths of edges.

    As a problem in K = RRᵀ it is a semidefinite program: all its maxima are equally good, and
    multipliers prove how good (see :class:`~manifoldry.semidefinite.variance_bound.VarianceBound`).

    Parameters
    ----------
    edges : EdgeLengths
        The edges; they must connect all points of a piece.
    mass : array of shape (n,)
        Weight of every point.
    piece : array of shape (n,)
        Piece of every point; each is spread about its own mean.
    band : (float, float)
        Changes of squared lengths, as shares of them, within which edges are free.
    slack : float
        Change beyond the band that an edge of mean tension is granted; 0 holds all edges.
    """

    edges: EdgeLengths
    mass: Array
    piece: IntArray
    band: tuple[float, float]
    slack: float = 0.0

    def round(self, tension: Array, stiffness: float, share: float) -> Unfolding:
        """What a round of the method of multipliers minimises."""
        return Unfolding(self, tension, stiffness, share)

    @property
    def n_pieces(self) -> int:
        """Number of pieces."""
        return int(self.piece.max()) + 1

    @cached_property
    def constants(self) -> Array:
        """One column per piece, 1 on its points, (n, n_pieces)."""
        return np.eye(self.n_pieces)[self.piece]

    @cached_property
    def _averaging(self) -> sparse.csr_array:
        """From a map to the weighted means of its pieces."""
        share = self.mass / np.bincount(self.piece, self.mass)[self.piece]
        entries = (share, (self.piece, np.arange(len(self.piece))))
        return sparse.csr_array(entries, shape=(self.n_pieces, len(self.piece)))

    def centred(self, R: Array) -> Array:
        """The map with every piece about its own mean."""
        means = np.asarray(self._averaging @ R)
        return R - (means if self.n_pieces == 1 else means[self.piece])

    def variance(self, centred: Array) -> float:
        """Sum over all points of mass times squared distance from the mean."""
        return float(self.mass @ np.einsum("nd,nd->n", centred, centred))

    def support(self, tension: Array) -> Array:
        """What tensions make of the band and the slack in the dual: h(u) + slack·u²/2."""
        low, high = self.band
        pulled = np.where(tension > 0, high, 0.0) + np.where(tension < 0, low, 0.0)
        return tension * pulled + self.slack / 2 * tension**2

    def excess(self, changes: Array, tension: Array) -> Array:
        """How far changes are beyond what band, slack and tension grant them."""
        low, high = self.band
        return np.abs(changes - np.clip(changes, low, high) - self.slack * tension)

    def price(self, changes: Array) -> float:
        """What edges pay that give way beyond the band, in units of the share of variance."""
        if self.slack == 0:
            return 0.0
        return float((self.excess(changes, np.zeros_like(changes)) ** 2).sum() / (2 * self.slack))
