"""Ids that one broker gave become those of another broker: members, generations, sessions, topics and producers."""

from __future__ import annotations

from typing import Any

import pytest

from kproto import registry
from kproto.headers import read_request_header
from kproto.message import Request
from kproto.messages.k00_produce import PartitionProduceData, ProduceRequest, TopicProduceData
from kproto.messages.k01_fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from kproto.messages.k03_metadata import MetadataResponse, MetadataResponseTopic
from kproto.messages.k08_offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kproto.messages.k11_join_group import JoinGroupRequest, JoinGroupResponse, JoinGroupResponseMember
from kproto.messages.k12_heartbeat import HeartbeatRequest
from kproto.messages.k14_sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from kproto.messages.k22_init_producer_id import InitProducerIdResponse
from kproto.messages.k26_end_txn import EndTxnRequest
from kproto.messages.k28_txn_offset_commit import TxnOffsetCommitRequest
from kproto.messages.k68_consumer_group_heartbeat import ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse
from kproto.records.checksum import crc32c
from kproto_server.replay.translation import Translation
from tests.proxy.exchanged import asked

FIRST, SECOND = 1, 2
"""Connections."""


def sent(translation: Translation, connection: int, request: Request, version: int) -> Any:
    """Return what a replay sends for a request of the capture."""
    frame = asked(request, version, 9)[4:]
    found = translation.translated(connection, frame, read_request_header(frame))
    assert int.from_bytes(found[:4], "big") == len(found) - 4
    header = read_request_header(found[4:])
    assert header[:4] == (type(request)._api_key, version, 9, "app")
    decoded, end = registry.codec(header.api_key, version).decode_request(found[4:], header.body_position, 1000)
    assert end == len(found) - 4
    return decoded


def joined(member_id: str, generation_id: int, *others: str) -> JoinGroupResponse:
    members = tuple(JoinGroupResponseMember(member_id=each, metadata=b"") for each in others)
    return JoinGroupResponse(
        error_code=0, generation_id=generation_id, protocol_name="range", leader=member_id, member_id=member_id,
        members=members,
    )  # fmt: skip


def test_members_and_their_generations_are_the_same_on_all_connections() -> None:
    translation = Translation()
    translation.learn(FIRST, joined("old", 1), joined("new", 5))
    heartbeat = HeartbeatRequest(group_id="g", generation_id=1, member_id="old")
    for connection in (FIRST, SECOND):
        assert sent(translation, connection, heartbeat, 4) == heartbeat.replace(generation_id=5, member_id="new")
    other = heartbeat.replace(member_id="stranger")
    assert sent(translation, FIRST, other, 4) == other


def test_a_producer_commits_with_the_generation_of_the_consumer() -> None:
    translation = Translation()
    translation.learn(FIRST, joined("old", 1), joined("new", 5))
    commit = TxnOffsetCommitRequest(
        transactional_id="x", group_id="g", producer_id=9, producer_epoch=0, generation_id_or_member_epoch=1,
        member_id="old", topics=(),
    )  # fmt: skip
    found = sent(translation, SECOND, commit, 3)
    assert (found.generation_id_or_member_epoch, found.member_id) == (5, "new")


def test_a_heartbeat_has_a_member_epoch_for_the_member_of_its_request() -> None:
    """The response names the member only when it joins."""

    def beaten(epoch: int) -> ConsumerGroupHeartbeatResponse:
        return ConsumerGroupHeartbeatResponse(
            throttle_time_ms=0, error_code=0, member_id=None, member_epoch=epoch, heartbeat_interval_ms=1
        )

    translation = Translation()
    heartbeat = ConsumerGroupHeartbeatRequest(group_id="g", member_id="m", member_epoch=1)
    sent(translation, FIRST, heartbeat, 0)
    translation.learn(FIRST, beaten(2), beaten(7))
    assert sent(translation, SECOND, heartbeat.replace(member_epoch=2), 0).member_epoch == 7


def test_requests_with_more_elements_than_brokers_of_kproto_accept_are_translated() -> None:
    translation = Translation()
    translation.learn(FIRST, joined("old", 1), joined("new", 5))
    partitions = tuple(
        OffsetCommitRequestPartition(partition_index=number, committed_offset=1, committed_metadata="")
        for number in range(20_000)
    )
    topics = (OffsetCommitRequestTopic(name="t", partitions=partitions),)
    commit = OffsetCommitRequest(group_id="g", generation_id_or_member_epoch=1, member_id="old", topics=topics)
    found = translation.translated(FIRST, frame := asked(commit, 8)[4:], read_request_header(frame))
    request, _ = registry.codec(8, 8).decode_request(found[4:], read_request_header(found[4:]).body_position)
    assert (request.generation_id_or_member_epoch, request.member_id) == (5, "new")


def test_a_leader_assigns_to_the_members_that_it_has_received() -> None:
    translation = Translation()
    translation.learn(FIRST, joined("old-1", 1, "old-1", "old-2"), joined("new-1", 1, "new-2", "new-1"))
    assignments = tuple(
        SyncGroupRequestAssignment(member_id=each, assignment=each.encode()) for each in ("old-1", "old-2")
    )
    request = SyncGroupRequest(group_id="g", generation_id=1, member_id="old-1", assignments=assignments)
    found = sent(translation, FIRST, request, 3)
    assert [(each.member_id, each.assignment) for each in found.assignments] == [
        ("new-1", b"old-1"),
        ("new-2", b"old-2"),
    ]


def test_a_first_join_has_no_member_id() -> None:
    translation = Translation()
    translation.learn(FIRST, joined("", -1), joined("new", 3))
    request = JoinGroupRequest(
        group_id="g", session_timeout_ms=1, rebalance_timeout_ms=1, member_id="", protocol_type="consumer", protocols=()
    )
    assert sent(translation, FIRST, request, 5) == request


def test_topics_have_the_ids_of_the_same_names() -> None:
    def metadata(**ids: bytes) -> MetadataResponse:
        topics = tuple(
            MetadataResponseTopic(error_code=0, name=name, topic_id=topic_id * 16, is_internal=False, partitions=())
            for name, topic_id in ids.items()
        )
        return MetadataResponse(brokers=(), topics=topics)

    translation = Translation()
    translation.learn(FIRST, metadata(one=b"1", two=b"2"), metadata(two=b"b", one=b"a", three=b"c"))
    translation.learn(
        SECOND,
        FetchResponse(error_code=0, session_id=7, responses=()),
        FetchResponse(error_code=0, session_id=8, responses=()),
    )
    partition = FetchPartition(partition=0, fetch_offset=5, partition_max_bytes=1, current_leader_epoch=4)
    topics = tuple(FetchTopic(topic_id=each * 16, partitions=(partition,)) for each in (b"1", b"2", b"9"))
    request = FetchRequest(max_wait_ms=0, min_bytes=0, session_id=7, topics=topics)
    found = sent(translation, SECOND, request, 13)
    assert [each.topic_id[:1] for each in found.topics] == [b"a", b"b", b"9"]
    assert found.session_id == 8
    assert {each.partitions[0].current_leader_epoch for each in found.topics} == {-1}
    assert sent(translation, FIRST, request, 13).session_id == 7


def batch(producer_id: int, epoch: int) -> bytes:
    """Return a record batch whose records are no concern of a broker's client here."""
    checked = (
        b"\0\0" + bytes(4 + 8 + 8) + producer_id.to_bytes(8, "big") + epoch.to_bytes(2, "big") + bytes(8) + b"record"
    )
    rest = bytes(4) + b"\2" + crc32c(checked).to_bytes(4, "big") + checked
    return bytes(8) + len(rest).to_bytes(4, "big") + rest


def test_record_batches_have_the_producer_of_the_replay_and_a_right_checksum() -> None:
    def given(producer_id: int, epoch: int) -> InitProducerIdResponse:
        return InitProducerIdResponse(throttle_time_ms=0, error_code=0, producer_id=producer_id, producer_epoch=epoch)

    translation = Translation()
    translation.learn(FIRST, given(0, 0), given(4000, 3))
    translation.learn(FIRST, given(1, 0), given(4001, 0))

    def produced(records: bytes) -> ProduceRequest:
        partition = PartitionProduceData(index=0, records=records)
        topic = TopicProduceData(name="t", partition_data=(partition,))
        return ProduceRequest(acks=-1, timeout_ms=1, topic_data=(topic,))

    found = sent(translation, SECOND, produced(batch(0, 0) + batch(1, 0)), 9)
    assert found == produced(batch(4000, 3) + batch(4001, 0))
    end = EndTxnRequest(transactional_id="x", producer_id=0, producer_epoch=0, committed=True)
    assert sent(translation, SECOND, end, 3) == end.replace(producer_id=4000, producer_epoch=3)


@pytest.mark.parametrize("records", [b"", b"short", bytes(16) + b"\1" + bytes(60), batch(0, 0)[:70]])
def test_other_records_are_sent_as_they_are(records: bytes) -> None:
    translation = Translation()
    partition = PartitionProduceData(index=0, records=records)
    request = ProduceRequest(
        acks=1, timeout_ms=1, topic_data=(TopicProduceData(name="t", partition_data=(partition,)),)
    )
    assert sent(translation, FIRST, request, 2) == request
