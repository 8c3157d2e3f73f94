"""Requests that change a broker's state, and a view of all state that clients can see."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Protocol

from kproto.declaration import ZERO_UUID
from kproto.message import Request
from kproto.messages.k00_produce import PartitionProduceData, ProduceRequest, TopicProduceData
from kproto.messages.k01_fetch import FetchPartition, FetchRequest, FetchTopic
from kproto.messages.k02_list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from kproto.messages.k03_metadata import MetadataRequest
from kproto.messages.k09_offset_fetch import OffsetFetchRequest, OffsetFetchRequestTopic
from kproto.messages.k11_join_group import JoinGroupRequest, JoinGroupRequestProtocol
from kproto.messages.k13_leave_group import LeaveGroupRequest, MemberIdentity
from kproto.messages.k14_sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from kproto.messages.k15_describe_groups import DescribeGroupsRequest
from kproto.messages.k19_create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from kproto.messages.k20_delete_topics import DeleteTopicsRequest, DeleteTopicState
from kproto.messages.k21_delete_records import DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic
from kproto.messages.k22_init_producer_id import InitProducerIdRequest
from kproto.messages.k32_describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from kproto.messages.k33_alter_configs import AlterableConfig as AlterableConfigV0
from kproto.messages.k33_alter_configs import AlterConfigsRequest
from kproto.messages.k33_alter_configs import AlterConfigsResource as AlterConfigsResourceV0
from kproto.messages.k37_create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from kproto.messages.k42_delete_groups import DeleteGroupsRequest
from kproto.messages.k44_incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from kproto.messages.k47_offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from kproto.records.batches import read_records
from kproto.records.record import Record
from kproto.records.record_batch import build_record_batch
from tests.coordinator.broker_state import commit_request

Sent = tuple[Request, int]
"""A request and its version."""
State = dict[tuple[str, ...], Any]
"""What clients see: a value for each topic, partition, group, committed offset and dynamic config."""

TOPIC, BROKER, GROUP = 2, 4, 32
EARLIEST, LATEST = -2, -1
LOADING = 14
LOADING_LIMIT_S = 60.0
SESSION_TIMEOUT_MS = 1_500_000
ALL_BYTES = 1 << 26


class Client(Protocol):
    """One connection to a broker."""

    def ask(self, request: Request, version: int) -> Any:
        """Send one request; return its response."""
        ...


def create_topic(name: str, partition_count: int = 1, **configs: str) -> Sent:
    return create_topics(name, partition_count=partition_count, **configs)


def create_topics(*names: str, partition_count: int = 1, **configs: str) -> Sent:
    changed = tuple(CreatableTopicConfig(name=one.replace("_", "."), value=v) for one, v in configs.items())
    topics = (
        CreatableTopic(name=name, num_partitions=partition_count, replication_factor=1, assignments=(), configs=changed)
        for name in names
    )
    return CreateTopicsRequest(topics=tuple(topics), timeout_ms=1000), 2


def delete_topic(name: str) -> Sent:
    return DeleteTopicsRequest(topic_names=(name,), timeout_ms=1000), 1


def delete_by_name(name: str) -> Sent:
    """Delete a topic with a version that names topics or ids."""
    return DeleteTopicsRequest(topics=(DeleteTopicState(name=name, topic_id=ZERO_UUID),), timeout_ms=1000), 6


def create_partitions(name: str, count: int) -> Sent:
    topic = CreatePartitionsTopic(name=name, count=count, assignments=None)
    return CreatePartitionsRequest(topics=(topic,), timeout_ms=1000, validate_only=False), 0


def set_config(resource_type: int, resource: str, name: str, value: str | None) -> Sent:
    """Set a dynamic config; None deletes it."""
    change = AlterableConfig(name=name, config_operation=0 if value is not None else 1, value=value)
    changed = AlterConfigsResource(resource_type=resource_type, resource_name=resource, configs=(change,))
    return IncrementalAlterConfigsRequest(resources=(changed,), validate_only=False), 0


def alter_config(resource_type: int, resource: str, name: str, value: str) -> Sent:
    """Set a dynamic config, and delete all others."""
    changed = AlterConfigsResourceV0(
        resource_type=resource_type, resource_name=resource, configs=(AlterableConfigV0(name=name, value=value),)
    )
    return AlterConfigsRequest(resources=(changed,), validate_only=False), 0


def produce(topic: str, values: Iterable[bytes], partition: int = 0, **fields: Any) -> Sent:
    """Append one batch."""
    records = [Record(b"k", value, timestamp=int(time.time() * 1000), offset=n) for n, value in enumerate(values)]
    encoded = build_record_batch(records, **fields)
    data = TopicProduceData(name=topic, partition_data=(PartitionProduceData(index=partition, records=encoded),))
    return ProduceRequest(acks=-1, timeout_ms=1000, topic_data=(data,)), 5


def delete_records(topic: str, offset: int, partition: int = 0) -> Sent:
    wanted = DeleteRecordsPartition(partition_index=partition, offset=offset)
    return DeleteRecordsRequest(topics=(DeleteRecordsTopic(name=topic, partitions=(wanted,)),), timeout_ms=1000), 0


def commit(group_id: str, offsets: Mapping[str, Mapping[int, int]], version: int = 2) -> Sent:
    return commit_request(group_id, {topic: dict(of_topic) for topic, of_topic in offsets.items()}), version


def delete_offset(group_id: str, topic: str, partition: int = 0) -> Sent:
    wanted = OffsetDeleteRequestTopic(name=topic, partitions=(OffsetDeleteRequestPartition(partition_index=partition),))
    return OffsetDeleteRequest(group_id=group_id, topics=(wanted,)), 0


def delete_group(group_id: str) -> Sent:
    return DeleteGroupsRequest(groups_names=(group_id,)), 0


def new_producer_id() -> Sent:
    return InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1000), 0


def join(group_id: str, instance_id: str) -> Sent:
    return JoinGroupRequest(
        group_id=group_id,
        session_timeout_ms=SESSION_TIMEOUT_MS,
        rebalance_timeout_ms=SESSION_TIMEOUT_MS,
        member_id="",
        group_instance_id=instance_id,
        protocol_type="consumer",
        protocols=(JoinGroupRequestProtocol(name="range", metadata=b"m"),),
    ), 5


def sync(group_id: str, joined: Any, instance_id: str, assignment: bytes) -> Sent:
    """Send the assignment of the only member, after its JoinGroup."""
    return SyncGroupRequest(
        group_id=group_id,
        generation_id=joined.generation_id,
        member_id=joined.member_id,
        group_instance_id=instance_id,
        assignments=(SyncGroupRequestAssignment(member_id=joined.member_id, assignment=assignment),),
    ), 3


def leave(group_id: str, instance_id: str) -> Sent:
    member = MemberIdentity(member_id="", group_instance_id=instance_id)
    return LeaveGroupRequest(group_id=group_id, members=(member,)), 3


def errors_of(response: Any) -> list[int]:
    """Return all error codes of a response that are not 0."""
    found: list[int] = []
    for name in response._fields:
        value = getattr(response, name)
        if name == "error_code":
            found += [int(value)] if value else []
        elif isinstance(value, tuple):
            found += [code for one in value if hasattr(one, "_fields") for code in errors_of(one)]
    return found


def view(client: Client, groups: Iterable[str] = (), *, is_mine: Any = lambda name: True) -> State:
    """Return what the broker shows of all topics whose name ``is_mine``, and of these groups."""
    state: State = {}
    metadata = client.ask(MetadataRequest(topics=None), 1)
    topics = {topic.name: len(topic.partitions) for topic in metadata.topics if is_mine(topic.name)}
    for name, count in topics.items():
        state["partitions", name] = count
        state.update(configs(client, TOPIC, name, (1,)))
        if not name.startswith("__"):
            for partition in range(count):
                state.update(_partition(client, name, partition))
    for group_id in groups:
        state.update(_group(client, group_id))
    return state


def broker_configs(client: Client) -> State:
    """Return the dynamic configs of all brokers and those of the first one."""
    return {**configs(client, BROKER, "", (3,)), **configs(client, BROKER, "1", (2,))}


def group_configs(client: Client, group_id: str) -> State:
    """Return the configs of a group of its own."""
    return configs(client, GROUP, group_id, (8,))


def configs(client: Client, kind: int, name: str, sources: tuple[int, ...]) -> State:
    """Return the configs of a resource that have one of these sources."""
    resource = DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=None)
    (result,) = client.ask(DescribeConfigsRequest(resources=(resource,)), 1).results
    return {("config", name, config.name): config.value for config in result.configs if config.config_source in sources}


def _partition(client: Client, topic: str, partition: int) -> State:
    def offset(timestamp: int) -> int:
        wanted = ListOffsetsPartition(partition_index=partition, timestamp=timestamp)
        request = ListOffsetsRequest(replica_id=-1, topics=(ListOffsetsTopic(name=topic, partitions=(wanted,)),))
        found = client.ask(request, 1).topics[0].partitions[0]
        assert not found.error_code, found
        return int(found.offset)

    start, end = offset(EARLIEST), offset(LATEST)
    key = topic, str(partition)
    return {
        ("start", *key): start,
        ("end", *key): end,
        ("records", *key): dict(_records(client, topic, partition, start, end)),
    }


def _records(client: Client, topic: str, partition: int, offset: int, end: int) -> Iterator[tuple[int, bytes | None]]:
    while offset < end:
        wanted = FetchPartition(partition=partition, fetch_offset=offset, partition_max_bytes=ALL_BYTES)
        request = FetchRequest(max_wait_ms=0, min_bytes=0, topics=(FetchTopic(topic=topic, partitions=(wanted,)),))
        found = client.ask(request, 4).responses[0].partitions[0]
        assert not found.error_code, found
        records = [record for record in read_records(found.records or b"") if record.offset >= offset]
        if not records:
            return
        yield from ((record.offset, record.value) for record in records)
        offset = records[-1].offset + 1


def _group(client: Client, group_id: str) -> State:
    state: State = {}
    offsets = when_loaded(client, OffsetFetchRequest(group_id=group_id, topics=None), 2)
    for topic in offsets.topics:
        for partition in topic.partitions:
            state["offset", group_id, topic.name, str(partition.partition_index)] = partition.committed_offset
    (group,) = client.ask(DescribeGroupsRequest(groups=(group_id,)), 0).groups
    if group.members:
        state["members", group_id] = {(member.member_id, member.member_assignment) for member in group.members}
    return state


def zookeeper_offset(client: Client, group_id: str, topic: str) -> State:
    """Return the offset that OffsetCommit v0 has stored."""
    topics = (OffsetFetchRequestTopic(name=topic, partition_indexes=(0,)),)
    found = client.ask(OffsetFetchRequest(group_id=group_id, topics=topics), 0).topics[0].partitions[0]
    return {("v0", group_id, topic): found.committed_offset} if found.committed_offset >= 0 else {}


def when_loaded(client: Client, request: Request, version: int) -> Any:
    """Send a request to a coordinator until its partition is loaded."""
    deadline = time.monotonic() + LOADING_LIMIT_S
    while LOADING in errors_of(response := client.ask(request, version)):
        assert time.monotonic() < deadline, "the offsets are still loading"
        time.sleep(0.005)
    return response
