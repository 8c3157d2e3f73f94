"""What `kproto audit` reads, by the beginning of a file, and what came of it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from kproto_server.audit.captured import Captured
from kproto_server.audit.request_log import RequestLog
from kproto_server.observation.observe import Observations
from kproto_server.observation.observed import Snapshot
from kproto_server.report.model import CaptureRead, LogRead

if TYPE_CHECKING:
    from collections.abc import Mapping


class Sources:
    """The files of one audit."""

    def __init__(self) -> None:
        observations = Observations()
        self._observations = observations
        self.log: RequestLog = RequestLog(observations)
        self.captured: Captured = Captured(observations)
        self.log_files: list[str] = []
        self.capture_files: list[str] = []

    @property
    def request_count(self) -> int:
        """Return the number of clients' requests so far."""
        return self.log.request_count + self.captured.request_count

    @property
    def broker_request_count(self) -> int:
        return self.log.broker_request_count + self.captured.broker_request_count

    @property
    def served(self) -> Mapping[int, tuple[int, int]]:
        """Return the API versions of the cluster; empty: they are not known."""
        return self.captured.served

    def end(self) -> Snapshot:
        """Count the requests that still wait, and return all counts."""
        self.log.end()
        self.captured.connections.end()
        # A client with a software name has sent ApiVersions, even if that was before the file began.
        clients = self._observations.snapshot().clients
        return Snapshot(
            tuple(replace(seen, negotiates=seen.negotiates or bool(seen.software_name)) for seen in clients)
        )

    def log_read(self) -> LogRead | None:
        """Return what the report says of request logs; None: none was read."""
        log = self.log
        if not self.log_files:
            return None
        return LogRead(
            files=tuple(self.log_files),
            line_count=log.line_count,
            other_line_count=log.other_line_count,
            unreadable_count=log.unreadable_count,
            broker_request_count=log.broker_request_count,
        )

    def capture_read(self) -> CaptureRead | None:
        """Return what the report says of captures; None: none was read."""
        connections = self.captured.connections
        if not self.capture_files:
            return None
        return CaptureRead(
            files=tuple(self.capture_files),
            packet_count=connections.packet_count,
            connection_count=connections.connection_count,
            tls_connection_count=connections.tls_count,
            lost_count=connections.lost_count,
            lost_bytes=connections.lost_bytes,
            unread_bytes=connections.unread_bytes,
            broker_request_count=self.captured.broker_request_count,
        )
