"""Tables in Iceberg, through Iceberg's own Java API.

Theory of operation. Spark writes Parquet files into a new directory of the table, and one commit adds them. The commit
is a row delta that is valid only if no rows were added since the snapshot that the run began with, so of two runs that
overlap the second one fails. Files of a run that died are in no snapshot: Iceberg's remove_orphan_files deletes them.

Iceberg's catalog for Spark 4.1, the newest one, is refused by Spark 4.2, which wants one class of catalogs that have
tables and views. The API needs no catalog. Tables are Iceberg's "Hadoop tables", which the location identifies. They
need a file system whose renames are atomic: a local one, HDFS or ABFS, but not S3.

Spark writes no field ids into Parquet, so a table has a name mapping, and each reader of Iceberg finds columns by it.
"""

from __future__ import annotations

import json
import uuid
from contextlib import suppress
from functools import cached_property
from typing import TYPE_CHECKING, Any

from kproto.arrow.schemas import Type
from kproto.spark.atomic_tables import AtomicTables
from kproto.spark.engine import F
from kproto.spark.java import cause_of, hadoop_configuration, java_of
from kproto.spark.output import parquet_as_declared
from kproto.spark.publish import TablesError
from kproto.spark.tables import GROWING, SMALL_BYTES, in_large_files

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame

    from kproto.arrow.schemas import Table

NOTE = "kproto.note"
"""The entry of a snapshot's summary with the note of a write."""
NAME_MAPPING = "schema.name-mapping.default"
CONFLICTS = ("ValidationException", "CommitFailedException", "AlreadyExistsException")
"""The errors of Iceberg when another run committed first."""
TYPES = {
    Type.BOOLEAN: "boolean",
    Type.SMALLINT: "int",
    Type.INT: "int",
    Type.BIGINT: "long",
    Type.DOUBLE: "double",
    Type.STRING: "string",
    Type.UUID: "binary",
    Type.TIMESTAMP: "timestamptz",
}
SPARK_TYPES = {"long": "bigint", "timestamptz": "timestamp", "list<string>": "array<string>"}
"""Spark's names of Iceberg's types, where they differ."""


class IcebergTables(AtomicTables):
    """Iceberg tables below a path or URI."""

    metadata_folder = "metadata"

    @cached_property
    def _java(self) -> Any:
        return java_of(self.spark)

    @cached_property
    def _configuration(self) -> Any:
        return hadoop_configuration(self.spark)

    @cached_property
    def _tables(self) -> Any:
        return self._java.org.apache.iceberg.hadoop.HadoopTables(self._configuration)

    def folder(self, name: str) -> str:
        path = self._java.org.apache.hadoop.fs.Path(super().folder(name))
        return str(path.getFileSystem(self._configuration).makeQualified(path).toString())

    def version(self, name: str) -> int | None:
        if not self._tables.exists(self.folder(name)):
            return None
        snapshot = self._load(name).currentSnapshot()
        return -1 if snapshot is None else int(snapshot.snapshotId())

    def _load(self, name: str) -> Any:
        return self._tables.load(self.folder(name))

    def rows(self, name: str) -> DataFrame:
        return self._read(name, [file.location() for file in self._files(name)])

    def _read(self, name: str, paths: Sequence[str]) -> DataFrame:
        """Return the rows of some files, in the columns that the table has; `date` is the name of a directory."""
        columns = {str(field.name()): str(field.type().toString()) for field in self._load(name).schema().columns()}
        columns.pop("date", None)
        schema = ", ".join(f"{column} {SPARK_TYPES.get(kind, kind)}" for column, kind in columns.items())
        return self.spark.read.schema(schema).parquet(*paths) if paths else self.spark.createDataFrame([], schema)

    def _files(self, name: str) -> list[Any]:
        """Return the data files of a table.

        Raises:
            TablesError: another program deleted rows from it.
        """
        tasks = self._load(name).newScan().planFiles()
        left = tasks.iterator()
        try:
            found = []
            while left.hasNext():
                task = left.next()
                if not task.deletes().isEmpty():
                    raise TablesError(f"{self.folder(name)}: another program deleted rows: `tables` needs all of them")
                found.append(task.file())
            return found
        finally:
            tasks.close()

    def notes(self, name: str) -> list[str]:
        found = [snapshot.summary().get(NOTE) for snapshot in self._load(name).snapshots()]
        return [note for note in reversed(found) if note is not None]

    def size(self) -> tuple[int, int]:
        sizes = [file.fileSizeInBytes() for grown in GROWING for file in self._files(grown.name)]
        return len(sizes), sum(sizes)

    def append(self, table: Table, rows: DataFrame, version: int | None, note: str) -> int:
        try:
            target = self._created(table, is_dated=True) if version is None else self._grown(table)
            change = target.newRowDelta().set(NOTE, note)
            if version is not None and version != -1:
                change = change.validateFromSnapshot(version)
            change = change.conflictDetectionFilter(self._java.org.apache.iceberg.expressions.Expressions.alwaysTrue())
            change = change.validateNoConflictingDataFiles()
            return self._commit(target, rows, change, "addRows")
        except Exception as error:
            if self._is_conflict(error):
                raise self.taken(table.name) from None
            raise

    def replace(self, table: Table, rows: DataFrame) -> int:
        exists = self._tables.exists(self.folder(table.name))
        target = self._grown(table) if exists else self._created(table, is_dated=False)
        every = self._java.org.apache.iceberg.expressions.Expressions.alwaysTrue()
        return self._commit(target, rows, target.newOverwrite().overwriteByRowFilter(every), "addFile")

    def compact(self, name: str) -> int:
        before, by_day = self._files(name), dict[str, list[Any]]()
        for file in before:
            if file.fileSizeInBytes() < SMALL_BYTES:
                by_day.setdefault(str(file.partition().toString()), []).append(file)
        small = [file for files in by_day.values() if len(files) > 1 for file in files]
        if not small:
            return 0
        target = self._load(name)
        change = target.newRewrite().validateFromSnapshot(target.currentSnapshot().snapshotId())
        for file in small:
            change = change.deleteFile(file)
        grown = next(grown for grown in GROWING if grown.name == name)
        rows = self._read(name, [file.location() for file in small])
        total_bytes = sum(file.fileSizeInBytes() for file in small)
        self._commit(target, in_large_files(grown, rows, total_bytes), change, "addFile")
        return len(before) - len(self._files(name))

    def _commit(self, target: Any, rows: DataFrame, change: Any, add: str) -> int:
        """Write rows to new files, add them by a method of a change, and commit it; return the number of rows.

        If the commit fails, the files are deleted.
        """
        parquet_as_declared(self.spark)
        folder = f"{target.location()}/data/{uuid.uuid4()}"
        writer = _as_iceberg(rows).write.option("compression", "zstd")
        is_dated = target.spec().isPartitioned()
        (writer.partitionBy("date") if is_dated else writer).parquet(folder)
        try:
            count = 0
            for file in self._data_files(target, folder, is_dated=is_dated):
                change = getattr(change, add)(file)
                count += file.recordCount()
            change.commit()
        except Exception:
            path = self._java.org.apache.hadoop.fs.Path(folder)
            with suppress(Exception):  # the error that ends the run is the other one
                path.getFileSystem(self._configuration).delete(path, True)
            raise
        return count

    def _data_files(self, target: Any, folder: str, *, is_dated: bool) -> list[Any]:
        """Return the files of a directory as data files of a table, with their metrics."""
        iceberg = self._java.org.apache.iceberg
        metrics = iceberg.MetricsConfig.forTable(target)
        mapping = iceberg.mapping.NameMappingParser.fromJson(target.properties().get(NAME_MAPPING))
        path = self._java.org.apache.hadoop.fs.Path(folder)
        parts: list[dict[str, str]] = [{}]
        if is_dated:
            found = path.getFileSystem(self._configuration).listStatus(path)
            names = [status.getPath().getName() for status in found if status.isDirectory()]
            parts = [{"date": name.removeprefix("date=")} for name in names]
        files: list[Any] = []
        for part in parts:
            at = folder if not part else f"{folder}/date={part['date']}"
            values = self._java.java.util.HashMap(part)
            listed = iceberg.data.TableMigrationUtil.listPartition
            files.extend(listed(values, at, "parquet", target.spec(), self._configuration, metrics, mapping))
        return files

    def _created(self, table: Table, *, is_dated: bool) -> Any:
        iceberg = self._java.org.apache.iceberg
        schema = iceberg.SchemaParser.fromJson(_schema(table, is_dated=is_dated))
        builder = iceberg.PartitionSpec.builderFor(schema)
        spec = (builder.identity("date") if is_dated else builder).build()
        mapping = iceberg.mapping.NameMappingParser.toJson(iceberg.mapping.MappingUtil.create(schema))
        properties = self._java.java.util.HashMap({NAME_MAPPING: mapping})
        return self._tables.create(schema, spec, properties, self.folder(table.name))

    def _grown(self, table: Table) -> Any:
        """Return a table that has all columns; those of a later version of kproto are added."""
        target = self._load(table.name)
        missing = [name for name in table.names if target.schema().findField(name) is None]
        if missing:
            wanted = self._java.org.apache.iceberg.SchemaParser.fromJson(_schema(table, is_dated=False))
            change = target.updateSchema()
            for name in missing:
                change = change.addColumn(name, wanted.findType(name))
            change.commit()
        return target

    def _is_conflict(self, error: Exception) -> bool:
        cause = cause_of(error)
        return cause is not None and str(cause.getClass().getSimpleName()) in CONFLICTS


def _schema(table: Table, *, is_dated: bool) -> str:
    """Return the schema of a table as Iceberg's JSON. The elements of lists have ids behind those of the columns."""
    fields = []
    for number, column in enumerate(table.columns, 1):
        of_list = {"type": "list", "element-id": 1000 + number, "element": "string", "element-required": False}
        kind = of_list if column.type is Type.STRINGS else TYPES[column.type]
        fields.append({"id": number, "name": column.name, "required": False, "type": kind})
    if is_dated:
        fields.append({"id": len(fields) + 1, "name": "date", "required": False, "type": "date"})
    return json.dumps({"type": "struct", "schema-id": 0, "fields": fields})


def _as_iceberg(rows: DataFrame) -> DataFrame:
    """Return rows without 16-bit numbers, which Iceberg lacks."""
    for name, kind in rows.dtypes:
        if kind == "smallint":
            rows = rows.withColumn(name, F.col(name).cast("int"))
    return rows
