"""OC-30 to OC-32, OC-35, OC-40 to OC-42: metadata that is too large, errors of failed writes, expire timestamps."""

from __future__ import annotations

import pytest

from kproto.codes import ErrorCode
from kproto_server.configuration.settings import Settings
from kproto_server.coordinator.commit import (
    CommitLimits,
    expire_timestamp,
    limits_of,
    metadata_too_large,
    timestamps_of_v1,
)
from kproto_server.coordinator.write_errors import commit_write_error
from kproto_server.releases.kafka_version import KafkaVersion
from tests.coordinator.behaviors import behavior_of

NOW = 1_000_000
RETENTION = 60_000


@pytest.mark.parametrize(
    ("metadata", "too_large"),
    [
        ("", False),
        ("a" * 4096, False),
        ("a" * 4097, True),
        ("☃" * 4096, False),
        ("☃" * 4097, True),
        ("\U0001f600" * 2048, False),
        ("\U0001f600" * 2049, True),
        ("\U0001f600" * 2047 + "ab", False),
        ("\U0001f600" * 2047 + "abc", True),
    ],
)
def test_metadata_is_counted_in_utf_16_units(metadata: str, too_large: bool) -> None:
    """OC-30, OC-31."""
    assert metadata_too_large(metadata, 4096) is too_large


def test_limits_come_from_kafka_settings() -> None:
    """OC-30, EX-1, D2."""
    given = {"offset.metadata.max.bytes": "10", "offsets.retention.minutes": "2"}
    limits = limits_of(Settings.from_mapping(given, KafkaVersion.named("4.4")))
    assert (limits.metadata_max_bytes, limits.retention_ms, limits.honors_overrides) == (10, 120_000, False)


@pytest.mark.parametrize(
    ("log_error", "old", "new"),
    [
        (
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            ErrorCode.COORDINATOR_NOT_AVAILABLE,
            ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ),
        (ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.COORDINATOR_NOT_AVAILABLE),
        (
            ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
            ErrorCode.COORDINATOR_NOT_AVAILABLE,
            ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        ),
        (ErrorCode.REQUEST_TIMED_OUT, ErrorCode.REQUEST_TIMED_OUT, ErrorCode.COORDINATOR_NOT_AVAILABLE),
        (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.NOT_COORDINATOR, ErrorCode.NOT_COORDINATOR),
        (ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.NOT_COORDINATOR, ErrorCode.NOT_COORDINATOR),
        (ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.INVALID_COMMIT_OFFSET_SIZE, ErrorCode.UNKNOWN_SERVER_ERROR),
        (ErrorCode.RECORD_LIST_TOO_LARGE, ErrorCode.INVALID_COMMIT_OFFSET_SIZE, ErrorCode.UNKNOWN_SERVER_ERROR),
        (ErrorCode.INVALID_FETCH_SIZE, ErrorCode.INVALID_COMMIT_OFFSET_SIZE, ErrorCode.UNKNOWN_SERVER_ERROR),
        (ErrorCode.NETWORK_EXCEPTION, ErrorCode.NETWORK_EXCEPTION, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS),
        (ErrorCode.UNKNOWN_SERVER_ERROR, ErrorCode.UNKNOWN_SERVER_ERROR, ErrorCode.UNKNOWN_SERVER_ERROR),
    ],
)
def test_failed_write_has_an_error_of_the_coordinator(log_error: int, old: int, new: int) -> None:
    """OC-35."""
    assert [commit_write_error(log_error, behavior_of(name)) for name in ("2.0", "3.9")] == [old, old]
    assert [commit_write_error(log_error, behavior_of(name)) for name in ("4.0", "4.4", "latest")] == [new, new, new]


IGNORING = CommitLimits(metadata_max_bytes=4096, retention_ms=RETENTION, honors_overrides=False)
HONOURING = CommitLimits(metadata_max_bytes=4096, retention_ms=RETENTION, honors_overrides=True)


@pytest.mark.parametrize(
    ("kafka_version", "expected"), [("0.9", NOW + RETENTION), ("2.0", NOW + RETENTION), ("2.1", None)]
)
@pytest.mark.parametrize("override_ms", [-1, 1, 0, -2, 10**9])
def test_retention_overrides_are_ignored_by_default(kafka_version: str, override_ms: int, expected: int | None) -> None:
    """D2: the broker's retention time and the group decide, not the request."""
    assert expire_timestamp(NOW, override_ms, IGNORING, behavior_of(kafka_version)) == expected


@pytest.mark.parametrize("kafka_version", ["0.9", "1.1", "2.0", "2.1", "3.9", "4.4", "latest"])
@pytest.mark.parametrize("override_ms", [1, 0, -2, 10**9])
def test_honored_overrides_set_the_expire_timestamp(kafka_version: str, override_ms: int) -> None:
    """OC-40, OC-41: any value but -1; OC-42: longer or shorter than the broker's retention time."""
    assert expire_timestamp(NOW, override_ms, HONOURING, behavior_of(kafka_version)) == NOW + override_ms


@pytest.mark.parametrize(
    ("kafka_version", "expected"), [("0.9", NOW + RETENTION), ("2.0", NOW + RETENTION), ("2.1", None)]
)
def test_honoring_overrides_does_not_change_the_default(kafka_version: str, expected: int | None) -> None:
    """OC-40, OC-41: -1."""
    assert expire_timestamp(NOW, -1, HONOURING, behavior_of(kafka_version)) == expected


def test_longest_retention_overflows_as_in_java() -> None:
    """OC-40 in 64 bits: with the greatest retention time the offset has expired at once."""
    assert expire_timestamp(NOW, 2**63 - 1, HONOURING, behavior_of("4.4")) == NOW - 1 - 2**63


@pytest.mark.parametrize(
    ("kafka_version", "expected"),
    [
        ("0.8.2", (500, 500 + RETENTION)),
        ("0.9", (NOW, 500 + RETENTION)),
        ("2.0", (NOW, 500 + RETENTION)),
        ("2.1", (500, None)),
        ("3.9", (500, None)),
    ],
)
def test_timestamp_of_v1(kafka_version: str, expected: tuple[int, int | None]) -> None:
    """OC-40."""
    assert timestamps_of_v1(500, NOW, IGNORING, behavior_of(kafka_version)) == expected


@pytest.mark.parametrize(
    ("kafka_version", "expected"),
    [("0.8.2", NOW + RETENTION), ("0.9", NOW + RETENTION), ("2.0", NOW + RETENTION), ("2.1", None)],
)
def test_default_timestamp_of_v1_is_now(kafka_version: str, expected: int | None) -> None:
    """OC-40, OC-41: -1, and no other negative value."""
    assert timestamps_of_v1(-1, NOW, IGNORING, behavior_of(kafka_version)) == (NOW, expected)
    assert timestamps_of_v1(-2, NOW, IGNORING, behavior_of("2.1")) == (-2, None)
