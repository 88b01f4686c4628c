"""Detection of short circuits: ``python docs/studies/short_circuits.py [former.py]``.

Swiss rolls whose true coordinates show which edges connect layers, rolls with outliers in a gap,
and graphs without short circuits. The detection is compared with the longest edges, and with the
edges of largest betweenness, as many as there are true short circuits (a number that is unknown in
practice); and with an earlier version, if its file is given. Seeds start at 100: the thresholds
were chosen on others.
"""

import importlib.util
import sys
import warnings

import numpy as np
from scipy.spatial.distance import cdist
from sklearn.datasets import load_digits

from manifoldry import Isomap, NeighborGraph
from manifoldry.datasets import (
    load_coil20,
    load_frey_faces,
    load_isomap_faces,
    make_hemisphere,
    make_ring,
    make_s_curve,
    make_strip,
    make_swiss_roll,
)
from manifoldry.datasets.sheets import spiral_angle, spiral_length
from manifoldry.metrics import procrustes
from manifoldry.neighbors import ShortCircuits
from manifoldry.neighbors.edge_list import EdgeList
from manifoldry.neighbors.geodesics import Geodesics
from manifoldry.neighbors.paths import PathTrees
from manifoldry.neighbors.pruning import without_edges

SEEDS = range(100, 110)
ALARM = 0.1  # fraction of changed distances above which Isomap warns
NONE = np.empty((0, 2), dtype=int)


# ── ground truth ─────────────────────────────────────────────────────────────────────────────


def crosses(ends, X, sheet):
    """Whether edges connect points of a roll that are much farther apart on the sheet."""
    along = np.linalg.norm(sheet[ends[:, 0]] - sheet[ends[:, 1]], axis=1)
    across = np.linalg.norm(X[ends[:, 0]] - X[ends[:, 1]], axis=1)
    return (along > 3 * across) & (along > 12)  # two layers are 2π apart


def wrong_distances(graph, sheet):
    """Fraction of graph distances that are shorter than four fifths of the true ones."""
    targets = np.arange(0, len(sheet), max(1, len(sheet) // 50))
    truth = cdist(sheet, sheet[targets])
    short = Geodesics.of(graph, targets).distances < 0.8 * truth
    return short[truth > 20].mean()


def map_error(graph, sheet, n):
    """Error of Isomap relative to the true coordinates of the first n points."""
    model = Isomap(2, n_landmarks=min(100, n)).fit(graph)
    return procrustes(model.embedding_[:n], sheet[:n]).error


def stray_roll(n, count, chain, seed):
    """A roll and outliers in one of its gaps, next to each other or in a row across."""
    X, sheet = make_swiss_roll(n, random_state=seed)
    rng = np.random.default_rng(seed)
    inner = 1.5 * np.pi
    angle = spiral_angle(sheet[:, 0] + spiral_length(inner))
    inside = (angle > inner + 2 * np.pi) & (sheet[:, 1] > 4) & (sheet[:, 1] < 17)
    at = rng.choice(np.flatnonzero(inside))
    place = np.arange(1, count + 1)
    depth = 2 * np.pi * (place / (count + 1) if chain else np.full(count, 0.5))
    height = sheet[at, 1] + (0 * place if chain else place - 1.0)
    radius = angle[at] - depth
    stray = np.column_stack([radius * np.cos(angle[at]), height, radius * np.sin(angle[at])])
    stray += rng.normal(scale=0.1, size=stray.shape)
    nearest = sheet[cdist(stray, X).argmin(axis=1)]
    return np.vstack([X, stray]), np.vstack([sheet, nearest])


# ── methods ──────────────────────────────────────────────────────────────────────────────────


def ours(graph, true):
    """Edges, and whether Isomap would warn."""
    found = ShortCircuits.of(graph)
    return found.edges, found.changed > ALARM


def longest(graph, true):
    """The longest edges, as many as there are short circuits."""
    edges = EdgeList.of(graph)
    return edges.ends[np.argsort(-edges.lengths)[: true.sum()]], False


def most_used(graph, true):
    """The edges on most shortest paths, as many as there are short circuits."""
    edges = EdgeList.of(graph)
    everything = np.ones(len(edges.ends), dtype=bool)
    sources = np.arange(0, edges.n, max(1, edges.n // 50))
    load = PathTrees.of(edges.matrix(everything), sources).edge_loads(edges.ends)
    return edges.ends[np.argsort(-load)[: true.sum()]], False


def former_check(path):
    """The detection in another file, with its two kinds of warnings."""
    spec = importlib.util.spec_from_file_location("former", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)

    def method(graph, true):
        found = module.ShortCircuits.of(graph)
        return found.edges, found.changed > ALARM or found.sound_neighbors is not None

    return method


METHODS = {"this check": ours, "longest edges": longest, "most_used edges": most_used}


# ── tables ───────────────────────────────────────────────────────────────────────────────────


def measure(X, sheet, k, n, method):
    """Metrics of one method on one graph; all edges of outliers (indices from n on) count."""
    graph = NeighborGraph.build(X, k)
    ends = EdgeList.of(graph).ends
    stray = (ends >= n).any(axis=1)
    true = crosses(ends, X, sheet) | stray
    edges, alarm = method(graph, true)
    right = crosses(edges, X, sheet) | (edges >= n).any(axis=1) if len(edges) else np.zeros(0)
    pruned = without_edges(graph, np.sort(edges, axis=1)) if len(edges) else graph
    return {
        "true": true.sum(),
        "alarm": alarm,
        "precision": right.mean() if len(edges) else np.nan,
        "recall": right.sum() / max(1, true.sum()),
        "wrong before": wrong_distances(graph, sheet),
        "wrong after": wrong_distances(pruned, sheet),
        "error before": map_error(graph, sheet, n),
        "error after": map_error(pruned, sheet, n),
    }


def line(name, metrics, recall=True):
    """One row of the table: means over the graphs that have short circuits."""
    bad = [f for f in metrics if f["wrong before"] > 0.02]
    good = [f for f in metrics if f["wrong before"] <= 0.02]

    def mean(key):
        values = [f[key] for f in bad if np.isfinite(f[key])]
        return f"{np.mean(values):.2f}" if values else "–"

    healed = np.mean([f["wrong after"] < 0.02 for f in bad]) if bad else np.nan
    print(
        f"| {name} | {len(bad)} | {mean('alarm')} | {mean('precision')} | "
        f"{mean('recall') if recall else '–'} | {healed:.2f} | "
        f"{mean('wrong before')} → {mean('wrong after')} | "
        f"{mean('error before')} → {mean('error after')} | "
        f"{sum(f['alarm'] for f in good)} of {len(good)} |",
        flush=True,
    )


def rolls():
    """Rolls with short circuits due to noise or too many neighbors, and rolls without."""
    settings = {
        "n = 400": [(400, noise, k) for noise in (0, 0.5) for k in (7, 10, 15)],
        "n = 800": [(800, noise, k) for noise in (0, 0.5) for k in (8, 15, 30)],
        "n = 2000": [(2000, noise, k) for noise in (0, 0.5) for k in (10, 20, 40)],
        "n = 2000, noise 0.8": [(2000, 0.8, k) for k in (8, 12)],
        "n = 2000, noise 1": [(2000, 1.0, k) for k in (8, 12)],
    }
    for name, cases in settings.items():
        for label, method in METHODS.items():
            metrics = []
            for n, noise, k in cases:
                for seed in SEEDS:
                    X, sheet = make_swiss_roll(n, noise=noise, random_state=seed)
                    metrics.append(measure(X, sheet, k, n, method))
            line(f"{name} | {label}", metrics)


def strays():
    """Rolls with one, two or three points in a gap."""
    for count, chain in [(1, False), (2, False), (3, False), (2, True), (3, True)]:
        for label, method in METHODS.items():
            metrics = []
            for n, k in [(800, 8), (800, 10), (2000, 10)]:
                for seed in SEEDS:
                    X, sheet = stray_roll(n, count, chain, seed)
                    metrics.append(measure(X, sheet, k, n, method))
            kind = "in a row across" if chain else "side by side"
            line(f"{count} stray, {kind} | {label}", metrics, recall=False)


def sound_data(seed):
    """Data without short circuits, by name, with numbers of neighbors."""
    rng = np.random.default_rng(seed)
    ball, plane = rng.normal(size=(800, 3)), rng.uniform(-1, 1, size=(1000, 2))
    outer, inner = rng.uniform(0, 2 * np.pi, (2, 1500))
    tube = 3 + np.cos(inner)
    yield "S-curve", make_s_curve(500, random_state=seed).X, (6, 10, 20)
    yield "S-curve, noise", make_s_curve(500, noise=0.1, random_state=seed).X, (6, 10, 20)
    yield "roll with a hole", make_swiss_roll(800, hole=True, random_state=seed).X, (6, 8)
    yield "strip", make_strip(500, random_state=seed).X, (5, 10, 20)
    yield "hemisphere", make_hemisphere(500, random_state=seed).X, (6, 10, 20)
    yield "sphere", ball / np.linalg.norm(ball, axis=1, keepdims=True), (6, 10, 20)
    torus = np.column_stack([tube * np.cos(outer), tube * np.sin(outer), np.sin(inner)])
    yield "torus", torus, (6, 10, 20)
    yield "ring", make_ring(500, random_state=seed).X, (5, 10, 40)
    yield "plane with a hole", plane[np.linalg.norm(plane, axis=1) > 0.4], (6, 10, 20)
    circle = np.column_stack([np.cos(outer), np.sin(outer)])[:200]
    yield "circle", circle, (6, 10)
    yield "circle, noise", circle + rng.normal(scale=0.05, size=circle.shape), (6, 10)
    yield "density falling off", rng.exponential(size=(800, 2)), (6, 10, 20)
    yield "heavy tails", rng.standard_t(2, size=(800, 2)), (6, 10, 20)
    yield "cloud in 50 dimensions", rng.normal(size=(500, 50)), (6, 10, 40)
    blobs = rng.normal(size=(300, 2)) + np.repeat([[0, 0], [9, 0]], 150, axis=0)
    bridge = np.column_stack([np.linspace(2, 7, 6), np.zeros(6)])
    yield "two blobs and a bridge", np.vstack([blobs, bridge]), (6, 10)


def sound(former):
    """False positives on graphs without short circuits."""
    counts = {}
    for seed in SEEDS:
        for name, X, neighbors in sound_data(seed):
            for k in neighbors:
                graph = NeighborGraph.build(X, k)
                row = counts.setdefault(name, [0, 0, 0])
                row[0] += 1
                row[1] += ours(graph, None)[1]
                row[2] += former(graph, None)[1] if former else 0
    for name, (graphs, alarms, earlier) in counts.items():
        print(f"| {name} | {graphs} | {alarms} | {earlier if former else '–'} |", flush=True)


def real(former):
    """Warnings on digits and faces, and whether edges found on COIL-20 connect distant views."""
    data = {
        "digits": (load_digits().data, (5, 10, 20, 40)),
        "Isomap faces": (load_isomap_faces().X, (5, 6, 7, 8, 10, 15)),
        "Frey faces": (load_frey_faces().X, (5, 10, 20)),
    }
    for name, (X, neighbors) in data.items():
        graphs = [NeighborGraph.build(X, k) for k in neighbors]
        earlier = sum(former(graph, None)[1] for graph in graphs) if former else "–"
        print(f"| {name} | {len(graphs)} | {sum(ours(g, None)[1] for g in graphs)} | {earlier} |")
    coil = load_coil20()
    images, apart, alarms, earlier = coil.X.reshape(len(coil.X), -1), [], 0, 0
    for number in range(1, 21):
        for k in (3, 5, 8):
            graph = NeighborGraph.build(images[coil.y == number], k)
            edges, alarm = ours(graph, None)
            alarms += alarm
            earlier += former(graph, None)[1] if former else 0
            steps = np.abs(np.diff(edges, axis=1)).ravel() if alarm else np.zeros(0)
            apart += list(5 * np.minimum(steps, 72 - steps))
    print(f"| COIL-20, 20 rings | 60 | {alarms} | {earlier if former else '–'} |")
    far = np.mean(np.array(apart) > 45)
    print(f"\n{far:.0%} of the {len(apart)} edges found on COIL-20 join views more than 45° apart.")


def main():
    """Print the tables."""
    former = former_check(sys.argv[1]) if len(sys.argv) > 1 else None
    if former:
        METHODS["former check"] = former
    print("| rolls | edges taken | shorted | noticed | precision | recall | healed |", end="")
    print(" wrong distances | map error | false alarms |\n|" + "---|" * 10)
    rolls()
    strays()
    print("\n| sound data | graphs | alarms | former check |\n|---|---|---|---|")
    sound(former)
    real(former)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main()
