"""Files that appear only when they are complete."""

import os
import stat
from pathlib import Path

import pytest

from manifoldry.util.writing import (
    folder_replaced_at_once,
    replaced_at_once,
    written_at_once,
)


def half_written(path):
    with written_at_once(path) as file:
        file.write(b"half")
        raise KeyboardInterrupt


def test_a_failure_leaves_the_previous_file(tmp_path):
    path = tmp_path / "file.txt"
    path.write_bytes(b"before")
    with pytest.raises(KeyboardInterrupt):
        half_written(path)
    assert path.read_bytes() == b"before"
    assert os.listdir(tmp_path) == ["file.txt"]


def test_a_file_is_replaced_with_its_permissions(tmp_path):
    path = tmp_path / "file.txt"
    path.write_bytes(b"before")
    path.chmod(0o640)
    with replaced_at_once(path) as temporary:
        temporary.write_bytes(b"after")
        assert path.read_bytes() == b"before"
    assert path.read_bytes() == b"after"
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


def test_a_new_file_has_the_usual_permissions(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "umask", None)  # it belongs to the process, with all its threads
    with written_at_once(tmp_path / "file.txt") as file:
        file.write(b"new")
    (tmp_path / "usual.txt").touch()
    assert (tmp_path / "file.txt").stat().st_mode == (tmp_path / "usual.txt").stat().st_mode


def test_a_link_stays_a_link(tmp_path):
    for there in True, False:
        target = tmp_path / f"target{there}.txt"
        if there:
            target.write_bytes(b"before")
        link = tmp_path / f"link{there}.txt"
        link.symlink_to(target.name)
        with written_at_once(link) as file:
            file.write(b"after")
        assert link.is_symlink()
        assert target.read_bytes() == b"after"
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to("folder")
    with folder_replaced_at_once(tmp_path / "link") as folder:
        (folder / "file.txt").touch()
    assert (tmp_path / "link").is_symlink()
    assert os.listdir(tmp_path / "folder") == ["file.txt"]


def test_what_is_no_regular_file_is_refused(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    for name in "pipe", "folder":
        writing = written_at_once(tmp_path / name)
        with pytest.raises(FileExistsError, match=f"{name} is no regular file"):
            writing.__enter__()
    assert stat.S_ISFIFO((tmp_path / "pipe").stat().st_mode)
    with pytest.raises(FileExistsError, match="pipe is a file; name another folder"):
        replace_folder(tmp_path / "pipe")


def replace_folder(path):
    with folder_replaced_at_once(path) as folder:
        (folder / "new.txt").touch()


def test_a_failure_leaves_the_previous_folder(tmp_path, monkeypatch):
    path = tmp_path / "folder"
    path.mkdir()
    (path / "old.txt").touch()
    rename = Path.rename

    def interrupted(self, target):
        if self.name == "new":
            raise KeyboardInterrupt
        return rename(self, target)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "rename", interrupted)
        with pytest.raises(KeyboardInterrupt):
            replace_folder(path)
    assert os.listdir(tmp_path) == ["folder"]
    assert os.listdir(path) == ["old.txt"]
    replace_folder(path)
    assert os.listdir(tmp_path) == ["folder"]
    assert os.listdir(path) == ["new.txt"]
