"""Principal components of data that are distributed, from sums over blocks."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import reduce
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse.linalg import LinearOperator
from sklearn.base import clone

from manifoldry.base.distributed import (
    DistributedFit,
    fit_to_landmarks,
    mapped,
    say,
    with_warnings,
)
from manifoldry.base.dominant_points import unchecked_dominance, warn_if_dominated
from manifoldry.distributed.options import current_options
from manifoldry.distributed.rows import Rows
from manifoldry.distributed.scheduler import broadcast, combined, compute, delayed
from manifoldry.eigen import EigenSolver, Randomized, Spectra, SpectralProblem, resolve_solver
from manifoldry.eigen.spectrum import Spectrum, leading_entries
from manifoldry.extension.affine import AffineMap
from manifoldry.neighbors.distances import Frame, check_range
from manifoldry.spectral.pca import PrincipalComponents
from manifoldry.util.checks import as_generator
from manifoldry.util.named_rows import named_rows
from manifoldry.util.typing import Array
from manifoldry.util.validation import power_of_two_scale, row_blocks

# The scatter matrix of so many features takes 32 MB, of which a worker adds eight at a time.
MOST_FEATURES = 2000
# Rows that the model keeps; fewer rows are fitted in memory.
SAMPLE = 1000
# Further eigenvalues of a scatter matrix, which cost little and show the spectral gap.
_EXTRA = 8
# Numbers of a block that are converted to double precision at a time: 32 MB.
_SLICE = 2**22


def fit_principal_components(estimator: Any, rows: Rows) -> DistributedFit:
    """Fit PCA to all rows, from sums over blocks; a sample measures the novelty of new rows."""
    wanted = estimator.n_components
    size = max(SAMPLE, wanted + 1) if isinstance(wanted, int) else SAMPLE
    if rows.n_samples <= size:
        return fit_to_landmarks(estimator, rows)
    chosen = "auto" if estimator.eigen_solver is None else estimator.eigen_solver
    solver = resolve_solver(chosen, end="largest")  # raises before data are read
    rng = as_generator(estimator.random_state, unset=0)
    drawn, pieces = rows.sample(size, rng)
    sample, low, high = _first_look(rows, pieces)
    model = clone(estimator).set_output(transform="default")
    # This also checks the parameters. The problem of the sample is not solved.
    data = model.pose(named_rows(sample, rows.names)).data
    frame = _frame_of(sample, low, high)
    if rows.n_features <= MOST_FEATURES:
        found, how = _by_scatter(rows, frame, solver, model.n_components_, rng), ""
    else:
        found, how = _by_products(rows, frame, solver, chosen, model.n_components_, rng)
    posed = ComponentsOfAll.of_all(data, rows, frame, found)
    spectrum = _with_signs(found.spectrum, rows, posed)
    with unchecked_dominance():  # it would number the rows of the sample
        model.adopt(posed, Spectra([spectrum], model.n_components_))
    warn_if_dominated(model.embedding_, has_neighbors=False, rows=drawn)
    kept = f"{size} of them, drawn at random, are kept to measure the novelty of new rows"
    whole = {name: getattr(model, name) for name in ("mean_", "components_")}
    fitted_on = f"all {rows.n_samples} rows{how}; {kept}"
    return DistributedFit(model, mapped(model, "transform", rows), fitted_on, whole)


class ScatterPairs(NamedTuple):
    """Eigenpairs of the scatter matrix, its trace, and the mean of the data in the frame."""

    spectrum: Spectrum
    inertia: float
    mean: Array


@dataclass(frozen=True, eq=False)
class ComponentsOfAll(PrincipalComponents):
    """Principal components of all rows, of which `data` are a sample.

    The eigenvectors of its problem, that of the scatter matrix FᵀF, are the axes.
    """

    n_rows: int = field(kw_only=True)

    @classmethod
    def of_all(cls, data: Any, rows: Rows, frame: Frame, found: ScatterPairs) -> ComponentsOfAll:
        """The components of data with these eigenpairs."""
        scatter = Scatter(rows, frame, found.mean)
        problem = scatter_problem(scatter)
        return cls(data, frame, found.mean, problem, found.inertia, n_rows=rows.n_samples)

    @property
    def count(self) -> int:
        return self.n_rows

    def coordinates(self, spectra: Spectra) -> Array:
        return self._affine_map(spectra).transform(self.data.rows)

    def _affine_map(self, spectra: Spectra) -> AffineMap:
        return self.axes(spectra.largest)

    def axes(self, spectrum: Spectrum) -> AffineMap:
        """The map to the axes, which are zero beyond the rank of the data."""
        known = spectrum.significant
        squares = np.where(known, spectrum.values, 0.0) / self.n_rows
        return AffineMap.of_axes(spectrum.vectors * known, squares, self.offset, self.frame)


class Scatter(LinearOperator):
    """The matrix FᵀF of centered data F: each product reads all data once.

    Parameters
    ----------
    rows : Rows
        The data.
    frame : Frame
        Origin and unit of F.
    mean : array of shape (n_features,)
        Mean of the data in the frame.

    Attributes
    ----------
    n_passes : int
        Number of products.
    """

    def __init__(self, rows: Rows, frame: Frame, mean: Array) -> None:
        super().__init__(dtype=np.dtype(np.float64), shape=(rows.n_features, rows.n_features))
        self.rows, self.frame, self.mean, self.n_passes = rows, frame, mean, 0

    def _matmat(self, V: Array) -> Array:
        self.n_passes += 1
        tasks = self.rows.tasks(_product, broadcast((self.frame, self.mean, V)))
        what = f"principal components, pass {self.n_passes}"
        [product] = compute([combined(tasks, sum)], what, verbose=current_options().verbose)
        return np.asarray(product)

    def _adjoint(self) -> Scatter:
        return self


def scatter_problem(scatter: Any) -> SpectralProblem:
    """The eigenproblem of a scatter matrix."""
    return SpectralProblem(scatter, "largest", bounds=(0.0, np.inf), scale="sqrt_eigenvalue")


def _first_look(rows: Rows, pieces: list[Any]) -> tuple[Array, Array, Array]:
    """The sample, and the smallest and largest value of each feature."""
    ends = combined(rows.tasks(_extremes), _widest)
    verbose = current_options().verbose
    (low, high), *sample = compute([ends, *pieces], "reading the data", verbose=verbose)
    return np.concatenate(sample), low, high


def _extremes(block: Array) -> tuple[Array, Array]:
    low, high = block.min(axis=0, initial=np.inf), block.max(axis=0, initial=-np.inf)
    return low.astype(np.float64), high.astype(np.float64)


def _widest(ends: list[tuple[Array, Array]]) -> tuple[Array, Array]:
    low, high = zip(*ends, strict=True)
    return np.min(low, axis=0), np.max(high, axis=0)


def _frame_of(sample: Array, low: Array, high: Array) -> Frame:
    """Origin and unit in which squares of the data neither cancel nor overflow."""
    with np.errstate(over="ignore", invalid="ignore"):  # check_range raises instead
        origin = Frame.of(sample).origin
        frame = Frame(origin, power_of_two_scale(np.stack([high - origin, low - origin])))
    check_range(frame.unit)
    return frame


class ScatterSums(NamedTuple):
    """Number of rows, their mean, and the scatter matrix about it, or its diagonal."""

    n_rows: int
    mean: Array
    scatter: Array

    def plus(self, other: ScatterSums) -> ScatterSums:
        """The sums over the rows of both, without cancellation (Chan, Golub and LeVeque 1983)."""
        if not (self.n_rows and other.n_rows):
            return self if self.n_rows else other
        count, step = self.n_rows + other.n_rows, other.mean - self.mean
        squares = np.outer(step, step) if self.scatter.ndim == 2 else step**2
        squares *= self.n_rows * (other.n_rows / count)
        squares += self.scatter
        squares += other.scatter
        return ScatterSums(count, self.mean + step * (other.n_rows / count), squares)


def _sums(block: Array, frame: Frame, *, full: bool) -> ScatterSums:
    """The sums over a block, with the scatter matrix or with its diagonal."""
    d = block.shape[1]
    nothing = ScatterSums(0, np.zeros(d), np.zeros((d, d) if full else d))
    slices = (frame.apply(block[rows]) for rows in _slices(block))
    return reduce(ScatterSums.plus, (_sums_of(F, full) for F in slices), nothing)


def _sums_of(F: Array, full: bool) -> ScatterSums:
    mean = F.mean(axis=0)
    F -= mean
    return ScatterSums(len(F), mean, F.T @ F if full else np.square(F).sum(axis=0))


def _total(sums: list[ScatterSums]) -> ScatterSums:
    return reduce(ScatterSums.plus, sums)


def _product(block: Array, shared: tuple[Frame, Array, Array]) -> Array:
    """FᵀF V of a block."""
    frame, mean, V = shared
    product = np.zeros(V.shape)
    for rows in _slices(block):
        F = frame.apply(block[rows])
        F -= mean
        product += F.T @ (F @ V)
    return product


def _slices(block: Array) -> list[slice]:
    return row_blocks(len(block), block.shape[1], budget=_SLICE) if len(block) else []


def _by_scatter(
    rows: Rows, frame: Frame, solver: EigenSolver, k: int, rng: np.random.Generator
) -> ScatterPairs:
    """The eigenpairs of the scatter matrix, which is decomposed on a worker."""
    sums = rows.tasks(_sums, broadcast(frame), full=True)
    solved = delayed(with_warnings)(_decomposed, combined(sums, _total), solver, k, rng)
    [(found, said)] = compute([solved], "sums of squares", verbose=current_options().verbose)
    say(said)
    return ScatterPairs(*found)


def _decomposed(total: ScatterSums, solver: EigenSolver, k: int, rng: np.random.Generator) -> Any:
    d = len(total.mean)
    # Beyond the d-th, eigenvalues of the Gram matrix are zero; `next_value` and gaps need them.
    more = min(1 + _EXTRA, max(0, total.n_rows - 1 - d))
    problem = scatter_problem(np.pad(total.scatter, (0, more)))
    extra = min(_EXTRA, problem.n - k) if solver.extra_pairs_are_cheap else 0
    found = solver.solve_with_extra(problem, k, extra, rng)
    spectrum = replace(found, vectors=found.vectors[:d])
    return spectrum, float(np.trace(total.scatter)), total.mean


def _by_products(
    rows: Rows, frame: Frame, solver: EigenSolver, chosen: Any, k: int, rng: np.random.Generator
) -> tuple[ScatterPairs, str]:
    """The eigenpairs by a few products with the scatter matrix, and what to say of them."""
    sums = rows.tasks(_sums, broadcast(frame), full=False)
    what, verbose = "sums of squares", current_options().verbose
    [total] = compute([combined(sums, _total)], what, verbose=verbose)
    scatter = Scatter(rows, frame, total.mean)
    if chosen == "auto":
        solver = Randomized()  # products with blocks: few passes over the data
    spectrum = solver.solve_with_extra(scatter_problem(scatter), k, 0, rng)
    how = f", by {solver.name} in {scatter.n_passes} passes over the data"
    return ScatterPairs(spectrum, float(total.scatter.sum()), total.mean), how


def _with_signs(spectrum: Spectrum, rows: Rows, posed: ComponentsOfAll) -> Spectrum:
    """The vectors with the sign that a fit in memory gives: the largest coordinate is positive."""
    tasks = rows.tasks(_leading, broadcast(posed.axes(spectrum)))
    leading = compute(tasks, "signs of coordinates", verbose=current_options().verbose)
    signs = np.sign(leading_entries(np.stack(leading)))
    return replace(spectrum, vectors=spectrum.vectors * np.where(signs == 0, 1.0, signs))


def _leading(block: Array, axes: AffineMap) -> Array:
    """The coordinate of largest modulus along each axis."""
    if len(block) == 0:
        return np.zeros(axes.components.shape[1])
    return leading_entries(axes.transform(block))
