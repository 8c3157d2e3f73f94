"""Files of stores that fsspec reaches: S3, Google Cloud Storage, Azure, HDFS, HTTP.

Theory of operation. A `RemotePath` has the part of `pathlib.Path` that readers of logs use. A directory can carry one
listing of its entries; the paths below it then know their size and whether they exist without a request. A command
keeps the listings that it has made (`listings_kept`), so it lists a directory once. A `RemoteFile` reads ranges into
one buffer, so no file is ever whole in memory.

A store has no open files: an object that is deleted or replaced has no content any more for a reader in its middle.
Reading raises FileNotFoundError then, and the reader looks up its next offset again, as for a file that is gone.

fsspec, the package of a scheme and their credentials are configured as they document it: by the environment and by
files in `~/.config/fsspec`. fsspec's own caches of listings are off: a log grows.
"""

from __future__ import annotations

import errno
import sys
from contextlib import contextmanager
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

from kproto.errors import KprotoError, LogError, MissingPackage, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

READ_AHEAD_BYTES = 8 << 20
"""Bytes of a request while a segment is read in order: the time to the first byte is small beside that of the rest."""
PAGE_BYTES = 1 << 20
"""Bytes of a request at any other position: nearly all indexes fit."""
WRITE_BYTES = 8 << 20
"""Bytes of a part of an upload; less than 5 MiB is too small for S3."""
WRITTEN_SCHEMES = ("s3", "s3a", "gs", "gcs", "az", "abfs", "abfss")
"""Stores in which an object appears when its upload ends, whole or not at all."""
VERSION_KEYS = (
    "ETag",
    "etag",
    "generation",
    "LastModified",
    "last_modified",
    "mtime",
    "modificationTime",
    "modification_time",
    "created",
)
"""Where stores say which version of an object it is."""
PACKAGES = {"s3": "s3fs", "gs": "gcsfs", "gcs": "gcsfs", "az": "adlfs", "hdfs": "hdfs-native", "http": "aiohttp"}
PACKAGES |= {"s3a": PACKAGES["s3"], "abfs": PACKAGES["az"], "abfss": PACKAGES["az"], "https": PACKAGES["http"]}
PACKAGES |= {"viewfs": PACKAGES["hdfs"], "webhdfs": "requests"}
OF_HDFS = ("hdfs", "viewfs")
"""The schemes of which no listings are cached, and whose package takes all options of fsspec for settings of Hadoop."""

Info = dict[str, Any]
_of_hdfs: dict[int, Any] = {}
"""The file systems of HDFS, by identity: they are never freed. In the child of a fork, as Spark's launcher makes one,
fsspec gives up its references, and freeing one would wait for ever for threads that only the parent has.
"""


class StoreError(LogError):
    """A store cannot be reached, refuses, or does not do what reading a log needs."""


class UnknownStore(StoreError):
    """fsspec does not know the scheme of a URI."""


class Entry(NamedTuple):
    """What a listing says of a file or directory: no more, because a log.dir of a cluster has 100,000 of them."""

    is_directory: bool
    size: int | None


_kept: dict[str, RemotePath] | None = None
"""The directories with listings, by URI, that `listings_kept` keeps."""


@contextmanager
def listings_kept() -> Iterator[None]:
    """Keep the listings that `RemotePath.with_listing` makes: until the end, a directory has the entries that it had
    when it was looked at first.
    """
    global _kept
    before, _kept = _kept, {}
    try:
        yield
    finally:
        _kept = before


class Status(NamedTuple):
    """The part of `os.stat_result` that readers of logs use."""

    st_size: int


class RemotePath:
    """The URI of a file or directory, which may not exist."""

    __slots__ = ("_entries", "_parent", "uri")

    def __init__(self, uri: str, parent: RemotePath | None = None, entries: Mapping[str, Entry] | None = None) -> None:
        self.uri: str = uri.rstrip("/")
        self._parent = parent
        self._entries = entries

    def __reduce__(self) -> tuple[type[RemotePath], tuple[str]]:
        """Return how to pickle the path, for Spark's workers: without listings."""
        return RemotePath, (self.uri,)

    def __str__(self) -> str:
        return self.uri

    def __repr__(self) -> str:
        return f"RemotePath({self.uri!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RemotePath) and self.uri == other.uri

    def __hash__(self) -> int:
        return hash(self.uri)

    def __truediv__(self, name: str) -> RemotePath:
        return RemotePath(f"{self.uri}/{name}", self)

    @property
    def name(self) -> str:
        return self.uri.rpartition("/")[2]

    @property
    def suffix(self) -> str:
        _, dot, suffix = self.name.rpartition(".")
        return dot + suffix if dot else ""

    @property
    def parent(self) -> RemotePath:
        return RemotePath(self.uri.rpartition("/")[0]) if self._parent is None else self._parent

    def with_suffix(self, suffix: str) -> RemotePath:
        return self.parent / (self.name.removesuffix(self.suffix) + suffix)

    def resolve(self) -> RemotePath:
        return self

    def listed(self) -> RemotePath:
        """Return the directory with a new listing of its entries.

        Raises:
            StoreError: the store cannot be reached, or refuses.
            FileNotFoundError: there is no such directory.
        """
        with _errors(self.uri):
            files, path = _filesystem(self.uri)
            listed = files.ls(path, detail=True)
        # An object store may list the directory itself.
        others = (entry for entry in listed if entry["name"].rstrip("/") != path)
        found = {sys.intern(_last_name(entry["name"])): _entry_of(entry) for entry in others}
        return RemotePath(self.uri, self._parent, found)

    def with_listing(self) -> RemotePath:
        """Return the directory with the listing that it has, or that is kept, or a new one."""
        if self._entries is not None:
            return self
        kept = _kept
        if kept is None:
            return self.listed()
        if self.uri not in kept:
            kept[self.uri] = self.listed()
        return kept[self.uri]

    def names(self) -> list[str]:
        """Return the names of the entries."""
        return list(self.with_listing()._entries or ())

    def iterdir(self) -> Iterator[RemotePath]:
        directory = self.with_listing()
        for name in directory._entries or ():
            yield directory / name

    def exists(self) -> bool:
        return self._entry_or_none() is not None

    def is_file(self) -> bool:
        entry = self._entry_or_none()
        return entry is not None and not entry.is_directory

    def is_dir(self) -> bool:
        entry = self._entry_or_none()
        return entry is not None and entry.is_directory

    def stat(self) -> Status:
        entry = self._listed_entry()
        if entry is None or entry.size is None:  # a listing of HTTP has no sizes
            entry = _entry_of(self.info())
        return Status(entry.size or 0)

    def read_bytes(self) -> bytes:
        """Return the content of a small file."""
        self._listed_entry()
        with _errors(self.uri):
            files, path = _filesystem(self.uri)
            return bytes(files.cat_file(path))

    def read_text(self, encoding: str, errors: str = "strict") -> str:
        return self.read_bytes().decode(encoding, errors)

    def info(self) -> Info:
        """Ask the store.

        Raises:
            StoreError: the store cannot be reached, or refuses.
            FileNotFoundError: there is no such file or directory.
        """
        with _errors(self.uri):
            files, path = _filesystem(self.uri)
            found: Info = files.info(path)
            return found

    def read_range(self, start: int, end: int) -> bytes:
        """Return bytes of the file, fewer if it is shorter.

        Raises:
            StoreError: the store cannot be reached, refuses, or sends something else.
            FileNotFoundError: there is no such file.
        """
        with _errors(self.uri):
            files, path = _filesystem(self.uri)
            data = bytes(files.cat_file(path, start=start, end=end))
        if len(data) > end - start:
            raise StoreError(f"{self.uri}: the server ignores ranges: copy the log to a disk, or use another server")
        return data

    def write(self, pieces: Iterable[bytes]) -> None:
        """Replace the content of the file: readers see the old one or the new one, also if this is interrupted.

        Raises:
            StoreError: the store cannot be reached, or refuses.
        """
        with _errors(self.uri):
            files, path = _filesystem(self.uri)
            file = files.open(path, "wb", block_size=WRITE_BYTES)
            try:
                for data in pieces:
                    file.write(data)
                file.close()
            except FileNotFoundError as error:
                _give_up(file)
                raise StoreError(f"{self.uri}: {_first_line(error)}") from error
            except BaseException:
                _give_up(file)
                raise

    def create(self, data: bytes) -> bool:
        """Create the file unless it exists, also beside other writers; return whether it has this content then.

        Raises:
            StoreError: the store cannot be reached, refuses, or cannot create on this condition.
        """
        with _errors(self.uri):
            files, path = _filesystem(self.uri)
            try:
                files.pipe_file(path, data, mode="create")
            except Exception:
                if not files.exists(path):
                    raise
                return bytes(files.cat_file(path)) == data  # a client may send a request again that was carried out
            return True

    def unlink(self) -> None:
        with _errors(self.uri):
            files, path = _filesystem(self.uri)
            files.rm_file(path)

    def _listed_entry(self) -> Entry | None:
        """Return what a listing says; None if there is none."""
        if self._parent is None or self._parent._entries is None:
            return None
        found = self._parent._entries.get(self.name)
        if found is None:
            raise _missing(self.uri)
        return found

    def _entry_or_none(self) -> Entry | None:
        try:
            return self._listed_entry() or _entry_of(self.info())
        except FileNotFoundError:
            return None


class RemoteFile:
    """A file that is read by ranges. A context manager, as local files are; there is nothing to close.

    Raises:
        FileNotFoundError: here and later: the file does not exist any more, or was replaced.
        StoreError: here and later: the store cannot be reached, or refuses.
    """

    def __init__(self, path: RemotePath) -> None:
        info = path.info()
        self.size: int = int(info["size"] or 0)
        self.identity: object = _version(info)
        """Differs when the content differs."""
        self._path = path
        self._position = 0
        self._start, self._data = 0, b""

    def __enter__(self) -> RemoteFile:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    def close(self) -> None:
        self._data = b""

    def seek(self, position: int, /) -> int:
        self._position = position
        return position

    def read(self, size: int, /) -> bytes:
        """Return the next bytes, at most ``size``; none at the end."""
        found = self._buffered(self._position, size)
        if not found:
            self._fill(self._position, READ_AHEAD_BYTES)
            found = self._buffered(self._position, size)
        self._position += len(found)
        return found

    def pread(self, size: int, position: int) -> bytes:
        """Return ``size`` bytes at a position, fewer at the end."""
        found = self._buffered(position, size)
        if len(found) < min(size, self.size - position):
            start = position - position % PAGE_BYTES
            self._fill(start, position - start + max(size, PAGE_BYTES))
            found = self._buffered(position, size)
        return found

    def _buffered(self, position: int, size: int) -> bytes:
        at = position - self._start
        return self._data[at : at + size] if 0 <= at < len(self._data) else b""

    def _fill(self, start: int, size: int) -> None:
        end = min(start + size, self.size)
        self._start, self._data = start, b""
        if start >= end:
            return
        self._data = self._path.read_range(start, end)
        if len(self._data) < end - start or ((start, end) != (0, self.size) and self._is_replaced()):
            raise FileNotFoundError(errno.ENOENT, "the file was replaced while it was read", self._path.uri)

    def _is_replaced(self) -> bool:
        return _version(self._path.info()) != self.identity


def _version(info: Info) -> tuple[str, ...]:
    return tuple(str(info[key]) for key in ("size", *VERSION_KEYS) if info.get(key) is not None)


def _entry_of(info: Info) -> Entry:
    """Return what fsspec says of a file or directory; over HTTP, a page that lists the files is a directory."""
    is_directory = info["type"] == "directory" or str(info.get("mimetype", "")).startswith("text/html")
    size = info.get("size")
    return Entry(is_directory, None if size is None else int(size))


def _last_name(path: str) -> str:
    return path.rstrip("/").rpartition("/")[2]


def _filesystem(uri: str) -> tuple[Any, str]:
    """Return fsspec's file system of a URI, which fsspec keeps, and the path in it.

    Raises:
        MissingPackage: fsspec, or the package of the scheme, is not installed.
        UnknownStore: fsspec does not know the scheme.
    """
    scheme = uri.partition("://")[0]
    try:
        core = import_module("fsspec.core")
    except ModuleNotFoundError:
        raise MissingPackage(f"{scheme}://", "fsspec") from None
    try:
        files, path = core.url_to_fs(uri, **({} if scheme in OF_HDFS else {"use_listings_cache": False}))
    except OSError as error:
        if scheme not in OF_HDFS:
            raise
        advice = "pip install hdfs-native, which needs neither Java nor libhdfs"
        raise StoreError(f"{uri}: {_first_line(error)}: {advice}") from error
    except ImportError as error:
        raise MissingPackage(f"{scheme}://", PACKAGES.get(scheme, str(error.name))) from None
    except ValueError as error:
        raise UnknownStore(f"{uri}: {error}") from None
    if scheme in OF_HDFS:
        _of_hdfs[id(files)] = files
    return files, str(path)


def check_written(uri: str) -> None:
    """Check that files of a store can be replaced as a whole.

    Raises:
        UsageError: the store is of another kind.
    """
    if uri.partition("://")[0] not in WRITTEN_SCHEMES:
        kinds = ", ".join(f"{scheme}://" for scheme in WRITTEN_SCHEMES)
        raise UsageError(f"{uri}: only directories and object stores can be written: {kinds}")


@contextmanager
def _errors(uri: str) -> Iterator[None]:
    """Turn the errors of fsspec and of the packages behind it into errors of one line."""
    try:
        yield
    except KprotoError:
        raise
    except FileNotFoundError:
        raise _missing(uri) from None
    except Exception as error:
        raise StoreError(f"{uri}: {_first_line(error)}") from error


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0] or type(error).__name__


def _give_up(file: Any) -> None:
    """End an upload without an object."""
    is_begun = file.offset is not None
    file.closed = True
    if is_begun:
        file.discard()


def _missing(uri: str) -> FileNotFoundError:
    return FileNotFoundError(errno.ENOENT, "no such file or directory", uri)
