"""Packages that are installed only on demand."""

from importlib import import_module
from typing import Any


class MissingExtraError(ImportError):
    """An optional package is not installed; the message names the extra that brings it.

    It is an ``ImportError``, so that code which falls back on another format catches it.

    See Also
    --------
    read_table : needs pyarrow for text files and tables, anndata for ``.h5ad`` files.
    """


def optional_module(name: str, extra: str, purpose: str) -> Any:
    """Import a module; if its package is missing, say which extra of manifoldry to install.

    Examples
    --------
    >>> optional_module("json", "cli", "reading JSON").loads("1")
    1
    """
    try:
        return import_module(name)
    except ImportError as error:
        package = name.split(".")[0]
        raise MissingExtraError(
            f"{purpose} needs the package {package}: pip install 'manifoldry[{extra}]'"
        ) from error
