"""A report is built from observations: requests, advice on retention, errors and names."""

from __future__ import annotations

import pytest

from kproto_server.observation.observe import Observations
from kproto_server.report import phrases
from kproto_server.report.model import Retention, error_name
from kproto_server.report.verdict import Verdict
from kproto_server.requests.context import ConnectionInfo
from tests.report.samples import everything, report_of

OFFSET_COMMIT = 8


@pytest.fixture
def observations() -> Observations:
    return Observations()


@pytest.fixture
def info() -> ConnectionInfo:
    return ConnectionInfo("/127.0.0.1")


def test_a_request_that_closed_the_connection_counts_as_sent(observations: Observations, info: ConnectionInfo) -> None:
    observations.closed(info, "old", 1, 1, "version 1 is not served by Kafka version 4.0")

    report = report_of(observations, kafka_version="4.0", target="4.0")
    assert [(sent.name, sent.count, sent.verdict) for sent in report.clients[0].sent] == [
        ("Fetch v1", 1, Verdict.BREAKS)
    ]


def test_a_request_that_is_counted_and_then_closes_the_connection_counts_once(
    observations: Observations, info: ConnectionInfo
) -> None:
    observations.request(info, "app", 3, 5)
    observations.closed(info, "app", 3, 5, "truncated")

    assert report_of(observations).request_count == 1


@pytest.mark.parametrize("api_key", [-1, 70, 9999])
def test_frames_of_unknown_apis_are_closed_connections_and_not_requests(
    observations: Observations, info: ConnectionInfo, api_key: int
) -> None:
    observations.closed(info, "app", api_key, 0, "not served")

    report = report_of(observations)
    assert report.clients[0].sent == ()
    assert len(report.clients[0].closed) == 1
    assert not report.would_break


@pytest.mark.parametrize(
    ("retention_ms", "minutes"), [(60_000, 1), (60_001, 2), (604_800_000, 10080), (1, 1), (0, 1), (-5, 1)]
)
def test_the_advised_minutes_are_the_largest_override_rounded_up(
    observations: Observations, info: ConnectionInfo, retention_ms: int, minutes: int
) -> None:
    observations.commit_layout(info, "app", 3, "v3", retention_ms)

    assert report_of(observations).retention == Retention(retention_ms, minutes, 10080)


@pytest.mark.parametrize(("broker_minutes", "covered"), [(10079, False), (10080, True)])
def test_the_advice_is_compared_with_the_brokers_setting(
    observations: Observations, info: ConnectionInfo, broker_minutes: int, covered: bool
) -> None:
    observations.commit_layout(info, "app", 3, "v3", 604_800_000)

    retention = report_of(observations, offsets_retention_minutes=broker_minutes).retention
    assert retention is not None
    assert retention.is_covered is covered


def test_without_overrides_there_is_no_advice(observations: Observations, info: ConnectionInfo) -> None:
    observations.commit_layout(info, "app", 3, "v3", -1)

    assert report_of(observations).retention is None


def test_commits_are_added_up_over_clients(observations: Observations, info: ConnectionInfo) -> None:
    observations.commit_layout(info, "a", 4, "v4 as released", 5000)
    observations.commit_layout(info, "b", 4, "v4 as released", -1)
    observations.commit_layout(info, "b", 4, "v4 of KIP-211", -1)

    assert dict(report_of(observations).commits()) == {(4, "v4 of KIP-211"): (1, 0), (4, "v4 as released"): (2, 1)}


def test_errors_are_added_up_over_clients_and_the_most_frequent_come_first(
    observations: Observations, info: ConnectionInfo
) -> None:
    observations.errors(info, "a", OFFSET_COMMIT, 3, [12])
    observations.errors(info, "b", OFFSET_COMMIT, 4, [3, 3, 12, 3])

    assert phrases.errors(report_of(observations)) == [
        ("OffsetCommit", "UNKNOWN_TOPIC_OR_PARTITION (retriable)", 3),
        ("OffsetCommit", "OFFSET_METADATA_TOO_LARGE", 2),
    ]


def test_an_unknown_error_code_is_reported_by_its_number() -> None:
    assert error_name(31_000) == phrases.error(31_000) == "error 31000"


@pytest.mark.parametrize(
    ("total_ms", "text"),
    [
        (0, "0 ms"),
        (1, "1 ms"),
        (86_400_000, "1 d"),
        (604_800_000, "7 d"),
        (5_400_000, "1 h 30 min"),
        (604_800_001, "7 d 1 ms"),
        (90_061_000, "90,061,000 ms"),
        (-5, "-5 ms"),
    ],
)
def test_durations_are_exact(total_ms: int, text: str) -> None:
    assert phrases.duration(total_ms) == text


def test_a_client_without_an_id_has_a_placeholder() -> None:
    names = [phrases.who(client) for client in report_of(everything()).clients]
    assert names == ["(no client id)", "billing (apache-kafka-java 4.3.1)", "consumer-1"]
