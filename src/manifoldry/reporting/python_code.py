"""Estimators as Python code that makes the same ones again."""

from __future__ import annotations

import inspect
import math
import sys
import textwrap
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any

import numpy as np

_LONGEST = 80  # characters of a call in one line


class NoCodeError(ValueError):
    """A value that cannot be written as code, such as a function or an array."""


@dataclass(eq=False)
class PythonCode:
    """Writes values as code, and collects the imports that it needs.

    Parameters
    ----------
    modules : dict of str to str
        The module of each class that was written, by its name.
    lines : set of str
        Imports of modules.
    """

    modules: dict[str, str] = field(default_factory=dict)
    lines: set[str] = field(default_factory=set)

    @property
    def imports(self) -> set[str]:
        """The lines that import everything that was written."""
        return {f"from {module} import {name}" for name, module in self.modules.items()} | (
            self.lines
        )

    def of(self, value: Any) -> str:
        """The value as an expression; NoCodeError if the expression would not give it back."""
        kind = type(value)
        if value is None or kind in (bool, int, str):
            return repr(value)
        if kind is float:
            return repr(value) if math.isfinite(value) else f"float('{value}')"
        if kind in (list, tuple):
            items = ", ".join(self.of(item) for item in value)
            if kind is list:
                return f"[{items}]"
            return f"({items},)" if len(value) == 1 else f"({items})"
        if kind is dict:
            pairs = (f"{self.of(key)}: {self.of(item)}" for key, item in value.items())
            return f"{{{', '.join(pairs)}}}"
        if isinstance(value, (np.generic, np.ufunc)):
            return self._of_numpy(value)
        return self._of_object(value)

    def _of_numpy(self, value: Any) -> str:
        self.lines.add("import numpy as np")
        name = getattr(value, "__name__", "")  # of a function
        if name and getattr(np, name, None) is value:
            return f"np.{name}"
        plain = value.item() if isinstance(value, (np.bool_, np.integer, np.floating)) else value
        if type(plain) not in (bool, int, float):
            raise NoCodeError(f"{value!r} cannot be written as code")
        return f"np.{type(value).__name__}({self.of(plain)})"

    def _of_object(self, value: Any) -> str:
        """A call of the class with the arguments that are not its defaults."""
        arguments = [f"{name}={self.of(each)}" for name, each in _changed(value).items()]
        return call_text(self._imported(type(value)), arguments)

    def _imported(self, kind: type) -> str:
        """The name of a class, with its module if another class has the same name."""
        name, module = kind.__name__, _public_module(kind)
        if self.modules.setdefault(name, module) == module:
            return name
        self.lines.add(f"import {module}")
        return f"{module}.{name}"


def call_text(name: str, arguments: list[str]) -> str:
    """A call, with each argument in a line of its own if it is long."""
    text = f"{name}({', '.join(arguments)})"
    if len(text) <= _LONGEST and "\n" not in text:
        return text
    inner = textwrap.indent("".join(f"{each},\n" for each in arguments), "    ")
    return f"{name}(\n{inner})"


def _changed(value: Any) -> dict[str, Any]:
    """Arguments of the class of an object that are not the defaults."""
    is_class = isinstance(value, type)
    if hasattr(value, "get_params") and not is_class:
        given = value.get_params(deep=False)
    elif is_dataclass(value) and not is_class:
        given = {each.name: getattr(value, each.name) for each in fields(value) if each.init}
    else:
        raise NoCodeError(f"{value!r} cannot be written as code")
    parameters = inspect.signature(type(value)).parameters
    defaults = {name: parameter.default for name, parameter in parameters.items()}
    return {
        name: each
        for name, each in given.items()
        if name not in defaults or repr(each) != repr(defaults[name])
    }


def _public_module(kind: type) -> str:
    """The shortest part of the path of a class from which it can be imported."""
    parts = kind.__module__.split(".")
    for count in range(1, len(parts) + 1):
        path = ".".join(parts[:count])
        if path != "__main__" and getattr(sys.modules.get(path), kind.__name__, None) is kind:
            return path
    raise NoCodeError(f"the class {kind.__qualname__} cannot be imported")
