"""The methods of the command line with their parameters."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import Any

from manifoldry.cli.errors import UsageError
from manifoldry.methods.catalog import Method, find_method


def method_named(name: str) -> Method:
    """The method of a name, in any spelling; a usage error suggests a similar one."""
    try:
        return find_method(name)
    except ValueError as error:
        raise UsageError(str(error)) from None


def make_estimator(method: Method, options: Mapping[str, Any]) -> Any:
    """The estimator with the parameters of the command line."""
    estimator = method.estimator(options["components"], options["seed"], options["jobs"])
    params = estimator.get_params()
    settings = options.get("settings") or ()
    for name, value in parse_settings(settings).items():
        if name not in params:
            close = get_close_matches(name, params, n=1)
            hint = f"did you mean {close[0]}?" if close else f"it has {', '.join(sorted(params))}"
            raise UsageError(f"{method.name} has no parameter {name!r}; {hint}")
        estimator.set_params(**{name: value})
    return estimator


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
