"""What the scripts do besides the requests of members: topics, their records, transactions, and configs of groups."""

from __future__ import annotations

from typing import Any

from kproto.codes import ErrorCode
from kproto.message import Request
from kproto.messages.k00_produce import PartitionProduceData, ProduceRequest, TopicProduceData
from kproto.messages.k03_metadata import MetadataRequest, MetadataRequestTopic
from kproto.messages.k10_find_coordinator import FindCoordinatorRequest
from kproto.messages.k19_create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from kproto.messages.k20_delete_topics import DeleteTopicsRequest, DeleteTopicState
from kproto.messages.k21_delete_records import DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic
from kproto.messages.k22_init_producer_id import InitProducerIdRequest
from kproto.messages.k24_add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnTopic
from kproto.messages.k26_end_txn import EndTxnRequest
from kproto.messages.k37_create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from kproto.messages.k44_incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from kproto.messages.k77_share_group_describe import ShareGroupDescribeRequest
from kproto.records.batch_header import TRANSACTIONAL
from kproto.records.record import Record, RecordHeader
from kproto.records.record_batch import build_record_batch
from tests.membership.members import Transport

LOADING = (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.NOT_COORDINATOR)
UNKNOWN_TOPIC_ID = b"\1" * 16
TRANSACTION = 1
"""A key type of FindCoordinator."""
SET = 0
GROUP = 32
"""A resource type of IncrementalAlterConfigs."""


class Setup:
    """Requests that are no steps of a transcript."""

    def __init__(self, transport: Transport, name: str) -> None:
        self.name = name
        """Begins the names of the script's groups and topics."""
        self.topic_ids: dict[str, bytes] = {"?": UNKNOWN_TOPIC_ID}
        self._transport = transport
        self._producers: dict[str, tuple[int, int]] = {}

    @property
    def group_id(self) -> str:
        return self.full("g")

    def full(self, name: str) -> str:
        """Return the name of a group or topic of this script."""
        return f"{self.name}-{name}"

    def create(self, topic: str = "t", partitions: int = 1, *, prefix: str = "", **configs: str) -> None:
        """Create a topic; return when it has leaders. In the names of configs an underscore stands for a dot."""
        name = prefix + self.full(topic)
        creatable = CreatableTopic(
            name=name,
            num_partitions=partitions,
            replication_factor=1,
            assignments=(),
            configs=tuple(
                CreatableTopicConfig(name=name.replace("_", "."), value=value) for name, value in configs.items()
            ),
        )
        request = CreateTopicsRequest(topics=(creatable,), timeout_ms=10_000)
        self._ask(request, 5)
        metadata = MetadataRequest(topics=(MetadataRequestTopic(name=name),))
        while True:
            found = self._ask(metadata, 12).topics[0]
            if not found.error_code and not any(one.error_code for one in found.partitions):
                break
        self.topic_ids[topic] = found.topic_id
        describe = ShareGroupDescribeRequest(group_ids=(self.group_id,), include_authorized_operations=False)
        while self._ask(FindCoordinatorRequest(key=self.group_id), 1).error_code:
            pass
        while self._ask(describe, 1).groups[0].error_code in LOADING:
            pass
        self._transport.pass_time(500)  # until the coordinator knows the topic, too

    def delete_topic(self, topic: str = "t") -> None:
        """Delete a topic; its id is that of ``deleted TOPIC`` from then on."""
        deleted = DeleteTopicState(name=self.full(topic), topic_id=bytes(16))
        self._ask(DeleteTopicsRequest(topics=(deleted,), timeout_ms=5_000), 6)
        self.topic_ids[f"deleted {topic}"] = self.topic_ids.pop(topic)
        self._transport.pass_time(1_000)

    def add_partitions(self, count: int, topic: str = "t") -> None:
        """Give a topic so many partitions."""
        wanted = CreatePartitionsTopic(name=self.full(topic), count=count, assignments=None)
        self._ask(CreatePartitionsRequest(topics=(wanted,), timeout_ms=5_000, validate_only=False), 3)
        self._transport.pass_time(1_000)

    def configure(self, group: str = "g", **configs: str) -> None:
        """Set configs of a group; an underscore stands for a dot."""
        changes = tuple(
            AlterableConfig(name=name.replace("_", "."), config_operation=SET, value=value)
            for name, value in configs.items()
        )
        resource = AlterConfigsResource(resource_type=GROUP, resource_name=self.full(group), configs=changes)
        self._ask(IncrementalAlterConfigsRequest(resources=(resource,), validate_only=False), 1)
        self._transport.pass_time(500)

    def produce(self, *counts: int, topic: str = "t", partition: int = 0) -> None:
        """Produce batches with these numbers of records."""
        for count in counts:
            self.write(build_record_batch(_records(count)), topic, partition)

    def produce_values(self, *sizes: int, topic: str = "t") -> None:
        """Produce batches of one record each, whose values have these sizes."""
        for size in sizes:
            headers = (RecordHeader("h", b"x"),)
            self.write(build_record_batch([Record(b"k", bytes(size), headers=headers, offset=0)]), topic, 0)

    def begin_transaction(self, producer: str, *counts: int, topic: str = "t", partition: int = 0) -> None:
        """Produce batches with these numbers of records in a new transaction."""
        while self._ask(FindCoordinatorRequest(key=self.full(producer), key_type=TRANSACTION), 1).error_code:
            pass
        while True:
            begun = self._ask(
                InitProducerIdRequest(transactional_id=self.full(producer), transaction_timeout_ms=60_000), 3
            )
            if not begun.error_code:
                break
        self._producers[producer] = begun.producer_id, begun.producer_epoch
        added = AddPartitionsToTxnTopic(name=self.full(topic), partitions=(partition,))
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self.full(producer),
            v3_and_below_producer_id=begun.producer_id,
            v3_and_below_producer_epoch=begun.producer_epoch,
            v3_and_below_topics=(added,),
        )
        while self._ask(request, 3).results_by_topic_v3_and_below[0].results_by_partition[0].partition_error_code:
            pass
        sequence = 0
        for count in counts:
            batch = build_record_batch(
                _records(count),
                producer_id=begun.producer_id,
                producer_epoch=begun.producer_epoch,
                base_sequence=sequence,
                flags=TRANSACTIONAL,
            )
            self.write(batch, topic, partition, self.full(producer))
            sequence += count

    def end_transaction(self, producer: str, *, committed: bool) -> None:
        producer_id, epoch = self._producers[producer]
        request = EndTxnRequest(
            transactional_id=self.full(producer), producer_id=producer_id, producer_epoch=epoch, committed=committed
        )
        assert not self._ask(request, 3).error_code
        self._transport.pass_time(500)  # until the marker is written

    def write(self, batch: bytes, topic: str, partition: int, transactional_id: str | None = None) -> None:
        data = TopicProduceData(
            name=self.full(topic), partition_data=(PartitionProduceData(index=partition, records=batch),)
        )
        request = ProduceRequest(transactional_id=transactional_id, acks=-1, timeout_ms=5_000, topic_data=(data,))
        response = self._ask(request, 9)
        assert not response.responses[0].partition_responses[0].error_code, response

    def delete_records(self, partition: int, before_offset: int, topic: str = "t") -> None:
        """Delete the records of a partition that are before an offset."""
        part = DeleteRecordsPartition(partition_index=partition, offset=before_offset)
        deleted = DeleteRecordsTopic(name=self.full(topic), partitions=(part,))
        self._ask(DeleteRecordsRequest(topics=(deleted,), timeout_ms=5_000), 2)

    def _ask(self, request: Request, version: int) -> Any:
        self._transport.send("setup", request, version)
        found: list[tuple[str, Any]] = []
        while not found:
            found = self._transport.responses()
        return found[0][1]


def _records(count: int) -> list[Record]:
    return [Record(None, b"v", offset=n) for n in range(count)]
