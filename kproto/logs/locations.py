"""Where files of logs lie: on this machine, or in a store (`kproto.logs.remote`)."""

from __future__ import annotations

import os
import re
from contextlib import contextmanager
from io import FileIO
from pathlib import Path
from typing import TYPE_CHECKING

from kproto.errors import NoLog
from kproto.logs import remote
from kproto.logs.remote import RemoteFile, RemotePath

if TYPE_CHECKING:
    from collections.abc import Iterator

Location = Path | RemotePath
_kept: dict[Path, list[str]] | None = None
"""The names in directories of this machine that `listings_kept` keeps."""


class LocalFile(FileIO):
    """A file of this machine, open for reading. It keeps its content even if it is renamed or removed."""

    @property
    def size(self) -> int:
        return os.fstat(self.fileno()).st_size

    @property
    def identity(self) -> object:
        """Differs from that of another file of the same name."""
        return os.fstat(self.fileno()).st_ino

    def pread(self, size: int, position: int) -> bytes:
        """Return ``size`` bytes at a position, fewer at the end."""
        return os.pread(self.fileno(), size, position)


LogFile = LocalFile | RemoteFile


def location(path: str) -> Location:
    """Return where a path or URI leads; a relative path is made absolute."""
    scheme = scheme_of(path)
    return RemotePath(path) if scheme is not None and scheme != "file" else local_path(path)


def is_remote(path: str) -> bool:
    """Return whether a path is a URI that is not of a local file."""
    return "://" in path and scheme_of(path) not in (None, "file")


def local_path(path: str) -> Path:
    """Return the absolute path of a path or a ``file:`` URL.

    Raises:
        NoLog: the URL has another scheme.
    """
    scheme = scheme_of(path)
    if scheme is not None:
        if scheme != "file":
            raise NoLog(f"{path}: only a directory of this machine works here")
        path = re.sub("^//[^/]*/", "/", path.partition(":")[2])
    return Path(path).absolute()


def scheme_of(path: str) -> str | None:
    """Return the scheme of a URI; None for a path."""
    scheme, colon, _ = path.partition(":")
    return scheme if colon and len(scheme) > 1 and "/" not in scheme else None


def open_file(path: Location) -> LogFile:
    """Open a file for reading.

    Raises:
        OSError: it cannot be opened; FileNotFoundError if it does not exist.
        StoreError: the store cannot be reached, or refuses.
    """
    return RemoteFile(path) if isinstance(path, RemotePath) else LocalFile(os.fspath(path))


@contextmanager
def listings_kept() -> Iterator[None]:
    """Keep the listings that are made: until the end, a directory has the entries that it had when it was looked at
    first, or at its last new listing (`listed`).
    """
    global _kept
    before, _kept = _kept, {}
    try:
        with remote.listings_kept():
            yield
    finally:
        _kept = before


def listed(directory: Location) -> Location:
    """Return a directory with a new listing; one of a store knows from it what its entries are.

    Raises:
        OSError: there is no such directory in the store.
        StoreError: the store cannot be reached, or refuses.
    """
    if isinstance(directory, RemotePath):
        return directory.listed()
    if _kept is not None:
        _kept.pop(directory, None)
    return directory


def with_listing(directory: Location) -> Location:
    """Return a directory; one of a store with the listing that it has, or a new one.

    Raises:
        OSError, StoreError: as `listed`.
    """
    return directory.with_listing() if isinstance(directory, RemotePath) else directory


def names_in(directory: Location) -> list[str]:
    """Return the names in a directory; of one with a listing, or whose listing is kept, from there.

    Raises:
        OSError: the directory cannot be read.
        StoreError: the store cannot be reached, or refuses.
    """
    if isinstance(directory, RemotePath):
        return directory.names()
    if _kept is None:
        return os.listdir(directory)
    if directory not in _kept:
        _kept[directory] = os.listdir(directory)
    return _kept[directory]
