"""Published objectives as :class:`Pairwise` objects: elastic embedding, SNE and t-SNE."""

from manifoldry.objectives.normalizers import Joint, PerPoint, Unnormalized
from manifoldry.objectives.pair_kernel import GaussianKernel, StudentKernel
from manifoldry.objectives.pairwise import Pairwise
from manifoldry.objectives.repulsion import Repulsion
from manifoldry.objectives.weights import (
    conditional_weights,
    negative_entropy,
    summing_to_one,
    without_diagonal,
)
from manifoldry.util.checks import check_option
from manifoldry.util.typing import Matrix


def elastic(
    affinity: Matrix, repulsion: Repulsion | Matrix | str = "uniform", weight: float = 1.0
) -> Pairwise:
    """E(Y) = Σ w⁺ᵢⱼ·dᵢⱼ² + λ·Σ w⁻ᵢⱼ·exp(−dᵢⱼ²), the elastic embedding; sums over ordered pairs.

    Neighbors in the data attract each other quadratically; all points, or those far apart in the
    data, repel each other. Up to a critical λ (see
    :class:`Bifurcation`) the embedding is a single point; beyond
    it the scale grows like the square root of log λ. Values of λ refer to weights that sum to one:
    weights a·W⁺ and b·W⁻ give the same embeddings at λ·a/b.

    Parameters
    ----------
    affinity : sparse array of shape (n, n)
        The weights W⁺: symmetric, with sum one.
    repulsion : Repulsion, array of shape (n, n) or "uniform", default="uniform"
        The weights W⁻; a matrix is scaled to sum to one.
    weight : float, default=1.0
        Weight λ of the repulsion.

    Returns
    -------
    Pairwise
        The objective.

    See Also
    --------
    manifoldry.ElasticEmbedding : the estimator.
    Bifurcation : the critical λ.
    tsne, sne, symmetric_sne : objectives of other methods.

    References
    ----------
    M. Á. Carreira-Perpiñán, "The elastic embedding algorithm for dimensionality reduction",
    ICML 2010.

    Examples
    --------
    For two points at distance d, E = d² + λ·exp(−d²), which is smallest at d = 1 if λ = e.

    >>> import numpy as np
    >>> from manifoldry.objectives import elastic
    >>> objective = elastic(np.array([[0, 0.5], [0.5, 0]]), weight=np.e)
    >>> value, gradient = objective.value_and_gradient(np.array([[0.0], [1.0]]))
    >>> round(value, 12), float(abs(gradient).max().round(12))
    (2.0, 0.0)
    """
    W = summing_to_one(affinity, "affinities")  # the objective checks the rest
    return Pairwise(W, GaussianKernel(), Unnormalized(repulsion), weight)


def sne(
    affinity: Matrix, weight: float = 1.0, reduction: str = "mean", include_self: bool = False
) -> Pairwise:
    """E(Y) = mean over i of KL(Pᵢ‖Qᵢ), where Qᵢ is exp(−dᵢⱼ²) scaled to sum to one over j.

    With a weight λ ≠ 1 of the repulsion, E is the mean of Σⱼ pᵢⱼ·(log pᵢⱼ + dᵢⱼ²) +
    λ·log Σⱼ exp(−dᵢⱼ²), which is not a divergence.

    Parameters
    ----------
    affinity : sparse array of shape (n, n)
        The neighbor probabilities P; rows sum to one.
    weight : float, default=1.0
        Weight λ of the repulsion.
    reduction : {"mean", "sum"}, default="mean"
        Mean or sum over the points.
    include_self : bool, default=False
        Whether a point is its own neighbor in Q and, if `affinity` has a diagonal, in P. Q is then
        defined for points far from all others. Hinton and Roweis leave the point out, Memisevic
        and Hinton include it.

    Returns
    -------
    Pairwise
        The objective.

    See Also
    --------
    manifoldry.SNE : the estimator.
    symmetric_sne, tsne, elastic : objectives of other methods.

    Examples
    --------
    Three points with equal probabilities form an equilateral triangle.

    >>> import numpy as np
    >>> from manifoldry.objectives import sne
    >>> objective = sne((1 - np.eye(3)) / 2)
    >>> angles = 2 * np.pi * np.arange(3) / 3
    >>> round(abs(objective.value(np.stack([np.cos(angles), np.sin(angles)], axis=1))), 12)
    0.0
    """
    P = conditional_weights(affinity, "affinities", include_self=include_self)
    mean = check_option("reduction", reduction, ("mean", "sum")) == "mean"
    fraction = 1 / P.shape[0] if mean else 1.0
    W = without_diagonal((P + P.T) * (fraction / 2))
    rows = PerPoint(fraction, self_weight=float(include_self))
    return Pairwise(W, GaussianKernel(), rows, weight, constant=fraction * negative_entropy(P))


def symmetric_sne(affinity: Matrix, weight: float = 1.0) -> Pairwise:
    """E(Y) = KL(P‖Q), where Q is exp(−dᵢⱼ²) scaled to sum to one over all pairs.

    With a weight λ ≠ 1 of the repulsion, E is Σ pᵢⱼ·(log pᵢⱼ + dᵢⱼ²) + λ·log Σ exp(−dᵢⱼ²), which is
    not a divergence.

    Parameters
    ----------
    affinity : sparse array of shape (n, n)
        The joint probabilities P: symmetric, with sum one.
    weight : float, default=1.0
        Weight λ of the repulsion.

    Returns
    -------
    Pairwise
        The objective.

    See Also
    --------
    manifoldry.SymmetricSNE : the estimator.
    sne, tsne, elastic : objectives of other methods.

    Examples
    --------
    >>> import numpy as np
    >>> from manifoldry.objectives import symmetric_sne
    >>> objective = symmetric_sne(np.array([[0, 0.5], [0.5, 0]]))
    >>> round(abs(objective.value(np.array([[0.0], [3.0]]))), 12)  # any two points: Q is P
    0.0
    """
    P = summing_to_one(affinity, "affinities")
    return Pairwise(P, GaussianKernel(), Joint(), weight, constant=negative_entropy(P))


def tsne(
    affinity: Matrix, dof: float = 1.0, exaggeration: float = 1.0, weight: float = 1.0
) -> Pairwise:
    """E(Y) = KL(P‖Q), where Q is Student's kernel (1 + dᵢⱼ²/α)^{−(α+1)/2} scaled to sum to one.

    With an exaggeration ρ and a weight λ, E is Σ pᵢⱼ·log pᵢⱼ − ρ·Σ pᵢⱼ·log κ(dᵢⱼ²) +
    λ·log Σ κ(dᵢⱼ²), which is a divergence only for ρ = λ = 1. Its gradient for ρ > 1 is that of
    the early phase of t-SNE.

    Parameters
    ----------
    affinity : sparse array of shape (n, n)
        The joint probabilities P: symmetric, with sum one.
    dof : float, default=1.0
        Degrees of freedom α; fewer make heavier tails and separate clusters more.
    exaggeration : float, default=1.0
        Factor ρ of the attraction.
    weight : float, default=1.0
        Factor λ of the repulsion. E has no minimum for λ > ρ, since the embedding diverges.

    Returns
    -------
    Pairwise
        The objective.

    See Also
    --------
    manifoldry.TSNE : the estimator.
    sne, symmetric_sne, elastic : objectives of other methods.

    Examples
    --------
    >>> import numpy as np
    >>> from manifoldry.objectives import tsne
    >>> objective = tsne(np.array([[0, 0.5], [0.5, 0]]))
    >>> round(abs(objective.value(np.array([[0.0], [3.0]]))), 12)  # any two points: Q is P
    0.0
    """
    P = summing_to_one(affinity, "affinities")
    return Pairwise(
        P, StudentKernel(dof), Joint(), weight, exaggeration, constant=negative_entropy(P)
    )
