"""The command line of ``python -m kproto.spark``, checked before Spark starts, with one line for each mistake."""

from __future__ import annotations

import argparse
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, NoReturn

from kproto.errors import CommandLineError
from kproto.logs.log_dirs import SEPARATOR
from kproto.spark.commands import JOBS, RETENTION_MINUTES
from kproto.spark.engine import EMBEDDED, SPARK
from kproto.spark.output import FORMATS
from kproto.spark.watch_text import FORMATS as WATCH_FORMATS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

MINUTES_MAX = 2**31 - 1
"""Kafka's own limit for offsets.retention.minutes."""
END = "end"
"""A value of --at: the newest timestamp in the offsets topic."""
DERIVED_OPTIONS = ("retention_minutes", "kafka_version", "at", "minutes", "moments")
"""The options of the jobs whose results `tables --derived` stores."""


FROM_KAFKA_OPTIONS = ("command_config", "once", "every", "offsets_per_batch")
"""The options of `tables` that are about a running cluster."""


class Program(NamedTuple):
    """The program of which the jobs are commands."""

    name: str
    engine: str
    """The engine that is missing if none is installed."""
    commands: Mapping[str, str] = {}
    """The commands that are not named like their jobs, by job."""

    def of(self, job: str) -> str:
        """Return the command of a job, as it is written."""
        return f"{self.name} {self.commands.get(job, job)}"


SPARK_PROGRAM = Program("kproto.spark", SPARK)

SUMMARY = """\
Offsets logs of any size as tables, audits and a report, on Spark.

DIR is a Kafka log.dir (kproto's data directory, or a copy of a broker's), the directory of one partition of
__consumer_offsets, or a directory that `tables` wrote. Several log.dirs, a glob in quotes, or a file with a path on
each line are those of many brokers: of each partition, the most complete replica is read.
"""


class Parser(argparse.ArgumentParser):
    """A parser that raises its errors, each one line long."""

    def error(self, message: str) -> NoReturn:
        raise CommandLineError(f"{self.prog}: {message} (see --help)")


def parse(arguments: Sequence[str], program: Program = SPARK_PROGRAM) -> argparse.Namespace:
    """Return `program`, `job`, `dir` or `paths`, and the options of the job.

    Raises:
        CommandLineError: with the line to print.
        SystemExit: after --help.
    """
    parser = Parser(prog=program.name, description=SUMMARY, formatter_class=argparse.RawDescriptionHelpFormatter)
    jobs = parser.add_subparsers(dest="job", metavar="JOB", required=True)
    for name, job in JOBS.items():
        command = _command(jobs, name, job.summary)
        _directories(command)
        for option in job.options:
            _OPTIONS[option](command)
        _row_output(command)
        if name == "transactions":
            command.set_defaults(group=[])
        else:
            _group(command)
    replicas = _command(
        jobs, "replicas", "the replicas of each partition in log.dirs of many brokers, and which disagree"
    )
    _directories(replicas)
    _row_output(replicas)
    text = "client versions that break on a Kafka release, over request reports, request logs and captures"
    versions = _command(jobs, "versions", text)
    text = "a report (JSON), what kproto audit reads (a request log, a capture, metrics), or a directory of these"
    versions.add_argument("paths", metavar="FILE", nargs="+", help=text)
    text = "the release of the brokers, for logs older than 2.8"
    versions.add_argument("--kafka-version", metavar="RELEASE", help=text)
    text = "of logs, captures and metrics: what would break on this release (default: the newest)"
    versions.add_argument("--target", metavar="RELEASE", help=text)
    _row_output(versions)
    tables = _tables_command(jobs)
    report = _command(jobs, "report", "all of it on one page of HTML")
    _directories(report)
    report.add_argument("-o", "--output", metavar="FILE", required=True)
    report.set_defaults(format="html")
    _group(report)
    for option in ("retention_minutes", "kafka_version", "at", "minutes"):
        _OPTIONS[option](report)
    watch = _command(jobs, "watch", "the groups that need attention now, by rules; exit code 1 if there are any")
    _directories(watch)
    text = "the rules, YAML (default: offsets that expire in 24 h, stalled for 60 min, rewinds in 24 h)"
    watch.add_argument("--rules", metavar="FILE", help=text)
    watch.add_argument("--format", choices=tuple(WATCH_FORMATS), default="lines", help="default: %(default)s")
    watch.add_argument("-o", "--output", metavar="FILE", help="a file, replaced in one rename (default: print)")
    _group(watch)
    _at_option(watch)
    for renamed, word in program.commands.items():
        jobs.choices[renamed].prog = f"{program.name} {word}"
    options = parser.parse_args(arguments, argparse.Namespace(program=program))
    if "" in (options.paths if options.job == "versions" else options.dir):
        raise CommandLineError(f"{program.of(options.job)}: the name of an input is empty")
    if options.job != "versions":
        options.dir = SEPARATOR.join(options.dir) or None
    if options.job == "tables":
        _check_tables(options, tables, program.of(options.job))
    return options


def _tables_command(jobs: argparse._SubParsersAction[Parser]) -> Parser:
    tables = _command(jobs, "tables", "write the log to tables, or append new rows to them")
    _directories(tables, count="*")
    tables.add_argument("-o", "--output", metavar="DIR", required=True, help="the directory of the tables")
    tables.add_argument("--format", choices=("parquet", "delta", "iceberg"), default="parquet")
    text = "read the offsets topic of a running cluster instead of DIR, until it is interrupted"
    tables.add_argument("--from-kafka", type=_servers, metavar="HOST:PORT", help=text)
    text = "settings of Kafka's client for secured listeners, as Kafka's own tools read them (with --from-kafka)"
    tables.add_argument("--command-config", metavar="FILE", help=text)
    text = "end at the present end of the topic (with --from-kafka)"
    tables.add_argument("--once", action="store_true", help=text)
    text = "write new rows this often (with --from-kafka; default: %(default)s)"
    tables.add_argument("--every", type=_whole(1), default=60, metavar="SECONDS", help=text)
    text = "read at most this many offsets before writing them (with --from-kafka; default: %(default)s)"
    tables.add_argument("--offsets-per-batch", type=_whole(1), default=5_000_000, metavar="N", help=text)
    text = "then rewrite small files of the tables to larger ones; while it runs, no other program should read Parquet"
    tables.add_argument("--compact", action="store_true", help=text)
    text = "also store the results of jobs as tables, computed again by each run; the options below are theirs"
    tables.add_argument("--derived", action="store_true", help=text)
    for option in DERIVED_OPTIONS:
        _OPTIONS[option](tables)
    return tables


def _check_tables(options: argparse.Namespace, tables: Parser, command: str) -> None:
    """Check the options of `tables` that need each other.

    Raises:
        CommandLineError: with the line to print.
    """
    if (options.dir is None) == (options.from_kafka is None):
        raise CommandLineError(f"{command}: give DIR or --from-kafka HOST:PORT, and not both")
    needs = dict.fromkeys(() if options.derived else DERIVED_OPTIONS, "--derived")
    if options.from_kafka is None:
        needs |= dict.fromkeys(FROM_KAFKA_OPTIONS, "--from-kafka")
    elif options.once:
        if options.every != tables.get_default("every"):
            raise CommandLineError(f"{command}: give --once or --every, not both")
    else:
        needs |= dict.fromkeys(("derived", "compact"), "--once")
    for option, needed in needs.items():
        if getattr(options, option) != tables.get_default(option):
            raise CommandLineError(f"{command}: --{option.replace('_', '-')} needs {needed}")


def _command(jobs: argparse._SubParsersAction[Parser], name: str, summary: str) -> Parser:
    command = jobs.add_parser(
        name, help=summary, description=summary[0].upper() + summary[1:] + ".", allow_abbrev=False
    )
    command.add_argument("--master", metavar="URL", help="Spark's master (default: all processors of this machine)")
    text = "all jars that tables or a cluster need, separated by commas (default: they come from Maven Central)"
    command.add_argument("--jars", type=_jars, default=(), metavar="JARS", help=text)
    text = "auto: embedded, which starts no Java, for small inputs on this machine (default: %(default)s)"
    command.add_argument("--engine", choices=("auto", SPARK, EMBEDDED), default="auto", help=text)
    return command


def _directories(command: Parser, count: str = "+") -> None:
    command.add_argument("dir", metavar="DIR", nargs=count, help="several, a glob or a list in a file: of many brokers")


def _row_output(command: Parser) -> None:
    command.add_argument("--format", choices=FORMATS, default="table", help="default: %(default)s")
    command.add_argument("-o", "--output", metavar="PATH", help="a file; for parquet, a directory (default: print)")
    text = "at most this many rows (default: 40 for table, else all)"
    command.add_argument("--limit", type=_whole(1), metavar="N", help=text)


def _group(command: Parser) -> None:
    command.add_argument("--group", action="append", default=[], metavar="ID", help="only this group; repeatable")


def _whole(low: int, high: int = MINUTES_MAX):  # type: ignore[no-untyped-def]  # argparse takes any callable
    def read(text: str) -> int:
        if not (text.isascii() and text.isdigit() and low <= int(text) <= high):
            raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from {low} to {high}")
        return int(text)

    return read


def _servers(text: str) -> str:
    for server in text.split(","):
        host, _, port = server.rpartition(":")
        if not (host and port.isascii() and port.isdigit() and 0 < int(port) < 65536):
            raise argparse.ArgumentTypeError(f"{server!r} is not HOST:PORT")
    return text


def _jars(text: str) -> tuple[str, ...]:
    jars = tuple(text.split(","))
    for jar in jars:
        if "://" not in jar and not Path(jar).is_file():
            raise argparse.ArgumentTypeError(f"{jar!r}: no such file")
    return jars


def _time(text: str) -> datetime | None:
    if text == END:
        return None
    if text == "now":
        return datetime.now(UTC)
    try:
        moment = datetime.fromisoformat(text)
        return moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)
    except (ValueError, OverflowError):  # in UTC, it may be before the first year
        raise argparse.ArgumentTypeError(f"{text!r} is neither {END} nor now nor like 2026-11-21T09:30:00") from None


def _kafka_version(text: str) -> str:
    numbers = text.split(".")
    if not (2 <= len(numbers) <= 3 and all(number.isascii() and number.isdigit() for number in numbers)):
        raise argparse.ArgumentTypeError(f"{text!r} is not a Kafka version like 2.0 or 4.4.0")
    return text


def _retention_option(command: Parser) -> None:
    text = f"offsets.retention.minutes of the brokers (default: Kafka's own, {RETENTION_MINUTES})"
    command.add_argument("--retention-minutes", type=_whole(1), default=RETENTION_MINUTES, metavar="N", help=text)


def _other_retention_options(command: Parser) -> None:
    text = "the offsets.retention.minutes to try"
    command.add_argument("--retention-minutes", type=_whole(1), required=True, metavar="N", help=text)
    text = f"the current offsets.retention.minutes (default: Kafka's own, {RETENTION_MINUTES})"
    command.add_argument("--current-minutes", type=_whole(1), default=RETENTION_MINUTES, metavar="N", help=text)
    text = "count it for offsets too whose clients requested a retention, as brokers with KIP-211 do"
    command.add_argument("--ignore-overrides", action="store_true", help=text)


def _at_option(command: Parser) -> None:
    text = f"the time of the question: {END} (of the log, the default), now, or like 2026-11-21T09:30:00 (UTC)"
    command.add_argument("--at", type=_time, default=None, metavar="TIME", help=text)


def _kafka_version_option(command: Parser) -> None:
    text = "the Kafka version whose brokers expire offsets: 2.1 and 2.4 changed the rules (default: the newest)"
    command.add_argument("--kafka-version", type=_kafka_version, default="4.4", metavar="VERSION", help=text)


def _minutes_option(command: Parser) -> None:
    text = "how long an offset must not have moved (default: %(default)s)"
    command.add_argument("--minutes", type=_whole(0), default=60, metavar="N", help=text)


def _moments_option(command: Parser) -> None:
    text = "this many times from the beginning of the log to its end (default: only the end)"
    command.add_argument("--moments", type=_whole(1, 1000), default=1, metavar="N", help=text)


_OPTIONS = {
    "retention_minutes": _retention_option,
    "other_retention": _other_retention_options,
    "at": _at_option,
    "kafka_version": _kafka_version_option,
    "minutes": _minutes_option,
    "moments": _moments_option,
}
