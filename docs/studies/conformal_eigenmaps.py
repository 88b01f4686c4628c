"""Accuracy of conformal eigenmaps: ``python docs/studies/conformal_eigenmaps.py``.

For every surface, basis and number m of eigenvectors, the table has means over samples of the mean
difference, in degrees, of angles between neighbors in the embedding and on the surface, and of the
Procrustes error after a similarity. Both are for the first two coordinates of the basis, for the
first two principal axes of the optimum of the convex problem, as published, and for the embedding
refined in two coordinates, the default. The last column is the fraction of the variance of that
optimum in two coordinates. Angles and positions on a surface are those of its true coordinates:
for the half sphere its stereographic projection, which preserves angles, for the others arc
lengths.
"""

import sys
import warnings

import numpy as np

from manifoldry import NeighborGraph
from manifoldry.datasets import make_hemisphere, make_s_curve, make_strip, make_swiss_roll
from manifoldry.metrics import procrustes
from manifoldry.semidefinite.conformal_eigenmaps import ConformalEigenmaps

SAMPLES, N, K = 5, 800, 10
SURFACES = {
    "half sphere": make_hemisphere,
    "S": make_s_curve,
    "strip 3.5 : 1": lambda n, random_state: make_strip(n, aspect=3.5, random_state=random_state),
    "roll": make_swiss_roll,
    "roll 4 : 1": lambda n, random_state: make_swiss_roll(n, aspect=4, random_state=random_state),
    "roll with a hole": lambda n, random_state: make_swiss_roll(
        n, hole=True, random_state=random_state
    ),
    "noisy roll": lambda n, random_state: make_swiss_roll(n, noise=0.4, random_state=random_state),
}


def angle_differences(A, B, k=6):
    """Mean difference in degrees of the angles at all points of `A` between its neighbors."""
    near = NeighborGraph.build(A, k).indices.reshape(-1, k)
    a, b = np.triu_indices(k, 1)

    def angles(points):
        steps = points[near] - points[:, None]
        steps /= np.linalg.norm(steps, axis=2, keepdims=True)
        return np.arccos(np.clip((steps[:, a] * steps[:, b]).sum(axis=2), -1, 1))

    return float(np.degrees(np.abs(angles(A) - angles(B)).mean()))


def evaluated(surface, basis, n_basis, seed):
    """The columns of the table for one sample."""
    X, truth = surface(N, random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        published, refined = (
            ConformalEigenmaps(2, basis=basis, n_basis=n_basis, n_neighbors=K, refine=refine).fit(X)
            for refine in (False, True)
        )
    maps = refined.basis_.embedding_[:, :2], published.embedding_, refined.embedding_
    angles = [angle_differences(truth, Y) for Y in maps]
    errors = [procrustes(Y, truth).error for Y in maps]
    return *angles, *errors, refined.eigenvalues_.sum()


def main(sizes):
    """Print the table."""
    maps = "basis | published | refined |"
    print(f"| surface | basis | m | angles: {maps} embedding: {maps} fraction |")
    print("|---" * 10 + "|")
    for name, surface in SURFACES.items():
        for basis in ("lle", "laplacian"):
            for m in sizes:
                found = [evaluated(surface, basis, m, seed) for seed in range(SAMPLES)]
                cells = " | ".join(f"{value:.3g}" for value in np.mean(found, axis=0))
                print(f"| {name} | {basis} | {m} | {cells} |", flush=True)


if __name__ == "__main__":
    main([int(size) for size in sys.argv[1:]] or [5, 10, 15, 20])
