"""`kproto audit`: the report of `kproto run` from request logs of real brokers, and from captures of network traffic.

Exit codes: those of the report; 2 for a file that cannot be read or has no request, with one line on standard error.
"""

from __future__ import annotations

import gzip
import os
import sys
import zlib
from typing import TYPE_CHECKING, cast

from kproto_server.audit.sources import Sources
from kproto_server.capture.packet_files import MAGIC_BYTES, BadCapture, is_capture
from kproto_server.commandline.commands import AUDIT
from kproto_server.commandline.reporting import publish
from kproto_server.commandline.source_files import opened
from kproto_server.inspect.progress import Progress
from kproto_server.proxy.upstream import release_of
from kproto_server.releases.kafka_version import KafkaVersion
from kproto_server.report.model import build

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import BinaryIO

    from kproto_server.audit.request_log import RequestLog
    from kproto_server.commandline.options import AuditOptions

LINE_MAX = 64 * 1024 * 1024
"""Bytes of a line that are read at once. A response of 100,000 partitions has 20 MB; a longer line is no request."""


def audit(options: AuditOptions) -> int:
    """Read the files and publish the report; return the exit code.

    Raises:
        CommandLineError: a file cannot be read or has no request, or the release of its broker is needed.
    """
    sources = Sources()
    progress = Progress(sum(map(_size, options.files)) if sys.stderr is not None else 0, sys.stderr)
    try:
        for path in options.files:
            _read(path, sources, progress.add, needs_release=options.kafka_version is None)
    finally:
        progress.clear()
    snapshot = sources.end()
    if not sources.request_count:
        raise AUDIT.error(_nothing(sources))
    report = build(
        snapshot,
        kafka_version=options.kafka_version or (release_of(sources.served) if sources.served else KafkaVersion.named()),
        target=options.report.target,
        offsets_retention_minutes=None,
        log=sources.log_read(),
        capture=sources.capture_read(),
    )
    return publish(report, options.report, "audit")


def _nothing(sources: Sources) -> str:
    if sources.broker_request_count:
        return f"no request of a client: all {sources.broker_request_count:,} requests are of brokers"
    tls = sources.captured.connections.tls_count
    return "no request of a client" + (f": {tls:,} connections have TLS, which cannot be read" if tls else "")


def _read(path: str, sources: Sources, advance: Callable[[int], None], *, needs_release: bool) -> None:
    """Read one file.

    Raises:
        CommandLineError: as `audit`.
    """
    try:
        with opened(path, advance) as stream:
            if is_capture(stream.peek(MAGIC_BYTES)):
                sources.capture_files.append(path)
                sources.captured.connections.read(cast("BinaryIO", stream))
            else:
                sources.log_files.append(path)
                _read_log(path, cast("BinaryIO", stream), sources.log, needs_release=needs_release)
    except BadCapture as error:
        raise AUDIT.error(f"can't read {path!r}: {error}") from None
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise AUDIT.error(f"can't read {path!r}: not a whole gzip file ({error})") from None
    except OSError as error:
        raise AUDIT.error(f"can't read {path!r}: {error.strerror or error}") from None


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
