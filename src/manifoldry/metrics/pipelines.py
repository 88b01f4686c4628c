"""A pipeline that ends with an embedding: the data and the embedding of its last step."""

from typing import Any, NamedTuple

from sklearn.exceptions import NotFittedError
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from manifoldry.neighbors.graph import NeighborGraph


class StepsBefore(NamedTuple):
    """The steps of a pipeline before its last one, without those that pass data through."""

    steps: list[tuple[str, Any]]

    @classmethod
    def of(cls, model: Any) -> "StepsBefore":
        """The steps before the last one; none if the model is not a pipeline."""
        steps = model.steps[:-1] if isinstance(model, Pipeline) else []
        return cls([(name, step) for name, step in steps if step not in (None, "passthrough")])

    def transform(self, X: Any) -> Any:
        """The data as the last step sees them."""
        for _, step in self.steps:
            X = step.transform(X)
        return X

    def __str__(self) -> str:
        return ", ".join(repr(name) for name, _ in self.steps)


def last_step(model: Any) -> Any:
    """The last step of a pipeline; anything else as it is."""
    return model.steps[-1][1] if isinstance(model, Pipeline) else model


def seen_by_last_step(X: Any, embedding: Any, metric: Any) -> tuple[Any, Any]:
    """The data that the last step of a fitted pipeline sees, and that step or its output.

    Anything but a pipeline is returned as it is. So are data that are distances already: a graph,
    or a matrix with the metric ``"precomputed"``.
    """
    if not isinstance(embedding, Pipeline):
        return X, embedding
    before, last = StepsBefore.of(embedding), last_step(embedding)
    if not _is_fitted(embedding) or isinstance(X, NeighborGraph) or _is_precomputed(metric):
        return X, last
    if before.steps and any(map(_is_precomputed, last.get_params().values())):
        raise ValueError(
            "the pipeline computes distances or weights of pairs before its last step (by "
            f"{before}), with which an embedding cannot be compared; pass the data from which they "
            "are computed as X, and the last step, pipeline[-1], as embedding"
        )
    X = before.transform(X)
    return X, last if hasattr(last, "embedding_") else last.transform(X)


def _is_fitted(model: Any) -> bool:
    try:
        check_is_fitted(model)
    except NotFittedError:
        return False
    return True


def _is_precomputed(value: Any) -> bool:
    return isinstance(value, str) and value == "precomputed"


def refuse_steps_before(model: Any) -> Any:
    """The last step of a pipeline, or the model, for a comparison of maps of the same data.

    A pipeline with steps before that one is refused, since its map is of other data.
    """
    before = StepsBefore.of(model)
    if before.steps:
        raise ValueError(
            f"the pipeline changes the data before its last step (by {before}), and only maps of "
            "the same data can be compared; pass pipeline[:-1].fit_transform(X) as X and the last "
            "step, pipeline[-1], as embedding. To judge the map of the pipeline by X as it is, "
            "pass pipeline.fit_transform(X) as embedding"
        )
    return last_step(model)
