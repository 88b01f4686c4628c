"""Print the lowest supported version of every run-time dependency as pip constraints."""

import re
import tomllib
from pathlib import Path

project = tomllib.loads(Path("pyproject.toml").read_text())["project"]
extras = project["optional-dependencies"]
for requirement in project["dependencies"] + extras["plot"] + extras["amg"] + extras["progress"]:
    print(re.sub(r">=", "==", requirement))
