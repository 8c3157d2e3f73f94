"""The records of `__transaction_state`: transactional ids as Kafka writes and reads them."""

from __future__ import annotations

from kproto.errors import DecodeError
from kproto.records.coordinator import CoordinatorRecord, encode_key, encode_value
from kproto.records.transaction_state import (
    PartitionsSchema,
    TransactionLogKey,
    TransactionLogValue,
    TransactionStatus,
    read_transaction_record,
)
from kproto_server.coordinator.offsets_log.batches import keyed_batch
from kproto_server.transactions.transaction import NO_TIME, TransactionValues


def transaction_batch(
    transactional_id: str, values: TransactionValues | None, now_ms: int, value_version: int
) -> bytes:
    """Return a batch with the record of a transactional id, or with its tombstone.

    Raises:
        EncodeError: the transactional id is too long for the format.
    """
    key = encode_key(TransactionLogKey(transactional_id=transactional_id))
    value = None if values is None else encode_value(_value(values), value_version)
    return keyed_batch(key, value, now_ms)


def _value(values: TransactionValues) -> TransactionLogValue:
    is_empty = values.status is TransactionStatus.EMPTY
    topics: dict[str, list[int]] = {}
    for topic, index in sorted(values.partitions):
        topics.setdefault(topic, []).append(index)
    schemas = tuple(PartitionsSchema(topic=topic, partition_ids=tuple(found)) for topic, found in topics.items())
    return TransactionLogValue(
        producer_id=values.producer_id,
        previous_producer_id=values.previous_producer_id,
        next_producer_id=values.next_producer_id,
        producer_epoch=values.epoch,
        transaction_timeout_ms=values.timeout_ms,
        transaction_status=values.status,
        # Kafka writes null for Empty, and no time.
        transaction_partitions=None if is_empty else schemas,
        transaction_last_update_timestamp_ms=values.updated_ms,
        transaction_start_timestamp_ms=NO_TIME if is_empty else values.start_ms,
        client_transaction_version=values.client_version,
    )


def read_transaction(key: bytes | None, value: bytes | None) -> tuple[str, TransactionValues | None] | None:
    """Return the transactional id and the values of a record, or None for its tombstone; None: an unknown record type.

    Raises:
        DecodeError: key or value is malformed, or the status is unknown.
    """
    found = read_transaction_record(key, value)
    if not isinstance(found, CoordinatorRecord) or not isinstance(found.key, TransactionLogKey):
        return None
    stored = found.value
    if not isinstance(stored, TransactionLogValue):
        return found.key.transactional_id, None
    try:
        status = TransactionStatus(stored.transaction_status)
    except ValueError:
        raise DecodeError("transaction_status", 0, f"unknown value {stored.transaction_status}") from None
    return found.key.transactional_id, TransactionValues(
        producer_id=stored.producer_id,
        epoch=stored.producer_epoch,
        timeout_ms=stored.transaction_timeout_ms,
        updated_ms=stored.transaction_last_update_timestamp_ms,
        status=status,
        partitions=frozenset(
            (topic.topic, index) for topic in stored.transaction_partitions or () for index in topic.partition_ids
        ),
        start_ms=stored.transaction_start_timestamp_ms,
        previous_producer_id=stored.previous_producer_id,
        next_producer_id=stored.next_producer_id,
        client_version=stored.client_transaction_version,
    )
