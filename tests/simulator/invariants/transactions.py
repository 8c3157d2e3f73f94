"""Transactions are atomic over records and offsets, and they end."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from kproto.messages.k01_fetch import FetchRequest
from tests.simulator.invariants.final_log import FINAL, FinalLog, committed_records, final_log
from tests.simulator.invariants.offsets import reads_of
from tests.simulator.invariants.records import Sent, sent_batches
from tests.simulator.invariants.transaction_list import Transaction, transactions_of
from tests.simulator.invariants.violation import Violation

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.simulator.history import History


def check_transactions(history: History) -> Iterator[Violation]:
    log = final_log(history)
    if log is None:
        return
    for partition in log.open_partitions:
        yield Violation("transactions end", f"partition {partition} has an open transaction at the end")
    batches: dict[int, list[Sent]] = defaultdict(list)
    for batch in sent_batches(history):
        batches[batch.exchange.sent].append(batch)
    read_offsets = {(group, read.value) for (group, _, _), read in reads_of(history)}
    for transaction in transactions_of(history):
        sent = [batch for one in transaction.produced for batch in batches[one.sent]]
        yield from _check_atomic(transaction, sent, read_offsets, log)
    yield from _check_reads(history, log)


def _check_atomic(
    transaction: Transaction, sent: list[Sent], read_offsets: set[tuple[str, int]], log: FinalLog
) -> Iterator[Violation]:
    visible_values = {value for records in log.committed.values() for value in records.values()}
    acknowledged = {value for batch in sent if batch.error == 0 for value in batch.values}
    visible = {value for batch in sent for value in batch.values if value in visible_values}
    offsets = [
        (one.request.group_id, partition.committed_offset)
        for one in transaction.offset_commits
        for topic in one.request.topics
        for partition in topic.partitions
    ]
    missing = acknowledged - visible
    if transaction.outcome == "aborted":
        if visible:
            yield Violation("transactions are atomic", f"{transaction.name} was not committed, and shows {visible}")
    elif transaction.outcome == "committed":
        if missing:
            yield Violation("transactions are atomic", f"{transaction.name} was committed, and lacks {missing}")
    elif missing and visible:
        yield Violation("transactions are atomic", f"{transaction.name} shows {visible}, and lacks {missing}")
    elif missing and any(offset in read_offsets for offset in offsets):
        yield Violation("transactions are atomic", f"{transaction.name} shows its offsets, and lacks {missing}")


def _check_reads(history: History, log: FinalLog) -> Iterator[Violation]:
    """What a reader of committed records has seen is there at the end."""
    for one in history.of(FetchRequest):
        if one.client == FINAL or one.response is None or not one.request.isolation_level:
            continue
        partition = one.response.responses[0].partitions[0]
        final = log.committed[partition.partition_index]
        for offset, value in committed_records(one).items():
            if final.get(offset) != value:
                yield Violation(
                    "committed records are kept",
                    f"{one.client} reads {value!r} at offset {offset} of partition {partition.partition_index} at "
                    f"{one.received_ms} ms, which is not there at the end",
                )
