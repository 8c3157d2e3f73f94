"""`kproto audit`: the report of `kproto run` from request logs and metrics of real brokers, captures, other reports.

Exit codes: those of the report; 2 for a file that cannot be read or has no request, with one line on standard error.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, cast

from kproto_server.audit.metrics import is_metrics
from kproto_server.audit.report_files import BadReport
from kproto_server.audit.sources import Sources
from kproto_server.capture.packet_files import BadCapture, is_capture
from kproto_server.commandline.commands import AUDIT
from kproto_server.commandline.reporting import publish
from kproto_server.commandline.source_files import opened
from kproto_server.inspect.progress import Progress
from kproto_server.report.model import build

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import BinaryIO

    from kproto_server.audit.metrics import Metrics
    from kproto_server.audit.request_log import RequestLog
    from kproto_server.commandline.options import AuditOptions

REPORTS = ".json"
BEGINNING_BYTES = 4096
"""Bytes of a file that show what it is."""
LINE_MAX = 64 * 1024 * 1024
"""Bytes of a line that are read at once. A response of 100,000 partitions has 20 MB; a longer line is no request."""


def audit(options: AuditOptions) -> int:
    """Read the files and publish the report; return the exit code.

    Raises:
        CommandLineError: a file cannot be read or has no request, or the release of its broker is needed.
    """
    sources = Sources()
    files = [path for given in options.files for path in _files(given)]
    progress = Progress(sum(map(_size, files)), None if options.report.quiet else sys.stderr)
    try:
        for path in files:
            is_given = path in options.files
            _read(path, sources, progress.add, needs_release=options.kafka_version is None, is_given=is_given)
    finally:
        progress.clear()
    snapshot = sources.end()
    if not sources.request_count and not sources.metrics_files and not sources.report_files:
        raise AUDIT.error(_nothing(sources))
    report = build(
        snapshot,
        kafka_version=options.kafka_version or sources.kafka_version,
        target=options.report.target,
        offsets_retention_minutes=None,
        sources=sources.read(),
    )
    return publish(report, options.report, "audit")


def _files(path: str) -> list[str]:
    """Return the reports of a directory and of those in it, or the file itself.

    Raises:
        CommandLineError: the directory has none.
    """
    if not os.path.isdir(path):
        return [path]
    found = sorted(
        os.path.join(folder, name) for folder, _, names in os.walk(path) for name in names if name.endswith(REPORTS)
    )
    if not found:
        raise AUDIT.error(f"no report in {path!r}: it has no file that ends in {REPORTS}")
    return found


def _nothing(sources: Sources) -> str:
    if sources.other_file_count:
        return f"no report: {sources.other_file_count:,} JSON files in the directory are others"
    if sources.broker_request_count:
        return f"no request of a client: all {sources.broker_request_count:,} requests are of brokers"
    tls = sources.captured.connections.tls_count
    return "no request of a client" + (f": {tls:,} connections have TLS, which cannot be read" if tls else "")


def _read(path: str, sources: Sources, advance: Callable[[int], None], *, needs_release: bool, is_given: bool) -> None:
    """Read one file.

    Args:
        is_given: whether the command line has it; a directory may have other files.

    Raises:
        CommandLineError: as `audit`.
    """
    try:
        with opened(path, advance) as buffered:
            stream = cast("BinaryIO", buffered)
            beginning = buffered.peek(BEGINNING_BYTES)
            if is_capture(beginning):
                sources.capture_files.append(path)
                sources.captured.connections.read(stream)
            elif beginning.lstrip().startswith(b"{") or path.endswith(REPORTS):
                _read_report(path, stream, sources, is_given=is_given)
            elif is_metrics(beginning):
                sources.metrics_files.append(path)
                _read_metrics(path, stream, sources.metrics)
            else:
                sources.log_files.append(path)
                _read_log(path, stream, sources.log, needs_release=needs_release)
    except (BadCapture, BadReport) as error:
        raise AUDIT.error(f"can't read {path!r}: {error}") from None
    except OSError as error:
        raise AUDIT.error(f"can't read {path!r}: {error.strerror or error}") from None


def _read_report(path: str, stream: BinaryIO, sources: Sources, *, is_given: bool) -> None:
    """Read a report; a file of a directory that is none is counted.

    Raises:
        BadReport: it is none.
    """
    try:
        sources.reports.read(stream)
        sources.report_files.append(path)
    except BadReport:
        if is_given:
            raise
        sources.other_file_count += 1


def _read_metrics(path: str, stream: BinaryIO, metrics: Metrics) -> None:
    """Read the metrics of a broker.

    Raises:
        CommandLineError: they have no DeprecatedRequestsPerSec.
    """
    before = metrics.sample_count
    metrics.read(stream)
    if metrics.sample_count == before:
        raise AUDIT.error(
            f"no count of DeprecatedRequestsPerSec in {path!r}: brokers have it once a client has sent such a "
            "request, and the exporter's rules must let it pass"
        )


def _read_log(path: str, stream: BinaryIO, log: RequestLog, *, needs_release: bool) -> None:
    """Read a request log, a line at a time.

    Raises:
        CommandLineError: it has no request, or the release of its broker is needed.
    """
    before = log.completed_count
    for line in _lines(stream):
        log.read(line)
        if needs_release and log.has_text:
            raise AUDIT.error(
                f"{path!r} is of a Kafka older than 2.8: give its release, for example --kafka-version 2.0"
            )
    if log.completed_count == before:
        raise AUDIT.error(
            f"no request in {path!r}: a request log has lines with 'Completed request:' "
            "(kafka.request.logger at DEBUG or TRACE)"
        )


def _lines(stream: BinaryIO) -> Iterator[bytes]:
    """Yield lines; of a line longer than `LINE_MAX` only its last piece, which has no request's beginning."""
    while line := stream.readline(LINE_MAX):
        if line.endswith(b"\n") or len(line) < LINE_MAX:
            yield line


def _size(path: str) -> int:
    try:
        return os.path.getsize(path)
    except OSError:  # reading it reports the error
        return 0
