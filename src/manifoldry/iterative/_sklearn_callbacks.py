"""scikit-learn's callback protocol, where the installed version has it."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from manifoldry.optimize.optimizer import Iterate

if TYPE_CHECKING:

    class CallbackSupportMixin:
        """Adds ``set_callbacks``."""

        def _init_callback_context(self, **options: Any) -> Any: ...

    def with_callbacks(method: Any) -> Any:
        """Tears callbacks down after the method, whatever happens in it."""

else:
    try:
        from sklearn.callback import CallbackSupportMixin, with_callbacks
    except ImportError:  # before 1.9

        class CallbackSupportMixin:
            """Nothing to support."""

        def with_callbacks(method):
            """Nothing to tear down."""
            return method


def begin_fit(estimator: Any) -> None:
    """Tell scikit-learn's callbacks, where there are any, that a fit begins."""
    if hasattr(estimator, "_skl_callbacks"):
        fit = estimator._init_callback_context(max_subtasks=None)
        fit.call_on_fit_task_begin(estimator=estimator)


def step_hook(estimator: Any) -> Callable[[Iterate], bool] | None:
    """What tells them of every step; None where there are none.

    Its result says whether one of them asks to stop.
    """
    if not hasattr(estimator, "_callback_fit_ctx"):
        return None

    def hook(iterate: Iterate) -> bool:
        task = estimator._callback_fit_ctx.subcontext(task_name="step")
        task.call_on_fit_task_begin(estimator=estimator)
        return bool(task.call_on_fit_task_end(estimator=estimator))

    return hook


def end_fit(estimator: Any) -> None:
    """Tell them that the fit is over."""
    if hasattr(estimator, "_callback_fit_ctx"):
        estimator._callback_fit_ctx.call_on_fit_task_end(estimator=estimator)
