"""The transactions of a partition, in memory and on disk (KIP-98)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from kproto.codes import ErrorCode
from kproto.records.batch_header import TRANSACTIONAL
from kproto.records.batches import read_batches
from kproto.records.control import ControlType, read_end_marker
from kproto_server.log_manager.markers import EndMarker, append_marker
from kproto_server.partition_log.partition_data import PartitionData
from kproto_server.partition_log.producers import BatchMetadata, sequence_after
from kproto_server.partition_log.transactions import AbortedTransaction
from kproto_server.testing.simulated_disk import SimulatedDisk
from tests.partition_log.conversation_chapters import batch
from tests.partition_log.test_stored_data import opened

if TYPE_CHECKING:
    from collections.abc import Callable

    from kproto.records.record_batch import RecordBatch
    from kproto_server.partition_log.partition_data import Append

ALL = 2**31 - 1


def stored() -> PartitionData:
    return opened(SimulatedDisk(), 400)[1]


@pytest.fixture(params=[PartitionData, stored])
def data(request: pytest.FixtureRequest) -> PartitionData:
    made: Callable[[], PartitionData] = request.param
    return made()


def append(
    data: PartitionData,
    producer_id: int,
    count: int = 1,
    *,
    epoch: int = 0,
    sequence: int = 0,
    flags: int = TRANSACTIONAL,
) -> int:
    """Append a batch as Produce does; return its base offset."""
    encoded = batch(count, producer_id=producer_id, producer_epoch=epoch, base_sequence=sequence, flags=flags)
    appended = data.append(encoded, count - 1, 0, 0, producer_id)
    if producer_id >= 0:
        metadata = BatchMetadata(sequence, sequence_after(sequence, count - 1), appended.base_offset, 0)
        data.producers.add(producer_id, epoch, metadata, 0, is_transactional=bool(flags))
    return appended.base_offset


def end(
    data: PartitionData, producer_id: int, *, commit: bool, epoch: int = 0, coordinator_epoch: int = 3
) -> Append | ErrorCode:
    return append_marker(data, EndMarker(producer_id, epoch, coordinator_epoch, commit), 0, 1000)


def test_a_marker_is_the_batch_of_a_real_broker(data: PartitionData) -> None:
    append(data, 7)
    end(data, 7, commit=True, coordinator_epoch=5)
    found: list[RecordBatch] = list(read_batches(data.read(1, ALL, min_one_batch=True)))  # type: ignore[arg-type]
    (marker,) = found
    header = marker.header
    assert (marker.is_control, marker.is_transactional, marker.base_offset, marker.last_offset) == (True, True, 1, 1)
    assert (header.producer_id, header.producer_epoch, header.base_sequence, header.max_timestamp) == (7, 0, -1, 1000)
    (record,) = marker.records()
    assert (record.key, record.value) == (b"\0\0\0\1", b"\0\0\0\0\0\5")
    assert read_end_marker(record) == (ControlType.COMMIT, 5)


def test_the_last_stable_offset_is_the_start_of_the_oldest_open_transaction(data: PartitionData) -> None:
    append(data, -1, 2, flags=0)
    assert data.last_stable_offset == 2
    append(data, 7)
    append(data, 8)
    append(data, 7, sequence=1)
    assert data.last_stable_offset == 2
    end(data, 7, commit=True)
    assert data.last_stable_offset == 3
    end(data, 8, commit=False)
    assert data.last_stable_offset == data.next_offset == 7


def test_aborted_transactions_are_found_by_offset(data: PartitionData) -> None:
    for producer_id in (7, 8):
        append(data, producer_id)
    end(data, 7, commit=False)  # 2
    append(data, 7, sequence=1)  # 3
    end(data, 8, commit=True)  # 4
    end(data, 7, commit=False)  # 5
    first, second = AbortedTransaction(7, 0, 2, 1), AbortedTransaction(7, 3, 5, 6)
    assert data.transactions.aborted_in(0, 6) == [first, second]
    assert data.transactions.aborted_in(0, 3) == [first]
    assert data.transactions.aborted_in(0, 1) == [first]
    assert data.transactions.aborted_in(3, 6) == [second]
    assert data.transactions.aborted_in(6, 9) == []
    data.delete_before(3)
    assert data.transactions.aborted_in(0, 6) == [second]


def test_a_marker_without_records_is_appended(data: PartitionData) -> None:
    end(data, 7, commit=False)
    assert (data.next_offset, data.last_stable_offset) == (1, 1)
    assert data.transactions.aborted_in(0, 9) == []


@pytest.mark.parametrize(
    ("epoch", "coordinator_epoch", "expected"),
    [
        (1, 3, ErrorCode.INVALID_PRODUCER_EPOCH),
        (2, 2, ErrorCode.TRANSACTION_COORDINATOR_FENCED),
        (1, 2, ErrorCode.INVALID_PRODUCER_EPOCH),
    ],
)
def test_fenced_markers_are_refused(
    data: PartitionData, epoch: int, coordinator_epoch: int, expected: ErrorCode
) -> None:
    end(data, 7, commit=True, epoch=2, coordinator_epoch=3)
    assert end(data, 7, commit=True, epoch=epoch, coordinator_epoch=coordinator_epoch) == expected
    assert data.next_offset == 1


def test_a_marker_of_a_higher_epoch_raises_the_epoch_of_the_producer(data: PartitionData) -> None:
    """KIP-890: each transaction has an epoch of its own; sequences begin again at 0."""
    append(data, 7)
    end(data, 7, commit=True, epoch=1)
    check = data.producers.check
    fenced = check(7, 0, 1, 1, refuses_unknown=False, is_transactional=True)
    assert fenced is ErrorCode.INVALID_PRODUCER_EPOCH
    assert check(7, 1, 0, 1, refuses_unknown=False) is ErrorCode.NONE
    assert check(7, 1, 1, 1, refuses_unknown=False) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_a_marker_of_the_same_epoch_keeps_the_sequence(data: PartitionData) -> None:
    append(data, 7, 2)
    end(data, 7, commit=True)
    assert data.producers.check(7, 0, 2, 1, refuses_unknown=False) is ErrorCode.NONE
    assert data.producers.check(7, 0, 0, 1, refuses_unknown=False) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_records_outside_of_an_open_transaction_are_refused(data: PartitionData) -> None:
    append(data, 7)
    check = data.producers.check
    assert data.producers.has_open_transaction(7, 0)
    assert check(7, 0, 1, 1, refuses_unknown=False) is ErrorCode.INVALID_TXN_STATE
    assert check(7, 0, 1, 1, refuses_unknown=False, is_transactional=True) is ErrorCode.NONE
    end(data, 7, commit=True)
    assert not data.producers.has_open_transaction(7, 0)
    assert check(7, 0, 1, 1, refuses_unknown=False) is ErrorCode.NONE


def test_a_producer_with_an_open_transaction_does_not_expire(data: PartitionData) -> None:
    append(data, 7)
    data.producers.remove_expired(10_000)
    assert len(data.producers) == 1
    end(data, 7, commit=True)
    data.producers.remove_expired(10_000)
    assert len(data.producers) == 0


def test_reads_end_at_an_offset(data: PartitionData) -> None:
    for number in range(4):
        append(data, 7, 2, sequence=2 * number)

    def read(offset: int, end_offset: int) -> list[int]:
        found = data.read(offset, ALL, min_one_batch=True, end_offset=end_offset)
        return [one.last_offset for one in read_batches(found)]

    assert read(0, 4) == [1, 3]
    assert read(0, 5) == [1, 3]
    assert read(3, 2) == []


def test_truncated_transactions_are_open_again() -> None:
    data = PartitionData()
    append(data, 7)
    append(data, 8)
    end(data, 7, commit=False)
    end(data, 8, commit=False)
    data.truncate(2)
    assert (data.last_stable_offset, data.transactions.aborted_in(0, 9)) == (0, [])
    assert data.producers.has_open_transaction(7, 0)
    assert data.producers.has_open_transaction(8, 0)


def test_a_restart_restores_transactions_and_producers() -> None:
    disk = SimulatedDisk()
    log_dir, data = opened(disk, 400)
    for producer_id in (7, 8, 9):
        append(data, producer_id, 2)
    end(data, 7, commit=False, epoch=1)
    end(data, 8, commit=True)
    log_dir.close()
    _, again = opened(disk, 400)
    assert again.last_stable_offset == data.last_stable_offset == 4
    assert again.transactions.open == data.transactions.open
    assert again.transactions.aborted_in(0, 9) == data.transactions.aborted_in(0, 9) == [AbortedTransaction(7, 0, 6, 2)]

    def state(data: PartitionData) -> list[object]:
        return [
            (id_, one.epoch, one.last_sequence, one.coordinator_epoch, one.transaction_first_offset)
            for id_, one in data.producers.items()
        ]

    assert state(again) == state(data) == [(7, 1, -1, 3, None), (8, 0, 1, 3, None), (9, 0, 1, -1, 4)]


def test_a_marker_is_in_the_readable_log_when_it_is_written() -> None:
    """A waiting Fetch is called when the last stable offset has risen."""
    data = PartitionData()
    append(data, 7)
    seen: list[int] = []
    data.waiters[lambda: seen.append(data.last_stable_offset)] = None
    end(data, 7, commit=True)
    assert seen == [2]
