"""Python code and the command that make the same map again."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from manifoldry.reporting.maps import MethodMap
from manifoldry.reporting.python_code import NoCodeError, PythonCode, call_text
from manifoldry.reporting.source import Source

_PASSED = "clone(estimator)"


@dataclass(frozen=True)
class Recipe:
    """How the data were prepared: the source, the sample and the steps before the method.

    Parameters
    ----------
    source : Source
        The data.
    steps : sequence of (str, transformer)
        Steps before the method, by name.
    sampled : int or None
        Number of rows of the sample; None if all rows were used.
    seed : int
        Seed of the sample.
    options : tuple of str
        Options of the command for the steps.
    impute : str or None
        What was put for missing values; None if there are none.
    """

    source: Source
    steps: Sequence[tuple[str, Any]]
    sampled: int | None
    seed: int
    options: tuple[str, ...]
    impute: str | None = None

    @property
    def is_scaled(self) -> bool:
        """Whether columns are standardized."""
        return any(name == "scale" for name, _ in self.steps)

    def code(self, each: MethodMap) -> str:
        """Python whose ``embedding`` is the map."""
        parts = [*(step for _, step in self.steps), each.estimator]
        lines = [self.source.code]
        if self.sampled is not None:
            lines += [
                f"rows = np.random.default_rng({self.seed}).permutation(X.shape[0])",
                f"X = X[np.sort(rows[:{self.sampled}])]",
            ]
        code = PythonCode()
        texts = [_written(part, code) for part in parts]
        imports = code.imports | {*self.source.imports}
        if _PASSED in texts:
            imports.add("from sklearn.base import clone")
            lines.append("# estimator is what was passed to report; it cannot be written as code.")
        if len(parts) > 1:
            imports.add("from sklearn.pipeline import make_pipeline")
        if any("np." in line for line in lines):
            imports.add("import numpy as np")
        model = texts[0] if len(texts) == 1 else call_text("make_pipeline", texts)
        ordered = sorted(imports, key=lambda line: (line.startswith("from"), line))
        return "\n".join([*ordered, "", *lines, f"model = {model}",
                          "embedding = model.fit_transform(X)"])  # fmt: skip

    def command(self, each: MethodMap) -> str | None:
        """The command that writes the map; None if there is none that does."""
        if self.source.arguments is None or each.method is None:
            return None
        options = [*self.options, "--method", each.method, "--seed", str(self.seed)]
        count = each.estimator.get_params().get("n_components", 2)
        options += [] if count == 2 else ["--components", str(count)]
        return shlex.join(["manifoldry", "embed", *self.source.arguments, *options])


def _written(estimator: Any, code: PythonCode) -> str:
    """The estimator as code, or as the one that was passed if that is not possible."""
    try:
        PythonCode().of(estimator)  # a trial, whose imports are forgotten if it fails
    except NoCodeError:
        return _PASSED
    return code.of(estimator)
