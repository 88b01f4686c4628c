"""E4.8: conformal eigenmaps preserve angles better than the coordinates they are made of.

The notes combine eigenvectors of LLE, or of a graph Laplacian, linearly so that all triangles in
neighborhoods keep their angles (Sha & Saul 2005). Angles are compared with those on the surface,
computed from its true coordinates: for the half sphere those of its
stereographic projection, which is conformal; for all others arc lengths.
"""

import sys
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from matplotlib import pyplot as plt

from manifoldry import Isomap, LaplacianEigenmaps, NeighborGraph
from manifoldry.datasets import make_hemisphere, make_s_curve, make_swiss_roll
from manifoldry.metrics import procrustes
from manifoldry.plotting import plot_embedding
from manifoldry.semidefinite.conformal_eigenmaps import ConformalEigenmaps

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from report import Criterion, Lab

K = 10  # neighbors of all methods
SURFACES = {"half sphere": make_hemisphere, "S-curve": make_s_curve, "roll": make_swiss_roll}
BASES = {"LLE": "lle", "Laplacian eigenmaps": "laplacian"}
WIDER = LaplacianEigenmaps(n_neighbors=20, affinity="gaussian", normalization="none")


def conformal(lab: Lab) -> Iterator[Criterion]:
    n, seeds = lab.choose(1000, 300), lab.seeds(5)
    for surface, make in SURFACES.items():
        for basis, name in BASES.items():
            samples = [make(n, random_state=seed) for seed in seeds]
            found = np.array([angles_and_errors(*sample, name) for sample in samples])
            yield angle_row(surface, basis, found)
    samples = [make_hemisphere(n, random_state=seed) for seed in seeds]
    found = np.array([angles_and_errors(*sample, WIDER, n_basis=20) for sample in samples])
    yield angle_row("half sphere", "20 eigenvectors of D − W, 20 Gaussian neighbors", found)
    yield from hemisphere(lab)
    yield trace_row(lab)
    draw(lab)


def fit(X, basis, **parameters):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # warnings of the bases about nearby windings
        return ConformalEigenmaps(2, basis=basis, n_neighbors=K, **parameters).fit(X)


def angle_differences(A, B, k=6):
    """Mean difference in degrees of the angles at all points of A between its neighbors."""
    near = NeighborGraph.build(A, k).indices.reshape(-1, k)
    a, b = np.triu_indices(k, 1)

    def angles(points):
        steps = points[near] - points[:, None]
        steps = steps / np.linalg.norm(steps, axis=2, keepdims=True)
        return np.arccos(np.clip((steps[:, a] * steps[:, b]).sum(axis=2), -1, 1))

    return float(np.degrees(np.abs(angles(A) - angles(B)).mean()))


def angles_and_errors(X, truth, basis, **parameters):
    """Errors of the two basis coordinates, the published and the refined embedding."""
    published, refined = (fit(X, basis, refine=refine, **parameters) for refine in (False, True))
    maps = refined.basis_.embedding_[:, :2], published.embedding_, refined.embedding_
    return [angle_differences(truth, Y) for Y in maps]


def angle_row(surface, basis, found):
    before, published, refined = found.mean(axis=0)
    return Criterion(
        "E4.8",
        f"{surface}, {basis}: mean difference of angles, before and after (without refinement)",
        "preserves angles",
        "at least 30 % lower",
        f"{before:.1f}° → {refined:.1f}° ({published:.1f}°)",
        bool(refined <= 0.7 * before),
        seeds=len(found),
    )


def hemisphere(lab: Lab) -> Iterator[Criterion]:
    """Errors of embeddings of the half sphere relative to its stereographic projection."""
    n, seeds = lab.choose(310, 310), lab.seeds(5)
    samples = [make_hemisphere(n, random_state=seed) for seed in seeds]
    isomap = np.mean(
        [procrustes(Isomap(2, n_neighbors=K).fit_transform(X), T).error for X, T in samples]
    )
    for basis, name in BASES.items():
        found = np.mean([projection_errors(X, T, name) for X, T in samples], axis=0)
        yield Criterion(
            "E4.8",
            f"half sphere, {n} points, {basis}: error of the stereographic projection, before, "
            "with 6, 12 and 20 eigenvectors (Isomap)",
            "",
            "lower with 12 than before",
            " → ".join(f"{value:.3f}" for value in found) + f" ({isomap:.3f})",
            bool(found[2] < found[0]),
            seeds=len(seeds),
        )


def projection_errors(X, truth, basis):
    models = [fit(X, basis, n_basis=m) for m in (6, 12, 20)]
    maps = models[0].basis_.embedding_[:, :2], *(model.embedding_ for model in models)
    return [procrustes(Y, truth).error for Y in maps]


def trace_row(lab):
    models = [fit(make_hemisphere(310, random_state=s).X, "lle") for s in lab.seeds(5)]
    traces = [model.computed_eigenvalues_.sum() for model in models]
    worst = max(model.certificate_ for model in models)
    return Criterion(
        "E4.8",
        "half sphere: trace of P, and what the conditions of the optimum are off",
        "tr P = 1 avoids the trivial solution",
        "1 up to 1e-9, and ≤ 1e-6",
        f"1 up to {max(abs(trace - 1) for trace in traces):.0e}, {worst:.0e}",
        bool(np.allclose(traces, 1, rtol=0, atol=1e-9) and worst <= 1e-6),
        seeds=len(models),
        identity=True,
    )


def draw(lab: Lab) -> None:
    """Bases above, conformal maps below, colored by the first true coordinate."""
    figure, axes = plt.subplots(2, 6, figsize=(10.5, 3.6), layout="constrained")
    columns = iter(axes.T)
    for surface, make in SURFACES.items():
        X, truth = make(800, random_state=0)
        for basis, name in BASES.items():
            above, below = next(columns)
            model = fit(X, name)
            for ax, Y in ((above, model.basis_.embedding_[:, :2]), (below, model.embedding_)):
                plot_embedding(Y[::3], truth[::3, 0], ax=ax, legend=False, size=4)
            above.set_aspect("auto")
            above.set_title(f"{surface}, {basis}", fontsize=7)
            below.set_title("conformal", fontsize=8)
    lab.save(figure, "angles")
