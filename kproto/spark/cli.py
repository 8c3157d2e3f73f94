"""``python -m kproto.spark JOB ...``, also through spark-submit.

Rows go to standard output or to the file given by `-o`; the coverage of the log and notes go to standard error. Exit
codes: 0; 2 with one line that says what is wrong and what to do; 130 after an interrupt.
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

FAILED = 2
INTERRUPTED = 130
DELTA = "io.delta:delta-spark_4.2_2.13:4.4.0"
"""Delta for the Spark version that `kproto[spark]` pins. Its Unity Catalog is left out: no table here needs it."""
DELTA_CONFIG = {
    "spark.jars.packages": DELTA,
    "spark.jars.ivySettings": str(Path(__file__).with_name("ivysettings.xml")),
    "spark.jars.excludes": "io.unitycatalog:unitycatalog-client,io.unitycatalog:unitycatalog-hadoop",
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
}
QUIET = Path(__file__).with_name("log4j2.properties")
SMALL_MAX_BYTES = 32 << 20
"""The size of an input up to which Spark's start takes most of the time."""
LINE_MAX = 400
"""The most characters that are printed of a message of Spark or Java."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line, by default ``sys.argv``; return the exit code."""
    try:
        options = parse(sys.argv[1:] if arguments is None else arguments)
        _check(options)
        _run(options)
    except CommandLineError as error:
        return _failed(str(error))
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:  # the reader of the rows closed the pipe
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except Exception as error:
        line = _one_line(error)
        if line is None:
            raise
        return _failed(f"kproto.spark: {line}")
    return 0


def _failed(line: str) -> int:
    _print_line(line)
    return FAILED


def _print_line(line: str) -> None:
    """Print to standard error; through Java under spark-submit, which merges the two streams of a Python program."""
    if "PYSPARK_GATEWAY_PORT" in os.environ:
        from pyspark import SparkContext

        java = SparkContext._jvm
        if java is not None:
            java.java.lang.System.err.println(line)
            return
    print(line, file=sys.stderr, flush=True)


def _check(options: Namespace) -> None:
    """Check what can be checked before Spark starts.

    Raises:
        CommandLineError, NoLog, OSError: with the line to print.
    """
    for package in ("pyspark", "pyarrow", "numpy"):
        if find_spec(package) is None:
            raise CommandLineError(f"kproto.spark: needs {package}: pip install 'kproto[spark]'")
    from kproto.logs.files import find_partitions
    from kproto.spark.delta import is_delta
    from kproto.spark.inputs import is_tables

    if options.job == "versions":
        for path in map(Path, options.paths):
            if not path.exists() or (path.is_dir() and next(path.rglob("*.json"), None) is None):
                raise CommandLineError(
                    f"kproto.spark versions: {path}: not a report, and not a directory of reports (NAME.json)"
                )
    elif not is_delta(options.dir) and not is_tables(options.dir):
        find_partitions(options.dir)
    if options.output is not None and options.format != "delta":
        _check_output(options.job, Path(options.output), options.format)
    elif options.format == "parquet":
        raise CommandLineError(f"kproto.spark {options.job}: --format parquet needs a directory: -o DIR")


def _check_output(job: str, output: Path, form: str) -> None:
    if form == "parquet" and job != "tables" and output.exists():
        raise CommandLineError(f"kproto.spark {job}: {output} exists already")
    if form == "parquet" and output.is_file():
        raise CommandLineError(f"kproto.spark {job}: {output} is a file")
    if form != "parquet" and not output.parent.is_dir():
        raise CommandLineError(f"kproto.spark {job}: {output.parent}: no such directory")


def _run(options: Namespace) -> None:
    spark = _session(options)
    try:
        if options.job == "versions":
            _versions(spark, options)
        elif options.job == "tables":
            _tables(spark, options)
        elif options.job == "report":
            _report(spark, options)
        else:
            _job(spark, options)
    finally:
        spark.stop()


def _is_small(options: Namespace) -> bool:
    from kproto.spark.inputs import input_size

    is_remote = options.job != "versions" and "://" in options.dir
    return not is_remote and (options.job == "versions" or input_size(options.dir) <= SMALL_MAX_BYTES)


def _session(options: Namespace) -> SparkSession:
    from kproto.spark.delta import is_delta
    from kproto.spark.session import FOR_SMALL_INPUT, JAVA_OPTIONS, session

    config = {"spark.ui.showConsoleProgress": str(sys.stderr.isatty()).lower()}
    if "PYSPARK_GATEWAY_PORT" not in os.environ:  # else spark-submit has started Java and configured how it logs
        java = f"-Dlog4j2.configurationFile={QUIET}"
        if options.master is None and _is_small(options):
            config |= FOR_SMALL_INPUT
            java += " " + FOR_SMALL_INPUT[JAVA_OPTIONS]
        config[JAVA_OPTIONS] = java
    if options.format != "delta" and (options.job == "versions" or not is_delta(options.dir)):
        return session("kproto", master=options.master, config=config)
    try:
        return session("kproto", master=options.master, config=config | DELTA_CONFIG)
    except Exception as error:
        if "JAVA_GATEWAY_EXITED" not in str(error):
            raise
        raise CommandLineError(
            f"kproto.spark {options.job}: cannot download {DELTA} from Maven Central: use tables of --format parquet"
        ) from error


def _job(spark: SparkSession, options: Namespace) -> None:
    from kproto.spark.advice import sentence, summarize
    from kproto.spark.inputs import open_input
    from kproto.spark.output import ordered, write
    from kproto.spark.words import caveats, coverage

    job = JOBS[options.job]
    with open_input(spark, options.dir, options.group).read_once(*job.reads_with(options)) as source:
        for line in (*coverage(source.coverage), *caveats(source.coverage, job.compaction)):
            _print_line(f"kproto.spark: {line}")
        rows = job.run(source, options)
        if options.job == "retention-audit":
            rows = rows.persist()
        note = write(ordered(rows, job.order), options.format, options.output, options.limit)
        if note is not None:
            _print_line(f"kproto.spark: {note}")
        if options.job == "retention-audit":
            text, _ = sentence(summarize(rows, options.retention_minutes), source.coverage)
            _print_line(f"kproto.spark: {text}")


def _versions(spark: SparkSession, options: Namespace) -> None:
    from kproto.spark.jobs.versions import SCHEMA, read_reports, versions
    from kproto.spark.output import ordered, write
    from kproto.spark.words import plural

    reports = read_reports(spark, [str(Path(path).absolute()) for path in options.paths])
    seen = {row["path"]: row["schema"] for row in reports.select("path", "schema").collect()}
    for path, schema in seen.items():
        if schema != SCHEMA:
            raise CommandLineError(f"kproto.spark versions: {path}: not a request report of schema {SCHEMA}")
    _print_line(f"kproto.spark: {plural(len(seen), 'report')}")
    note = write(ordered(versions(reports), VERSIONS_ORDER), options.format, options.output, options.limit)
    if note is not None:
        _print_line(f"kproto.spark: {note}")


def _tables(spark: SparkSession, options: Namespace) -> None:
    from kproto.spark.delta import marks_of_delta, write_delta
    from kproto.spark.inputs import open_input
    from kproto.spark.tables import Source, read_marks, write_parquet
    from kproto.spark.words import caveats, coverage, plural

    is_delta = options.format == "delta"
    root = Path(options.output).absolute()
    known = marks_of_delta(spark, options.output) if is_delta else read_marks(root)
    with open_input(spark, options.dir).read_once(*known, after=known) as log:
        for line in (*coverage(log.coverage), *caveats(log.coverage, "rows that the tables already have stay")):
            _print_line(f"kproto.spark: {line}")
        source = Source(log.table, log.coverage.ends, log.origin)
        added = write_delta(spark, source, options.output) if is_delta else write_parquet(spark, source, root)
    for name, table in added.items():
        waiting = f"; {plural(table.waiting, 'row')} of open transactions wait" if table.waiting else ""
        _print_line(f"kproto.spark: {name}: {plural(table.rows, 'row')} added{waiting}")
    if options.derived:
        for name, count in _derive(spark, options).items():
            _print_line(f"kproto.spark: {name}: {plural(count, 'row')}")


def _derive(spark: SparkSession, options: Namespace) -> dict[str, int]:
    from kproto.spark.derived import derive_delta, derive_parquet

    if options.format == "delta":
        return derive_delta(spark, options.output, options)
    return derive_parquet(spark, Path(options.output).absolute(), options)


def _report(spark: SparkSession, options: Namespace) -> None:
    from kproto.spark.inputs import open_input
    from kproto.spark.report.build import build
    from kproto.spark.report.page import render

    log = open_input(spark, options.dir, options.group)
    with log.read_once("commits", "group_metadata", "log_batches") as source:
        page = render(build(source, options))
    Path(options.output).write_text(page, encoding="utf-8")
    _print_line(f"kproto.spark: {options.output}: {len(page):,} characters")


def _one_line(error: Exception) -> str | None:
    """Return the one line that explains an error; None for an error in kproto itself, whose traceback is needed."""
    from pyspark.errors import PySparkException

    from kproto.spark.session import one_line

    line = one_line(error)
    if line is None and isinstance(error, OSError):
        line = str(error)
    if line is None and (isinstance(error, PySparkException) or type(error).__module__.startswith("py4j")):
        causes = re.findall(r"^(?:[\w.]+\.)?(\w+(?:Error|Exception): .+)$", str(error), re.MULTILINE)
        line = causes[-1] if causes else str(error).strip().partition("\n")[0]
    return None if line is None else line[:LINE_MAX]
