"""What SNE and symmetric SNE share: parameters and defaults."""

from typing import Any

from manifoldry.iterative.monitor import Callback
from manifoldry.iterative.neighbor_embedder import NeighborEmbedder
from manifoldry.optimize.filter import Filter
from manifoldry.optimize.homotopy import Homotopy
from manifoldry.optimize.optimizer import Optimiser
from manifoldry.util.typing import RandomState


class GaussianEmbedder(NeighborEmbedder):
    """Base of the methods that compare Gaussian probabilities in the data and on the map."""

    def __init__(
        self,
        n_components: int | None = None,
        *,
        perplexity: float | None = None,
        metric: Any = "euclidean",
        metric_params: dict[str, Any] | None = None,
        init: Any = None,
        optimizer: str | Optimiser | None = None,
        guidance: str | Filter | None = None,
        homotopy: bool | Homotopy | None = None,
        max_iter: int | None = None,
        tol: float | None = None,
        warm_start: bool = False,
        callback: Callback | None = None,
        callback_every: int = 1,
        verbose: bool = False,
        on_interrupt: str = "raise",
        random_state: RandomState = None,
        n_jobs: int | None = None,
    ) -> None:
        self.n_components = n_components
        self.perplexity = perplexity
        self.metric = metric
        self.metric_params = metric_params
        self.init = init
        self.optimizer = optimizer
        self.guidance = guidance
        self.homotopy = homotopy
        self.max_iter = max_iter
        self.tol = tol
        self.warm_start = warm_start
        self.callback = callback
        self.callback_every = callback_every
        self.verbose = verbose
        self.on_interrupt = on_interrupt
        self.random_state = random_state
        self.n_jobs = n_jobs

    _default_optimizer = "spectral-lbfgs"
    _default_homotopy = Homotopy(n_steps=20)

    def _default_perplexity(self, n: int) -> float:
        return 10.0
