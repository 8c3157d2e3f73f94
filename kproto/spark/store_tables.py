"""Tables in Parquet in an object store, where nothing can be renamed: a manifest that is created once is the commit.

Theory of operation. The files of a table have names of their own and are never replaced. A manifest,
``TABLE/_kproto/NUMBER.json``, lists the files that the table has in the version of that number. A run writes its files,
and then creates the manifest of the next version on the condition that there is none: of two runs that overlap, the
store lets one create it, and the other fails. A reader takes the manifest with the highest number. Files of a run that
died are in no manifest.

The names of files begin with the version for which they were written, so a file of a version that exists is garbage if
its manifest does not list it. `compact` removes such files. Files that a version replaced are removed by the version
after it: until then, readers that had begun before can read on.
"""

from __future__ import annotations

import json
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from kproto.logs.locations import listed, location, names_in
from kproto.logs.remote import RemotePath, StoreError
from kproto.spark.atomic_tables import AtomicTables
from kproto.spark.engine import is_embedded
from kproto.spark.publish import OWN
from kproto.spark.schemas import ddl
from kproto.spark.store_manifest import (
    DataFile,
    Manifest,
    files_of,
    manifest_path,
    marks_of_files,
    newest_version,
    read_manifest,
)
from kproto.spark.tables import DATE, GROWING, SMALL_BYTES, in_large_files

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pyspark.sql import DataFrame

    from kproto.arrow.schemas import Table
    from kproto.logs.locations import Location
    from kproto.spark.tables import Growing, Marks

MANIFESTS_KEPT = 20
"""Old manifests that stay, for readers that have listed them."""
READ_BYTES = 32 << 20
"""Bytes of files that one task of Spark reads, if they are small."""
_GROWING = {grown.name: grown for grown in GROWING}


class StoreTables(AtomicTables):
    """Parquet tables below a URI of an object store."""

    metadata_folder = OWN

    def version(self, name: str) -> int | None:
        return newest_version(self.folder(name))

    def size(self) -> tuple[int, int]:
        files = files_of(self.root)
        return len(files), sum(file.size for file in files)

    def manifest(self, name: str, version: int | None = None) -> Manifest | None:
        """Return a version of a table, by default the newest; None: there is no table."""
        return read_manifest(self.folder(name), version)

    def rows(self, name: str) -> DataFrame:
        manifest = self.manifest(name)
        assert manifest is not None, "the table exists"
        return self._rows_of(manifest.table(name), manifest.files)

    def _rows_of(self, table: Table, files: Sequence[DataFile]) -> DataFrame:
        from kproto.spark.store_files import read_files, table_of_files

        uris, schema = [f"{self.folder(table.name)}/{file.path}" for file in files], table.arrow()
        if is_embedded():
            session: Any = self.spark
            rows: DataFrame = session.of_arrow(table_of_files(uris, schema))
            return rows
        if not uris:
            return self.spark.createDataFrame([], ddl(table))
        count = min(len(uris), sum(file.size for file in files) // READ_BYTES + 1)
        names = self.spark.createDataFrame([(uri,) for uri in uris], "uri string").repartition(count)
        return names.mapInArrow(partial(read_files, schema=schema), ddl(table))

    def marks(self, grown: Growing) -> Marks:
        manifest = self.manifest(grown.name)
        return {} if manifest is None else marks_of_files(manifest.files)

    def notes(self, name: str) -> list[str]:
        manifest = self.manifest(name)
        return [] if manifest is None else [manifest.note]

    def append(self, table: Table, rows: DataFrame, version: int | None, note: str) -> int:
        before = None if version is None else self.manifest(table.name, version)
        new = self._write(table, rows, version)
        old = () if before is None else before.files
        self._commit(table.name, version, before, Manifest(_columns(table), (*old, *new), note))
        return sum(file.rows for file in new)

    def replace(self, table: Table, rows: DataFrame) -> int:
        version = self.version(table.name)
        before = None if version is None else self.manifest(table.name, version)
        new = self._write(table, rows, version)
        old = () if before is None else tuple(file.path for file in before.files)
        self._commit(table.name, version, before, Manifest(_columns(table), new, "", old))
        return sum(file.rows for file in new)

    def compact(self, name: str) -> int:
        version = self.version(name)
        if version is None:
            return 0
        before = self.manifest(name, version)
        assert before is not None, "there is a version"
        small = _small_files(before.files)
        if small:
            table = before.table(name)
            rows = self._rows_of(table, small)
            new = self._write(table, in_large_files(_GROWING[name], rows, sum(file.size for file in small)), version)
            kept = tuple(file for file in before.files if file not in small)
            replaced = tuple(file.path for file in small)
            self._commit(name, version, before, Manifest(before.columns, (*kept, *new), before.note, replaced))
            self._remove_garbage(name, version + 1)
            return len(small) - len(new)
        self._remove_garbage(name, version)
        return 0

    def _write(self, table: Table, rows: DataFrame, version: int | None) -> tuple[DataFile, ...]:
        """Write rows to new files, by their `date` if they have one."""
        from kproto.spark.store_files import write_files

        grown = _GROWING.get(table.name)
        write = partial(write_files, folder=self.folder(table.name), version=_after(version), table=table, grown=grown)
        return tuple(DataFile(*json.loads(row[0])) for row in rows.mapInArrow(write, "file string").collect())

    def _commit(self, name: str, version: int | None, before: Manifest | None, manifest: Manifest) -> None:
        """Create the manifest of the next version, and remove what the one before had replaced.

        Raises:
            TablesError: there is a next version already.
        """
        path = manifest_path(self.folder(name), _after(version))
        assert isinstance(path, RemotePath), "these tables are in stores"
        content = manifest.to_bytes()
        if not path.create(content):
            raise self.taken(name)
        if version is None and path.create(content + b"\n"):  # the same manifest, but other bytes
            reason = "the store overwrites an object that it should only create, so runs that overlap would lose rows"
            raise StoreError(f"{self.root}: {reason}: give a local directory")
        folder = location(self.folder(name))
        for old in () if before is None else before.replaced:
            _unlink(folder / old)
        if _after(version) >= MANIFESTS_KEPT:
            _unlink(manifest_path(self.folder(name), _after(version) - MANIFESTS_KEPT))

    def _remove_garbage(self, name: str, version: int) -> None:
        """Remove the files that were written for a version up to this one, but are not in it."""
        manifest = self.manifest(name, version)
        assert manifest is not None, "there is that version"
        known = {*(file.path for file in manifest.files), *manifest.replaced}
        root = listed(location(self.folder(name)))
        for folder in (one for one in names_in(root) if one.startswith(f"{DATE}=")):
            for file in names_in(listed(root / folder)):
                if int(file.partition("-")[0]) <= version and f"{folder}/{file}" not in known:
                    _unlink(root / folder / file)


def _small_files(files: Iterable[DataFile]) -> list[DataFile]:
    """Return the small files of dates that have several."""
    by_day: dict[str, list[DataFile]] = {}
    for file in files:
        if file.size < SMALL_BYTES:
            by_day.setdefault(file.path.partition("/")[0], []).append(file)
    return [file for of_day in by_day.values() if len(of_day) > 1 for file in of_day]


def _columns(table: Table) -> tuple[tuple[str, str], ...]:
    return tuple((column.name, column.type.value) for column in table.columns)


def _after(version: int | None) -> int:
    return 0 if version is None else version + 1


def _unlink(path: Location) -> None:
    """Remove a file, which another run may have removed already."""
    with suppress(FileNotFoundError):
        path.unlink()
