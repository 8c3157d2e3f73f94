"""The transitions of a transactional id: each returns the new values, or the error of the request.

The order of the checks is that of Kafka's TransactionCoordinator, as clients see it. PRODUCER_FENCED is the error of an
old epoch; handlers return INVALID_PRODUCER_EPOCH instead to clients that do not know it (OC-58).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from kproto.codes import ErrorCode
from kproto.records.transaction_state import TransactionStatus
from kproto_server.transactions.transaction import (
    ENDED,
    EPOCH_MAX,
    NO_EPOCH,
    NO_PRODUCER_ID,
    NO_TIME,
    PREPARED,
    Transaction,
    TransactionValues,
    is_exhausted,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from kproto_server.transactions.transaction import TopicPartition

EPOCH_FOR_EACH_TRANSACTION = 2
"""The `transaction.version` from which on EndTxn raises the epoch (KIP-890)."""
NOT_REPEATED = (TransactionStatus.EMPTY, TransactionStatus.ONGOING)
"""The states in which such an EndTxn cannot have been the last request of its producer. While markers are written, no
other one can be."""

_COMMITS = {
    TransactionStatus.PREPARE_COMMIT: True,
    TransactionStatus.COMPLETE_COMMIT: True,
    TransactionStatus.PREPARE_ABORT: False,
    TransactionStatus.COMPLETE_ABORT: False,
}


class ProducerIdAndEpoch(NamedTuple):
    """A producer id with its epoch."""

    producer_id: int
    epoch: int


def new_values(producer_id: int, timeout_ms: int, now_ms: int) -> TransactionValues:
    """Return the values of a new transactional id, before its first producer."""
    return TransactionValues(producer_id, NO_EPOCH, timeout_ms, now_ms)


def new_producer(
    transaction: Transaction,
    timeout_ms: int,
    expected: ProducerIdAndEpoch | None,
    new_producer_id: Callable[[], int],
    now_ms: int,
    *,
    keeps_start: bool = False,
) -> TransactionValues | ErrorCode:
    """Return the values for a producer that starts, or starts again with the id and epoch that it has (KIP-360).

    Only for transactional ids without a transaction in progress. ``keeps_start``: with the start of the last one.
    """
    values = transaction.values
    if expected is not None and not _is_valid(expected, values):
        return ErrorCode.PRODUCER_FENCED
    if transaction.pending is not None or values.status in PREPARED:
        return ErrorCode.CONCURRENT_TRANSACTIONS
    producer_id, epoch, last_epoch = values.producer_id, values.epoch + 1, NO_EPOCH
    previous_producer_id = values.previous_producer_id
    knows_epoch = expected is None or expected.epoch == values.epoch
    may_repeat = expected is not None and expected.epoch == values.last_epoch != NO_EPOCH
    # Nothing could fence a producer with the greatest epoch: it may come from an abort only.
    if (values.has_exhausted_epochs and knows_epoch) or (values.epoch == EPOCH_MAX and may_repeat):
        producer_id, previous_producer_id, epoch = new_producer_id(), values.producer_id, 0
        last_epoch = NO_EPOCH if expected is None else expected.epoch
    elif expected is not None and values.epoch != NO_EPOCH:
        if expected.epoch == values.epoch:
            last_epoch = values.epoch
        elif may_repeat:
            epoch, last_epoch = values.epoch, values.last_epoch
        else:
            return ErrorCode.PRODUCER_FENCED
    return values._replace(
        producer_id=producer_id,
        epoch=epoch,
        last_epoch=last_epoch,
        timeout_ms=timeout_ms,
        updated_ms=now_ms,
        status=TransactionStatus.EMPTY,
        partitions=frozenset(),
        start_ms=values.start_ms if keeps_start else NO_TIME,
        previous_producer_id=previous_producer_id,
        next_producer_id=NO_PRODUCER_ID,
    )


def _is_valid(expected: ProducerIdAndEpoch, values: TransactionValues) -> bool:
    """Return whether a producer may have this id; its epoch is checked later."""
    return (
        values.epoch == NO_EPOCH
        or expected.producer_id == values.producer_id
        or (expected.producer_id == values.previous_producer_id and is_exhausted(expected.epoch))
    )


def fenced(values: TransactionValues, *, may_continue: bool, epoch_step: int = 1) -> TransactionValues:
    """Return the values with the epoch that fences the producer of an ongoing transaction, before its abort.

    ``may_continue``: whether this producer may repeat InitProducerId with its epoch, and gets the new one.
    """
    last_epoch = values.epoch if may_continue else NO_EPOCH
    return values._replace(epoch=min(values.epoch + epoch_step, EPOCH_MAX), last_epoch=last_epoch)


def with_partitions(
    transaction: Transaction,
    producer: ProducerIdAndEpoch,
    partitions: Collection[TopicPartition],
    client_version: int,
    now_ms: int,
) -> TransactionValues | ErrorCode:
    """Return the values with more partitions, which begin a transaction if there is none.

    NONE: all partitions are part of the transaction already.
    """
    values = transaction.added_to
    error = _producer_error(producer, values)
    if error:
        return error
    if values.status in PREPARED or transaction.pending not in (None, values):
        return ErrorCode.CONCURRENT_TRANSACTIONS
    if values.status is not TransactionStatus.ONGOING:
        return values.changed(TransactionStatus.ONGOING, frozenset(partitions), now_ms, now_ms, client_version)
    if values.partitions.issuperset(partitions):
        return ErrorCode.NONE
    together = values.partitions.union(partitions)
    return values.changed(values.status, together, values.start_ms, now_ms, client_version)


def verify(transaction: Transaction, producer: ProducerIdAndEpoch, partition: TopicPartition) -> ErrorCode:
    """Return NONE if a partition is part of the producer's transaction."""
    values = transaction.added_to
    error = _producer_error(producer, values)
    if error:
        return error
    # The markers are appended right behind the decision: nothing may be appended behind them, even before the log has
    # settled them.
    if values.status in PREPARED or transaction.pending not in (None, values):
        return ErrorCode.CONCURRENT_TRANSACTIONS
    return ErrorCode.NONE if partition in values.partitions else ErrorCode.TRANSACTION_ABORTABLE


def _producer_error(producer: ProducerIdAndEpoch, values: TransactionValues) -> ErrorCode:
    if values.producer_id != producer.producer_id:
        return ErrorCode.INVALID_PRODUCER_ID_MAPPING
    # No producer gets the greatest epoch: it is that of an abort, and there is none to raise it to.
    is_current = values.epoch == producer.epoch != EPOCH_MAX
    return ErrorCode.NONE if is_current else ErrorCode.PRODUCER_FENCED


def ended(
    transaction: Transaction,
    producer: ProducerIdAndEpoch,
    *,
    commits: bool,
    client_version: int,
    new_producer_id: Callable[[], int],
    now_ms: int,
) -> TransactionValues | ErrorCode:
    """Return the values with the decision to commit or abort; NONE: the transaction has ended so before."""
    values = transaction.values
    raises_epoch = client_version >= EPOCH_FOR_EACH_TRANSACTION
    is_repeated = raises_epoch and _is_repeated(producer, values)
    error = _producer_error(producer, values)
    if error and not is_repeated:
        return error
    if raises_epoch and values.status in (NOT_REPEATED if is_repeated else PREPARED):
        return ErrorCode.PRODUCER_FENCED
    if transaction.pending is not None:
        return ErrorCode.CONCURRENT_TRANSACTIONS
    if values.status is TransactionStatus.ONGOING:
        return _prepared_by_client(values, commits, client_version, new_producer_id, now_ms)
    is_same = _COMMITS.get(values.status) is commits
    if values.status in PREPARED:
        return ErrorCode.CONCURRENT_TRANSACTIONS if is_same else ErrorCode.INVALID_TXN_STATE
    if is_same and (is_repeated or not raises_epoch):
        return ErrorCode.NONE
    if raises_epoch and not commits and not is_repeated:
        # A client may abort a transaction whose partitions were never added: the broker learned of none of them.
        empty = values._replace(partitions=frozenset(), start_ms=now_ms)
        return _prepared_by_client(empty, commits, client_version, new_producer_id, now_ms)
    return ErrorCode.INVALID_TXN_STATE


def _is_repeated(producer: ProducerIdAndEpoch, values: TransactionValues) -> bool:
    """Return whether a producer repeats an EndTxn that has raised its epoch, or has given it another id."""
    if values.producer_id == producer.producer_id:
        return values.epoch == producer.epoch + 1
    return values.previous_producer_id == producer.producer_id and is_exhausted(producer.epoch) and values.epoch == 0


def prepared(
    values: TransactionValues, *, commits: bool, now_ms: int, client_version: int | None = None
) -> TransactionValues:
    """Return the values with the decision to commit or abort. ``client_version``: None: it stays."""
    status = TransactionStatus.PREPARE_COMMIT if commits else TransactionStatus.PREPARE_ABORT
    version = values.client_version if client_version is None else client_version
    return values.changed(status, values.partitions, values.start_ms, now_ms, version)


def _prepared_by_client(
    values: TransactionValues, commits: bool, client_version: int, new_producer_id: Callable[[], int], now_ms: int
) -> TransactionValues:
    """Return the values with a client's decision. With an epoch for each transaction, the markers have the next one."""
    decided = prepared(values, commits=commits, now_ms=now_ms, client_version=client_version)
    if client_version < EPOCH_FOR_EACH_TRANSACTION:
        return decided
    return decided._replace(
        epoch=values.epoch + 1,
        last_epoch=values.epoch,
        next_producer_id=new_producer_id() if values.has_exhausted_epochs else NO_PRODUCER_ID,
    )


def completed(values: TransactionValues, now_ms: int) -> TransactionValues:
    """Return the values after all markers were written."""
    commits = values.status is TransactionStatus.PREPARE_COMMIT
    status = TransactionStatus.COMPLETE_COMMIT if commits else TransactionStatus.COMPLETE_ABORT
    done = values.changed(status, frozenset(), values.start_ms, now_ms, values.client_version)
    if values.next_producer_id == NO_PRODUCER_ID:
        return done
    return done._replace(
        producer_id=values.next_producer_id,
        previous_producer_id=values.producer_id,
        next_producer_id=NO_PRODUCER_ID,
        epoch=0,
    )


def has_timed_out(values: TransactionValues, now_ms: int) -> bool:
    """Return whether a transaction has been open for longer than its timeout."""
    return values.status is TransactionStatus.ONGOING and values.start_ms + values.timeout_ms < now_ms


def has_expired(values: TransactionValues, before_ms: int) -> bool:
    """Return whether a transactional id has not been used since a time (`transactional.id.expiration.ms`)."""
    return values.status in ENDED and values.updated_ms <= before_ms
