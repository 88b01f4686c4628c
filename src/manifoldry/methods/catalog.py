"""The methods by their names on the command line."""

from __future__ import annotations

from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

import manifoldry

# Names in headings, where they differ from that of the class.
_TITLES = {
    "TSNE": "t-SNE",
    "NonRedundant": "Non-redundant eigenmaps",
    "LaplacianEigenmaps": "Laplacian eigenmaps",
    "DiffusionMaps": "Diffusion maps",
    "SymmetricSNE": "Symmetric SNE",
    "ElasticEmbedding": "Elastic embedding",
    "ClassicalMDS": "Classical MDS",
    "HessianLLE": "Hessian LLE",
    "ModifiedLLE": "Modified LLE",
    "KernelPCA": "Kernel PCA",
    "ConformalEigenmaps": "Conformal eigenmaps",
    "MaximumVarianceUnfolding": "Maximum variance unfolding",
}


@dataclass(frozen=True)
class Method:
    """A method: its name on the command line, its class, and what it is for."""

    name: str
    class_name: str
    use: str

    @property
    def key(self) -> str:
        """Name of files and columns."""
        return self.name.replace("-", "_")

    @property
    def title(self) -> str:
        """Name in headings."""
        return _TITLES.get(self.class_name, self.class_name)

    def make(self) -> Any:
        """The estimator with its default parameters."""
        made = getattr(manifoldry, self.class_name)
        if self.class_name == "NonRedundant":
            return made(manifoldry.LaplacianEigenmaps())
        return made()

    def estimator(self, n_components: int, seed: int, n_jobs: int | None) -> Any:
        """The estimator with the parameters that most methods have."""
        made = self.make()
        common = {"n_components": n_components, "random_state": seed, "n_jobs": n_jobs}
        present = made.get_params()
        return made.set_params(**{name: v for name, v in common.items() if name in present})


METHODS = tuple(
    Method(name, class_name, use)
    for name, class_name, use in (
        ("pca", "PCA", "a first look; linear, fast, exact in both directions"),
        ("classical-mds", "ClassicalMDS", "a metric of your own (--set metric=cityblock)"),
        ("kernel-pca", "KernelPCA", "smooth nonlinear features, denoising"),
        ("isomap", "Isomap", "the global shape of one connected manifold"),
        ("ltsa", "LTSA", "a sheet, rolled up or with holes, little noise"),
        ("hessian-lle", "HessianLLE", "as ltsa"),
        ("modified-lle", "ModifiedLLE", "as ltsa, with fewer neighbors than hessian-lle needs"),
        ("lle", "LLE", "a smooth sheet, few neighbors"),
        ("mvu", "MaximumVarianceUnfolding", "a sheet with holes or some noise, few thousand rows"),
        ("conformal-eigenmaps", "ConformalEigenmaps", "a curved surface; keeps angles"),
        ("diffusion-maps", "DiffusionMaps", "branches, order along a process"),
        ("laplacian-eigenmaps", "LaplacianEigenmaps", "clusters, or a coarse shape"),
        ("nonredundant", "NonRedundant", "laplacian-eigenmaps whose coordinates do not repeat "
         "each other"),
        ("tsne", "TSNE", "clusters, for a picture; their sizes and distances often mean little"),
        ("elastic-embedding", "ElasticEmbedding", "clusters, and the manifolds within them"),
        ("sne", "SNE", "as tsne, with Gaussian kernels"),
        ("symmetric-sne", "SymmetricSNE", "as sne, with joint probabilities"),
        ("ukr", "UKR", "a noisy curve or surface, and an accurate inverse"),
    )
)  # fmt: skip

# Methods that are compared if none is named.
USUAL_METHODS = ("pca", "laplacian-eigenmaps", "isomap", "tsne")

# Methods of other packages that a user may look for.
_ELSEWHERE = {"umap", "densmap", "trimap", "pacmap", "localmap", "phate", "forceatlas2"}


def find_method(name: str) -> Method:
    """The method of a name, in any spelling; a ValueError suggests a similar one."""
    spelled = {_letters(m.name): m for m in METHODS}
    spelled |= {_letters(m.class_name): m for m in METHODS} | {"mds": spelled["classicalmds"]}
    found = spelled.get(_letters(name))
    if found is None and _letters(name) in _ELSEWHERE:
        raise ValueError(
            f"{name!r} is no method of manifoldry; tsne has the same purpose, and "
            "`manifoldry assess` judges a map that another package has made"
        )
    if found is None:
        close = get_close_matches(_letters(name), spelled, n=1)
        hint = f"did you mean {spelled[close[0]].name}?" if close else "see manifoldry methods"
        raise ValueError(f"there is no method {name!r}; {hint}")
    return found


def _letters(name: str) -> str:
    return "".join(letter for letter in name.lower() if letter.isalnum())
