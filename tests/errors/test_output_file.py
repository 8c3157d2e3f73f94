"""Files that a command writes for other programs: who reads them, and what stays after a failure."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from kproto import output_file


def test_a_private_file_that_cannot_be_replaced_is_private(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """For example, a control file that is mounted into a container."""
    path = tmp_path / "control.txt"
    path.write_text("before")
    path.chmod(0o644)

    def refuse(*_: object) -> None:
        raise OSError(errno.EBUSY, "mounted")

    monkeypatch.setattr(os, "replace", refuse)
    output_file.write(str(path), "token", is_private=True)
    assert (path.read_text(), path.stat().st_mode & 0o777) == ("token", 0o600)
    assert list(tmp_path.iterdir()) == [path]


def test_a_text_that_cannot_be_encoded_leaves_no_file_behind(tmp_path: Path) -> None:
    path = tmp_path / "report.txt"
    path.write_text("before")
    with pytest.raises(UnicodeEncodeError):
        output_file.write(str(path), "\udcff")
    assert path.read_text() == "before"
    assert list(tmp_path.iterdir()) == [path]


def test_the_check_is_in_the_folder_of_a_links_target(tmp_path: Path) -> None:
    path = tmp_path / "link"
    path.symlink_to(tmp_path / "missing" / "report.txt")
    with pytest.raises(FileNotFoundError):
        output_file.check_writable(str(path))
