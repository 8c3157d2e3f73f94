"""What was typed after ``python -m kproto.spark``: checked before Spark starts, one line for each mistake."""

from __future__ import annotations

import argparse
from datetime import UTC, datetime
from typing import TYPE_CHECKING, NoReturn

from kproto.errors import CommandLineError
from kproto.spark.commands import JOBS, RETENTION_MINUTES
from kproto.spark.output import FORMATS

if TYPE_CHECKING:
    from collections.abc import Sequence

MINUTES_MAX = 2**31 - 1
"""Kafka's own limit of offsets.retention.minutes."""
END = "end"
"""Of --at: the newest timestamp of the offsets topic."""
DERIVED_OPTIONS = ("retention_minutes", "release", "at", "minutes", "moments")
"""Of the jobs whose answers `tables --derived` keeps."""

SUMMARY = """\
Offset logs of any size as tables, audits and a report, on Spark.

DIR is a Kafka log.dir (kproto's data directory, or a copy of a broker's), the directory of one partition of
__consumer_offsets, or what `tables` wrote.
"""


class Parser(argparse.ArgumentParser):
    """One that says what is wrong in one line."""

    def error(self, message: str) -> NoReturn:
        raise CommandLineError(f"{self.prog}: {message} (--help tells all)")


def parse(words: Sequence[str]) -> argparse.Namespace:
    """Return what was asked for: `job`, `dir` or `paths`, and the options of that job.

    Raises:
        CommandLineError: with the line to print.
        SystemExit: after --help.
    """
    parser = Parser(prog="kproto.spark", description=SUMMARY, formatter_class=argparse.RawDescriptionHelpFormatter)
    jobs = parser.add_subparsers(dest="job", metavar="JOB", required=True)
    for name, job in JOBS.items():
        command = _command(jobs, name, job.summary)
        command.add_argument("dir", metavar="DIR")
        for option in job.options:
            _OPTIONS[option](command)
        _of_rows(command)
        command.add_argument("--group", action="append", default=[], metavar="ID", help="only this group; repeatable")
    versions = _command(jobs, "versions", "which clients break on which Kafka release: over request reports (JSON)")
    versions.add_argument("paths", metavar="REPORT", nargs="+", help="a report, or a directory of them")
    _of_rows(versions)
    tables = _command(jobs, "tables", "write the log to tables, or add what is new to them")
    tables.add_argument("dir", metavar="DIR")
    tables.add_argument("-o", "--output", metavar="DIR", required=True, help="where the tables are, or are to be")
    tables.add_argument("--format", choices=("parquet", "delta"), default="parquet")
    told = "keep the jobs' answers as tables too, made anew by this run; the options that follow are theirs"
    tables.add_argument("--derived", action="store_true", help=told)
    for option in DERIVED_OPTIONS:
        _OPTIONS[option](tables)
    report = _command(jobs, "report", "a page of HTML with all of it")
    report.add_argument("dir", metavar="DIR")
    report.add_argument("-o", "--output", metavar="FILE", required=True)
    report.set_defaults(format="html")
    report.add_argument("--group", action="append", default=[], metavar="ID", help="only this group; repeatable")
    for option in ("retention_minutes", "release", "at", "minutes"):
        _OPTIONS[option](report)
    asked = parser.parse_args(words)
    if asked.job == "tables" and asked.derived and asked.format == "delta":
        raise CommandLineError("kproto.spark tables: --derived goes with --format parquet only")
    if asked.job == "tables" and not asked.derived:
        for option in DERIVED_OPTIONS:
            if getattr(asked, option) != tables.get_default(option):
                raise CommandLineError(f"kproto.spark tables: --{option.replace('_', '-')} needs --derived")
    return asked


def _command(jobs: argparse._SubParsersAction[Parser], name: str, summary: str) -> Parser:
    command = jobs.add_parser(
        name, help=summary, description=summary[0].upper() + summary[1:] + ".", allow_abbrev=False
    )
    command.add_argument("--master", metavar="URL", help="Spark's master (default: all processors of this machine)")
    return command


def _of_rows(command: Parser) -> None:
    command.add_argument("--format", choices=FORMATS, default="table", help="default: %(default)s")
    command.add_argument("-o", "--output", metavar="PATH", help="a file; of parquet, a directory (default: print)")
    command.add_argument("--limit", type=_whole(1), metavar="N", help="this many rows (default of table: 40, else all)")


def _whole(low: int, high: int = MINUTES_MAX):  # type: ignore[no-untyped-def]  # argparse takes any callable
    def read(text: str) -> int:
        if not (text.isascii() and text.isdigit() and low <= int(text) <= high):
            raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from {low} to {high}")
        return int(text)

    return read


def _moment(text: str) -> datetime | None:
    if text == END:
        return None
    if text == "now":
        return datetime.now(UTC)
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is neither {END} nor now nor like 2026-11-21T09:30:00") from None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _release(text: str) -> str:
    numbers = text.split(".")
    if not (2 <= len(numbers) <= 3 and all(number.isascii() and number.isdigit() for number in numbers)):
        raise argparse.ArgumentTypeError(f"{text!r} is no Kafka release, like 2.0 or 4.4.0")
    return text


def _retention(command: Parser) -> None:
    told = f"offsets.retention.minutes of the brokers (default: Kafka's own, {RETENTION_MINUTES})"
    command.add_argument("--retention-minutes", type=_whole(1), default=RETENTION_MINUTES, metavar="N", help=told)


def _other_retention(command: Parser) -> None:
    told = "offsets.retention.minutes as it might be"
    command.add_argument("--retention-minutes", type=_whole(1), required=True, metavar="N", help=told)
    told = f"and as it is (default: Kafka's own, {RETENTION_MINUTES})"
    command.add_argument("--current-minutes", type=_whole(1), default=RETENTION_MINUTES, metavar="N", help=told)


def _at(command: Parser) -> None:
    told = f"the moment asked about: {END} (of the log, the default), now, or like 2026-11-21T09:30:00 (UTC)"
    command.add_argument("--at", type=_moment, default=None, metavar="TIME", help=told)


def _releases(command: Parser) -> None:
    told = "the Kafka release that sweeps: 2.0, 2.1 and 2.4 changed the rules (default: the newest)"
    command.add_argument("--release", type=_release, default="4.4", metavar="RELEASE", help=told)


def _minutes(command: Parser) -> None:
    told = "how long an offset must have stood (default: %(default)s)"
    command.add_argument("--minutes", type=_whole(0), default=60, metavar="N", help=told)


def _moments(command: Parser) -> None:
    told = "this many moments from the log's begin to the end (default: the end alone)"
    command.add_argument("--moments", type=_whole(1, 1000), default=1, metavar="N", help=told)


_OPTIONS = {
    "retention_minutes": _retention,
    "other_retention": _other_retention,
    "at": _at,
    "release": _releases,
    "minutes": _minutes,
    "moments": _moments,
}
