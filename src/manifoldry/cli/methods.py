"""The methods of the command line with their parameters."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from typing import Any

import typer

from manifoldry.cli.errors import UsageError
from manifoldry.methods.catalog import Method, find_method
from manifoldry.methods.settings import parsed_value


def method_named(name: str) -> Method:
    """The method of a name, in any spelling; a usage error suggests a similar one."""
    try:
        return find_method(name)
    except ValueError as error:
        raise UsageError(str(error)) from None


def only_method(names: Sequence[str] | None) -> str | None:
    """The name that was given, if any; a usage error for several."""
    if names and len(names) > 1:
        raise UsageError(
            f"{len(names)} methods were given ({', '.join(names)}), but a map is made by one; "
            "name one, or use manifoldry compare for several"
        )
    return names[0] if names else None


def fit_components(ctx: typer.Context, n_features: int, note: Callable[[str], None]) -> None:
    """Lower the number of coordinates to that of features unless it was given; say so."""
    count = ctx.params["components"]
    if count <= n_features:
        return
    source: Any = ctx.get_parameter_source("components")
    features = "one feature" if n_features == 1 else f"{n_features} features"
    if source.name == "DEFAULT":
        ctx.params["components"] = n_features
        note(f"the map has {n_features} coordinate{'s' * (n_features > 1)}, because the data have "
             f"{features}; --components sets another number")  # fmt: skip
    else:
        note(f"the map has {count} coordinates, although the data have only {features}")


def make_estimator(method: Method, options: Mapping[str, Any]) -> Any:
    """The estimator with the parameters of the command line."""
    estimator = method.estimator(options["components"], options["seed"], options["jobs"])
    params = estimator.get_params()
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
    """Estimators by the names of their methods, each with its own parameters."""
    settings = settings_of_methods(names, options.get("settings") or ())
    return {m.name: make_estimator(m, {**options, "settings": s}) for m, s in settings.items()}


def settings_of_methods(names: Sequence[str], given: Sequence[str]) -> dict[Method, list[str]]:
    """The settings of each method.

    ``--set tsne.perplexity=50`` is for one of the methods, ``--set n_neighbors=20`` for all others
    that have this parameter.
    """
    methods = [method_named(name) for name in names]
    params = {method: method.make().get_params() for method in methods}
    settings: dict[Method, list[str]] = {method: [] for method in methods}
    for setting in sorted(given, key=lambda setting: "." in setting.partition("=")[0]):
        parse_settings([setting])
        before, dot, rest = setting.partition("=")[0].partition(".")
        if dot:
            chosen = [method_named(before)]
            if chosen[0] not in methods:
                raise UsageError(f"--set {setting}: {chosen[0].name} is not among the methods")
            _check_parameter(chosen[0], rest.strip(), params[chosen[0]])
            setting = setting.partition(".")[2]
        else:
            chosen = [method for method in methods if before.strip() in params[method]]
            if not chosen:
                raise UsageError(f"none of the methods has a parameter {before.strip()!r}")
        for method in chosen:
            settings[method].append(setting)
    return settings


def parse_settings(settings: Sequence[str]) -> dict[str, Any]:
    """Parameters from ``name=value``; what is no number, list or None is a text."""
    parsed = {}
    for setting in settings:
        name, equals, value = setting.partition("=")
        if not (equals and name.strip()):
            raise UsageError(f"--set {setting!r} must be name=value")
        parsed[name.strip()] = parsed_value(value)
    return parsed
