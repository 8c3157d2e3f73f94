"""``python -m kproto.spark JOB ...``, also through spark-submit.

Rows go to standard output or to the file given by `-o`; the coverage of the log and notes go to standard error. Exit
codes: 0; 1 if `watch` or `check` found something; 2 with one line that says what is wrong and what to do; 130 after an
interrupt.
"""

from __future__ import annotations

import os
import re
import sys
from contextlib import ExitStack
from io import TextIOWrapper
from pathlib import Path
from typing import TYPE_CHECKING

from kproto import output_file
from kproto.errors import CommandLineError
from kproto.logs.locations import listings_kept
from kproto.spark.arguments import SPARK_PROGRAM, parse
from kproto.spark.commands import JOBS, VERSIONS_ORDER
from kproto.spark.engine import is_embedded
from kproto.spark.progress import nothing, tasks_of, watched
from kproto.spark.start import check_engine, start, starting

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Callable, Mapping, Sequence

    from pyspark.sql import DataFrame, SparkSession

    from kproto.spark.arguments import Program
    from kproto.spark.input import Input
    from kproto.spark.progress import Progress

FOUND = 1
FAILED = 2
INTERRUPTED = 130
LINE_MAX = 400
"""The most characters that are printed of a message of Spark or Java."""


def main(arguments: Sequence[str] | None = None, program: Program = SPARK_PROGRAM) -> int:
    """Run the command line, by default ``sys.argv``, as a command of a program; return the exit code."""
    try:
        options = parse(sys.argv[1:] if arguments is None else arguments, program)
        with listings_kept(), watched(lambda line: _print_line(f"{program.name}: {line}")) as progress:
            progress.doing(lambda: f"{options.job}: looking at the input")
            if options.output is None:
                _check_standard_output(options)
            _check(options)
            return _run(options, progress)
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
        return _failed(f"{program.name}: {line}")


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
    if sys.stderr is not None:  # else print writes to standard output
        print(line, file=sys.stderr, flush=True)


def _check_standard_output(options: Namespace) -> None:
    if sys.stdout is None:  # Python's value for a standard stream that was closed before the start
        raise CommandLineError(f"{options.program.of(options.job)}: standard output is closed: give -o FILE")
    if isinstance(sys.stdout, TextIOWrapper):  # the encoding of the terminal may lack characters of group ids
        sys.stdout.reconfigure(errors="backslashreplace")


def _check(options: Namespace) -> None:
    """Check what can be checked before Spark starts.

    Raises:
        CommandLineError, NoLog, OSError: with the line to print.
    """
    from kproto.logs.files import find_partitions
    from kproto.logs.locations import is_remote
    from kproto.logs.log_dirs import is_many, log_dirs
    from kproto.logs.remote import check_written
    from kproto.spark.audited import split
    from kproto.spark.formats import ATOMIC, has_format, is_tables

    command = options.program.of(options.job)
    if options.job == "versions":
        for path in map(Path, options.paths):
            if not path.exists() or not any(split([str(path)])):
                raise CommandLineError(
                    f"{command}: {path}: not a report, and not a directory of reports (NAME.json), request logs "
                    "(NAME.log), captures (NAME.pcap) or metrics (NAME.prom)"
                )
    elif options.dir is None:  # a running cluster
        _check_client_settings(options)
    elif is_many(options.dir):
        for one in log_dirs(options.dir):
            find_partitions(one, None)
    elif options.job == "replicas" or not (has_format(options.dir) or is_tables(options.dir)):
        find_partitions(options.dir)
    check_engine(options)
    if options.output is not None and is_remote(options.output) and options.format not in ATOMIC:
        if options.format == "parquet" and options.job != "tables":
            raise CommandLineError(f"{command}: {options.output}: rows in Parquet go to local directories only")
        if options.job == "tables" and options.from_kafka is not None:
            advice = "give a local directory, or --format delta"
            raise CommandLineError(f"{command}: {options.output}: Spark cannot keep its position there: {advice}")
        check_written(options.output)
    elif options.output is not None and options.format not in ATOMIC:
        _check_output(options, Path(options.output))
    elif options.format == "parquet":
        raise CommandLineError(f"{command}: --format parquet needs a directory: -o DIR")


def _check_client_settings(options: Namespace) -> None:
    from kproto.spark.tables_command import client_settings

    client_settings(options)


def _check_output(options: Namespace, output: Path) -> None:
    command, form = options.program.of(options.job), options.format
    if not options.output:
        raise CommandLineError(f"{command}: the name of the output is empty")
    if form == "parquet" and options.job != "tables" and output.exists():
        raise CommandLineError(f"{command}: {output} exists already")
    if form == "parquet" and output.is_file():
        raise CommandLineError(f"{command}: {output} is a file")
    if form != "parquet" and not output.parent.is_dir():
        raise CommandLineError(f"{command}: {output.parent}: no such directory")
    if form != "parquet" and output.is_dir():
        raise CommandLineError(f"{command}: {output} is a directory")


def _run(options: Namespace, progress: Progress) -> int:
    """Run the command; return the exit code."""
    progress.doing(lambda: starting(options))
    spark = start(options)
    try:
        progress.doing(_doing(spark, options))
        if options.job == "versions":
            _versions(spark, options)
        elif options.job == "replicas":
            _replicas(spark, options)
        elif options.job == "tables":
            _tables(spark, options)
        elif options.job == "report":
            _report(spark, options)
        elif options.job == "watch":
            return _watch(spark, options)
        else:
            return _job(spark, options)
    finally:
        progress.doing(nothing)
        spark.stop()
    return 0


def _doing(spark: SparkSession, options: Namespace) -> Callable[[], str | None]:
    """Return what says how far a command is; while it waits for new records, nothing."""
    if is_embedded():
        return lambda: f"{options.job}: reading and computing in this process"
    is_endless = options.job == "tables" and options.from_kafka is not None and not options.once

    def doing() -> str | None:
        tasks = tasks_of(spark)
        if tasks is None and is_endless:
            return None
        return f"{options.job}: {tasks or 'between two stages of Spark'}"

    return doing


def _job(spark: SparkSession, options: Namespace) -> int:
    """Print the rows of a job; return 1 if there are any and each of them is a finding."""
    from kproto.spark.output import ordered

    job = JOBS[options.job]
    inputs = _open_inputs(spark, options)
    with ExitStack() as stack:
        found = {cluster: _rows_of_job(opened, options, stack) for cluster, opened in inputs.items()}
        rows = ordered(*_of_clusters(found, job.order))
        if job.rows_are_findings:
            rows = rows.persist()
        _write_rows(rows, options)
        return FOUND if job.rows_are_findings and not rows.isEmpty() else 0


def _rows_of_job(opened: Input, options: Namespace, stack: ExitStack) -> DataFrame:
    """Print what was read of an input; return the rows of the job."""
    from kproto.spark.advice import sentence, summarize
    from kproto.spark.words import caveats, coverage

    job = JOBS[options.job]
    names = job.reads_with(options)
    if names is None:
        return job.run(opened, options)
    source = stack.enter_context(opened.read_once(*names))
    for line in (*coverage(source.coverage), *caveats(source.coverage, job.compaction)):
        _print_line(f"{options.program.name}: {line}")
    rows = job.run(source, options)
    if options.job == "retention-audit":
        rows = rows.persist()
        text, _ = sentence(summarize(rows, options.retention_minutes), source.coverage)
        stack.callback(_print_line, f"{options.program.name}: {text}")
    return rows


def _of_clusters(found: Mapping[str | None, DataFrame], order: tuple[str, ...]) -> tuple[DataFrame, tuple[str, ...]]:
    """Return the rows of several clusters, each with its id, and their order; of one cluster, its own."""
    from kproto.spark.engine import F

    if len(found) == 1:
        return next(iter(found.values())), order
    first, *others = (
        rows.select(F.lit(cluster).cast("string").alias("cluster_id"), *rows.columns) for cluster, rows in found.items()
    )
    for other in others:
        first = first.unionByName(other)
    return first, ("cluster_id", *order)


def _open_inputs(spark: SparkSession, options: Namespace) -> dict[str | None, Input]:
    from kproto.spark.inputs import open_inputs

    groups = [] if options.job == "tables" else options.group
    return open_inputs(spark, options.dir, groups, note=lambda line: _print_line(f"{options.program.name}: {line}"))


def _input_of_one_cluster(spark: SparkSession, options: Namespace) -> Input:
    inputs = _open_inputs(spark, options)
    if len(inputs) > 1:
        command, listed = options.program.of(options.job), ", ".join(cluster or "unknown" for cluster in inputs)
        raise CommandLineError(f"{command}: these are logs of several clusters ({listed}): give those of one")
    return next(iter(inputs.values()))


def _replicas(spark: SparkSession, options: Namespace) -> None:
    from kproto.logs.log_dirs import log_dirs
    from kproto.spark.jobs.replicas import ORDER, replicas
    from kproto.spark.output import ordered

    _write_rows(ordered(replicas(spark, log_dirs(options.dir)), ORDER), options)


def _write_rows(rows: DataFrame, options: Namespace) -> None:
    from kproto.spark.output import write

    note = write(rows, options.format, options.output, options.limit)
    if note is not None:
        _print_line(f"{options.program.name}: {note}")


def _versions(spark: SparkSession, options: Namespace) -> None:
    from kproto.spark.jobs.versions import SCHEMA, read_reports, versions
    from kproto.spark.output import ordered
    from kproto.spark.words import plural

    given = {"--kafka-version": options.kafka_version, "--target": options.target}
    words = [f"{name}={value}" for name, value in given.items() if value is not None]
    reports = read_reports(spark, [str(Path(path).absolute()) for path in options.paths], words)
    seen = reports.select("path", "schema", "problem").collect()
    for path, schema, problem in seen:
        if schema != SCHEMA:
            reason = f"{path}: not a request report of schema {SCHEMA}" if problem is None else problem
            raise CommandLineError(f"{options.program.of(options.job)}: {reason}")
    _print_line(f"{options.program.name}: {plural(len(seen), 'report')}")
    _write_rows(ordered(versions(reports), VERSIONS_ORDER), options)


def _tables(spark: SparkSession, options: Namespace) -> None:
    from kproto.spark.tables_command import write_tables

    def note(line: str) -> None:
        _print_line(f"{options.program.name}: {line}")

    write_tables(spark, options, lambda: _input_of_one_cluster(spark, options), note)


def _report(spark: SparkSession, options: Namespace) -> None:
    from kproto.spark.output import write_text
    from kproto.spark.report.build import build
    from kproto.spark.report.page import render

    log = _input_of_one_cluster(spark, options)
    with log.read_once("commits", "group_metadata", "log_batches") as source:
        page = render(build(source, options))
    write_text(options.output, page)
    _print_line(f"{options.program.name}: {options.output}: {len(page):,} characters")


def _watch(spark: SparkSession, options: Namespace) -> int:
    """Print the findings of the rules; return 1 if there are any."""
    from kproto.logs.locations import is_remote
    from kproto.spark.commands import time_of
    from kproto.spark.output import write_text
    from kproto.spark.watch import DEFAULT, READS, read_rules, watch
    from kproto.spark.watch_text import FORMATS

    rules = DEFAULT if options.rules is None else read_rules(options.rules)
    with _input_of_one_cluster(spark, options).read_once(*READS) as source:
        found = watch(source, rules, time_of(source, options))
        text = FORMATS[options.format](found, source.end_ts)
    if options.output is None:
        sys.stdout.write(text)
        sys.stdout.flush()
    elif is_remote(options.output):
        write_text(options.output, text)
    else:  # in one rename: a textfile collector may read it at any time
        output_file.write(options.output, text)
    return FOUND if found else 0


def _one_line(error: Exception) -> str | None:
    """Return the one line that explains an error; None for an error in kproto itself, whose traceback is needed."""
    from kproto.spark.session import one_line

    line = one_line(error)
    if line is None and isinstance(error, OSError):
        line = str(error)
    if line is None and (_is_of_engine(error) or type(error).__module__.startswith("py4j")):
        causes = re.findall(r"^(?:: )?(?:[\w.]+\.)?(\w+(?:Error|Exception): .+)$", str(error), re.MULTILINE)
        line = causes[-1] if causes else str(error).strip().partition("\n")[0]
    return None if line is None else line[:LINE_MAX]


def _is_of_engine(error: Exception) -> bool:
    if is_embedded():
        from duckdb import Error
        from pyarrow import ArrowException

        return isinstance(error, Error | ArrowException)
    from pyspark.errors import PySparkException

    return isinstance(error, PySparkException)
