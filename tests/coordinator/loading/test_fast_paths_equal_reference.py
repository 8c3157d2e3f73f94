"""The fast paths of loading are never semantics (D13): random logs load with and without them to the same result.

The logs have a few groups that mostly repeat the same commits, and between them tombstones, groups, transactions,
compacted batches and old formats. Some batches are malformed with a correct checksum, which both loads have to notice.
"""

from __future__ import annotations

from itertools import accumulate
from typing import Any
from unittest import mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kproto.records.checksum import crc32c
from kproto.records.compression import Compression
from kproto.records.control import ControlType
from kproto.records.group_records import GroupMetadataKey
from kproto.records.offset_records import OffsetCommitKey
from kproto_server.coordinator.groups import Group
from kproto_server.coordinator.loading import load, repeated_commits
from kproto_server.coordinator.loading.repeated_commits import ALTERNATIVES_MAX
from kproto_server.releases.kafka_version import KafkaVersion
from tests.coordinator.loading.group_values import MEMBER, group_value
from tests.coordinator.loading.logs import NOW, Loaded, Log, attempted, offset, stored

GROUPS = st.sampled_from(["g", "h", "group", "grüße"])
TOPICS = st.sampled_from(["t", "u", "topic", "tö"])
PARTITIONS = st.integers(0, 3)
NUMBERS = st.integers(0, 2**40)
METADATA = st.sampled_from(["", "", "", "m", "abc", "xyz", "é", "x" * 200])
PRODUCERS = st.integers(1, 2)
TOPIC_IDS = st.sampled_from([bytes(16), bytes(range(16))])
KAFKA_VERSIONS = st.sampled_from(["0.8.2", "1.0", "2.0", "2.1", "3.9", "4.0", "latest", "latest", "latest"])


@st.composite
def commits(draw: st.DrawFn) -> tuple[Any, ...]:
    topics = draw(st.lists(st.tuples(TOPICS, st.lists(PARTITIONS, min_size=1, max_size=3)), min_size=1, max_size=2))
    one = stored(
        draw(NUMBERS),
        draw(METADATA),
        leader_epoch=draw(st.integers(-1, 3)),
        expire_timestamp_ms=draw(st.none() | NUMBERS),
        topic_id=draw(TOPIC_IDS),
    )
    entries = [(topic, [(partition, one) for partition in partitions]) for topic, partitions in topics]
    return "commit", draw(GROUPS), entries, draw(st.sampled_from([Compression.NONE] * 9 + [Compression.GZIP]))


@st.composite
def others(draw: st.DrawFn) -> tuple[Any, ...]:
    group, topic, partition = draw(GROUPS), draw(TOPICS), draw(PARTITIONS)
    pair = offset(
        draw(NUMBERS), group=group, topic=topic, partition=partition, version=draw(st.integers(0, 4)), **draw(FIELDS)
    )
    match draw(st.sampled_from(["delete", "group", "remove", "transaction", "marker", "compacted", "set", "mixed"])):
        case "delete":
            return "delete", group, [(topic, [partition])], draw(st.booleans())
        case "group":
            value = group_value(*[MEMBER] * draw(st.integers(0, 1)), generation=draw(st.integers(0, 9)))
            return "records", [(GroupMetadataKey(group=group), (value, draw(st.integers(0, 4))))]
        case "remove":
            return "records", [(GroupMetadataKey(group=group), None)]
        case "transaction":
            taken = draw(st.booleans()) and (OffsetCommitKey(group=group, topic=topic, partition=partition), None)
            return "transaction", draw(PRODUCERS), [pair, *([taken] if taken else [])]
        case "marker":
            return "marker", draw(PRODUCERS), draw(st.sampled_from([ControlType.COMMIT, ControlType.ABORT]))
        case "compacted":
            return "compacted", [pair] * draw(st.integers(0, 1))
        case "set":
            return "set", draw(st.integers(0, 1)), [pair]
        case _:
            other = offset(draw(NUMBERS), group=draw(GROUPS), topic=draw(TOPICS), partition=draw(PARTITIONS))
            return "records", [pair, other]


FIELDS: st.SearchStrategy[dict[str, Any]] = st.just({}) | st.fixed_dictionaries({"unknown_tagged_fields": st.just(())})
KINDS = st.lists(commits(), min_size=1, max_size=3)


@st.composite
def logs(draw: st.DrawFn) -> Log:
    """Return logs with a few kinds of commits, repeated with other offsets, and other batches between them."""
    kinds = draw(KINDS)
    log = Log(KafkaVersion.named(draw(KAFKA_VERSIONS)))
    for _ in range(draw(st.integers(1, 25))):
        if draw(st.integers(0, 5)):
            _, group, entries, compression = draw(st.sampled_from(kinds))
            number, epoch, text = draw(NUMBERS), draw(st.integers(-1, 3)), draw(st.none() | METADATA)
            again = [
                (
                    topic,
                    [
                        (
                            index,
                            one._replace(
                                offset=number + index,
                                leader_epoch=epoch,
                                metadata=one.metadata if text is None else text,
                            ),
                        )
                        for index, one in partitions
                    ],
                )
                for topic, partitions in entries
            ]
            log.commit(group, again, NOW + number, compression)
        else:
            _append(log, draw(others()))
    return log


def _append(log: Log, what: tuple[Any, ...]) -> None:
    match what:
        case "delete", group, entries, removes_group:
            log.delete(group, entries, removes_group=removes_group)
        case "records", pairs:
            log.records(*pairs)
        case "transaction", producer_id, pairs:
            log.transaction(producer_id, *pairs)
        case "marker", producer_id, outcome:
            log.marker(producer_id, outcome)
        case "compacted", pairs:
            log.records(*pairs, base_offset=0, last_offset=5, base_timestamp=NOW)
            log.next_offset += 6
        case "set", magic, pairs:
            log.message_set(magic, *pairs)


def result_of(found: Loaded) -> dict[str, Any]:
    """Return everything that a load has changed."""
    return {
        "offsets": found.offsets,
        "failed": None if found.load.failed is None else found.load.failed.partition(":")[0],
        "groups": [_group_result(group) for group in found.load.groups],
        "registered": [group.group_id for group in found.state.coordinator.groups],
        "pending": sorted(found.load.pending, key=repr),
        "skipped": found.load.skipped,
        "to come": [sorted(found.load.pending.end(producer_id, commits=True)) for producer_id in (1, 2)],
    }


def _group_result(group: Group) -> tuple[Any, ...]:
    return group.group_id, group.state, group.generation, list(group.members), group.state_timestamp_ms


def compare(data: bytes, kafka_version: str, slice_size: int, *, buffered: int, at_once: int) -> dict[str, Any]:
    reference = result_of(attempted(data, kafka_version, decodes_all=True))
    with (
        mock.patch.object(repeated_commits, "BUFFERED_SIZE_MAX_BYTES", buffered),
        mock.patch.object(load, "STEP_SIZE_BYTES", at_once),
    ):
        assert result_of(attempted(data, kafka_version, slice_size=slice_size)) == reference
    return reference


HELD = st.sampled_from([0, 2000, 1 << 20])
AT_ONCE = st.sampled_from([1, 500, 1 << 16])


@settings(max_examples=150)
@given(
    log=logs(), slice_size=st.sampled_from([50, 1000, 1 << 18]), buffered=HELD, at_once=AT_ONCE, cut=st.integers(0, 60)
)
def test_logs_of_all_kinds(log: Log, slice_size: int, buffered: int, at_once: int, cut: int) -> None:
    data = log.data[: len(log.data) - cut]
    failed = compare(data, log.kafka_version.name, slice_size, buffered=buffered, at_once=at_once)["failed"]
    assert (failed is None) == (len(data) in accumulate(map(len, log.batches), initial=0))


def damaged(batch: bytes, place: int, byte: int) -> bytes:
    """Return a batch with one byte changed and a correct checksum."""
    changed = bytearray(batch)
    changed[place] = byte
    changed[17:21] = crc32c(bytes(changed[21:])).to_bytes(4, "big")
    return bytes(changed)


@settings(max_examples=150)
@given(log=logs(), data=st.data(), buffered=HELD)
def test_malformed_batch_with_a_correct_checksum(log: Log, data: st.DataObject, buffered: int) -> None:
    """LF-36: with any changed byte both loads have the same result."""
    batches = list(log.batches)
    index = data.draw(st.integers(0, len(batches) - 1))
    if batches[index][16] == 2:
        place = data.draw(st.integers(21, len(batches[index]) - 1))
        batches[index] = damaged(batches[index], place, data.draw(st.integers(0, 255)))
    compare(b"".join(batches), log.kafka_version.name, 1 << 18, buffered=buffered, at_once=1 << 16)


@pytest.mark.parametrize("index", [0, 1, 3])
@pytest.mark.parametrize("release", ["2.0", "2.1", "latest"])
def test_each_changed_byte_of_a_commit(release: str, index: int) -> None:
    """The first batch comes before its template, the second is read for the template, the fourth matches it."""
    log = Log(KafkaVersion.named(release))
    for number in range(5):
        one = stored(number, "m", topic_id=bytes(range(16)), expire_timestamp_ms=NOW if release == "2.0" else None)
        log.commit("g", [("t", [(0, one), (1, one)])])
    for place in range(21, len(log.batches[index])):
        for flip in (0x01, 0x02, 0x80, 0xFF) if release == "latest" else (0x01, 0x80):
            batches = list(log.batches)
            batches[index] = damaged(batches[index], place, batches[index][place] ^ flip)
            compare(b"".join(batches), release, 1 << 18, buffered=1 << 20, at_once=1 << 16)


def test_batches_of_several_groups() -> None:
    """The new coordinator may write commits of several groups in one batch (OC-33), all with the same size."""
    log = Log()
    for group in ("gh", "gg", "hg", "hh"):
        for number in range(4):
            log.records(offset(number, group=group[0]), offset(number, group=group[1], partition=1))
            log.records(offset(number, group="g"), offset(number, group="g", partition=1))
    compare(log.data, "latest", 1 << 18, buffered=1 << 20, at_once=1 << 16)


def test_more_kinds_of_commits_of_a_group_than_are_searched() -> None:
    """They have the same size, count and first key."""
    log = Log()
    kinds = range(1, ALTERNATIVES_MAX + 5)
    for number in range(3):
        for kind in kinds:
            log.commit("g", [("t", [(0, stored(100 * number + kind)), (kind, stored(number))])])
    found = compare(log.data, "latest", 1 << 18, buffered=1 << 20, at_once=1 << 16)["offsets"]["g"]["t"]
    assert {index: one.offset for index, one in found.items()} == {0: 200 + kinds[-1], **dict.fromkeys(kinds, 2)}


def test_some_topics_with_an_id() -> None:
    log = Log()
    for number in range(4):
        with_id, without = stored(number, topic_id=bytes(range(16))), stored(number)
        log.commit("g", [("t", [(0, without), (1, with_id)])])
        log.commit("h", [("t", [(0, with_id), (1, without)])])
    compare(log.data, "latest", 1 << 18, buffered=1 << 20, at_once=1 << 16)


@settings(max_examples=60)
@given(log=logs(), data=st.data())
def test_damage_that_the_checksum_shows(log: Log, data: st.DataObject) -> None:
    place = data.draw(st.integers(0, len(log.data) - 1))
    changed = bytearray(log.data)
    changed[place] ^= data.draw(st.integers(1, 255))
    compare(bytes(changed), log.kafka_version.name, 1 << 18, buffered=1 << 20, at_once=1 << 16)
