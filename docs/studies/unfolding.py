"""Study of the defaults of maximum variance unfolding: ``python docs/studies/unfolding.py``.

It takes an hour on one core. Every row changes one default. For sheets the table has the relative
error after the best rigid motion onto the true sheet, compared with Isomap with as many neighbors;
for images the dimension hint, the variance of the first two coordinates, trustworthiness and the
area under R_NX, compared with Isomap. Further columns: mean error of edge lengths, the gap to the
maximum of the variance, steps, seconds, and the number of fits that converged. Values are medians
over samples.
"""

import argparse
import json
import time
import warnings

import numpy as np
from joblib import Parallel, delayed

from manifoldry import Isomap, MaximumVarianceUnfolding
from manifoldry.datasets import (
    load_coil20,
    load_isomap_faces,
    load_rotating_monkey,
    make_s_curve,
    make_swiss_roll,
)
from manifoldry.metrics import coranking, procrustes, trustworthiness
from manifoldry.semidefinite import EdgeConstraint, MethodOfMultipliers

SETTINGS = {
    "default": {},
    "4 neighbors": {"n_neighbors": 4},
    "8 neighbors": {"n_neighbors": 8},
    "no cliques": {"constraint": EdgeConstraint(cliques=False)},
    "no cliques, 10 neighbors": {
        "constraint": EdgeConstraint(cliques=False),
        "n_neighbors": 10,
    },
    "tolerance .0025": {"constraint": EdgeConstraint(tolerance=0.0025)},
    "tolerance .01": {"constraint": EdgeConstraint(tolerance=0.01)},
    "tolerance .02": {"constraint": EdgeConstraint(tolerance=0.02)},
    "at most": {"constraint": "at_most"},
    "slack .001": {"constraint": EdgeConstraint(slack=1e-3)},
    "slack .01": {"constraint": EdgeConstraint(slack=1e-2)},
    "random start": {"optimizer": MethodOfMultipliers(init="random")},
    "50 landmarks": {"n_landmarks": 50},
    "100 landmarks": {"n_landmarks": 100},
}
SHEETS = {
    f"{name} {n}": (make, n, seeds)
    for n, seeds in ((400, 5), (1000, 3), (2000, 2))
    for name, make in (
        ("roll", make_swiss_roll),
        ("hole", lambda n, random_state: make_swiss_roll(n, hole=True, random_state=random_state)),
    )
} | {
    "S 1000": (make_s_curve, 1000, 3),
    "noise .2": (
        lambda n, random_state: make_swiss_roll(n, noise=0.2, random_state=random_state),
        1000,
        3,
    ),
    "noise .5": (
        lambda n, random_state: make_swiss_roll(n, noise=0.5, random_state=random_state),
        1000,
        3,
    ),
}
IMAGES = {
    "faces": lambda: load_isomap_faces().X,
    "object 1": lambda: load_coil20(objects=1).X,
    "object 4": lambda: load_coil20(objects=4).X,
    "monkey": lambda: load_rotating_monkey().X,
}


def flat(X):
    """Images as rows."""
    return np.asarray(X, dtype=float).reshape(len(X), -1)


def drawn(name, seed):
    """Data, and the true sheet if there is one."""
    if name in IMAGES:
        return flat(IMAGES[name]()), None
    make, n, _ = SHEETS[name]
    return make(n, random_state=seed)


def quality(X, Y, truth):
    """Quality metrics of the embedding."""
    if truth is not None:
        return {"rigid": procrustes(Y, truth, "rigid").error, "shape": procrustes(Y, truth).error}
    return {"trust": trustworthiness(X, Y), "area": coranking(X, Y).area}


def evaluated(name, setting, seed):
    """One row for one sample."""
    X, truth = drawn(name, seed)
    options = dict(SETTINGS[setting])
    if "n_landmarks" in options:
        options["n_landmarks"] = min(options["n_landmarks"], len(X) // 2)
    model = MaximumVarianceUnfolding(2, random_state=seed, **options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        began = time.perf_counter()
        model.fit(X)
        seconds = time.perf_counter() - began
        k = model.n_neighbors or 6
        rival = Isomap(2, n_neighbors=k).fit(X)
    own = quality(X, model.embedding_, truth)
    other = {f"Isomap {key}": value for key, value in quality(X, rival.embedding_, truth).items()}
    return {
        **own,
        **other,
        "edges": model.mean_edge_error_,
        "gap": model.gap_,
        "fraction": model.explained_variance_ratio_[:2].sum(),
        "dimension": model.dimension_hint_,
        "steps": model.n_iter_,
        "seconds": seconds,
        "converged": float(model.converged_),
    }


def table(name, rows):
    """All settings on one set."""
    columns = list(next(iter(rows.values())))
    print(f"\n| {name} | " + " | ".join(columns) + " |")
    print("|---" * (len(columns) + 1) + "|")
    for setting, metrics in rows.items():
        print(
            f"| {setting} | " + " | ".join(f"{metrics[c]:.3g}" for c in columns) + " |", flush=True
        )


def main():
    """Run the requested data sets, and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sets", nargs="*", default=[*SHEETS, *IMAGES])
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--save", help="a JSON file for all metrics")
    asked = parser.parse_args()
    jobs = [
        (name, setting, seed)
        for name in asked.sets
        for setting in SETTINGS
        for seed in range(SHEETS[name][2] if name in SHEETS else 1)
    ]
    jobs.sort(key=lambda job: -SHEETS[job[0]][1] if job[0] in SHEETS else -700)
    found = Parallel(n_jobs=asked.jobs, batch_size=1)(delayed(evaluated)(*job) for job in jobs)
    results = {name: {} for name in asked.sets}
    for name in asked.sets:
        for setting in SETTINGS:
            rows = [row for job, row in zip(jobs, found, strict=True) if job[:2] == (name, setting)]
            middle = {key: float(np.median([row[key] for row in rows])) for key in rows[0]}
            middle["converged"] = float(np.mean([row["converged"] for row in rows]))
            results[name][setting] = middle
        table(name, results[name])
    if asked.save:
        with open(asked.save, "w") as file:
            json.dump([(*job, row) for job, row in zip(jobs, found, strict=True)], file)


if __name__ == "__main__":
    main()
