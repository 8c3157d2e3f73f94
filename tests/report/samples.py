"""Test data: observations that are made by hand or from recorded conversations of real clients, and their reports."""

from __future__ import annotations

from kproto.headers import read_request_header
from kproto.messages.k18_api_versions import ApiVersionsRequest
from kproto_server.observation.observe import API_VERSIONS, Observations
from kproto_server.releases.kafka_version import KafkaVersion
from kproto_server.report.model import Report, Run, build
from kproto_server.report.sources_read import (
    NOTHING_READ,
    CapturesRead,
    MetricsRead,
    ReportsRead,
    RequestLogsRead,
    SourcesRead,
)
from kproto_server.report.verdict import target_named
from kproto_server.requests.context import ConnectionInfo
from kproto_server.security.refusals import TlsParameters
from tests.fixture_files import conversations

DEFAULT_RETENTION_MINUTES = 10080


def report_of(
    observations: Observations,
    *,
    kafka_version: str = "latest",
    target: str | None = None,
    offsets_retention_minutes: int | None = DEFAULT_RETENTION_MINUTES,
    run: Run | None = None,
    sources: SourcesRead = NOTHING_READ,
) -> Report:
    return build(
        observations.snapshot(),
        kafka_version=KafkaVersion.named(kafka_version),
        target=target_named(target),
        offsets_retention_minutes=offsets_retention_minutes,
        run=run,
        sources=sources,
    )


def conversation(name: str) -> Observations:
    """Return what a broker would have observed of a recorded conversation."""
    observations = Observations()
    connections: dict[int, ConnectionInfo] = {}
    for frame in conversations()[name]:
        if not frame.is_request:
            continue
        info = connections.setdefault(frame.connection, ConnectionInfo("/127.0.0.1"))
        header = read_request_header(frame.frame)
        observations.request(info, header.client_id or "", header.api_key, header.api_version)
        if header.api_key == API_VERSIONS and header.api_version >= 3:
            body = ApiVersionsRequest.decode(frame.frame[header.body_position :], header.api_version)
            info.software_name, info.software_version = body.client_software_name, body.client_software_version
    return observations


def old_consumer() -> Observations:
    """Return observations of a consumer that does not negotiate, as Java's 0.9; 4.0 removed two of its versions."""
    observations, info = Observations(), ConnectionInfo("/127.0.0.1")
    for api_key, api_version, count in ((1, 1, 12), (2, 0, 2), (3, 0, 3), (8, 2, 4), (9, 1, 2), (10, 0, 1)):
        observations.repeated(info, "consumer-1", api_key, api_version, None, -1).count = count
    return observations


def everything() -> Observations:
    """Return observations of two clients that fill every section of a report."""
    observations, info = old_consumer(), ConnectionInfo("/127.0.0.1")
    for _ in range(3):
        observations.commit_layout(info, "consumer-1", 2, "v2", 691_200_001)
    observations.commit_layout(info, "consumer-1", 2, "v2", -1)
    observations.errors(info, "consumer-1", 8, 2, [3, 3, 12])
    observations.closed(info, "", -1, -1, "a frame of 3 bytes is too short for a request header")
    modern = ConnectionInfo("/127.0.0.1", software_name="apache-kafka-java", software_version="4.3.1")
    for api_key, api_version in ((18, 4), (3, 13), (8, 10), (9, 10)):
        observations.request(modern, "billing", api_key, api_version)
    for mechanism, user in (("PLAIN", "alice"), ("PLAIN", "alice"), ("GSSAPI", "")):
        observations.failed_authentication(modern, "billing", mechanism, user)
    modern.principal = "User:CN=client"
    modern.tls = TlsParameters("TLSv1.2", "AES256-SHA", (NO_FORWARD_SECRECY,))
    return observations


NO_FORWARD_SECRECY = "Java 24 and later: the cipher has no forward secrecy"
LOG = SourcesRead(request_log=RequestLogsRead(("broker-1.log", "<b>`2`.gz"), 1200, 1100, 1, 60))
EACH_SOURCE = SourcesRead(
    request_log=LOG.request_log,
    capture=CapturesRead(("kafka.pcap",), 9000, 12, 2, 3, 4380, 100, 60),
    metrics=MetricsRead(("kafka-1.prom",), 12, 1),
    reports=ReportsRead(("one.json", "two.json"), 3),
)
FINISHED = Run(("java", "-jar", "an app.jar"), 0, "2026-11-01T12:00:00+01:00", 3.21)
