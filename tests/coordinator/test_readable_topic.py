"""`__consumer_offsets` of a broker in memory: its first reader finds what a log on disk has."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from kproto.message import Request
from kproto.messages.k01_fetch import FetchPartition, FetchRequest, FetchTopic
from kproto.messages.k02_list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from kproto.messages.k03_metadata import MetadataRequest, MetadataRequestTopic
from kproto.messages.k08_offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kproto.messages.k10_find_coordinator import FindCoordinatorRequest
from kproto.messages.k11_join_group import JoinGroupRequest, JoinGroupRequestProtocol
from kproto.messages.k14_sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from kproto.messages.k20_delete_topics import DeleteTopicsRequest
from kproto.messages.k22_init_producer_id import InitProducerIdRequest
from kproto.messages.k25_add_offsets_to_txn import AddOffsetsToTxnRequest
from kproto.messages.k26_end_txn import EndTxnRequest
from kproto.messages.k28_txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from kproto.messages.k42_delete_groups import DeleteGroupsRequest
from kproto.messages.k68_consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from kproto.messages.k76_share_group_heartbeat import ShareGroupHeartbeatRequest
from kproto.messages.k88_streams_group_heartbeat import StreamsGroupHeartbeatRequest, Subtopology, Topology
from kproto.records.batches import read_batch
from kproto_server.coordinator.internal_topics import STEP_RECORDS
from kproto_server.testing import InMemoryBroker
from tests.persistence.disk_broker import SETTINGS, DiskBroker

Ask = Callable[[Request, int], Any]
LATEST = "4.4"
OFFSETS_TOPIC = "__consumer_offsets"
EARLIEST, NEWEST = -2, -1


def talk(ask: Ask) -> None:
    """Make groups of all kinds, with and without offsets, and leave a transaction open."""
    for _ in range(2):
        for key, key_type in (("g", 0), ("x", 1)):
            ask(FindCoordinatorRequest(key=key, key_type=key_type), 2)
        ask(MetadataRequest(topics=(MetadataRequestTopic(name="t"),)), 4)
    commit(ask, "simple", 5)
    protocols = (JoinGroupRequestProtocol(name="range", metadata=b""),)
    join = JoinGroupRequest(
        group_id="classic", session_timeout_ms=9000, member_id="", protocol_type="consumer", protocols=protocols
    )
    member_id = ask(join, 3).member_id
    sync = SyncGroupRequestAssignment(member_id=member_id, assignment=b"all")
    ask(SyncGroupRequest(group_id="classic", generation_id=1, member_id=member_id, assignments=(sync,)), 3)
    member: dict[str, Any] = {"member_id": "m" * 22, "member_epoch": 0, "rebalance_timeout_ms": 9000}
    consumer = ConsumerGroupHeartbeatRequest(
        group_id="consumer", subscribed_topic_names=("t",), topic_partitions=(), **member
    )
    assert not ask(consumer, 1).error_code
    share = ShareGroupHeartbeatRequest(
        group_id="share", member_id="s" * 22, member_epoch=0, subscribed_topic_names=("t",)
    )
    assert not ask(share, 1).error_code
    others = ("source_topic_regex", "state_changelog_topics", "repartition_sink_topics", "repartition_source_topics")
    no_others: dict[str, Any] = dict.fromkeys((*others, "copartition_groups"), ())
    subtopology = Subtopology(subtopology_id="0", source_topics=("t",), **no_others)
    topology = Topology(epoch=0, subtopologies=(subtopology,))
    tasks: dict[str, Any] = dict.fromkeys(("active_tasks", "standby_tasks", "warmup_tasks"), ())
    streams = StreamsGroupHeartbeatRequest(
        group_id="streams",
        topology=topology,
        process_id="p",
        endpoint_information_epoch=0,
        client_tags=(),
        **member,
        **tasks,
    )
    assert not ask(streams, 0).error_code
    begin_transaction(ask, "x", "t")


def begin_transaction(ask: Ask, transactional_id: str, topic: str, partition_count: int = 1) -> dict[str, Any]:
    """Have a transaction commit offsets of a group, and leave it open; return its producer."""
    made = ask(InitProducerIdRequest(transactional_id=transactional_id, transaction_timeout_ms=60_000), 1)
    producer: dict[str, Any] = {
        "transactional_id": transactional_id,
        "producer_id": made.producer_id,
        "producer_epoch": made.producer_epoch,
    }
    assert not ask(AddOffsetsToTxnRequest(group_id="simple", **producer), 1).error_code
    partitions = tuple(
        TxnOffsetCommitRequestPartition(partition_index=index, committed_offset=6, committed_metadata="")
        for index in range(partition_count)
    )
    topics = (TxnOffsetCommitRequestTopic(name=topic, partitions=partitions),)
    response = ask(TxnOffsetCommitRequest(group_id="simple", topics=topics, **producer), 2)
    assert not any(part.error_code for part in response.topics[0].partitions)
    return producer


def commit(ask: Ask, group_id: str, offset: int) -> None:
    partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=offset, committed_metadata="")
    topic = OffsetCommitRequestTopic(name="t", partitions=(partition,))
    request = OffsetCommitRequest(group_id=group_id, generation_id_or_member_epoch=-1, member_id="", topics=(topic,))
    assert not ask(request, 7).topics[0].partitions[0].error_code


def read(ask: Ask, after: dict[int, int] | None = None) -> dict[tuple[bool, bytes | None], bytes | None]:
    """Return the newest value of each key that a client reads; the key says whether it belongs to a transaction."""
    found = {}
    for index in range(2):
        part = FetchPartition(partition=index, fetch_offset=0, partition_max_bytes=1 << 20)
        topic = FetchTopic(topic=OFFSETS_TOPIC, partitions=(part,))
        response = ask(FetchRequest(max_wait_ms=0, min_bytes=0, max_bytes=1 << 20, topics=(topic,)), 11)
        data, position = bytes(response.responses[0].partitions[0].records), 0
        while (batch := read_batch(data, position)) is not None:
            position = batch[1]
            for record in batch[0].records():
                found[batch[0].is_transactional, record.key] = record.value
    return {key: value for key, value in found.items() if value is not None}


def in_memory() -> tuple[InMemoryBroker, Ask]:
    """Return a broker that makes the same ids as a `DiskBroker`."""
    seed = random.Random(0).getrandbits(32)  # noqa: S311 - reproducible
    broker = InMemoryBroker(kafka_version=LATEST, settings=SETTINGS, seed=seed)
    client = broker.connect()

    def ask(request: Request, version: int) -> Any:
        client.send(request, version)
        if not client.responses:  # a rebalance begins in the next iteration
            broker.advance(milliseconds=1)
        return client.responses.pop()

    return broker, ask


def test_the_first_reader_finds_what_a_log_on_disk_has() -> None:
    """Groups of all kinds, offsets, and those of an open transaction; then what changes."""
    _, ask = in_memory()
    disk = DiskBroker("os", kafka_version=LATEST)
    for each in (ask, disk.ask):
        talk(each)
    assert read(ask) == read(disk.ask) != {}
    for each in (ask, disk.ask):
        commit(each, "simple", 7)
        each(DeleteGroupsRequest(groups_names=("classic",)), 1)
    assert read(ask) == read(disk.ask)


def test_records_are_made_in_steps_which_readers_share() -> None:
    """No request waits until thousands of records are made; a reader that goes leaves the rest to the next one."""
    broker, ask = in_memory()
    talk(ask)
    for number in range(3 * STEP_RECORDS):
        commit(ask, f"g{number}", number)
    coordinator = broker.state.coordinator
    newest = ListOffsetsPartition(partition_index=0, timestamp=NEWEST)
    request = ListOffsetsRequest(replica_id=-1, topics=(ListOffsetsTopic(name=OFFSETS_TOPIC, partitions=(newest,)),))
    gone, other = broker.connect(), broker.connect()
    gone.connection.receive(gone.client.send(request, 1), broker.clock.now_ms())
    other.connection.receive(other.client.send(request, 1), broker.clock.now_ms())
    assert coordinator.log.keeps
    assert not gone.responses
    assert not other.responses
    gone.close()
    commit(ask, "g0", 1000)  # and `deliver` gives the other reader its turns
    response: Any = other.responses.pop()
    part = response.topics[0].partitions[0]
    assert part.offset == broker.state.cluster.topics[OFFSETS_TOPIC].partitions[0].data.next_offset
    keys = {key for _, key in read(ask)}
    assert len([key for key in keys if key and b"\x00\x01t" in key]) == 3 * STEP_RECORDS + 1


def test_what_is_deleted_between_two_steps_is_left_out() -> None:
    """A topic that is deleted meanwhile fails no reader, and hides no other topic."""
    broker, ask = in_memory()
    ask(FindCoordinatorRequest(key="g", key_type=0), 2)
    names = ("a", "deleted", "z")
    for name in names:
        broker.state.cluster.create_topic(name, partition_count=STEP_RECORDS + 1, replication_factor=1)
        partitions = tuple(
            OffsetCommitRequestPartition(partition_index=index, committed_offset=1, committed_metadata="")
            for index in range(STEP_RECORDS + 1)
        )
        topics = (OffsetCommitRequestTopic(name=name, partitions=partitions),)
        ask(OffsetCommitRequest(group_id="g", generation_id_or_member_epoch=-1, member_id="", topics=topics), 7)
    newest = ListOffsetsPartition(partition_index=0, timestamp=NEWEST)
    request = ListOffsetsRequest(replica_id=-1, topics=(ListOffsetsTopic(name=OFFSETS_TOPIC, partitions=(newest,)),))
    reader = broker.connect()
    reader.connection.receive(reader.client.send(request, 1), broker.clock.now_ms())
    ask(DeleteTopicsRequest(topic_names=("deleted",), timeout_ms=1000), 3)
    assert reader.responses.pop()
    keys = [key for _, key in read(ask) if key is not None]
    found = {name: len([key for key in keys if b"\0" + bytes((len(name),)) + name.encode() in key]) for name in names}
    assert found["a"] == found["z"] == STEP_RECORDS + 1
    assert found["deleted"] < STEP_RECORDS + 1


def test_a_transaction_that_ends_between_two_steps_hides_no_other() -> None:
    broker, ask = in_memory()
    for _ in range(2):
        for key, key_type in (("g", 0), ("x", 1)):
            ask(FindCoordinatorRequest(key=key, key_type=key_type), 2)
    for name, partition_count in (("ends", STEP_RECORDS + 1), ("stays", 1)):
        broker.state.cluster.create_topic(name, partition_count=partition_count, replication_factor=1)
    ending = begin_transaction(ask, "x", "ends", STEP_RECORDS + 1)
    begin_transaction(ask, "y", "stays")
    newest = ListOffsetsPartition(partition_index=0, timestamp=NEWEST)
    request = ListOffsetsRequest(replica_id=-1, topics=(ListOffsetsTopic(name=OFFSETS_TOPIC, partitions=(newest,)),))
    reader = broker.connect()
    reader.connection.receive(reader.client.send(request, 1), broker.clock.now_ms())
    assert not reader.responses
    assert not ask(EndTxnRequest(committed=False, **ending), 1).error_code
    assert reader.responses.pop()
    pending = [key for is_transactional, key in read(ask) if is_transactional and key is not None]
    assert len([key for key in pending if b"\0\4ends" in key]) == STEP_RECORDS
    assert len([key for key in pending if b"\0\5stays" in key]) == 1
