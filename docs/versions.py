"""Build the site of every released version and of the working tree, with a switch between them.

A release is a git tag such as ``v0.2.0`` whose tree has ``docs/conf.py``. Each is built with the
packages of this environment but with its own source. Run by ``make docs-versions``::

    python docs/versions.py build/site --url https://example.org/manifoldry/

``--url`` is where the folder will be served from; the default is the root of a server.
"""

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).parent.parent
REDIRECT = '<!doctype html><meta http-equiv="refresh" content="0; url={}/"><a href="{}/">{}</a>\n'


def main():
    """Build all versions into a folder."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--url", default="/", help="address of the folder")
    arguments = parser.parse_args()
    folder, releases = arguments.folder.resolve(), released()
    for tag in releases:
        with TemporaryDirectory() as parent:
            tree = Path(parent) / tag
            git("worktree", "add", "--detach", str(tree), tag)
            try:
                build(tree, folder, tag[1:])
            finally:
                git("worktree", "remove", "--force", str(tree))
    build(ROOT, folder, "dev")
    preferred = releases[-1][1:] if releases else "dev"
    write_switch(folder, [tag[1:] for tag in releases], preferred, arguments.url)


def released():
    """Tags of releases that have a site, oldest first."""
    tags = git("tag", "--list", "v*", "--sort=version:refname").split()
    return [tag for tag in tags if git("ls-tree", tag, "docs/conf.py")]


def build(tree, folder, name):
    """Build the site of one source tree into a folder of its own."""
    source = {"PYTHONPATH": str(tree / "src"), "VERSIONS_JSON": "../versions.json"}
    command = ["-m", "sphinx", "-W", "--keep-going", "-E"]
    subprocess.run(
        [sys.executable, *command, "-b", "html", str(tree / "docs"), str(folder / name)],
        env=os.environ | source | {"DOCS_VERSION": name},
        check=True,
    )


def write_switch(folder, releases, preferred, url):
    """Write the list of versions that every page reads, and the page that leads to the newest."""
    entries = [
        {
            "name": f"{name} (stable)" if name == preferred != "dev" else name,
            "version": name,
            "url": f"{url.rstrip('/')}/{name}/",
            "preferred": name == preferred,
        }
        for name in ["dev", *reversed(releases)]
    ]
    (folder / "versions.json").write_text(json.dumps(entries, indent=2))
    (folder / "index.html").write_text(REDIRECT.format(*[preferred] * 3))


def git(*arguments):
    """Run git in the repository and return what it prints."""
    return subprocess.run(
        ["git", "-C", str(ROOT), *arguments], check=True, capture_output=True, text=True
    ).stdout


if __name__ == "__main__":
    main()
