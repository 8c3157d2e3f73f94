"""What `kproto audit` has read, by kind of source: the names and values that all formats of the report have."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class RequestLogsRead:
    """The request logs of real brokers that a report is about."""

    files: tuple[str, ...]
    lines: int
    lines_without_request: int
    """Lines that are no completed request."""
    unreadable_requests: int
    """Lines of a request that are cut or of an unknown format."""
    requests_of_brokers: int
    """Requests that brokers and controllers sent to each other, which the report leaves out."""


@dataclass(frozen=True, slots=True)
class CapturesRead:
    """The captures of network traffic that a report is about."""

    files: tuple[str, ...]
    packets: int
    connections: int
    """Connections of Kafka."""
    tls_connections: int
    """Connections with TLS, which cannot be read."""
    gaps: int
    """Places at which the capture lacks bytes."""
    lost_bytes: int
    unread_bytes: int
    """Bytes of Kafka's connections that are behind lost ones, or before the first request."""
    requests_of_brokers: int
    """Requests that brokers and controllers sent to each other, which the report leaves out."""


@dataclass(frozen=True, slots=True)
class MetricsRead:
    """The metrics of brokers that a report is about."""

    files: tuple[str, ...]
    samples: int
    """Counts of requests that Kafka 4.0 does not serve, those that are 0 included."""
    unreadable_samples: int


@dataclass(frozen=True, slots=True)
class ReportsRead:
    """The reports that a report is made of."""

    files: tuple[str, ...]
    other_files: int
    """JSON files in the same directories that are no reports."""


@dataclass(frozen=True, slots=True)
class SourcesRead:
    """All that a report was read from; None: nothing of that kind."""

    request_log: RequestLogsRead | None = None
    capture: CapturesRead | None = None
    metrics: MetricsRead | None = None
    reports: ReportsRead | None = None

    def as_object(self) -> dict[str, Any]:
        """Return a JSON object of each kind, or None."""
        return asdict(self)


NOTHING_READ = SourcesRead()
"""kproto was the broker, or the proxy."""
