"""``manifoldry methods`` and ``info``: what there is."""

from __future__ import annotations

import platform
from importlib.metadata import PackageNotFoundError, version
from inspect import cleandoc
from pathlib import Path
from typing import Any

import typer

from manifoldry.cli.console import Console
from manifoldry.cli.methods import method_named
from manifoldry.device import MissingDeviceError
from manifoldry.io import read_info
from manifoldry.methods.catalog import METHODS
from manifoldry.util.saved import package_version
from manifoldry.util.text import short_line

_PACKAGES = ("numpy", "scipy", "scikit-learn", "numba", "typer", "rich", "matplotlib", "pyarrow",
             "zarr", "anndata", "pyamg")  # fmt: skip


def list_methods(ctx: typer.Context, name: str | None) -> None:
    """All methods, or one of them."""
    with Console.of(ctx.params) as console:
        if name is None:
            rows = {method.name: method.use for method in METHODS}
            console.finish({"methods": rows}, _aligned(rows) + "\n\nmanifoldry methods NAME: more")
            return
        method = method_named(name)
        params = method.make().get_params()
        described = cleandoc(type(method.make()).__doc__ or "").partition("\nReferences\n")[0]
        result = {"method": method.name, "class": method.class_name, "use": method.use,
                  "parameters": {key: repr(value) for key, value in params.items()}}  # fmt: skip
        console.finish(result, f"{method.name} ({method.class_name}): {method.use}\n\n{described}")


def show_info(ctx: typer.Context, model: Path | None) -> None:
    """A model file, or the installation."""
    with Console.of(ctx.params) as console:
        if model is None:
            found = _installation()
            console.finish(found, _aligned(found))
            return
        about = read_info(model)
        facts = {"class": about.estimator, "created": about.created, **about.training,
                 "size": f"{about.n_bytes / 1e6:.2f} MB",
                 "written by": f"manifoldry {about.versions.get('manifoldry')}"}  # fmt: skip
        text = f"{_aligned(facts)}\n\nparameters\n{_aligned(about.parameters)}"
        result = {**vars(about), "path": str(model)}
        console.finish(result, text)


def _installation() -> dict[str, str]:
    found = {"manifoldry": package_version(), "python": platform.python_version()}
    for package in _PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "not installed"
    return {**found, "GPU": _cards()}


def _cards() -> str:
    """The GPUs that can be used, or why there are none."""
    from manifoldry.device.cuda import cuda_devices

    try:
        return ", ".join(f"{device.description}, {device.versions}" for device in cuda_devices())
    except MissingDeviceError as error:
        return f"none: {error.problem}"


def _aligned(rows: dict[str, Any]) -> str:
    """Names and values in two columns."""
    width = max(map(len, rows), default=0)
    lines = (f"{short_line(name):<{width}}  {short_line(value)}" for name, value in rows.items())
    return "\n".join(lines)
