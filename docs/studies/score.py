"""Model selection by the held-out score: ``python docs/studies/score.py [--quick]``.

On data with known coordinates every candidate is scored by three-fold cross-validation, then
fitted to all points and compared with the true coordinates. Prints the tables of docs/choosing.md:
the number of coordinates that the score selects, the error of the selected method and setting
relative to the best, and the worst selections. About nine minutes on one core. Constructed
failures are in score_failures.py.
"""

import argparse
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from scipy.stats import spearmanr
from sklearn.model_selection import KFold

from manifoldry import LLE, LTSA, DiffusionMaps, Isomap, KernelPCA, LaplacianEigenmaps, NonRedundant
from manifoldry.datasets import (
    make_helix,
    make_hemisphere,
    make_ring,
    make_s_curve,
    make_strip,
    make_swiss_roll,
)
from manifoldry.metrics import coranking, procrustes, reconstruction, trustworthiness

NEIGHBORS = (5, 8, 16, 40)
WIDTHS = (16, 4, 1, 0.25)  # of kernel PCA: gamma in units of its default, narrowest kernel first
USUAL = 1  # the setting at which numbers of coordinates are compared
DIMENSIONS = (1, 2, 3, 4)


def ring(n, random_state):
    """Half a tube around a ring, whose angle needs two coordinates."""
    X, angles = make_ring(n, tube=0.4, band=np.pi, random_state=random_state)
    outer, inner = angles.T
    return X, np.column_stack([np.cos(outer), np.sin(outer), 0.4 * inner])


def box(n, random_state):
    """A box of 4 × 2 × 1 whose length is bent, in four dimensions."""
    X, sheet = make_strip(n, aspect=2.0, width=2.0, curl=np.pi, random_state=random_state)
    height = np.random.default_rng(random_state + 1000).uniform(size=(n, 1))
    return np.hstack([X, height]), np.hstack([sheet, height])


def with_options(make, **options):
    """The generator with some options set."""
    return lambda n, random_state: make(n, random_state=random_state, **options)


# Generators of the data, and the number of coordinates that they need.
SETS: dict[str, tuple[Callable, int]] = {
    "roll of aspect 4": (with_options(make_swiss_roll, aspect=4), 2),
    "roll of aspect 8": (with_options(make_swiss_roll, aspect=8), 2),
    "noisy roll of aspect 4": (with_options(make_swiss_roll, aspect=4, noise=0.7), 2),
    "roll with a hole": (with_options(make_swiss_roll, hole=True), 2),
    "S-curve": (with_options(make_s_curve), 2),
    "noisy strip in 20 dimensions": (
        with_options(make_strip, aspect=4.0, curl=np.pi, n_features=20, noise=0.05),
        2,
    ),
    "hemisphere": (with_options(make_hemisphere), 2),
    "half torus": (ring, 3),
    "bent box": (box, 3),
    "noisy helix": (with_options(make_helix), 1),
}


def of_graph(method):
    """Candidates of a method whose setting is the number of neighbors."""
    return lambda d, i, gamma: method(d, n_neighbors=NEIGHBORS[i])


METHODS: dict[str, Callable] = {
    "Laplacian eigenmaps": of_graph(LaplacianEigenmaps),
    "non-redundant": lambda d, i, gamma: NonRedundant(
        LaplacianEigenmaps(n_neighbors=NEIGHBORS[i]), d
    ),
    "diffusion maps": of_graph(partial(DiffusionMaps, affinity="gaussian")),
    "Isomap": of_graph(Isomap),
    "LLE": of_graph(LLE),
    "LTSA": of_graph(LTSA),
    "kernel PCA": lambda d, i, gamma: KernelPCA(d, gamma=WIDTHS[i] * gamma),
}


@dataclass(frozen=True)
class Metrics:
    """Metrics of a candidate: a method with d coordinates and one of four settings."""

    method: str
    d: int
    setting: int
    n_features: int
    scores: tuple  # of the folds
    held_out_area: float = np.nan  # R_NX among held-out points
    area: float = np.nan  # R_NX of the embedding of all points
    trust: float = np.nan
    similarity: float = np.nan  # error relative to the true coordinates after a similarity
    affine: float = np.nan  # and after a linear map

    @property
    def score(self):
        """Mean over the folds."""
        return float(np.mean(self.scores))

    def __str__(self):
        if self.method == "kernel PCA":
            return f"{self.method}, {WIDTHS[self.setting]:g} × gamma"
        return f"{self.method}, {NEIGHBORS[self.setting]} neighbors"


def evaluate(model, X, truth, seed, label):
    """Metrics of a candidate; those of its embedding only if d is the true number."""
    scores, areas = [], []
    for train, test in KFold(3, shuffle=True, random_state=seed).split(X):
        model.fit(X[train])
        scores.append(float(reconstruction(model, X[test])))
        if truth is not None:
            areas.append(coranking(X[test], model.transform(X[test])).area)
    if truth is None:
        return Metrics(*label, X.shape[1], tuple(scores))
    Y = model.fit_transform(X)
    return Metrics(
        *(*label, X.shape[1], tuple(scores), float(np.mean(areas))),
        area=float(coranking(X, Y).area),
        trust=float(trustworthiness(X, Y)),
        similarity=procrustes(Y, truth).error,
        affine=procrustes(Y, truth, "affine").error,
    )


def candidates(name, n, seed):
    """All candidates on one sample; all settings only for the true number of coordinates."""
    draw, needed = SETS[name]
    X, truth = draw(n, random_state=seed)
    gamma = KernelPCA(1).fit(X).gamma_
    grid = [
        (method, d, i)
        for method in METHODS
        for d in DIMENSIONS
        for i in (range(len(NEIGHBORS)) if d == needed else [USUAL])
        if method != "LTSA" or d <= X.shape[1]  # limit of tangent spaces
    ]
    return [
        evaluate(METHODS[m](d, i, gamma), X, truth if d == needed else None, seed, (m, d, i))
        for m, d, i in grid
    ]


# --- how many coordinates ----------------------------------------------------------------------


def fewest_within(tolerance):
    """The fewest coordinates whose mean score over folds is within a tolerance of the best."""

    def rule(scores):
        means = scores.mean(axis=1)
        best = int(means.argmax())
        error = scores[best].std(ddof=1) / np.sqrt(scores.shape[1])
        return int(np.flatnonzero(means >= means[best] - tolerance(error))[0]) + 1

    return rule


RULES = {
    "the best score": fewest_within(lambda error: 0.0),
    "within a standard error": fewest_within(lambda error: error),
    "within two": fewest_within(lambda error: 2 * error),
    "within 0.01 or a standard error": fewest_within(lambda error: max(error, 0.01)),
    "within 0.03": fewest_within(lambda error: 0.03),
}
PROPOSED = "within 0.01 or a standard error"


def scores_by_dimension(metrics, method, most):
    """Scores of all folds for 1, 2, … coordinates, (n_dimensions, n_folds)."""
    own = [f for f in metrics if f.method == method and f.setting == USUAL and f.d <= most]
    return np.array([f.scores for f in sorted(own, key=lambda f: f.d)])


def print_dimensions(results):
    """Print how often each rule finds the true number of coordinates."""
    print("\n### How many coordinates: times right\n")
    head("rule", *METHODS)
    for rule, choose in RULES.items():
        row(rule, *(fraction(results, method, choose) for method in METHODS))
    row(
        f"{PROPOSED}, fewer than features",
        *(fraction(results, method, RULES[PROPOSED], short=True) for method in METHODS),
    )
    print(f"\n### The same by data, {PROPOSED}\n")
    head("data", *METHODS)
    for name in SETS:
        own = {key: value for key, value in results.items() if key[0] == name}
        row(name, *(fraction(own, method, RULES[PROPOSED]) for method in METHODS))


def fraction(results, method, choose, short=False):
    """Number of samples in which a rule is right, and number of samples."""
    right = []
    for (name, _), metrics in results.items():
        needed, features = SETS[name][1], metrics[0].n_features
        if short and needed >= features:
            continue
        most = features - 1 if short else max(DIMENSIONS)
        right.append(choose(scores_by_dimension(metrics, method, most)) == needed)
    return f"{sum(right)} of {len(right)}"


# --- which method and setting --------------------------------------------------------------------

SELECTORS = {
    "score": lambda f: f.score,
    "R_NX": lambda f: f.area,
    "R_NX, held out": lambda f: f.held_out_area,
    "trustworthiness": lambda f: f.trust,
}


def at_right_dimension(results, name):
    """The candidates of every sample with the true number of coordinates."""
    return [
        [f for f in metrics if f.d == SETS[name][1]]
        for (of, _), metrics in results.items()
        if of == name
    ]


def regret(metrics, value, error):
    """Error of the candidate with the largest value minus the least error."""
    return getattr(max(metrics, key=value), error) - min(getattr(f, error) for f in metrics)


def order(metrics, value, error):
    """Rank correlation of values with (minus) errors."""
    return spearmanr([value(f) for f in metrics], [-getattr(f, error) for f in metrics])[0]


def print_choices(results):
    """Print regret and rank correlation of every metric."""
    for error in ("similarity", "affine"):
        print(f"\n### Regret in {error} error, and rank correlation\n")
        head("data", "least error", *SELECTORS)
        totals = {selector: [] for selector in SELECTORS}
        for name in SETS:
            samples = at_right_dimension(results, name)
            least = np.mean([min(getattr(f, error) for f in each) for each in samples])
            cells = []
            for selector, value in SELECTORS.items():
                both = [(regret(s, value, error), order(s, value, error)) for s in samples]
                totals[selector] += both
                cells.append("{:.2f} ({:.2f})".format(*np.mean(both, axis=0)))
            row(name, f"{least:.2f}", *cells)
        row("mean", "", *("{:.2f} ({:.2f})".format(*np.mean(t, axis=0)) for t in totals.values()))
        row("mean, method given", "", *within_methods(results, error))


def within_methods(results, error):
    """Mean regret if only the setting of one method is selected."""
    cells = []
    for value in SELECTORS.values():
        regrets = [
            regret([f for f in metrics if f.method == method], value, error)
            for name in SETS
            for metrics in at_right_dimension(results, name)
            for method in METHODS
        ]
        cells.append(f"{np.mean(regrets):.2f}")
    return cells


def print_worst(results):
    """Print the worst selection by the score on every data set, and the best candidate."""
    print("\n### The score's worst choices: score / R_NX / affine error\n")
    head("data", "chosen by score", "", "least error", "")
    for name in SETS:
        samples = at_right_dimension(results, name)
        worst = max(samples, key=lambda s: regret(s, SELECTORS["score"], "affine"))
        chosen, best = max(worst, key=lambda f: f.score), min(worst, key=lambda f: f.affine)
        cells = [(str(f), f"{f.score:.3f} / {f.area:.2f} / {f.affine:.2f}") for f in (chosen, best)]
        row(name, *cells[0], *cells[1])


# --- printing ------------------------------------------------------------------------------------


def row(*cells):
    """One line of a table."""
    print("| " + " | ".join(map(str, cells)) + " |", flush=True)


def head(*names):
    """The first lines of a table."""
    row(*names)
    print("|" + "---|" * len(names))


def main():
    """Print all tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--n", type=int, default=500)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--quick", action="store_true", help="two data sets, one seed, few points")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    n, seeds = options.n, range(options.seeds)
    if options.quick:
        n, seeds = 200, range(1)
        for name in list(SETS)[2:]:
            del SETS[name]
    results = {(name, seed): candidates(name, n, seed) for seed in seeds for name in SETS}
    print(f"{n} points, {len(seeds)} seeds, three folds")
    print_dimensions(results)
    print_choices(results)
    print_worst(results)


if __name__ == "__main__":
    main()
