"""What `kproto audit` reads, by the beginning of a file, and what came of it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from kproto_server.audit.captured import Captured
from kproto_server.audit.metrics import Metrics
from kproto_server.audit.report_files import ReportFiles
from kproto_server.audit.request_log import RequestLog
from kproto_server.observation.merging import merged
from kproto_server.observation.observe import Observations
from kproto_server.proxy.upstream import release_of
from kproto_server.releases.kafka_version import KafkaVersion
from kproto_server.report.sources_read import CapturesRead, MetricsRead, ReportsRead, RequestLogsRead, SourcesRead

if TYPE_CHECKING:
    from kproto_server.observation.observed import Snapshot


class Sources:
    """The files of one audit."""

    def __init__(self) -> None:
        observations = Observations()
        self._observations = observations
        self.log: RequestLog = RequestLog(observations)
        self.captured: Captured = Captured(observations)
        self.log_files: list[str] = []
        self.capture_files: list[str] = []
        self.metrics: Metrics = Metrics()
        self.metrics_files: list[str] = []
        self.reports: ReportFiles = ReportFiles()
        self.report_files: list[str] = []
        self.other_file_count: int = 0
        """JSON files in directories that are no reports."""

    @property
    def request_count(self) -> int:
        """Return the number of clients' requests so far."""
        return self.log.request_count + self.captured.request_count

    @property
    def broker_request_count(self) -> int:
        return self.log.broker_request_count + self.captured.broker_request_count

    @property
    def kafka_version(self) -> KafkaVersion:
        """Return the release of the brokers, as far as a file shows it; else all at once."""
        served = self.captured.served
        return (release_of(served) if served else self.reports.kafka_version) or KafkaVersion.named()

    def end(self) -> Snapshot:
        """Count the requests that still wait, and return all counts."""
        self.log.end()
        self.captured.connections.end()
        # A client with a software name has sent ApiVersions, even if that was before the file began.
        clients = [
            replace(seen, negotiates=seen.negotiates or bool(seen.software_name))
            for seen in self._observations.snapshot().clients
        ]
        return merged([*clients, *self.metrics.clients, *self.reports.clients])

    def read(self) -> SourcesRead:
        """Return what the report says of the files."""
        log, captured, connections = self.log, self.captured, self.captured.connections
        return SourcesRead(
            request_log=RequestLogsRead(
                files=tuple(self.log_files),
                lines=log.line_count,
                lines_without_request=log.other_line_count,
                unreadable_requests=log.unreadable_count,
                requests_of_brokers=log.broker_request_count,
            )
            if self.log_files
            else None,
            capture=CapturesRead(
                files=tuple(self.capture_files),
                packets=connections.packet_count,
                connections=connections.connection_count,
                tls_connections=connections.tls_count,
                gaps=connections.lost_count,
                lost_bytes=connections.lost_bytes,
                unread_bytes=connections.unread_bytes,
                requests_of_brokers=captured.broker_request_count,
            )
            if self.capture_files
            else None,
            metrics=MetricsRead(tuple(self.metrics_files), self.metrics.sample_count, self.metrics.unreadable_count)
            if self.metrics_files
            else None,
            reports=ReportsRead(tuple(self.report_files), self.other_file_count) if self.report_files else None,
        )
