"""The choice between exact and approximate sums over pairs."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import NamedTuple, Self

from manifoldry.device import Device, device_of
from manifoldry.objectives.cell_list import CellList, CellSums
from manifoldry.objectives.exact import ApproximateSums
from manifoldry.objectives.factored_weights import FactoredWeights
from manifoldry.objectives.fft_interpolation import FFTInterpolation
from manifoldry.objectives.kernel_shape import kernel_shape
from manifoldry.objectives.pair_kernel import MAX_COMPILED_DIMENSION, Kernel
from manifoldry.objectives.pair_sums import PairSums, Sums, is_matrix
from manifoldry.objectives.position_sums import PositionSums
from manifoldry.util.checks import check_count, check_instance, check_positive
from manifoldry.util.typing import Array, Matrix

# By how much fewer points take as long on a device if values or weights of all pairs pass through
# its memory.
_SLOWDOWN = 8
_EXACT, _FFT, _CELLS = "exact sums", "interpolation on a mesh", "neighboring cells"


class ChosenSums(NamedTuple):
    """The chosen sums, and why."""

    pair_sums: PairSums
    reason: str
    cells: CellList | None = None
    """The cells of the points, if the sums run over neighboring cells."""


class _Costs(NamedTuple):
    """Processor time in nanoseconds, measured on one core."""

    pair: float = 0.9
    pair_factor: float = 0.25  # for each pair and factor of its weight
    cell_pair: float = 0.9
    cell_factor: float = 0.18  # for each pair and factor, a third of the pairs within reach
    cell_point: float = 300.0
    mesh_node: float = 30.0
    mesh_point: tuple[float, ...] = (100.0, 150.0, 500.0)
    mesh_factor: tuple[float, ...] = (6.0, 20.0, 80.0)  # for each point and factor of its weights


@dataclass(frozen=True)
class Fastest(ApproximateSums):
    """Exact sums for few points, for many the faster of two approximations.

    Objectives use it by default. Embeddings of more than three dimensions, and sums with weights
    of pairs that are given as a matrix, are exact.

    Parameters
    ----------
    exact_up_to : int, default=2000
        Number of points up to which sums are exact.
    exact_on_device_up_to : int, default=200_000
        The same for embeddings on a GPU, an eighth of it for weights that are products of factors
        and for kernels other than :class:`GaussianKernel` and :class:`StudentKernel`. An
        evaluation then takes at most about 16 ms on an H200: 0.4 ps for each pair. Interpolation
        is faster from 20 000 points on; pass 0 to prefer it.
    max_nodes : float, default=3e7
        Largest mesh, which takes about 1 GB of memory.
    fft : FFTInterpolation, optional
        Interpolation on a mesh, for every kernel.
    cells : CellSums, optional
        Sums over neighboring cells, for the Gaussian kernel.
    exact : Exact, optional
        Computes all other sums.

    See Also
    --------
    Exact, FFTInterpolation, CellSums : the sums it chooses from.
    Pairwise : takes it as ``pair_sums``.

    Examples
    --------
    >>> import numpy as np
    >>> from manifoldry.objectives import Fastest, StudentKernel
    >>> Y = np.random.default_rng(0).normal(scale=30, size=(20_000, 2))
    >>> Fastest().choose(StudentKernel(), Y).reason.split(":")[0]  # the rest compares times
    'interpolation on a mesh'
    """

    exact_up_to: int = 2000
    exact_on_device_up_to: int = 200_000
    max_nodes: float = 3e7
    fft: FFTInterpolation = field(default_factory=FFTInterpolation)
    cells: CellSums = field(default=CellSums())

    def __post_init__(self) -> None:
        check_count("exact_up_to", self.exact_up_to, minimum=0)
        check_count("exact_on_device_up_to", self.exact_on_device_up_to, minimum=0)
        check_positive("max_nodes", self.max_nodes)
        check_instance("fft", self.fft, FFTInterpolation)
        check_instance("cells", self.cells, CellSums)
        super().__post_init__()

    def choose(self, kernel: Kernel, Y: Array, weights: Matrix | None = None) -> ChosenSums:
        """Return the sums to use for an embedding, and why.

        Parameters
        ----------
        kernel : Kernel
            The kernel of the sums.
        Y : array of shape (n, d)
            The embedding.
        weights : array or sparse array, default=None
            Weights of the points or pairs; None means one.

        Returns
        -------
        ChosenSums
            The sums and the reason.
        """
        n, d = Y.shape
        if is_matrix(weights):
            return ChosenSums(self.exact, "exact: there are weights for pairs of points")
        if n <= self.exact_up_to:
            return ChosenSums(self.exact, f"exact: at most exact_up_to={self.exact_up_to} points")
        if d > MAX_COMPILED_DIMENSION:
            return ChosenSums(self.exact, f"exact: more than {MAX_COMPILED_DIMENSION} dimensions")
        if (device := device_of(Y)) is not None:
            return self._choose_on(device, kernel, Y, weights)
        factors = weights.n_factors if isinstance(weights, FactoredWeights) else 0
        seconds, cells = self._seconds(kernel, Y, factors)
        best = min(seconds, key=lambda name: seconds[name])
        others = ", ".join(f"{name} {s:.2g} s" for name, s in seconds.items() if name != best)
        engine = {_EXACT: self.exact, _FFT: self.fft, _CELLS: self.cells}[best]
        reason = f"{best}: {seconds[best]:.1g} s of processor time, {others}"
        return ChosenSums(engine, reason, cells if best == _CELLS else None)

    def _choose_on(
        self, device: Device, kernel: Kernel, Y: Array, weights: Matrix | None
    ) -> ChosenSums:
        """The choice for an embedding on a device, where cells have no loops."""
        most, n = self.exact_on_device_up_to, len(Y)
        compiled = kernel_shape(kernel) is not None and not isinstance(weights, FactoredWeights)
        limit = most if compiled else most // _SLOWDOWN
        if n <= limit:
            part = "" if compiled else f" // {_SLOWDOWN}"
            reason = f"at most exact_on_device_up_to={most}{part} points"
            return ChosenSums(self.exact, f"exact, on {device.name}: {reason}")
        nodes = self.fft.n_nodes(kernel, Y)
        if not nodes <= self.max_nodes:
            reason = f"a mesh would have more than max_nodes={self.max_nodes:.3g} nodes"
            return ChosenSums(self.exact, f"exact, on {device.name}: {reason}")
        return ChosenSums(self.fft, f"{_FFT}, on {device.name}: more than {limit} points")

    def reason(self, kernel: Kernel, Y: Array, weights: Matrix | None = None) -> str:
        return self.choose(kernel, Y, weights).reason

    def sums(self, kernel: Kernel, Y: Array, weights: Matrix | None = None) -> Sums:
        chosen = self.choose(kernel, Y, weights)
        if chosen.cells is not None:
            return self.cells.sums_in(chosen.cells, Y, weights)
        return chosen.pair_sums.sums(kernel, Y, weights)

    def moments(self, kernel: Kernel, Y: Array, weights: Matrix | None = None) -> Array:
        chosen = self.choose(kernel, Y, weights)
        if chosen.cells is not None:
            return self.cells.moments_in(chosen.cells, Y, weights)
        return chosen.pair_sums.moments(kernel, Y, weights)

    def at_positions(self, kernel: Kernel, Y: Array, factors: Array | None = None) -> PositionSums:
        n, d = Y.shape
        few = n <= self.exact_up_to
        if few or d > MAX_COMPILED_DIMENSION:
            reason = self.choose(kernel, Y).reason
            return replace(self.exact.at_positions(kernel, Y), reason=reason)
        return self.fft.at_positions(kernel, Y, factors)

    def without_cache(self) -> Self:
        return replace(self, fft=self.fft.without_cache())

    def _seconds(
        self, kernel: Kernel, Y: Array, factors: int
    ) -> tuple[dict[str, float], CellList | None]:
        """Predicted processor time of the alternatives, and the cells if they were computed.

        Factored weights have a number of `factors`; otherwise it is zero.
        """
        n, d = Y.shape
        costs = _Costs()
        seconds = {_EXACT: 1e-9 * n**2 * (costs.pair + factors * costs.pair_factor)}
        nodes = self.fft.n_nodes(kernel, Y)
        if nodes <= self.max_nodes:
            point = costs.mesh_point[d - 1] + factors * costs.mesh_factor[d - 1]
            seconds[_FFT] = 1e-9 * (n * point + nodes * max(factors, 1) * costs.mesh_node)
        least, cells = 1e-9 * n * costs.cell_point, None
        if least < min(seconds.values()):  # sorting the points into cells takes time
            cells = self.cells.cells(kernel, Y)
            pair = costs.cell_pair + factors * costs.cell_factor
            if cells is not None:
                seconds[_CELLS] = least + 1e-9 * cells.n_pairs * pair
        return seconds, cells


_REQUESTED: ContextVar[PairSums | None] = ContextVar("pair_sums", default=None)


@contextmanager
def using_pair_sums(pair_sums: PairSums) -> Iterator[None]:
    """Compute the sums of objectives that are created inside this context in a given way.

    Estimators create theirs in ``fit``. A fitted model keeps it, and places new points with it.

    Parameters
    ----------
    pair_sums : PairSums
        Computes the sums over pairs: :class:`Exact`, :class:`FFTInterpolation`, or
        :class:`Fastest`, the default, with other options.

    Yields
    ------
    None
        Nothing.

    See Also
    --------
    Fastest : the default.
    manifoldry.using_device : where to compute.

    Examples
    --------
    >>> import numpy as np
    >>> from manifoldry import SymmetricSNE
    >>> from manifoldry.objectives import FFTInterpolation, using_pair_sums
    >>> X = np.random.default_rng(0).normal(size=(50, 3))
    >>> with using_pair_sums(FFTInterpolation()):
    ...     model = SymmetricSNE().fit(X)
    >>> model.pairs_
    'FFTInterpolation, as requested'
    """
    check_instance("pair_sums", pair_sums, PairSums)
    token = _REQUESTED.set(pair_sums)
    try:
        yield
    finally:
        _REQUESTED.reset(token)


def default_pair_sums() -> PairSums:
    """Return the implementation of pair sums that objectives use by default."""
    requested = _REQUESTED.get()
    return Fastest() if requested is None else requested.without_cache()
