"""Python code and the command that make the same map again."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from manifoldry.methods.catalog import METHODS
from manifoldry.reporting.maps import MethodMap
from manifoldry.reporting.source import Source


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
        imports = {*self.source.imports, *(line for part in parts for line in _imports(part))}
        if len(parts) > 1:
            imports.add("from sklearn.pipeline import make_pipeline")
        lines = [self.source.code]
        if self.sampled is not None:
            lines += [
                f"rows = np.random.default_rng({self.seed}).permutation(X.shape[0])",
                f"X = X[np.sort(rows[:{self.sampled}])]",
            ]
        texts = [_written(part) for part in parts]
        if any("np." in text for text in (*lines, *texts)):
            imports.add("import numpy as np")
        model = texts[0]
        if len(texts) > 1:
            inner = "".join(f"    {text.replace(chr(10), chr(10) + '    ')},\n" for text in texts)
            model = f"make_pipeline(\n{inner})"
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


def _imports(estimator: Any) -> list[str]:
    """Imports for an estimator and for those inside it."""
    found = [estimator, *estimator.get_params().values()]
    kinds = {type(each) for each in found if hasattr(each, "get_params")}
    return [f"from {_public_module(kind)} import {kind.__name__}" for kind in kinds]


def _public_module(kind: type) -> str:
    if kind.__name__ in {method.class_name for method in METHODS}:
        return "manifoldry" if kind.__module__.startswith("manifoldry.") else _public(kind)
    return _public(kind)


def _public(kind: type) -> str:
    parts = kind.__module__.split(".")
    private = next((i for i, part in enumerate(parts) if part.startswith("_")), len(parts))
    return ".".join(parts[:private])


def _written(estimator: Any) -> str:
    """The estimator as Python; functions of NumPy are written by their names."""
    text = repr(estimator)
    for name in ("log1p", "expm1"):
        text = text.replace(f"<ufunc '{name}'>", f"np.{name}")
    return text
