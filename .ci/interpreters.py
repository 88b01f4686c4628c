"""Print the versions of Python that the package declares, except this one, newest first."""

import platform
import tomllib
from pathlib import Path


def _numbers(version: str) -> list[int]:
    return [int(part) for part in version.split(".")]


LANGUAGE = "Programming Language :: Python :: "
classifiers = tomllib.loads(Path("pyproject.toml").read_text())["project"]["classifiers"]
declared = [each.removeprefix(LANGUAGE) for each in classifiers if each.startswith(LANGUAGE)]
own = ".".join(platform.python_version_tuple()[:2])
print(*sorted((each for each in declared if each not in ("3", own)), key=_numbers, reverse=True))
