"""The shift of the spectral direction: ``python docs/studies/spectral_direction.py``.

Elastic embeddings of a line, a roll, three clusters, two rolls that are not connected, and a roll
with ten isolated points, from a small random start, with three weights λ of repulsion. The table
has the value after 10 and after 100 steps of backtracking descent, for the fixed point (Jacobi) and
for the spectral direction with shifts from 1e-10 to 1e-2 of the mean degree. It takes minutes.
"""

import numpy as np
from scipy import sparse
from scipy.spatial.distance import cdist

from manifoldry.affinity import SelfTuning
from manifoldry.datasets import make_swiss_roll
from manifoldry.neighbors import NeighborGraph
from manifoldry.objectives.base import Objective
from manifoldry.optimize.filter import Jacobi
from manifoldry.optimize.spectral_direction import SpectralDirection

SHIFTS = (1e-10, 1e-8, 1e-6, 1e-4, 1e-2)
STRENGTHS = (10.0, 1e3, 1e5)


class Elastic(Objective):
    """Σ Wᵢⱼ‖yᵢ − yⱼ‖² + λ Σ exp(−‖yᵢ − yⱼ‖²)/n(n − 1), ΣW = 1."""

    def __init__(self, W, strength):
        self.W, self.strength = W, strength / (len(W) * (len(W) - 1))

    @property
    def n(self):
        """Number of points."""
        return len(self.W)

    @property
    def attraction(self):
        """The weights W."""
        return sparse.csr_array(self.W)

    def diagonal_curvature(self, Y):
        """Not needed here."""
        raise NotImplementedError

    def value_and_gradient(self, Y):
        """E(Y) and its gradient."""
        D = cdist(Y, Y, "sqeuclidean")
        K = self.strength * (np.exp(-D) - np.eye(self.n))
        T = self.W - K
        return (self.W * D).sum() + K.sum(), 4 * (T.sum(axis=1)[:, None] * Y - T @ Y)


def graphs(rng):
    """Names and dense weights."""
    t = np.sort(rng.uniform(0, 40, 300))
    line = np.column_stack([np.cos(t), np.sin(t), t])
    clusters = np.vstack([rng.normal(size=(100, 5)) + c for c in (0, 6, 14)])
    rolls = [make_swiss_roll(n, random_state=n).X for n in (300, 149, 150, 290)]
    apart = np.vstack([rolls[1], rolls[2] + [1000, 0, 0]])
    for name, X in {"line": line, "roll": rolls[0], "clusters": clusters, "two": apart}.items():
        yield name, weights(X)
    W = np.zeros((300, 300))
    W[:290, :290] = weights(rolls[3])
    yield "alone", W


def weights(X):
    """Weights of the graph of 20 neighbors, of sum one."""
    graph = NeighborGraph.build(X, 20)
    W = SelfTuning().fit(graph).matrix(graph).toarray()
    return W / W.sum()


def descend(objective, chosen, Y):
    """Values after 10 and 100 steps; a step starts at twice the last length, at most one."""
    bound, length, values = chosen.operator_for(objective), 1.0, []
    E, G = objective.value_and_gradient(Y)
    for _ in range(100):
        P, length = bound.apply(G, Y), min(1.0, 2 * length)
        slope = (P * G).sum()
        while objective.value(Y - length * P) > E - 0.1 * length * slope and length > 1e-15:
            length /= 2
        Y = Y - length * P
        E, G = objective.value_and_gradient(Y)
        values.append(E)
    return values[9], values[99]


def main():
    """Print the table."""
    names = ["Jacobi", *(f"{shift:.0e}" for shift in SHIFTS)]
    print(f"| graph | λ | {' | '.join(names)} |")
    print("|---" * (len(names) + 2) + "|")
    rng = np.random.default_rng(0)
    for name, W in graphs(rng):
        Y = 0.01 * rng.normal(size=(len(W), 2))
        for strength in STRENGTHS:
            chosen = [Jacobi(), *(SpectralDirection(shift=shift) for shift in SHIFTS)]
            runs = (descend(Elastic(W, strength), one, Y) for one in chosen)
            cells = " | ".join(f"{early:.4g}, {late:.4g}" for early, late in runs)
            print(f"| {name} | {strength:g} | {cells} |", flush=True)


if __name__ == "__main__":
    main()
