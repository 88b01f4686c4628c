"""
An objective of your own
========================

SNE and t-SNE differ in one function: the kernel that turns distances on the map into similarities.
What would a kernel between the two do? You write its logarithm and two derivatives, check them,
and get a complete estimator.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from manifoldry import assess
from manifoldry.iterative import NeighborEmbedder
from manifoldry.objectives import GaussianKernel, Joint, Kernel, Pairwise, StudentKernel
from manifoldry.plotting import plot_grid

# %%
# The kernel
# ----------
# ``Exponential`` is the kernel :math:`\kappa = \exp(1 - \sqrt{1 + d^2})`. It is Gaussian nearby.
# Far away its tails are heavier than those of SNE and lighter than those of t-SNE. A kernel is
# defined by :math:`\varphi = -\log \kappa`, as a function of the squared distance.


class Exponential(Kernel):
    """κ = exp(1 − √(1 + d²))."""

    def phi(self, D):
        return np.sqrt(1 + D) - 1

    def derivative(self, D):
        return 0.5 / np.sqrt(1 + D)

    def second_derivative(self, D):
        return -0.25 / (1 + D) ** 1.5


class KernelSNE(NeighborEmbedder):
    """Symmetric SNE with a kernel of your choice."""

    def __init__(self, n_components=None, *, kernel=None, perplexity=None, random_state=None):
        self.n_components, self.kernel = n_components, kernel
        self.perplexity, self.random_state = perplexity, random_state

    def _objective(self, neighbors, affinity):
        return Pairwise(affinity, self.kernel, Joint())


# %%
# Three maps
# ----------
# Digits, start and optimizer are the same; only the kernel differs. The heavier its tails, the more
# the clusters contract and move apart. Color is the digit.

X, y = load_digits(return_X_y=True)
X, y = X[:600], y[:600]
kernels = {"Gaussian": GaussianKernel(), "exponential": Exponential(), "Student": StudentKernel()}
models = {name: KernelSNE(kernel=k, perplexity=15).fit(X) for name, k in kernels.items()}
fig, axes = plt.subplots(2, 2, figsize=(8.5, 8), layout="constrained")
distance = np.linspace(0, 5, 200)
for name, kernel in kernels.items():
    axes[0, 0].semilogy(distance, np.exp(-kernel.phi(distance**2)), label=name)
axes[0, 0].set(xlabel="distance on the map", ylabel="similarity", ylim=(1e-4, 2))
axes[0, 0].legend()
maps = plot_grid(models, y, axes=axes.ravel()[1:])

# %%
# Check the gradient
# ------------------
# The gradient of the objective follows from the derivatives of the kernel, and those may be wrong.
# A central difference along a random direction reveals it.

objective, rng = models["exponential"].objective_, np.random.default_rng(0)
Y, step = rng.normal(size=(600, 2)), 1e-4 * rng.normal(size=(600, 2))
difference = objective.value_and_gradient(Y + step)[0] - objective.value_and_gradient(Y - step)[0]
slope = 2 * np.sum(objective.value_and_gradient(Y)[1] * step)
print(f"difference {difference:.8e}, by the gradient {slope:.8e}")

# %%
# Which kernel is best?
# ---------------------
# The new kernel is between the two in both metrics. Heavy tails keep nearest neighbors, light
# tails keep large distances.

for name, model in models.items():
    metrics = assess(X, model, y).metrics
    print(
        f"{name:12} trustworthiness {metrics['trustworthiness']:.3f}  "
        f"rank correlation of distances {metrics['distance_rank_correlation']:.2f}"
    )
plt.show()

# %%
# ``transform`` and ``inverse_transform`` work with the new class. Give it the parameters ``init``
# and ``optimizer``, and all starts, optimizers and homotopies work, too. You can also replace the
# normalizer: with ``Unnormalized()`` instead of ``Joint()`` it is an elastic embedding. See
# :doc:`/extending` for the rules, :doc:`/mathematics` for the family of objectives, and
# :ref:`sphx_glr_gallery_extending_own_method.py` for a spectral method.
