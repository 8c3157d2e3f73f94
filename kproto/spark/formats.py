"""The formats of tables by name, and which of them is at a path or URI."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kproto.errors import NoLog
from kproto.logs.locations import is_remote, local_path
from kproto.logs.remote import UnknownStore
from kproto.spark.atomic_tables import has_remote_tables, has_tables
from kproto.spark.delta import DeltaTables
from kproto.spark.iceberg import IcebergTables
from kproto.spark.publish import Publication, TablesError
from kproto.spark.store_tables import StoreTables

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import SparkSession

    from kproto.spark.atomic_tables import AtomicTables

PARQUET = "parquet"
ATOMIC: Mapping[str, type[AtomicTables]] = {"delta": DeltaTables, "iceberg": IcebergTables}
"""The formats whose own log makes a write atomic."""
_LISTED: Mapping[str, type[AtomicTables]] = {**ATOMIC, PARQUET: StoreTables}
"""The formats of tables that have a directory of metadata each."""


def is_tables(path: str) -> bool:
    """Return whether the command `tables` wrote tables there that are Parquet of this machine."""
    return not is_remote(path) and Publication(local_path(path)).exists()


def atomic_format(path: str) -> str | None:
    """Return the format of the tables at a path or URI; None: there are none, or Parquet of this machine.

    Raises:
        UnknownStore: fsspec does not know the scheme; Spark may.
        MissingPackage: the scheme needs a package.
        StoreError: the store cannot be reached, or refuses.
    """
    return next((name for name, tables in _LISTED.items() if has_tables(path, tables.metadata_folder)), None)


def needs_spark(path: str) -> bool:
    """Return whether only Spark reads what is at a path or URI; a scheme unknown to fsspec may be one of Spark."""
    try:
        return atomic_format(path) in ATOMIC
    except UnknownStore:
        return True


def has_format(path: str) -> bool:
    """Return whether tables are at a path or URI, but Parquet of this machine; a scheme unknown to fsspec counts."""
    try:
        return atomic_format(path) is not None
    except UnknownStore:
        return True


def open_tables(spark: SparkSession, root: str) -> AtomicTables | None:
    """Return the tables at a path or URI; None: there are none, or Parquet of this machine.

    Raises:
        NoLog: fsspec does not know the scheme, and Spark finds no tables, or cannot read from there.
        MissingPackage, StoreError: as `atomic_format`.
    """
    name, is_known = _format_at(spark, root)
    if name is None and not is_known:
        raise NoLog(f"{root}: no tables")
    return None if name is None else _LISTED[name](spark, root)


def _format_at(spark: SparkSession, root: str) -> tuple[str | None, bool]:
    """Return what `atomic_format` does, and whether fsspec knows the scheme; for other schemes, Spark looks."""
    try:
        return atomic_format(root), True
    except UnknownStore:
        found = (name for name, tables in ATOMIC.items() if has_remote_tables(spark, root, tables.metadata_folder))
        return next(found, None), False


def tables_to_write(spark: SparkSession, root: str, form: str) -> AtomicTables | None:
    """Return the tables of a format at a path or URI, which may not exist; None: Parquet of this machine.

    Raises:
        TablesError: there are tables of another format. Parquet readers would count the files of both.
        NoLog, MissingPackage, StoreError: as `open_tables`.
    """
    there = PARQUET if is_tables(root) else _format_at(spark, root)[0]
    if there not in (None, form):
        raise TablesError(f"{root}: has tables in the format {there}: those in {form} need another directory")
    if form == PARQUET:
        return StoreTables(spark, root) if is_remote(root) else None
    return ATOMIC[form](spark, root)
