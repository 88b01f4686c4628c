"""The methods by their names on the command line, and their parameters."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

import manifoldry
from manifoldry.cli.errors import UsageError


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

    def make(self) -> Any:
        """The estimator with its default parameters."""
        made = getattr(manifoldry, self.class_name)
        if self.class_name == "NonRedundant":
            return made(manifoldry.LaplacianEigenmaps())
        return made()


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
        ("tsne", "TSNE", "clusters, for a picture; their sizes and distances mean little"),
        ("elastic-embedding", "ElasticEmbedding", "clusters, and the manifolds within them"),
        ("sne", "SNE", "as tsne, with Gaussian kernels"),
        ("symmetric-sne", "SymmetricSNE", "as sne, with joint probabilities"),
        ("ukr", "UKR", "a noisy curve or surface, and an accurate inverse"),
    )
)  # fmt: skip


def method_named(name: str) -> Method:
    """The method of a name, in any spelling; a usage error suggests a similar one."""
    spelled = {_letters(m.name): m for m in METHODS}
    spelled |= {_letters(m.class_name): m for m in METHODS} | {"mds": spelled["classicalmds"]}
    found = spelled.get(_letters(name))
    if found is None:
        close = get_close_matches(_letters(name), spelled, n=1)
        hint = f"did you mean {spelled[close[0]].name}?" if close else "see manifoldry methods"
        raise UsageError(f"there is no method {name!r}; {hint}")
    return found


def _letters(name: str) -> str:
    return "".join(letter for letter in name.lower() if letter.isalnum())


def make_estimator(method: Method, options: Mapping[str, Any]) -> Any:
    """The estimator with the parameters of the command line."""
    estimator = method.make()
    params = estimator.get_params()
    common = {
        "n_components": options["components"],
        "random_state": options["seed"],
        "n_jobs": options["jobs"],
    }
    estimator.set_params(**{name: value for name, value in common.items() if name in params})
    settings = options.get("settings") or ()
    for name, value in parse_settings(settings).items():
        _check_parameter(method, name, params)
        estimator.set_params(**{name: value})
    return estimator


def _check_parameter(method: Method, name: str, params: Mapping[str, Any]) -> None:
    if name not in params:
        close = get_close_matches(name, params, n=1)
        hint = f"did you mean {close[0]}?" if close else f"it has {', '.join(sorted(params))}"
        raise UsageError(f"{method.name} has no parameter {name!r}; {hint}")


def make_estimators(names: Sequence[str], options: Mapping[str, Any]) -> dict[str, Any]:
    """Estimators by the names of their methods, each with its own parameters.

    ``--set tsne.perplexity=50`` is for one of the methods, ``--set n_neighbors=20`` for all others
    that have this parameter.
    """
    methods = [method_named(name) for name in names]
    params = {method: method.make().get_params() for method in methods}
    settings: dict[Method, list[str]] = {method: [] for method in methods}
    given = options.get("settings") or ()
    for setting in sorted(given, key=lambda setting: "." in setting.partition("=")[0]):
        parse_settings([setting])
        before, dot, rest = setting.partition("=")[0].partition(".")
        if dot:
            chosen = [method_named(before)]
            if chosen[0] not in methods:
                raise UsageError(f"--set {setting}: {chosen[0].name} is not compared")
            _check_parameter(chosen[0], rest.strip(), params[chosen[0]])
            setting = setting.partition(".")[2]
        else:
            chosen = [method for method in methods if before.strip() in params[method]]
            if not chosen:
                raise UsageError(f"none of the methods has a parameter {before.strip()!r}")
        for method in chosen:
            settings[method].append(setting)
    return {m.name: make_estimator(m, {**options, "settings": settings[m]}) for m in methods}


def parse_settings(settings: Sequence[str]) -> dict[str, Any]:
    """Parameters from ``name=value``; what is no number, list or None is a text."""
    parsed = {}
    for setting in settings:
        name, equals, value = setting.partition("=")
        if not (equals and name.strip()):
            raise UsageError(f"--set {setting!r} must be name=value")
        parsed[name.strip()] = _value(value.strip())
    return parsed


def _value(text: str) -> Any:
    constants = {"true": True, "false": False, "none": None}
    if text.lower() in constants:
        return constants[text.lower()]
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text
