"""Comparison of search directions on each objective: ``python -m benchmarks.directions --help``.

For each seed, which determines the data and the start, all directions start from the same
embedding, or follow the same homotopy, as some estimators do by default. The results are the
evaluations of value and gradient until the value is within one percent of the best value of all
directions for that seed, and of the final value of the same direction. Run it with
``OMP_NUM_THREADS=1``, so that processor time is that of one core.
"""

import argparse
import json
import math
import time
import warnings
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from statistics import median
from unittest.mock import patch

import joblib
import numpy as np

from benchmarks.machine import machine, source
from benchmarks.report import RESULTS, read, write_whole
from manifoldry import PCA, SNE, TSNE, UKR, ElasticEmbedding, SymmetricSNE
from manifoldry.datasets import load_coil20, make_swiss_roll
from manifoldry.exceptions import ManifoldryWarning
from manifoldry.objectives import Exact, Pairwise, pairwise, tsne
from manifoldry.optimize import (
    LBFGS,
    Homotopy,
    Optimizer,
    Solution,
    SpectralDirection,
    resolve_optimizer,
)

DIRECTIONS = (
    "gradient", "jacobi", "diagonal", "spectral", "cg", "spectral-cg", "lbfgs", "spectral-lbfgs",
    "momentum",
)  # fmt: skip
MILD = {"mild spectral-lbfgs": LBFGS(SpectralDirection(shift=0.1))}  # the default of UKR
MOST = 1000  # evaluations of one search
NEAR = 1.01  # a value has been reached within this factor
N, N_REGRESSION = 500, 200  # points


def roll(seed):
    return make_swiss_roll(N, random_state=seed).X


def coil(seed):
    """Photographs of objects, in their first 50 principal components."""
    return PCA(50).fit_transform(sample(load_coil20().X.astype(float), seed))


def digits(seed):
    from sklearn.datasets import load_digits

    return sample(load_digits().data, seed)


def sample(X, seed):
    return X[np.random.default_rng(seed).choice(len(X), N, replace=False)]


DATA = {"Swiss roll": roll, "COIL-20": coil, "digits": digits}


@dataclass(frozen=True)
class Posed(Optimizer):
    """An optimizer that only records the objective and the start."""

    seen: list = field(default_factory=list)

    def minimize(self, objective, Y, callback=None):
        self.seen.append((objective, Y))
        return Solution(Y, objective.value(Y), converged=True, status="posed")

    def with_stopping(self, max_iter, tol):
        return self

    def with_looser_stopping(self, max_iter, tol):
        return self


def default_start(make, seed, X, **options):
    """The objective of an estimator and its start."""
    optimizer = Posed()
    make(2, optimizer=optimizer, random_state=seed, **options).fit(X)
    return optimizer.seen[0]


def after_exaggeration(seed, X):
    """The objective of t-SNE, and the embedding one step after early exaggeration."""
    model = TSNE(2, max_iter=1, random_state=seed).fit(X)
    return tsne(model.affinity_), model.embedding_


def elastic(seed, X, **options):
    return default_start(ElasticEmbedding, seed, X, **options)


OBJECTIVES = {
    "elastic, uniform, λ = 100": lambda seed, X: elastic(seed, X, weight=100.0),
    "elastic, squared distance, λ = 10⁴": lambda seed, X: elastic(
        seed, X, weight=1e4, repulsion="squared_distance"
    ),
    "SNE": lambda seed, X: default_start(SNE, seed, X, init="spectral"),
    "symmetric SNE": lambda seed, X: default_start(SymmetricSNE, seed, X, init="spectral"),
    "t-SNE": after_exaggeration,
    "UKR": lambda seed, X: default_start(UKR, seed, X[:N_REGRESSION]),
}


STEPS = tuple(10 ** np.arange(0, 4.1, 0.25))  # of the search for a weight
FOLLOWED = {
    "SNE, homotopy": (SNE, Homotopy(n_steps=20)),
    "symmetric SNE, homotopy": (SymmetricSNE, Homotopy(n_steps=20)),
    "elastic, squared distance, λ up to 10⁴": (
        partial(ElasticEmbedding, repulsion="squared_distance", weight=1e4),
        Homotopy(values=STEPS),
    ),
}


class Spent(KeyboardInterrupt):
    """The evaluations are used up; optimizers handle it like Ctrl-C."""


class Recorder:
    """Callback that records evaluations, least value and processor time after every step."""

    def __init__(self):
        self.began, self.steps = time.process_time(), []

    def __call__(self, iterate):
        step = iterate.step
        least = min([step.value, *[value for _, value, _ in self.steps[-1:]]])
        self.steps.append((step.evaluations, least, time.process_time() - self.began))
        if step.evaluations >= MOST:
            raise Spent


def searched(objective, start, direction):
    """The steps of one optimization, up to the maximum number of evaluations."""
    recorder = Recorder()
    resolve_optimizer(direction).with_stopping(MOST, None).minimize(objective, start, recorder)
    return [step for step in recorder.steps if step[0] <= MOST]


def followed(make, homotopy, seed, X, direction):
    """Steps of the last optimization along a homotopy; evaluations include all earlier ones."""
    with evaluations() as count:
        began = time.process_time()
        optimizer = replace(homotopy, optimizer=direction)
        model = make(2, optimizer=optimizer, random_state=seed).fit(X)
        seconds = time.process_time() - began
    unseen = len(count) - model.n_evaluations_  # the evaluations that look for negative curvature
    last = model.trace_[model.trace_["parameter"] == model.trace_["parameter"][-1]]
    values = np.minimum.accumulate(last["value"])
    return [
        (int(n) + unseen, float(value), seconds)
        for n, value in zip(last["evaluations"], values, strict=True)
    ]


@contextmanager
def evaluations():
    """A list that gets one entry per evaluation of value and gradient."""
    count, plain = [], Pairwise.value_and_gradient

    def counted(objective, Y):
        count.append(1)
        return plain(objective, Y)

    with patch.object(Pairwise, "value_and_gradient", counted):
        yield count


def study(objective, seeds, workers):
    """Results of all directions on one objective, by data and direction; one entry per seed."""
    jobs = [(data, seed) for data in DATA for seed in seeds]
    found = joblib.Parallel(workers)(joblib.delayed(compared)(objective, *job) for job in jobs)
    rows = {data: {name: {k: [] for k in FIGURES} for name in found[0]} for data in DATA}
    for (data, _), by_direction in zip(jobs, found, strict=True):
        for name, values in by_direction.items():
            for figure, value in zip(FIGURES, values, strict=True):
                rows[data][name][figure].append(value)
    return rows


def compared(objective, data, seed):
    """Results of every direction for one seed."""
    compiled = partial(Exact, compile_pairs=0)  # as for larger data
    with warnings.catch_warnings(), patch.object(pairwise, "default_pair_sums", compiled):
        warnings.simplefilter("ignore", ManifoldryWarning)
        X = DATA[data](seed)
        if objective in FOLLOWED:
            runs = {name: followed(*FOLLOWED[objective], seed, X, name) for name in DIRECTIONS}
        else:
            posed, start = OBJECTIVES[objective](seed, X)
            others = MILD if objective == "UKR" else {}
            optimizers = {name: name for name in DIRECTIONS} | others
            runs = {name: searched(posed, start, o) for name, o in optimizers.items()}
    best = min(steps[-1][1] for steps in runs.values())
    return {name: results_of(steps, best) for name, steps in runs.items()}


FIGURES = ("to_best", "seconds_to_best", "to_own_end", "end_over_best", "spent")


def results_of(steps, best):
    """Results of one optimization, in the order of their names; None if not reached."""
    evaluations, end, _ = steps[-1]
    to_best, seconds = reached(steps, NEAR * best)
    spent = evaluations if to_best is None else to_best
    return to_best, seconds, reached(steps, NEAR * end)[0], end / best, spent


def reached(steps, target):
    """Evaluations and seconds until the value is at most the target; None if it never is."""
    found = ((evaluations, seconds) for evaluations, value, seconds in steps if value <= target)
    return next(found, (None, None))


def table(results):
    """Markdown: a table for every objective, a row for every direction."""
    lines = []
    for objective, studies in results["objectives"].items():
        names = " / ".join(studies)
        head = [objective, "per success", "reached", *[f"to best: {data}" for data in studies]]
        head += [f"{what}: {names}" for what in ("to own end", "end ÷ best", "s to best")]
        lines += ["", _line(head), _line(["---"] * len(head))]
        for name in next(iter(studies.values())):
            lines.append(_line([name, *cells([rows[name] for rows in studies.values()])]))
    return "\n".join(lines[1:]) + "\n"


def cells(rows):
    """Results of a direction over all data sets, then medians over the seeds of each."""
    found = [n for row in rows for n in row["to_best"]]
    successes = len(found) - found.count(None)
    spent = sum(sum(row["spent"]) for row in rows)
    per_success = f"{spent / successes:.0f}" if successes else "–"
    to_best = [_middle(row["to_best"], ".0f") for row in rows]
    forms = {"to_own_end": ".0f", "end_over_best": ".3f", "seconds_to_best": ".2g"}
    rest = [" / ".join(_middle(row[k], form) for row in rows) for k, form in forms.items()]
    return [per_success, f"{successes}/{len(found)}", *to_best, *rest]


def _middle(values, form):
    """The median; runs that did not reach the target count as infinite."""
    value = median(math.inf if v is None else v for v in values)
    return format(value, form) if math.isfinite(value) else "–"


def _line(entries):
    return "| " + " | ".join(entries) + " |"


def main(arguments=None):
    """Measure, store the results after every objective, and print the tables."""
    options = parse(arguments)
    seeds = range(2 if options.quick else options.seeds)
    chosen = [o for o in (*OBJECTIVES, *FOLLOWED) if o.startswith(tuple(options.objectives) or "")]
    base = options.results / ("directions-quick" if options.quick else "directions")
    results = read(base.with_suffix(".json")) or {"objectives": {}}
    results |= {"machine": machine(), **source("manifoldry"), "n": [N, N_REGRESSION]}
    for objective in chosen:
        start = time.perf_counter()
        results["objectives"][objective] = study(objective, seeds, options.jobs)
        print(f"{objective}: {time.perf_counter() - start:.0f} s", flush=True)
        keep(results, base)
    print(table(results))


def keep(results, base):
    write_whole(base.with_suffix(".json"), json.dumps(results, indent=1, ensure_ascii=False) + "\n")
    write_whole(base.with_suffix(".md"), f"{HEAD}\n{table(results)}")


HEAD = f"""# Search directions

Written by `python -m benchmarks.directions`; do not edit. Evaluations until the value is within one
percent of the best value of all directions for the same seed (*to best*), or of the final value of
the same direction (*to own end*); {MOST} at most, or as many as a homotopy takes, including all its
steps. *Per success*: total number of evaluations, until the target or the end, divided by the
number of seeds that reached it. Cells are medians over the seeds; – if most did not reach it.
"""


def parse(arguments):
    parser = argparse.ArgumentParser(prog="python -m benchmarks.directions", description=__doc__)
    add = parser.add_argument
    add("objectives", nargs="*", help="prefixes of names; all by default")
    add("--quick", action="store_true", help="two seeds")
    add("--seeds", type=int, default=10, help="seeds (default 10)")
    add("--jobs", type=int, default=2, help="processes (default 2)")
    add("--results", type=Path, default=RESULTS, help="folder of the results")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    main()
