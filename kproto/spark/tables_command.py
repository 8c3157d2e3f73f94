"""The command `tables`: write a log, or the offsets topic of a running cluster, to tables of one format."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from kproto.errors import CommandLineError, UsageError
from kproto.spark.formats import tables_to_write
from kproto.spark.from_kafka import Stream, follow
from kproto.spark.log_input import LogInput
from kproto.spark.publish import TablesError
from kproto.spark.tables import (
    GROWING,
    Origin,
    Source,
    compact_parquet,
    read_and_write_parquet,
    read_marks,
    read_origin,
    write_parquet,
)
from kproto.spark.words import caveats, coverage, plural

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Callable, Mapping

    from pyspark.sql import SparkSession

    from kproto.spark.input import Coverage, Input
    from kproto.spark.tables import Added, Marks

    Note = Callable[[str], None]


class Target:
    """The tables that a command writes."""

    def __init__(self, spark: SparkSession, options: Namespace) -> None:
        self._spark = spark
        self._options = options
        self.root: str = options.output
        self._path = Path(options.output).absolute()
        self._atomic = tables_to_write(spark, options.output, options.format)
        self._state = None if self._atomic is None else self._atomic.state()

    @property
    def marks(self) -> Mapping[str, Marks]:
        """The marks at the beginning of the run."""
        return read_marks(self._path) if self._state is None else self._state.marks

    @property
    def origin(self) -> Origin:
        """What the tables knew of their log at the beginning of the run."""
        if self._state is not None:
            return self._state.origin
        try:
            return read_origin(self._path)
        except TablesError:  # the first write finishes the last one, and compares then
            return Origin()

    def write(self, source: Source) -> dict[str, Added]:
        """Append the rows of a source that are new since the state that this target has read last."""
        if self._atomic is None or self._state is None:
            return write_parquet(self._spark, source, self._path)
        return self._atomic.write(source, self._state)

    def write_log(self, opened: LogInput, say: Callable[[Coverage], None]) -> dict[str, Added]:
        """Read a log once, and append its new rows; ``say`` is given what was read."""
        if self._atomic is None:
            return read_and_write_parquet(self._spark, partial(_read_to_files, opened, say), self._path)
        known = self.marks
        with opened.read_once(*known, after=known) as log:
            say(log.coverage)
            return self.write(Source(log.table, log.coverage.ends, log.origin, opened.topic_ends))

    def write_again(self, source: Source) -> dict[str, Added]:
        """Append the rows of a source that are new by now."""
        if self._atomic is not None:
            self._state = self._atomic.state()
        return self.write(source)

    def compact(self) -> dict[str, int]:
        """Rewrite small files; return by how many the files of each table became fewer."""
        if self._atomic is None:
            return compact_parquet(self._spark, self._path)
        return {grown.name: self._atomic.compact(grown.name) for grown in GROWING}

    def derive(self) -> dict[str, int]:
        """Compute the derived tables; return the number of rows of each."""
        from kproto.spark.derived import derive_atomic, derive_parquet

        if self._atomic is None:
            return derive_parquet(self._spark, self._path, self._options)
        return derive_atomic(self._atomic, self._options)


def write_tables(spark: SparkSession, options: Namespace, opened: Callable[[], Input], note: Note) -> None:
    """Run the command; ``opened`` returns the log to write, and ``note`` prints a line."""
    target = Target(spark, options)
    if options.from_kafka is None:
        _from_log(options, opened(), target, note)
    else:
        _from_kafka(spark, options, target, note)
    if options.compact:
        for name, count in target.compact().items():
            note(f"{name}: {plural(count, 'file')} fewer")
    if options.derived:
        for name, count in target.derive().items():
            note(f"{name}: {plural(count, 'row')}")


def _read_to_files(
    opened: LogInput, say: Callable[[Coverage], None], folder: Path, marks: Mapping[str, Marks]
) -> Source:
    log = opened.to_files(folder, marks)
    say(log.coverage)
    return Source(log.table, log.coverage.ends, log.origin, opened.topic_ends, folder)


def _from_log(options: Namespace, opened: Input, target: Target, note: Note) -> None:
    if not isinstance(opened, LogInput):
        raise CommandLineError(f"{options.program.of(options.job)}: {options.dir}: these are tables: give a log")

    def say_what_is_read(found: Coverage) -> None:
        for line in (*coverage(found), *caveats(found, "rows that the tables already have stay")):
            note(line)

    _say(target.write_log(opened, say_what_is_read), note)


def _from_kafka(spark: SparkSession, options: Namespace, target: Target, note: Note) -> None:
    settings = {**client_settings(options), "bootstrap.servers": options.from_kafka}
    stream = Stream(settings, options.offsets_per_batch, None if options.once else options.every)
    follow(spark, stream, target.root, target.marks, target.origin, target.write_again, lambda added: _say(added, note))


def client_settings(options: Namespace) -> dict[str, str]:
    """Return the settings in the file that `--command-config` names.

    Raises:
        CommandLineError: it is no file of properties.
    """
    from kproto.properties import read_properties

    path = options.command_config
    if path is None:
        return {}
    where = f"{options.program.of(options.job)}: --command-config {path}"
    try:
        return read_properties(Path(path).read_text(encoding="utf-8"))
    except UsageError as error:
        raise CommandLineError(f"{where}: {str(error).partition(chr(10))[0]}") from None
    except UnicodeDecodeError:
        raise CommandLineError(f"{where}: not a text file in UTF-8") from None


def _say(added: Mapping[str, Added], note: Note) -> None:
    for name, table in added.items():
        waiting = f"; {plural(table.waiting, 'row')} of open transactions wait" if table.waiting else ""
        note(f"{name}: {plural(table.rows, 'row')} added{waiting}")
