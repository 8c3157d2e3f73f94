"""The manifests of tables in an object store: each lists the files of one version of a table."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from kproto.arrow.schemas import Column, Table, Type
from kproto.logs.locations import listed, location, names_in
from kproto.spark.publish import OWN, SCHEMA, TablesError
from kproto.spark.tables import GROWING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from kproto.logs.locations import Location
    from kproto.spark.tables import Marks

JSON = ".json"


class DataFile(NamedTuple):
    """A file of a table."""

    path: str
    """Below the table."""
    size: int
    rows: int
    marks: list[list[Any]]
    """The highest offset in it of each partition: the partition's columns and the offset."""


@dataclass(frozen=True)
class Manifest:
    """One version of a table."""

    columns: tuple[tuple[str, str], ...]
    """The names and types of the columns; files may lack the newest ones."""
    files: tuple[DataFile, ...]
    note: str
    replaced: tuple[str, ...] = ()
    """Files of the version before that this one has no longer."""
    schema: int = SCHEMA

    def table(self, name: str) -> Table:
        """Return the table with the columns of this version."""
        return Table(name, "", tuple(Column(column, Type(kind), "") for column, kind in self.columns))

    def to_bytes(self) -> bytes:
        return json.dumps({**asdict(self), "files": [list(file) for file in self.files]}, indent=1).encode()

    @classmethod
    def from_bytes(cls, data: bytes, label: str) -> Manifest:
        """Return what `to_bytes` wrote.

        Raises:
            TablesError: another version of kproto wrote it.
        """
        found = json.loads(data)
        if found.get("schema") != SCHEMA:
            raise TablesError(f"{label}: written by another version of kproto; write to a new directory")
        columns = tuple((name, kind) for name, kind in found["columns"])
        files = tuple(DataFile(*file) for file in found["files"])
        return cls(columns, files, found["note"], tuple(found["replaced"]))


def newest_version(folder: str) -> int | None:
    """Return the version of the table in a folder; None: there is none."""
    try:
        names = names_in(listed(location(folder) / OWN))
    except FileNotFoundError:
        return None
    return max((int(name.removesuffix(JSON)) for name in names if name.endswith(JSON)), default=None)


def read_manifest(folder: str, version: int | None = None) -> Manifest | None:
    """Return a version of the table in a folder, by default the newest; None: there is none.

    Raises:
        TablesError: another version of kproto wrote it.
    """
    number = newest_version(folder) if version is None else version
    if number is None:
        return None
    path = manifest_path(folder, number)
    return Manifest.from_bytes(path.read_bytes(), str(path))


def size_in_store(root: str) -> int:
    """Return the bytes of the files of the tables below a URI."""
    return sum(file.size for file in files_of(root))


def files_of(root: str) -> list[DataFile]:
    """Return the files of the tables below a URI."""
    manifests = [read_manifest(f"{root}/{grown.name}") for grown in GROWING]
    return [file for manifest in manifests if manifest is not None for file in manifest.files]


def manifest_path(folder: str, version: int) -> Location:
    """Return where the manifest of a version is."""
    return location(f"{folder}/{OWN}/{version:020}{JSON}")


def marks_of_files(files: Iterable[DataFile]) -> Marks:
    """Return the highest offset of each partition in files."""
    found: Marks = {}
    for file in files:
        for *partition, mark in file.marks:
            found[tuple(partition)] = max(mark, found.get(tuple(partition), mark))
    return found
