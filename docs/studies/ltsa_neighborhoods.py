"""LTSA and Hessian LLE with and without the point itself in its neighborhood.

The error after the best rigid motion relative to the spread of the sheet, mean of three samples of
a Swiss roll, for several numbers of neighbors k and levels of noise (in units of the median
distance of nearest neighbors). "k + itself" has one point more than "k", "k − 1 + itself" the same
number.

    python docs/studies/ltsa_neighborhoods.py
"""

import warnings

import numpy as np

from manifoldry import LTSA, HessianLLE, NeighborGraph
from manifoldry.datasets import make_swiss_roll
from manifoldry.exceptions import ManifoldryWarning
from manifoldry.metrics import procrustes
from manifoldry.spectral.hessian_lle import HessianAlignment
from manifoldry.spectral.ltsa import PlaneAlignment

N = 2000
SEEDS = range(3)
NEIGHBORS = (8, 12)
NOISES = (0.0, 0.1, 0.25, 0.5)


class PlanesWithItself(PlaneAlignment):
    """Tangent planes of neighborhoods that contain the point."""

    includes_itself = True


class HessiansWithoutItself(HessianAlignment):
    """Hessians of neighborhoods that do not contain the point."""

    includes_itself = False


class LTSAWithItself(LTSA):
    """LTSA whose neighborhoods contain the point."""

    def _alignment(self, graph):
        return PlanesWithItself(graph, self.n_components_)


class HessianLLEWithoutItself(HessianLLE):
    """Hessian LLE whose neighborhoods do not contain the point."""

    def _alignment(self, graph):
        return HessiansWithoutItself(graph, self.n_components_)


VARIANTS = {
    "LTSA, k": (LTSA, 0),
    "LTSA, k + itself": (LTSAWithItself, 0),
    "LTSA, k − 1 + itself": (LTSAWithItself, -1),
    "Hessian LLE, k + itself": (HessianLLE, 0),
    "Hessian LLE, k": (HessianLLEWithoutItself, 0),
}


def noisy_roll(noise, seed):
    """A roll with noise in units of the distance of nearest neighbors, and its coordinates."""
    X, coordinates = make_swiss_roll(N, random_state=seed)
    spacing = np.median(NeighborGraph.build(X, 1).distances)
    return X + noise * spacing * np.random.default_rng(seed).standard_normal(X.shape), coordinates


def error(kind, k, noise, seed):
    """The error of one fit."""
    X, coordinates = noisy_roll(noise, seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ManifoldryWarning)
        Y = kind(2, n_neighbors=k).fit_transform(X)
    return procrustes(Y, coordinates, "rigid").error


def main():
    """Print the table."""
    print("| | " + " | ".join(f"k = {k}" for k in NEIGHBORS) + " |")
    print("|---|" + "---|" * len(NEIGHBORS))
    for name, (kind, more) in VARIANTS.items():
        cells = [
            "/".join(
                f"{np.mean([error(kind, k + more, noise, seed) for seed in SEEDS]):.3f}"
                for noise in NOISES
            )
            for k in NEIGHBORS
        ]
        print(f"| {name} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
