"""Print the versions of Python that the package declares, except that of this interpreter."""

import platform
import tomllib
from pathlib import Path

LANGUAGE = "Programming Language :: Python :: "
classifiers = tomllib.loads(Path("pyproject.toml").read_text())["project"]["classifiers"]
declared = [each.removeprefix(LANGUAGE) for each in classifiers if each.startswith(LANGUAGE)]
own = ".".join(platform.python_version_tuple()[:2])
print(*(version for version in declared if version != own))
