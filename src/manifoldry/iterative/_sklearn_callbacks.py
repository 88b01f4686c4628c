"""scikit-learn's callback protocol, where the installed version has it."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from manifoldry.optimize.solution import Iterate

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


def step_hook(estimator: Any, max_steps: int | None) -> Callable[[Iterate], bool] | None:
    """What tells scikit-learn's callbacks of every step; None where there are none.

    Its result says whether one of them asks to stop.
    """
    if not hasattr(estimator, "_skl_callbacks"):
        return None
    fit = estimator._init_callback_context(max_subtasks=max_steps)

    def hook(iterate: Iterate) -> bool:
        task = fit.subcontext(task_name="step")
        task.call_on_fit_task_begin(estimator=estimator)
        return bool(task.call_on_fit_task_end(estimator=estimator))

    return hook
