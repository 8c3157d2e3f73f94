"""The records that consumers read: those in the log, and those among them that are committed."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from kproto.messages.k01_fetch import FetchRequest
from kproto.records.batches import read_batches
from kproto.records.control import ControlType, control_type
from kproto.records.record_batch import RecordBatch

if TYPE_CHECKING:
    from typing import Any

    from tests.simulator.history import Exchange, History

FINAL = "final"
"""The client that reads everything at the end."""


@dataclass(slots=True)
class FinalLog:
    """What the last reader saw, by partition and offset."""

    all_records: dict[int, dict[int, bytes]] = field(default_factory=dict)
    committed: dict[int, dict[int, bytes]] = field(default_factory=dict)
    open_partitions: list[int] = field(default_factory=list)
    """Partitions with a transaction that has not ended."""


def final_log(history: History) -> FinalLog | None:
    """Return what the last reader saw; None if it has not read everything."""
    log = FinalLog()
    for one in history.of(FetchRequest):
        if one.client == FINAL and one.response is not None:
            partition = one.response.responses[0].partitions[0]
            if partition.error_code:
                continue
            into = log.committed if one.request.isolation_level else log.all_records
            into[partition.partition_index] = committed_records(one)
            if partition.last_stable_offset < partition.high_watermark:
                log.open_partitions.append(partition.partition_index)
    return log if len(log.all_records) == len(log.committed) == history.partition_count else None


def committed_records(one: Exchange) -> dict[int, bytes]:
    """Return the records of a response that a consumer passes on: not those of aborted transactions that it names."""
    partition: Any = one.response.responses[0].partitions[0]
    aborted = sorted(partition.aborted_transactions or (), key=lambda each: each.first_offset)
    aborting: set[int] = set()
    found: dict[int, bytes] = {}
    for batch in read_batches(partition.records or b""):
        assert isinstance(batch, RecordBatch), "producers send no older format"
        producer_id = batch.header.producer_id
        while aborted and aborted[0].first_offset <= batch.last_offset:
            aborting.add(aborted.pop(0).producer_id)
        if batch.is_control:
            if control_type(batch.records()[0].key) == ControlType.ABORT:
                aborting.discard(producer_id)
        elif not (batch.is_transactional and producer_id in aborting):
            found.update(
                (record.offset, record.value or b"")
                for record in batch.records()
                if record.offset >= one.request.topics[0].partitions[0].fetch_offset
            )
    return found
