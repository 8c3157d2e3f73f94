"""`kproto audit`: the report of `kproto run` from the request logs of real brokers.

Exit codes: those of the report; 2 for a file that cannot be read or has no request, with one line on standard error.
"""

from __future__ import annotations

import gzip
import os
import sys
import zlib
from contextlib import contextmanager
from typing import TYPE_CHECKING, cast

from kproto_server.audit.request_log import RequestLog
from kproto_server.commandline.commands import AUDIT
from kproto_server.commandline.reporting import publish
from kproto_server.inspect.progress import Progress
from kproto_server.releases.kafka_version import KafkaVersion
from kproto_server.report.model import LogRead, build

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import BinaryIO

    from kproto_server.commandline.options import AuditOptions

STANDARD_INPUT = "-"
LINE_MAX = 64 * 1024 * 1024
"""Bytes of a line that are read at once. A response of 100,000 partitions has 20 MB; a longer line is no request."""
PROGRESS_LINES = 1000


def audit(options: AuditOptions) -> int:
    """Read the logs and publish the report; return the exit code.

    Raises:
        CommandLineError: a file cannot be read or has no request, or the release of its broker is needed.
    """
    log = RequestLog()
    progress = Progress(sum(map(_size, options.files)) if sys.stderr is not None else 0, sys.stderr)
    try:
        for path in options.files:
            _read(path, log, progress.add, needs_release=options.kafka_version is None)
    finally:
        progress.clear()
    snapshot = log.end()
    if not log.request_count:
        raise AUDIT.error(f"no request of a client: all {log.broker_request_count:,} requests are of brokers")
    report = build(
        snapshot,
        kafka_version=options.kafka_version or KafkaVersion.named(),
        target=options.report.target,
        offsets_retention_minutes=None,
        log=LogRead(
            files=options.files,
            line_count=log.line_count,
            other_line_count=log.other_line_count,
            unreadable_count=log.unreadable_count,
            broker_request_count=log.broker_request_count,
        ),
    )
    return publish(report, options.report, "audit")


def _read(path: str, log: RequestLog, advance: Callable[[int], None], *, needs_release: bool) -> None:
    """Read one file, a line at a time.

    Raises:
        CommandLineError: as `audit`.
    """
    before = log.completed_count
    try:
        with _opened(path) as (raw, lines):
            done = 0
            for number, line in enumerate(_lines(lines), 1):
                log.read(line)
                if needs_release and log.has_text:
                    raise AUDIT.error(
                        f"{path!r} is of a Kafka older than 2.8: give its release, for example --kafka-version 2.0"
                    )
                if number % PROGRESS_LINES == 0 and path != STANDARD_INPUT:
                    advance(raw.tell() - done)
                    done = raw.tell()
            if path != STANDARD_INPUT:
                advance(raw.tell() - done)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise AUDIT.error(f"can't read {path!r}: not a whole gzip file ({error})") from None
    except OSError as error:
        raise AUDIT.error(f"can't read {path!r}: {error.strerror or error}") from None
    if log.completed_count == before:
        raise AUDIT.error(
            f"no request in {path!r}: a request log has lines with 'Completed request:' "
            "(kafka.request.logger at DEBUG or TRACE)"
        )


@contextmanager
def _opened(path: str) -> Iterator[tuple[BinaryIO, BinaryIO]]:
    """Yield the file and the stream of its lines, which are the same unless the file is compressed."""
    if path == STANDARD_INPUT:
        yield sys.stdin.buffer, sys.stdin.buffer
        return
    with open(path, "rb") as raw:
        if path.endswith(".gz"):
            with gzip.GzipFile(fileobj=raw) as lines:
                yield raw, cast("BinaryIO", lines)
        else:
            yield raw, raw


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
