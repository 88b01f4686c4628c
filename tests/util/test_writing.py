"""Files that appear only when they are complete."""

import os
import stat

import pytest

from manifoldry.util.writing import replaced_at_once, written_at_once


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
