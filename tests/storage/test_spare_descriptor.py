"""A sync needs no free descriptor: a sync that fails would end all writes."""

from __future__ import annotations

import errno
import os
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from kproto_server.storage.disk import RealDisk


@contextmanager
def no_free_descriptor() -> Iterator[None]:
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    lowest = os.dup(0)
    os.close(lowest)
    resource.setrlimit(resource.RLIMIT_NOFILE, (lowest, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)


def test_a_sync_needs_no_free_descriptor(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"content")
    disk = RealDisk(tmp_path)
    with no_free_descriptor(), pytest.raises(OSError, match="Too many open files"):
        disk.sync_directory("")
    disk.lock()
    with no_free_descriptor():
        for _ in range(3):
            disk.sync_directory("")
            disk.sync_file("file")
        with pytest.raises(OSError, match="Too many open files") as caught:
            disk.open("file")
        with pytest.raises(FileNotFoundError):
            disk.sync_file("missing")
        disk.sync_file("file")
    assert caught.value.errno == errno.EMFILE
    disk.unlock()


def test_the_spare_descriptor_is_closed_with_the_lock(tmp_path: Path) -> None:
    before = os.dup(0)
    disk = RealDisk(tmp_path)
    disk.lock()
    disk.unlock()
    after = os.dup(0)
    os.close(before)
    os.close(after)
    assert after == before + 1
