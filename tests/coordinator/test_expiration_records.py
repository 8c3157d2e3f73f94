"""Which expire and state timestamps a release writes to the log, and how a release reads them.

Method: a log is written as by one release and read as by another, with another retention time, as in an upgrade.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from kproto.records.batches import read_records
from kproto.records.coordinator import encode_key
from kproto.records.group_records import GroupMetadataKey, GroupMetadataValue
from kproto.records.offset_records import OffsetCommitKey, OffsetCommitValue
from kproto.records.offsets_topic import read_offsets_record
from kproto.records.record import Record
from kproto.records.record_batch import build_record_batch
from kproto_server.coordinator.expiration import expiration_of
from kproto_server.coordinator.groups import Group, GroupState
from kproto_server.coordinator.loading.load import PartitionLoad
from kproto_server.coordinator.offsets import OffsetAndMetadata
from kproto_server.coordinator.offsets_log.commits import commit_batch
from kproto_server.coordinator.offsets_log.groups import group_batch
from kproto_server.releases.kafka_version import KafkaVersion, kafka_version_names
from tests.coordinator.behaviors import behavior_of
from tests.coordinator.broker_state import NOW_MS, new_state

if TYPE_CHECKING:
    from kproto_server.state import BrokerState

R = 60_000
EXPIRE_MS = NOW_MS + 10_000
SINCE_KIP_211 = [name for name in kafka_version_names() if KafkaVersion.named(name).release >= (2, 1)]
UNKNOWN_VERSION = b"\0\x09"


def commit_of(kafka_version: str, expire_ms: int | None, batch_ms: int = NOW_MS) -> bytes:
    """Return the batch of a commit of now; ``batch_ms``: the timestamp in its header."""
    stored = OffsetAndMetadata(7, -1, "", NOW_MS, expire_ms, bytes(16))
    return commit_batch("g", [("t", [(0, stored)])], batch_ms, behavior_of(kafka_version))[0]


def empty_group(kafka_version: str, since_ms: int) -> bytes:
    """Return the batch of a group that has become Empty."""
    group = Group("g", since_ms)
    group.protocol_type, group.generation = "consumer", 2
    group.transition_to(GroupState.EMPTY, since_ms)
    return group_batch(group, since_ms, behavior_of(kafka_version))[0]


def load(kafka_version: str, *batches: bytes, minutes: int = 1) -> tuple[BrokerState, PartitionLoad]:
    """Load a log as a release, with a retention time."""
    state = new_state(kafka_version, settings={"offsets.retention.minutes": str(minutes)})
    loading = PartitionLoad(state.coordinator, [b"".join(batches)], NOW_MS)
    loading.run()
    return state, loading


def is_expired(state: BrokerState, at_ms: int, minutes: int = 1) -> bool:
    group = state.coordinator.groups.get("g") or Group("g", NOW_MS)
    expiration = expiration_of(
        group, state.coordinator.offsets.of_group("g"), at_ms, minutes * R, state.coordinator.behavior
    )
    return expiration.expired == [("t", [0])]


def expires_at(state: BrokerState, at_ms: int, minutes: int = 1) -> bool:
    """Return whether this is the first millisecond at which the offset is expired."""
    return is_expired(state, at_ms, minutes) and not is_expired(state, at_ms - 1, minutes)


@pytest.mark.parametrize("kafka_version", SINCE_KIP_211)
def test_since_kip_211_only_a_retention_override_writes_an_expire_timestamp(kafka_version: str) -> None:
    """EX-71: otherwise the commit timestamp or the group's state timestamp decides."""
    for asked_for_ms, written_ms in ((None, -1), (EXPIRE_MS, EXPIRE_MS)):
        (record,) = read_records(commit_of(kafka_version, asked_for_ms))
        read = read_offsets_record(record.key, record.value)
        assert isinstance(read.value, OffsetCommitValue)
        assert (read.value.expire_timestamp, read.value.commit_timestamp) == (written_ms, NOW_MS)


@pytest.mark.parametrize("kafka_version", ["2.0", "2.1", "4.4"])
@pytest.mark.parametrize("batch_ms", [-1, 0, NOW_MS - 10 * R, NOW_MS + 10 * R])
def test_record_timestamps_do_not_count(kafka_version: str, batch_ms: int) -> None:
    """EX-5."""
    state, _ = load(kafka_version, commit_of("2.1", None, batch_ms))
    assert expires_at(state, NOW_MS + R + (1 if kafka_version == "2.0" else 0))


@pytest.mark.parametrize("minutes", [1, 1000])
@pytest.mark.parametrize("kafka_version", ["2.1", "3.9", "4.4", "latest"])
def test_offsets_of_2_0_keep_their_expire_timestamp_after_an_upgrade(kafka_version: str, minutes: int) -> None:
    """EX-51: with any retention time. T34 has the case with members."""
    state, _ = load(kafka_version, commit_of("2.0", EXPIRE_MS), minutes=minutes)
    assert expires_at(state, EXPIRE_MS, minutes)


@pytest.mark.parametrize("kafka_version", ["2.1", "4.4"])
def test_2_0_writes_no_time_since_when_a_group_is_empty(kafka_version: str) -> None:
    """EX-52, EX-16: the commits decide; 2.1 writes the time."""
    since_ms = NOW_MS + 5000
    before, _ = load(kafka_version, commit_of("2.1", None), empty_group("2.0", since_ms))
    since, _ = load(kafka_version, commit_of("2.1", None), empty_group("2.1", since_ms))
    assert expires_at(before, NOW_MS + R)
    assert expires_at(since, since_ms + R)


@pytest.mark.parametrize("kafka_version", ["2.2", "2.3", "2.4", "2.5", "2.6"])
@pytest.mark.parametrize("written_by", ["2.1", "2.4"])
def test_2_3_to_2_5_lose_at_a_restart_since_when_a_group_is_empty(kafka_version: str, written_by: str) -> None:
    """EX-16: unless 2.1 or 2.2 wrote the time. T22b has the case on real brokers."""
    since_ms = NOW_MS + 5000
    state, _ = load(kafka_version, commit_of("2.1", None), empty_group(written_by, since_ms))
    is_forgotten = kafka_version in ("2.3", "2.4", "2.5") and written_by == "2.4"
    assert expires_at(state, (NOW_MS if is_forgotten else since_ms) + R)


@pytest.mark.parametrize("minutes", [1, 1000])
def test_a_missing_expire_timestamp_follows_the_present_setting(minutes: int) -> None:
    """EX-41, EX-53: up to 2.0 also for offsets of newer releases, which a real 2.0 can't read."""
    state, loading = load("2.0", commit_of("2.1", None), minutes=minutes)
    assert loading.failed is None
    assert state.coordinator.offsets.of_group("g")["t"][0].expire_timestamp_ms == NOW_MS + minutes * R


@pytest.mark.parametrize("kafka_version", SINCE_KIP_211)
def test_minus_one_is_no_expire_timestamp(kafka_version: str) -> None:
    """EX-54, OC-45: brokers of 2.1 with inter.broker.protocol.version 2.0 write -1."""
    state, _ = load(kafka_version, commit_of("2.0", -1))
    assert expires_at(state, NOW_MS + R)


def test_an_unknown_value_version_makes_the_partition_unavailable() -> None:
    """EX-53, EX-55: the value is not read as empty, as 2.0 does with values of 2.1: consumers would start over."""
    for key in (OffsetCommitKey(group="g", topic="t", partition=0), GroupMetadataKey(group="g")):
        batch = build_record_batch([Record(encode_key(key), UNKNOWN_VERSION + bytes(40))])
        state, loading = load("4.4", commit_of("4.4", None), batch)
        assert loading.failed is not None
        assert len(state.coordinator.offsets) == len(state.coordinator.groups) == 0


def test_records_of_unknown_types_are_skipped() -> None:
    """EX-55: KIP-915."""
    batch = build_record_batch([Record(b"\0\x63" + bytes(4), bytes(4))])
    state, loading = load("4.4", commit_of("4.4", None), batch)
    assert loading.failed is None
    assert loading.skipped == {99: 1}
    assert len(state.coordinator.offsets) == 1


@pytest.mark.parametrize(
    ("kafka_version", "version", "has_time"),
    [
        ("0.10.0", 0, False),
        ("0.10.1", 1, False),
        ("2.0", 1, False),
        ("2.1", 2, True),
        ("2.3", 3, True),
        ("4.4", 3, True),
    ],
)
def test_since_2_1_the_log_has_the_time_since_when_a_group_is_empty(
    kafka_version: str, version: int, has_time: bool
) -> None:
    """EX-50."""
    (record,) = read_records(empty_group(kafka_version, NOW_MS))
    assert record.value is not None
    assert int.from_bytes(record.value[:2], "big") == version
    read = read_offsets_record(record.key, record.value)
    assert isinstance(read.value, GroupMetadataValue)
    assert read.value.current_state_timestamp == (NOW_MS if has_time else -1)
