"""The report of `kproto run`, `serve`, `audit` and `proxy`: printed, written to files, and as an exit code."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from typing import TYPE_CHECKING

from kproto import output_file
from kproto_server.commandline.options import STANDARD_OUTPUT
from kproto_server.commandline.output import write
from kproto_server.report import files, text
from kproto_server.report.model import build

if TYPE_CHECKING:
    from typing import TextIO

    from kproto_server.commandline.options import BrokerOptions, ReportOptions
    from kproto_server.observation.observe import Observations
    from kproto_server.report.model import Report, Run

REMOVED = 1
"""Exit code of ``--fail-on-removed``."""
NOT_WRITTEN = 2
"""Exit code if a report could not be written."""
PROTOCOL_ERROR = 3
"""Exit code of ``--fail-on-protocol-error``."""


def report_on(
    observations: Observations, broker: BrokerOptions, options: ReportOptions, command: str, run: Run | None = None
) -> int:
    """Print the report on standard error and write its files; return the exit code that it leads to.

    A file that can't be written comes before what would break, and that before protocol errors.
    """
    report = build(
        observations.snapshot(),
        kafka_version=broker.kafka_version,
        target=options.target,
        offsets_retention_minutes=broker.settings.int("offsets.retention.minutes"),
        run=run,
    )
    return publish(report, options, command)


def publish(report: Report, options: ReportOptions, command: str) -> int:
    """Print a report on standard error and write its files; return the exit code that it leads to."""
    if not options.quiet:
        _print(report, [path for path in options.files if path != STANDARD_OUTPUT])
    exit_code = 0
    for path in options.files:
        try:
            _write(report, path)
        except OSError as error:  # the file was writable at the start
            write(sys.stderr, f"kproto {command}: --report: can't write {path!r}: {error.strerror}\n")
            exit_code = NOT_WRITTEN
    return exit_code or _verdict(report, options)


def write_files(report: Report, options: ReportOptions) -> None:
    """Write the files of a report so far; one that can't be written is an error at the end only.

    A pipe or a device gets the report at the end only: its reader expects one, and there may be no reader yet.
    """
    for path in options.files:
        if path != STANDARD_OUTPUT and not output_file.is_written_in_place(path):
            with suppress(OSError):
                _write(report, path)


def _write(report: Report, path: str) -> None:
    if path == STANDARD_OUTPUT:
        write(sys.stdout, files.render(report, "report.json"))
    else:
        output_file.write(path, files.render(report, path))


def _verdict(report: Report, options: ReportOptions) -> int:
    if options.fail_on_removed and report.would_break:
        return REMOVED
    return PROTOCOL_ERROR if options.fail_on_protocol_error and report.protocol_errors else 0


def _print(report: Report, paths: list[str]) -> None:
    stream = sys.stderr
    if stream is None:  # standard error was closed before the start; the exit code and the files remain
        return
    color = stream.isatty() and "NO_COLOR" not in os.environ and os.environ.get("TERM") != "dumb"
    write(stream, text.render(report, width=_columns(stream), color=color, saved_as=paths))


def _columns(stream: TextIO) -> int:
    try:
        return os.get_terminal_size(stream.fileno()).columns
    except OSError:
        return text.WIDTH_MAX
