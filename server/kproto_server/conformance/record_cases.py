"""The cases for a broker under test about records, producers and transactions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kproto.messages.k00_produce import PartitionProduceData, ProduceRequest, TopicProduceData
from kproto.messages.k01_fetch import FetchPartition, FetchRequest, FetchTopic
from kproto.messages.k02_list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from kproto.messages.k22_init_producer_id import InitProducerIdRequest
from kproto.messages.k24_add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from kproto.messages.k25_add_offsets_to_txn import AddOffsetsToTxnRequest
from kproto.messages.k26_end_txn import EndTxnRequest
from kproto.records.record import Record
from kproto.records.record_batch import build_record_batch
from kproto_server.conformance.broker_case import GUIDE, BrokerCase

if TYPE_CHECKING:
    from kproto.message import Request
    from kproto_server.conformance.broker_case import Names

RECORD_BATCHES_SINCE = 3
"""The first version of Produce with record batches (KIP-98), which all of these cases write."""
TOPIC_IDS_SINCE = 13
"""The first version of Produce and of Fetch with the id of a topic instead of its name."""
FETCHES_BATCHES_SINCE = 4
TIMESTAMP_MS = 1_700_000_000_000
BATCH = build_record_batch([Record(offset=0, timestamp=TIMESTAMP_MS, key=b"key", value=b"value")])
CORRUPT_BATCH = BATCH[:-1] + bytes([BATCH[-1] ^ 0xFF])
UNKNOWN_PRODUCER = 4_000_000_000
TRANSACTION_TIMEOUT_MS = 60_000
TOO_LONG_MS = 2**31 - 1
OF_LOG = frozenset({"base_offset", "high_watermark", "last_stable_offset"})
"""Fields that have the number of records written so far."""
OF_PRODUCER = frozenset({"producer_id"})


def _produce(names: Names, version: int, *, batch: bytes = BATCH, acks: int = -1, is_missing: bool = False) -> Request:
    data = (PartitionProduceData(index=0, records=batch),)
    if version >= TOPIC_IDS_SINCE:
        topic = TopicProduceData(topic_id=bytes(15) + b"\x09" if is_missing else names.written_id, partition_data=data)
    else:
        topic = TopicProduceData(name=names.missing if is_missing else names.written, partition_data=data)
    return ProduceRequest(acks=acks, timeout_ms=10_000, topic_data=(topic,))


def _written(names: Names) -> tuple[Request, int]:
    return _produce(names, RECORD_BATCHES_SINCE), RECORD_BATCHES_SINCE


def _fetch_first_batch(names: Names, version: int) -> Request:
    partition = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1)
    topic = (
        FetchTopic(topic_id=names.written_id, partitions=(partition,))
        if version >= TOPIC_IDS_SINCE
        else FetchTopic(topic=names.written, partitions=(partition,))
    )
    return FetchRequest(max_wait_ms=0, min_bytes=0, topics=(topic,))


def _list_by_time(names: Names, timestamp: int) -> Request:
    partition = ListOffsetsPartition(partition_index=0, timestamp=timestamp)
    return ListOffsetsRequest(replica_id=-1, topics=(ListOffsetsTopic(name=names.written, partitions=(partition,)),))


def _init(transactional_id: str | None, timeout_ms: int = TRANSACTION_TIMEOUT_MS) -> Request:
    return InitProducerIdRequest(transactional_id=transactional_id, transaction_timeout_ms=timeout_ms)


def _add_partitions(names: Names, version: int) -> Request:
    topics = (AddPartitionsToTxnTopic(name=names.written, partitions=(0,)),)
    if version < 4:
        return AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=names.group,
            v3_and_below_producer_id=UNKNOWN_PRODUCER,
            v3_and_below_topics=topics,
        )
    return AddPartitionsToTxnRequest(
        transactions=(
            AddPartitionsToTxnTransaction(
                transactional_id=names.group, producer_id=UNKNOWN_PRODUCER, producer_epoch=0, topics=topics
            ),
        )
    )


RECORD_CASES = (
    BrokerCase(
        "produce",
        "Produce of one record.",
        "KIP-98: record batches",
        "BA-60",
        _produce,
        0,
        first_version=RECORD_BATCHES_SINCE,
        left_out=OF_LOG,
    ),
    BrokerCase(
        "produce-unknown-topic",
        "Produce to a topic that does not exist.",
        f"{GUIDE}: UNKNOWN_TOPIC_OR_PARTITION, from v13 on UNKNOWN_TOPIC_ID",
        "BA-61",
        lambda names, version: _produce(names, version, is_missing=True),
        0,
        first_version=RECORD_BATCHES_SINCE,
    ),
    BrokerCase(
        "produce-corrupt",
        "Produce of a batch whose checksum is wrong.",
        f"{GUIDE}: CORRUPT_MESSAGE",
        "BA-62",
        lambda names, version: _produce(names, version, batch=CORRUPT_BATCH),
        0,
        first_version=RECORD_BATCHES_SINCE,
    ),
    BrokerCase(
        "produce-acks",
        "Produce with the acks 2.",
        f"{GUIDE}: INVALID_REQUIRED_ACKS",
        "BA-63",
        lambda names, version: _produce(names, version, acks=2),
        0,
        first_version=RECORD_BATCHES_SINCE,
    ),
    BrokerCase(
        "fetch-first-batch",
        "Fetch of at most one byte from the beginning of a partition with records.",
        "KIP-74: the first batch is whole",
        "BA-72",
        _fetch_first_batch,
        1,
        before=_written,
        first_version=FETCHES_BATCHES_SINCE,
        left_out=OF_LOG,
    ),
    BrokerCase(
        "list-offsets-time",
        "ListOffsets of the first record that is as new as a time.",
        "KIP-33",
        "BA-80",
        lambda names, version: _list_by_time(names, TIMESTAMP_MS),
        2,
        before=_written,
        first_version=1,
    ),
    BrokerCase(
        "list-offsets-time-after-end",
        "ListOffsets of the first record that is as new as a time, if none is.",
        "KIP-33: the offset -1",
        "BA-80",
        lambda names, version: _list_by_time(names, TIMESTAMP_MS + 1),
        2,
        before=_written,
        first_version=1,
    ),
    BrokerCase(
        "init-producer-id",
        "InitProducerId without a transactional id.",
        "KIP-98",
        "BA-100",
        lambda names, version: _init(None),
        22,
        left_out=OF_PRODUCER,
    ),
    BrokerCase(
        "init-producer-id-transactional",
        "InitProducerId with a new transactional id.",
        "KIP-98",
        "BA-100",
        lambda names, version: _init(names.group),
        22,
        left_out=OF_PRODUCER,
    ),
    BrokerCase(
        "init-producer-id-timeout",
        f"InitProducerId with a transaction timeout of {TOO_LONG_MS} ms.",
        f"{GUIDE}: INVALID_TRANSACTION_TIMEOUT",
        "BA-100",
        lambda names, version: _init(names.group, TOO_LONG_MS),
        22,
    ),
    BrokerCase(
        "add-partitions-unknown-producer",
        "AddPartitionsToTxn of a transactional id that does not exist.",
        f"{GUIDE}: INVALID_PRODUCER_ID_MAPPING",
        "BA-101",
        _add_partitions,
        24,
    ),
    BrokerCase(
        "add-offsets-unknown-producer",
        "AddOffsetsToTxn of a transactional id that does not exist.",
        f"{GUIDE}: INVALID_PRODUCER_ID_MAPPING",
        "BA-101",
        lambda names, version: AddOffsetsToTxnRequest(
            transactional_id=names.group, producer_id=UNKNOWN_PRODUCER, producer_epoch=0, group_id=names.group
        ),
        25,
    ),
    BrokerCase(
        "end-txn-unknown-producer",
        "EndTxn of a transactional id that does not exist.",
        f"{GUIDE}: INVALID_PRODUCER_ID_MAPPING",
        "BA-101",
        lambda names, version: EndTxnRequest(
            transactional_id=names.group, producer_id=UNKNOWN_PRODUCER, producer_epoch=0, committed=True
        ),
        26,
    ),
)
