"""Append records of coordinators to the internal topics that have their logs beside the offsets topic's.

Without a data directory these topics have no records until a client first reads them: `written_in_steps` makes them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from kproto_server.coordinator.change_log import STORAGE_ERROR
from kproto_server.deferred import NO_RESPONSE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from kproto_server.cluster.topics import Partition, Topic
    from kproto_server.coordinator.change_log import ChangeLog
    from kproto_server.deferred import NoResponse
    from kproto_server.log_manager.log_manager import LogManager
    from kproto_server.partition_log.partition_data import Append

T = TypeVar("T")

STEP_RECORDS = 200
"""Records that are made for the first reader of a topic in one step: 10 ms."""


def written_in_steps(items: Iterable[T], write: Callable[[T], object]) -> Iterator[None]:
    """Write the record of each item, in steps."""
    for number, item in enumerate(items, 1):
        write(item)
        if number % STEP_RECORDS == 0:
            yield


def append_record(
    log_manager: LogManager,
    log: ChangeLog,
    topic: Topic,
    partition: Partition,
    batch: bytes,
    now_ms: int,
    settle: Callable[[int], object],
) -> None:
    """Append a batch of one record; call ``settle`` with the error of the write, 0 once the log has it.

    ``log``: the log of the group coordinator, which settles the changes of all topics in one order.
    """
    append = begin_append(log_manager, topic, partition, batch, now_ms)
    if append is None:
        settle(STORAGE_ERROR)
        return

    def settled() -> NoResponse:
        settle(append.error)
        return NO_RESPONSE

    log.then(settled)


def begin_append(
    log_manager: LogManager, topic: Topic, partition: Partition, batch: bytes, now_ms: int
) -> Append | None:
    """Append a batch of one record, and return what the log settles; None if the disk does not take it."""
    try:
        data = log_manager.data_of(topic, partition)
        append = data.append(batch, 0, now_ms, partition.leader_epoch)
    except OSError:
        return None
    if data.is_in_memory:
        log_manager.wrote_to_memory(len(batch))
    return append
