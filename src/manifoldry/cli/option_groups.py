"""Options that are declared once and added to several commands."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import wraps
from inspect import Parameter, signature
from typing import Any, get_type_hints

import typer

Command = Callable[..., None]
# Name of a parameter, and its annotation and default.
Group = Mapping[str, tuple[Any, Any]]


def with_options(*groups: Group) -> Callable[[Command], Command]:
    """Add groups of options to a command, which finds their values in ``ctx.params``.

    typer reads the options of a command from its signature, so that is what is extended.
    """
    added = {
        name: Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=annotation)
        for group in groups
        for name, (annotation, default) in group.items()
    }

    def extended(command: Command) -> Command:
        @wraps(command)
        def call(ctx: typer.Context, **arguments: Any) -> None:
            ctx.params |= arguments  # where some versions of typer have texts, not paths
            command(ctx, **{name: arguments[name] for name in own if name != "ctx"})

        hints = get_type_hints(command, include_extras=True)
        own = {
            name: parameter.replace(annotation=hints[name])
            for name, parameter in signature(command).parameters.items()
        }
        parameters = {**own, **added}
        call.__signature__ = signature(command).replace(  # type: ignore[attr-defined]  # read by typer
            parameters=list(parameters.values())
        )
        call.__annotations__ = {name: each.annotation for name, each in parameters.items()}
        return call

    return extended
