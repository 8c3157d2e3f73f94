"""Run commands, and count how often each reads a range of a log: a data source notes ranges before it reads them."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource

from kproto.spark import cli, register
from kproto.spark.source.batch import NarrowingReader, NarrowingSource
from kproto.spark.source.options import read_options

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.datasource import DataSourceReader, InputPartition
    from pyspark.sql.types import StructType

    from kproto.spark.source.task import Task


def noting_source(notes: Path) -> type[DataSource]:
    """Return the data source of kproto that appends the ranges of each task to a file.

    Its classes are local: Spark sends them to the workers, which need not import the tests.
    """

    class NotingReader(NarrowingReader):
        def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
            task: Task = partition  # type: ignore[assignment]  # of this data source
            ranges = [[str(wanted.partition.path), wanted.start_offset] for wanted in task.ranges]
            file = os.open(notes, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
            os.write(file, (json.dumps(ranges) + "\n").encode())
            os.close(file)
            return super().read(partition)

    class NotingSource(NarrowingSource):
        def reader(self, schema: StructType) -> DataSourceReader:
            return NotingReader(read_options(self.options))

    return NotingSource


Command = Callable[..., tuple[int, str, str]]
"""Runs a command in this process; returns exit code, standard output and standard error."""


class Run:
    """Runs commands. Each reads every part of a log at most once, whatever it needs."""

    def __init__(self, spark: SparkSession, capsys: pytest.CaptureFixture[str], notes: Path) -> None:
        self._spark = spark
        self._capsys = capsys
        self._notes = notes

    def __call__(self, *words: object) -> tuple[int, str, str]:
        """Run a command on Spark; return exit code, standard output and standard error."""
        self._capsys.readouterr()
        self._notes.write_text("")
        self._spark.dataSource.register(noting_source(self._notes))
        try:
            code = cli.main([*map(str, words), "--engine", "spark"])
        finally:
            register(self._spark)
        output = self._capsys.readouterr()
        reads = Counter(tuple(one) for line in self._notes.read_text().splitlines() for one in json.loads(line))
        assert not [one for one, count in reads.items() if count > 1], f"{words} reads a log again"
        return code, output.out, output.err
