"""Check what the wheel and the source archive in a folder contain: all modules, nothing else."""

import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

MOST = 20e6  # bytes of the source archive


def main(folder: Path) -> None:
    """Compare the archives with the files that git knows."""
    known = subprocess.run(["git", "ls-files"], capture_output=True, text=True, check=True).stdout
    tracked = set(known.splitlines())
    (wheel,), (archive,) = folder.glob("*.whl"), folder.glob("*.tar.gz")
    with tarfile.open(archive) as tar:
        source = {name.partition("/")[2] for name in tar.getnames() if tar.getmember(name).isfile()}
    modules = {name for name in tracked if name.startswith("src/manifoldry/")}
    report("not in git, but in the source archive", source - tracked - {"PKG-INFO", ".gitignore"})
    report("missing in the source archive", modules | {"README.md", "LICENSE"}, source)
    with zipfile.ZipFile(wheel) as packed:
        found = {f"src/{name}" for name in packed.namelist() if ".dist-info/" not in name}
    report("not in git, but in the wheel", found - modules)
    report("missing in the wheel", modules, found)
    if archive.stat().st_size > MOST:
        sys.exit(f"the source archive has {archive.stat().st_size / 1e6:.0f} MB: data in it?")


def report(what: str, names: set[str], present: set[str] | None = None) -> None:
    """Exit with a message if there are names (that are not present)."""
    if wrong := names - (present or set()):
        sys.exit(f"{what}: {', '.join(sorted(wrong)[:10])}")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
