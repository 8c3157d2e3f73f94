"""``python -m kproto.spark JOB ...``, and the same through spark-submit.

Rows go to standard output, or where `-o` says; what was read, and what is to be known of it, to standard error. Exit
codes: 0, or 2 with one line that says what is wrong and what to do.
"""

from __future__ import annotations

import os
import re
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from kproto.errors import CommandLineError
from kproto.spark.arguments import parse
from kproto.spark.commands import JOBS, VERSIONS_ORDER

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Sequence

    from pyspark.sql import SparkSession

    from kproto.spark.inputs import Input

FAILED = 2
INTERRUPTED = 130
DELTA = "io.delta:delta-spark_4.2_2.13:4.4.0"
"""Delta for the Spark that `kproto[spark]` pins; without its Unity Catalog, which no table here needs."""
DELTA_CONFIG = {
    "spark.jars.packages": DELTA,
    "spark.jars.excludes": "io.unitycatalog:unitycatalog-client,io.unitycatalog:unitycatalog-hadoop",
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
}
QUIET = Path(__file__).with_name("log4j2.properties")
LINE_MAX = 400
"""Characters of a message that is not ours."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Do what the command line says (``sys.argv`` unless told); return the exit code."""
    try:
        asked = parse(sys.argv[1:] if arguments is None else arguments)
        _check(asked)
        _run(asked)
    except CommandLineError as error:
        return _failed(str(error))
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:  # whoever read the rows has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except Exception as error:
        line = _one_line(error)
        if line is None:
            raise
        return _failed(f"kproto.spark: {line}")
    return 0


def _failed(line: str) -> int:
    _tell(line)
    return FAILED


def _tell(line: str) -> None:
    """Print to standard error. spark-submit makes one stream of a Python program's two, so there Java prints it."""
    if "PYSPARK_GATEWAY_PORT" in os.environ:
        from pyspark import SparkContext

        java = SparkContext._jvm
        if java is not None:
            java.java.lang.System.err.println(line)
            return
    print(line, file=sys.stderr, flush=True)


def _check(asked: Namespace) -> None:
    """See to what can be known before Spark starts.

    Raises:
        CommandLineError, NoLog, OSError: with the line to print.
    """
    for package in ("pyspark", "pyarrow", "numpy"):
        if find_spec(package) is None:
            raise CommandLineError(f"kproto.spark: needs {package}: pip install 'kproto[spark]'")
    from kproto.logs.files import find_partitions
    from kproto.spark.inputs import is_tables

    if asked.job == "versions":
        for path in map(Path, asked.paths):
            if not path.exists() or (path.is_dir() and next(path.rglob("*.json"), None) is None):
                raise CommandLineError(
                    f"kproto.spark versions: {path}: no report and no directory with any (NAME.json)"
                )
    elif not is_tables(asked.dir):
        find_partitions(asked.dir)
    if asked.output is not None and asked.format != "delta":
        _check_output(asked.job, Path(asked.output), asked.format)
    elif asked.format == "parquet":
        raise CommandLineError(f"kproto.spark {asked.job}: --format parquet needs a directory: -o DIR")


def _check_output(job: str, output: Path, form: str) -> None:
    if form == "parquet" and job != "tables" and output.exists():
        raise CommandLineError(f"kproto.spark {job}: {output} is there already")
    if form == "parquet" and output.is_file():
        raise CommandLineError(f"kproto.spark {job}: {output} is a file")
    if form != "parquet" and not output.parent.is_dir():
        raise CommandLineError(f"kproto.spark {job}: {output.parent}: no such directory")


def _run(asked: Namespace) -> None:
    spark = _session(asked)
    try:
        if asked.job == "versions":
            _versions(spark, asked)
        elif asked.job == "tables":
            _tables(spark, asked)
        elif asked.job == "report":
            _report(spark, asked)
        else:
            _job(spark, asked)
    finally:
        spark.stop()


def _session(asked: Namespace) -> SparkSession:
    from kproto.spark.session import session

    config = {"spark.ui.showConsoleProgress": str(sys.stderr.isatty()).lower()}
    if "PYSPARK_GATEWAY_PORT" not in os.environ:  # else spark-submit has decided how Java logs
        config["spark.driver.extraJavaOptions"] = f"-Dlog4j2.configurationFile={QUIET}"
    if asked.format != "delta":
        return session("kproto", master=asked.master, config=config)
    try:
        return session("kproto", master=asked.master, config=config | DELTA_CONFIG)
    except Exception as error:
        if "JAVA_GATEWAY_EXITED" not in str(error):
            raise
        raise CommandLineError(
            f"kproto.spark tables: {DELTA} can't be had from Maven Central: take --format parquet"
        ) from error


def _job(spark: SparkSession, asked: Namespace) -> None:
    from kproto.spark.inputs import open_input
    from kproto.spark.output import ordered, write
    from kproto.spark.words import caveats, coverage

    job = JOBS[asked.job]
    source = open_input(spark, asked.dir, asked.group)
    for line in (*coverage(source.coverage), *caveats(source.coverage, job.compaction)):
        _tell(f"kproto.spark: {line}")
    note = write(ordered(job.run(source, asked), job.order), asked.format, asked.output, asked.limit)
    if note is not None:
        _tell(f"kproto.spark: {note}")


def _versions(spark: SparkSession, asked: Namespace) -> None:
    from kproto.spark.jobs.versions import SCHEMA, read_reports, versions
    from kproto.spark.output import ordered, write
    from kproto.spark.words import plural

    reports = read_reports(spark, [str(Path(path).absolute()) for path in asked.paths])
    seen = {row["path"]: row["schema"] for row in reports.select("path", "schema").collect()}
    for path, schema in seen.items():
        if schema != SCHEMA:
            raise CommandLineError(f"kproto.spark versions: {path}: no request report of schema {SCHEMA}")
    _tell(f"kproto.spark: {plural(len(seen), 'report')}")
    note = write(ordered(versions(reports), VERSIONS_ORDER), asked.format, asked.output, asked.limit)
    if note is not None:
        _tell(f"kproto.spark: {note}")


def _tables(spark: SparkSession, asked: Namespace) -> None:
    from kproto.spark.inputs import open_input
    from kproto.spark.tables import Source, write_delta, write_parquet
    from kproto.spark.words import caveats, coverage, plural

    log = open_input(spark, asked.dir)
    for line in (*coverage(log.coverage), *caveats(log.coverage, "the tables keep what they have")):
        _tell(f"kproto.spark: {line}")
    source = Source(log.table, log.coverage.ends)
    if asked.format == "delta":
        added = write_delta(spark, source, asked.output)
    else:
        added = write_parquet(spark, source, Path(asked.output).absolute())
    for name, table in added.items():
        waiting = f"; {plural(table.held_back, 'row')} of open transactions wait" if table.held_back else ""
        _tell(f"kproto.spark: {name}: {plural(table.rows, 'row')} added{waiting}")
    if asked.derived:
        for name, count in _derive(spark, asked).items():
            _tell(f"kproto.spark: {name}: {plural(count, 'row')}")


def _derive(spark: SparkSession, asked: Namespace) -> dict[str, int]:
    from kproto.spark.derived import derive_parquet

    return derive_parquet(spark, Path(asked.output).absolute(), asked)


def _report(spark: SparkSession, asked: Namespace) -> None:
    from kproto.spark.inputs import open_input
    from kproto.spark.report.build import build
    from kproto.spark.report.page import render

    source: Input = open_input(spark, asked.dir, asked.group)
    page = render(build(source, asked))
    Path(asked.output).write_text(page, encoding="utf-8")
    _tell(f"kproto.spark: {asked.output}: {len(page):,} characters")


def _one_line(error: Exception) -> str | None:
    """Return what an error comes down to; None: it is a mistake of ours, for which the trace is due."""
    from pyspark.errors import PySparkException

    from kproto.spark.session import one_line

    line = one_line(error)
    if line is None and isinstance(error, OSError):
        line = str(error)
    if line is None and (isinstance(error, PySparkException) or type(error).__module__.startswith("py4j")):
        causes = re.findall(r"^(?:[\w.]+\.)?(\w+(?:Error|Exception): .+)$", str(error), re.MULTILINE)
        line = causes[-1] if causes else str(error).strip().partition("\n")[0]
    return None if line is None else line[:LINE_MAX]
