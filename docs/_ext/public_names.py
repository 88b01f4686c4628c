"""The public names of the package, and the one name under which the site documents each object."""

from functools import cache
from importlib import import_module

import manifoldry


def packages():
    """Public packages with the names that they export."""
    for package in manifoldry._SUBMODULES:
        yield package, import_module(f"manifoldry.{package}").__all__


@cache
def documented_names():
    """Every public path of an object, and the path that is documented: the first, shortest one."""
    paths = [f"manifoldry.{name}" for name in manifoldry._EXPORTS]
    paths += [f"manifoldry.{package}.{name}" for package, names in packages() for name in names]
    first, documented = {}, {}
    for path in paths:
        found = resolve(path)
        documented[path] = first.setdefault(id(found), path)
        if getattr(found, "__module__", "").startswith("manifoldry"):
            documented.setdefault(f"{found.__module__}.{found.__qualname__}", documented[path])
    return documented


def resolve(path):
    """Return the object at a dotted path below the package."""
    found = manifoldry
    for name in path.split(".")[1:]:
        found = getattr(found, name)
    return found
