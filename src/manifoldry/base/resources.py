"""What the methods of estimators share: threads, the device, and arrays that are on a device."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from inspect import signature
from typing import Any, Concatenate, ParamSpec, TypeVar

from manifoldry.device import Device, current_device, using_device
from manifoldry.device.arguments import arguments_on_host
from manifoldry.distributed.collections import is_collection
from manifoldry.neighbors.distributed_graph import DistributedGraph
from manifoldry.util.threads import threads_allowed

P = ParamSpec("P")
Estimator = TypeVar("Estimator")
Result = TypeVar("Result")


def on_its_device(
    method: Callable[Concatenate[Estimator, P], Result],
) -> Callable[Concatenate[Estimator, P], Result]:
    """Decorator of methods: compute with the threads and on the device of the parameters.

    Arguments may be arrays on a device; results are then of the same kind, on the same device.
    A class without a path for devices says why in ``_runs_on_host``, which ``fit`` repeats once.
    They may also be collections of Dask, whose results are lazy.
    """
    name = method.__name__

    @wraps(method)
    def call(self: Estimator, *args: P.args, **kwargs: P.kwargs) -> Result:
        X = args[0] if args else kwargs.get("X")
        if is_collection(X) or isinstance(X, DistributedGraph):
            _check_arguments(method, self, args, kwargs)
            return _of_collection(self, name, X, args[1:], kwargs)
        model = vars(self).get("landmark_model_")
        if model is not None and not _fits(name):
            return getattr(model, name)(*args, **kwargs)
        if model is not None:
            return _fitted_in_memory(call, self, args, kwargs)
        n_jobs, device = _parameter(self, "n_jobs"), _parameter(self, "device")
        with threads_allowed(n_jobs), arguments_on_host(device, args, kwargs) as given:
            if name == "fit":
                _say_what_runs_on_host(self, current_device())
            result: Any = method(self, *given.args, **given.kwargs)
            frames = _returns_frames(self)
            return result if frames else given.returned(result)

    return call


def _check_arguments(method: Any, estimator: Any, args: Any, kwargs: Any) -> None:
    """Raise TypeError if a method in memory would not take the arguments."""
    try:
        signature(method).bind(estimator, *args, **kwargs)
    except TypeError as error:
        name = f"{type(estimator).__name__}.{method.__name__}()"
        raise TypeError(f"{name} does not take these arguments: {error}") from None


def _fits(name: str) -> bool:
    """Whether a method of this name replaces the fit."""
    return name == "pose" or name.startswith("fit")


def _fitted_in_memory(fit: Any, estimator: Any, args: Any, kwargs: Any) -> Any:
    """The result of a fit in memory after one to distributed data, which is kept if this fails."""
    from manifoldry.base.distributed import replacing_distributed_fit

    with replacing_distributed_fit(estimator):
        return fit(estimator, *args, **kwargs)


def _of_collection(estimator: Any, name: str, X: Any, others: Any, options: Any) -> Any:
    """The result of a method for a collection of Dask."""
    from manifoldry.base import distributed

    if name in ("fit_transform", "transform") and _returns_frames(estimator):
        raise TypeError(
            "set_output asks for data frames in memory, and results for a Dask collection are not; "
            "call set_output(transform='default'), and make a Dask data frame with "
            "dask.dataframe.from_dask_array(Y, columns=model.get_feature_names_out())"
        )
    if name not in ("fit", "fit_transform", "fit_predict"):
        if others:
            raise TypeError(f"{name} of a Dask collection takes no further argument by position")
        options = {k: v for k, v in options.items() if k != "X"}
        return distributed.map_collection(estimator, name, X, **options)
    fitted = distributed.fit_collection(estimator, X)
    if name == "fit":
        return fitted
    if name == "fit_predict":
        return fitted.labels_
    found = vars(fitted).get("embedding_")
    return distributed.map_collection(fitted, "transform", X) if found is None else found


@contextmanager
def resources(estimator: Any) -> Iterator[None]:
    """Compute with the threads and on the device of an estimator's parameters in this context."""
    n_jobs, device = _parameter(estimator, "n_jobs"), _parameter(estimator, "device")
    with threads_allowed(n_jobs), using_device(device):
        yield


def _parameter(estimator: Any, name: str) -> Any:
    """A parameter of an estimator, or of the estimator inside it if it has no such parameter."""
    while not hasattr(estimator, name) and hasattr(estimator, "estimator"):
        estimator = estimator.estimator
    return getattr(estimator, name, None)


def _say_what_runs_on_host(estimator: Any, device: Device | None) -> None:
    why = getattr(estimator, "_runs_on_host", None)
    if device is not None and why is not None:
        device.runs_on_host(type(estimator).__name__, why)


def _returns_frames(estimator: Any) -> bool:
    """Whether `set_output` turns results into data frames, which are made of arrays of numpy."""
    from sklearn import get_config

    own = vars(estimator).get("_sklearn_output_config", {})
    return own.get("transform", get_config()["transform_output"]) != "default"
