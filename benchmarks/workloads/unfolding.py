"""Maximum variance unfolding compared with the same semidefinite program in cvxpy; its growth."""

from functools import partial

from benchmarks.workload import Contestant, Workload
from benchmarks.workloads.common import few, roll, timing

TOLERANCE = 0.005  # relative tolerance of lengths, our default
TURNS = 0.5  # of the roll: no edge connects two layers, even with 30 points
CASES = {
    "cliques": ({}, "cliques of 6 neighbors"),
    "plain": ({"cliques": False}, "6 neighbors without cliques"),
    "at-most": ({"constraint": "at_most"}, "cliques of 6 neighbors that may come closer"),
}
FLOORS = ("violation <= 0.01", "net >= 0.99")


def program(n, **options):
    """A roll with its edges, a bound of the variance, and the most that violated edges can add.

    The bound is valid for any multipliers, by an eigenvalue that is computed here.
    """
    import numpy as np

    from manifoldry.datasets import make_swiss_roll

    X, _ = make_swiss_roll(n, turns=TURNS, random_state=0)
    ends, u = _proof(X, options)
    squares = ((X[ends[:, 0]] - X[ends[:, 1]]) ** 2).sum(axis=1)
    low, high = limits(options)
    L = np.zeros((n, n))
    np.add.at(L, (ends[:, [0, 1, 0, 1]], ends[:, [0, 1, 1, 0]]), np.outer(u, [1, 1, -1, -1]))
    u = u / np.linalg.eigvalsh(L + u.sum() / n)[0]  # constants shifted
    most = np.where(u > 0, high, low if np.isfinite(low) else 0.0)
    bound = (u * squares * most).sum()
    price = np.abs(u) * squares / bound
    return {"X": X, "ends": ends, "squares": squares, "_bound": [bound], "_price": price,
            "_limits": [low, high]}  # fmt: skip


def _proof(X, options):
    """Edges, and the multipliers with the lowest bound on the variance."""
    from unittest.mock import patch

    import numpy as np

    from manifoldry.semidefinite.variance_bound import VarianceBound

    proofs, prove = [], VarianceBound.of
    with patch.object(VarianceBound, "of", lambda *of: proofs.append(prove(*of)) or proofs[-1]):
        # The gap is so small that several bounds are computed.
        model = whole(gap_tol=1e-4, **options).fit(X)
    best = min(proofs, key=lambda proof: proof.value).multipliers
    least = 0.0 if options.get("constraint") == "at_most" else -np.inf
    return model.edges_, np.maximum(best, least) / model.problem_.edges.scales


def limits(options):
    """Least and largest squared length of an edge, relative to that in the data."""
    low = -float("inf") if options.get("constraint") == "at_most" else (1 - TOLERANCE) ** 2
    return low, (1 + TOLERANCE) ** 2


def whole(gap_tol=0.01, **options):
    """Our estimator, with all dimensions of the solution."""
    from manifoldry import MaximumVarianceUnfolding
    from manifoldry.semidefinite import EdgeConstraint, MethodOfMultipliers

    class Whole(MaximumVarianceUnfolding):
        def _store_evidence(self, posed, result):
            super()._store_evidence(posed, result)
            self.problem_, self.found_ = posed.objective, result

    constraint = EdgeConstraint(options.get("constraint", "equal"), cliques=options.get("cliques"))
    return Whole(constraint=constraint, optimizer=MethodOfMultipliers(gap_tol=gap_tol))


def ours(X, ends, squares, **options):
    whole(**options).fit(few(X, 20))
    yield
    model = whole(**options).fit(X)
    return {"map": model.found_.map * model.problem_.edges.unit}


def cvxpy(X, ends, squares, solver, settings, **options):
    """The program for the matrix of inner products, with lengths relative to those in the data."""
    _solve(3, [[0, 1], [1, 2]], [1.0, 1.0], options, solver, {})
    yield
    unit = squares.mean()
    K, seconds = _solve(len(X), ends, squares / unit, options, solver, settings)
    return {"gram": K * unit, "solver": seconds}


def _solve(n, ends, squares, options, solver, settings):
    import cvxpy
    import numpy as np
    from scipy import sparse

    (i, j), m = np.transpose(ends), len(ends)
    entries = np.tile([1.0, 1.0, -1.0, -1.0], (m, 1)) / np.asarray(squares)[:, None]
    places = np.column_stack([i * n + i, j * n + j, i * n + j, j * n + i])
    A = sparse.csr_array((entries.ravel(), places.ravel(), np.arange(m + 1) * 4), shape=(m, n * n))
    K = cvxpy.Variable((n, n), PSD=True)
    lengths = A @ cvxpy.vec(K, order="F")
    low, high = limits(options)
    constraints = [cvxpy.sum(K) == 0, lengths <= high]
    constraints += [lengths >= low] if np.isfinite(low) else []
    problem = cvxpy.Problem(cvxpy.Maximize(cvxpy.trace(K)), constraints)
    problem.solve(solver=solver, **settings)
    return K.value, float(problem.solver_stats.solve_time)


def driada(X, ends, squares, **_):
    """The only other package on PyPI: cvxpy and SCS with a tolerance of 0.01 and exact lengths."""
    from driada.dim_reduction.mvu import MaximumVarianceUnfolding

    MaximumVarianceUnfolding(seed=0).fit(few(X, 10), 4)
    yield
    return {"gram": MaximumVarianceUnfolding(seed=0).fit(X, 7)}  # including the point itself


def metrics(arrays, result):
    """Variance divided by the bound, minus the most that violated lengths can have added."""
    import numpy as np

    R = result["map"] if "map" in result else _factor(result["gram"])
    R = R - R.mean(axis=0)
    steps = R[arrays["ends"][:, 0]] - R[arrays["ends"][:, 1]]
    lengths = (steps**2).sum(axis=1) / arrays["squares"]
    excess = np.abs(lengths - np.clip(lengths, *arrays["_limits"]))
    variance = (R**2).sum() / arrays["_bound"][0]
    net = variance - (arrays["_price"] * excess).sum()
    return {"net": net, "variance": variance, "violation": excess.max(), "edges": len(steps)}


def _factor(K):
    """The embedding of the nearest semidefinite matrix."""
    import numpy as np

    values, vectors = np.linalg.eigh((K + K.T) / 2)
    return vectors * np.sqrt(np.maximum(values, 0))


def _workload(case, n, solvers, aside=(), **more):
    options, what = CASES[case]
    peers = [
        Contestant(
            f"cvxpy, {name}",
            cvxpy,
            "cvxpy",
            {"solver": solver, "settings": settings, **options},
            quick=solver == "CLARABEL",
        )
        for name, solver, settings in solvers
    ]
    what = f"Maximum variance unfolding of {n} points of half a turn of a roll: {what}"
    return Workload(
        f"unfolding-{case}-{n}", what, partial(program, n, **options),
        (Contestant("MaximumVarianceUnfolding", ours, options=options), *peers, *aside),
        metrics, FLOORS, timeout=300, **more,
    )  # fmt: skip


CLARABEL = ("Clarabel", "CLARABEL", {})
ROUGH, SCS, FINE = (
    (f"SCS, {eps:.0e}", "SCS", {"eps": eps, "max_iters": 10**6}) for eps in (1e-4, 1e-5, 1e-6)
)
DRIADA = Contestant("driada", driada, "driada", aside=True)

SIZES = {
    "MaximumVarianceUnfolding": (500, 1000, 2000, 4000, 10_000),
    "MaximumVarianceUnfolding, 100 landmarks": (1000, 2000, 5000, 10_000, 50_000, 100_000),
    "Isomap": (500, 1000, 2000, 4000),
    "Isomap, 200 landmarks": (5000, 10_000, 50_000, 100_000),
    "ConformalEigenmaps": (1000, 10_000, 100_000),
}
GROWING = {
    "MaximumVarianceUnfolding": {},
    "MaximumVarianceUnfolding, 100 landmarks": {"n_landmarks": 100},
    "Isomap": {"n_neighbors": 6},
    "Isomap, 200 landmarks": {"n_neighbors": 6, "n_landmarks": 200},
    "ConformalEigenmaps": {},
}
EVIDENCE = ("gap", "mean_edge_error", "max_edge_error", "converged", "edges")


def fit(X, method, n):
    """One of our estimators with its own evidence; the time of a conformal basis is separate."""
    import numpy as np

    import manifoldry

    make = partial(getattr(manifoldry, method.split(",")[0]), **GROWING[method])
    make().fit(few(X, 300))
    X, model = X[:n].copy(), make()
    yield
    with timing(manifoldry.ConformalEigenmaps, "_fitted_basis") as basis:
        model.fit(X)
    told = {name: getattr(model, f"{name}_") for name in EVIDENCE if hasattr(model, f"{name}_")}
    told = {name: np.array(len(v) if name == "edges" else v) for name, v in told.items()}
    return {"embedding": model.embedding_, **told, **({"basis": sum(basis)} if basis else {})}


def sheet(arrays, result):
    """Error relative to the true sheet after a similarity, and the evidence of the fit."""
    from manifoldry.metrics import procrustes

    Y = result.pop("embedding")
    return {"error": procrustes(Y, arrays["_truth"][: len(Y)]).error, **result}


def _growth():
    for method, sizes in SIZES.items():
        for n in sizes:
            options = {"method": method, "n": n}
            yield Contestant(f"{method}, n={n}", fit, options=options, series=method, size=n)


WORKLOADS = [
    _workload("cliques", 30, (CLARABEL, ROUGH, SCS, FINE)),
    _workload("cliques", 50, (CLARABEL, ROUGH, SCS, FINE), quick=True),
    _workload("cliques", 70, (CLARABEL, ROUGH, SCS)),
    _workload("plain", 70, (CLARABEL, ROUGH)),
    _workload("at-most", 70, (CLARABEL, ROUGH)),
    _workload("cliques", 100, (CLARABEL, ROUGH, SCS)),
    _workload("cliques", 200, (ROUGH,)),
    _workload("plain", 100, (CLARABEL, ROUGH), (DRIADA,)),
    _workload("at-most", 100, (CLARABEL, ROUGH)),
    _workload("cliques", 400, (ROUGH,)),
    Workload(
        "unfolding-growth", "Time and memory of unfolding, beside Isomap, on the Swiss roll",
        partial(roll, 100_000), tuple(_growth()), sheet, timeout=300,
    ),
]  # fmt: skip
