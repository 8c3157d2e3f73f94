"""Commits as batches: the bytes that each release writes, equal to those of the reference implementation."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kproto.errors import EncodeError
from kproto.records.batches import read_records
from kproto.records.compression import Compression
from kproto.records.record_batch import read_record_batch, seal
from kproto_server.configuration.settings import SettingError, Settings
from kproto_server.coordinator.offsets import OffsetAndMetadata
from kproto_server.coordinator.offsets_log.batches import offsets_compression, with_checksum
from kproto_server.coordinator.offsets_log.commits import commit_batch
from kproto_server.coordinator.version_behavior import CoordinatorBehavior
from kproto_server.releases.kafka_version import KafkaVersion
from tests.coordinator.behaviors import behavior_of
from tests.coordinator.offsets_log.reference import (
    INT64,
    KAFKA_VERSIONS,
    NAMES,
    NOW,
    commits,
    offsets_and_metadata,
    reference_commit_batch,
)
from tests.coordinator.offsets_log.templates import request_of, template_of
from tests.records.made import COMMIT_BATCH

if TYPE_CHECKING:
    from kproto_server.coordinator.offsets import CommitEntries
    from kproto_server.coordinator.offsets_log.commits import CommitTemplate

ZERO = bytes(16)
TIMES = st.integers(-(2**62), 2**62 - 1)
"""And what is between two: their sums are times too."""
STORED = OffsetAndMetadata(42, 5, "m", NOW, None, ZERO)


def with_base_sequence(batch: bytes, base_sequence: int) -> bytes:
    """Return the batch with base sequence -1, which LF-6 has, but brokers do not write in commits (LF-5)."""
    header, payload = read_record_batch(batch)[0]
    return seal(header.replace(base_sequence=base_sequence), payload)


def test_the_commit_batch_of_the_specification() -> None:
    """LF-6."""
    batch, count = commit_batch("g1", [("t1", [(0, STORED)])], NOW, behavior_of("2.1"))
    assert with_base_sequence(batch, -1) == COMMIT_BATCH
    assert count == 1


@pytest.mark.parametrize(
    ("release", "expire_ms", "value"),
    [
        ("0.8.2", None, "0000000000000000002a00016d0000018bcfe56800"),
        ("0.9.0", NOW + 60_000, "0001000000000000002a00016d0000018bcfe568000000018bcfe65260"),
        ("2.0", NOW + 60_000, "0001000000000000002a00016d0000018bcfe568000000018bcfe65260"),
        ("2.1", NOW + 60_000, "0001000000000000002a00016d0000018bcfe568000000018bcfe65260"),
        ("2.1", None, "0003000000000000002a0000000500016d0000018bcfe56800"),
        ("4.0", None, "0003000000000000002a0000000500016d0000018bcfe56800"),
        ("4.1", None, "0004000000000000002a00000005026d0000018bcfe5680000"),
        ("latest", None, "0004000000000000002a00000005026d0000018bcfe5680000"),
        ("latest", NOW + 60_000, "0001000000000000002a00016d0000018bcfe568000000018bcfe65260"),
    ],
)
def test_values_of_each_release(release: str, expire_ms: int | None, value: str) -> None:
    """OC-43, LF-13."""
    stored = STORED._replace(expire_timestamp_ms=expire_ms)
    batch, _ = commit_batch("g1", [("t1", [(0, stored)])], NOW, behavior_of(release))
    (record,) = read_records(batch)
    assert record.key == bytes.fromhex(f"000{0 if release == '0.8.2' else 1}000267310002743100000000")
    assert record.value == bytes.fromhex(value)


def test_the_newest_value_has_the_topic_id() -> None:
    """LF-12: tag 0."""
    topic_id = bytes(range(16))
    batch, _ = commit_batch("g1", [("t1", [(0, STORED._replace(topic_id=topic_id))])], NOW, behavior_of("latest"))
    (record,) = read_records(batch)
    assert record.value == bytes.fromhex("0004000000000000002a00000005026d0000018bcfe56800010010") + topic_id


def test_each_kafka_version_writes_batches_of_magic_2() -> None:
    """DEVIATION: brokers before 0.11 write message sets."""
    for kafka_version in KAFKA_VERSIONS:
        batch, _ = commit_batch("g1", [("t1", [(0, STORED)])], NOW, kafka_version.behavior(CoordinatorBehavior))
        assert read_record_batch(batch)[0].magic == 2


@given(
    group_id=NAMES,
    entries=commits(offsets_and_metadata()),
    now_ms=INT64,
    kafka_version=st.sampled_from(KAFKA_VERSIONS),
    compression=st.sampled_from(Compression),
)
def test_a_commit_equals_the_reference_implementation(
    group_id: str, entries: CommitEntries, now_ms: int, kafka_version: KafkaVersion, compression: Compression
) -> None:
    batch, count = commit_batch(group_id, entries, now_ms, kafka_version.behavior(CoordinatorBehavior), compression)
    assert batch == reference_commit_batch(group_id, entries, now_ms, kafka_version, compression)
    assert count == sum(len(partitions) for _, partitions in entries) == len(list(read_records(batch)))


@given(
    group_ids=st.lists(NAMES, min_size=1, max_size=3),
    entries=commits(offsets_and_metadata()),
    kafka_version=st.sampled_from(KAFKA_VERSIONS),
    data=st.data(),
)
def test_a_template_encodes_the_same_batch(
    group_ids: list[str], entries: CommitEntries, kafka_version: KafkaVersion, data: st.DataObject
) -> None:
    """D13: for any group ids, offsets and times, one after the other."""
    templates: dict[tuple[int, int | None], CommitTemplate] = {}
    for group_id in group_ids:
        now_ms, expires_after_ms = data.draw(TIMES), data.draw(st.none() | TIMES)
        size = len(group_id.encode())
        if (size, expires_after_ms) not in templates:
            templates[size, expires_after_ms] = template_of(size, entries, kafka_version, expires_after_ms)
        template = templates[size, expires_after_ms]
        expire_ms = None if expires_after_ms is None else now_ms + expires_after_ms
        offsets = data.draw(st.lists(INT64, min_size=template.record_count, max_size=template.record_count))
        places = iter(offsets)
        again = [
            (
                topic,
                [
                    (
                        partition,
                        stored._replace(offset=next(places), commit_timestamp_ms=now_ms, expire_timestamp_ms=expire_ms),
                    )
                    for partition, stored in partitions
                ],
            )
            for topic, partitions in entries
        ]
        made = with_checksum(template.checked(request_of(group_id, offsets), now_ms))
        assert (made, template.record_count) == commit_batch(
            group_id, again, now_ms, kafka_version.behavior(CoordinatorBehavior)
        )


@pytest.mark.parametrize("count", [1, 2])
def test_a_template_needs_an_offset_for_each_partition(count: int) -> None:
    entries = [("t1", [(number, STORED) for number in range(count)])]
    for offset_count in [count - 1, count + 1]:
        template = template_of(2, entries, KafkaVersion.named("latest"), offset_count=offset_count)
        with pytest.raises(ValueError, match=r"size|unpack"):
            template.checked(request_of("g1", [1] * offset_count), NOW)


@pytest.mark.parametrize(
    "make",
    [
        lambda long: commit_batch(long, [("t", [(0, STORED)])], NOW, behavior_of("latest")),
        lambda long: commit_batch("g", [("t", [(0, STORED._replace(metadata=long))])], NOW, behavior_of("2.0")),
        lambda long: commit_batch("g", [("t", [(0, STORED._replace(metadata=long))])], NOW, behavior_of("latest")),
        lambda long: template_of(len(long.encode()), [("t", [(0, STORED)])], KafkaVersion.named("latest")),
    ],
    ids=["group", "metadata", "flexible metadata", "template"],
)
def test_names_that_are_too_long_are_rejected(make: Callable[[str], object]) -> None:
    make("é" * 16_383)
    with pytest.raises(EncodeError, match="32767 is the most"):
        make("é" * 16_384)


def test_batches_are_compressed_as_configured() -> None:
    entries = [("t1", [(0, STORED)])]
    for compression in Compression:
        batch, _ = commit_batch("g1", entries, NOW, behavior_of("latest"), compression)
        assert read_record_batch(batch)[0].compression is compression


@pytest.mark.parametrize("codec", Compression)
def test_compression_of_the_settings(codec: Compression) -> None:
    settings = Settings.from_mapping({"offsets.topic.compression.codec": str(codec.value)})
    assert offsets_compression(settings) is codec


def test_a_missing_compression_package_is_an_error_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kproto.records.compression.PACKAGE", "no_such_package")
    with pytest.raises(SettingError, match=r"cannot be 4: zstd compression needs the package no_such_package"):
        Settings.from_mapping({"offsets.topic.compression.codec": "4"})
