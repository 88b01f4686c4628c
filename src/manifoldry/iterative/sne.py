"""Stochastic neighbor embedding, with conditional and with joint probabilities."""

from scipy import sparse

from manifoldry.base.distributed import DistributedFit
from manifoldry.base.docs import shared_docs
from manifoldry.distributed.rows import Rows
from manifoldry.iterative.neighbor_embedder import NeighborEmbedder
from manifoldry.iterative.neighbor_weights import Neighbors, joint
from manifoldry.objectives.losses import sne, symmetric_sne
from manifoldry.objectives.pairwise import Pairwise
from manifoldry.optimize.homotopy import Homotopy


@shared_docs
class SNE(NeighborEmbedder):
    """Stochastic neighbor embedding: match each point's neighbor probabilities.

    Minimizes the mean over points of KL(Pᵢ‖Qᵢ): Pᵢ are the neighbor probabilities of point i in
    the data, Gaussian with a width that gives all points the same perplexity, and Qᵢ those in the
    embedding, Gaussian of width one. Neighbors stay close, and points that are not neighbors are
    kept apart. Clusters are less separated than by :class:`TSNE`, but their relative positions are
    more meaningful. The row of a new point is normalized too, so that a point far from all data is
    placed on the rim of the embedding, near its nearest training points. With one bandwidth,
    `gamma`, all probability of such a point is on its nearest neighbor, and its place outside the
    embedding is not determined: it is limited to twice the radius of the embedding, with a warning.

    Parameters
    ----------
    {n_components}
    {sne_perplexity}
    {sne_affinity}
    {sne_gamma}
    {metric}
    {metric_params}
    {sne_init}
    {sne_optimizer}
    {extension}
    {regression_inverse}
    {max_iter}
    {callback}
    {verbose}
    {random_start}
    {n_jobs}
    {device}

    Attributes
    ----------
    {n_components_}
    {embedding_}
    {extension_}
    {inverse_}
    {objective_}
    {perplexity_}
    affinity_ : sparse array of shape (n_samples, n_samples)
        The neighbor probabilities Pᵢ, made symmetric and scaled to sum to one: the weights of
        attraction.
    loss_ : float
        The mean over points of KL(Pᵢ‖Qᵢ) at the embedding.
    {converged_}
    {status_}
    {n_iter_}
    {repulsion_trace_}
    {path_}
    {bifurcation_}
    {learned_affinity_}
    {pairs_}
    {neighbor_search_}

    See Also
    --------
    SymmetricSNE : probabilities of pairs instead of points.
    TSNE : with a heavy-tailed kernel.

    References
    ----------
    G. Hinton and S. Roweis, "Stochastic neighbor embedding", NIPS 15, 2003.

    Examples
    --------
    >>> from manifoldry import SNE
    >>> from manifoldry.datasets import make_swiss_roll
    >>> X, coordinates = make_swiss_roll(300, random_state=0)
    >>> model = SNE().fit(X)
    >>> model.embedding_.shape, model.converged_
    ((300, 2), True)
    >>> model.transform(X[:3] + 0.01).shape
    (3, 2)
    """

    _default_homotopy = Homotopy(n_steps=20)

    def _affinity(self, neighbors: Neighbors) -> sparse.csr_array:
        return joint(neighbors.conditional)

    def _objective(self, neighbors: Neighbors, affinity: sparse.csr_array) -> Pairwise:
        return sne(neighbors.conditional)

    def _fit_refined(self, rows: Rows) -> DistributedFit:
        raise ValueError(
            "refine moves all rows by sums over all pairs that are interpolated, and SNE divides "
            "by the sum of each row, which has to be accurate where it is small; use SymmetricSNE, "
            "or pass refine=0"
        )


@shared_docs
class SymmetricSNE(NeighborEmbedder):
    """Symmetric stochastic neighbor embedding: match the joint probabilities of pairs.

    Minimizes KL(P‖Q) over all pairs: P are entropic affinities, made symmetric, Q is proportional
    to exp(−‖yᵢ − yⱼ‖²). Like :class:`SNE`, but with one normalizer for all points, so that outliers
    are placed farther out. The probabilities of a new point sum to one however far it is, so that
    it stays near its nearest training points, with `gamma` near the nearest one.

    Parameters
    ----------
    {n_components}
    {sne_perplexity}
    {sne_affinity}
    {sne_gamma}
    {metric}
    {metric_params}
    {sne_init}
    {sne_optimizer}
    {extension}
    {regression_inverse}
    {max_iter}
    {callback}
    {verbose}
    {random_start}
    {n_jobs}
    {device}

    Attributes
    ----------
    {n_components_}
    {embedding_}
    {extension_}
    {inverse_}
    {objective_}
    {perplexity_}
    {joint_affinity_}
    loss_ : float
        The divergence KL(P‖Q) at the embedding.
    {converged_}
    {status_}
    {n_iter_}
    {repulsion_trace_}
    {path_}
    {bifurcation_}
    {learned_affinity_}
    {pairs_}
    {neighbor_search_}

    See Also
    --------
    SNE : probabilities of each point's neighbors.
    TSNE : with a heavy-tailed kernel.

    References
    ----------
    J. Cook, I. Sutskever, A. Mnih and G. Hinton, "Visualizing similarity data with a mixture of
    maps", AISTATS 2007.

    Examples
    --------
    >>> from manifoldry import SymmetricSNE
    >>> from manifoldry.datasets import make_swiss_roll
    >>> X, coordinates = make_swiss_roll(300, random_state=0)
    >>> model = SymmetricSNE().fit(X)
    >>> model.embedding_.shape, model.converged_
    ((300, 2), True)
    >>> model.transform(X[:3] + 0.01).shape
    (3, 2)
    """

    _default_homotopy = Homotopy(n_steps=20)

    def _objective(self, neighbors: Neighbors, affinity: sparse.csr_array) -> Pairwise:
        return symmetric_sne(affinity)
