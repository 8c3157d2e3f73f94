"""A change log that records its batches, and settles changes when and as the test wants."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from kproto.records.batches import read_batch
from kproto.records.consumer_group_records import ConsumerGroupMetadataKey
from kproto.records.coordinator import UnknownRecord
from kproto.records.group_records import GroupMetadataKey
from kproto.records.offset_records import OffsetCommitKey
from kproto.records.offsets_topic import read_offsets_record
from kproto_server.deferred import DeferredResponse

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from kproto.records.record import Record
    from kproto_server.coordinator.change_log import Change, ResponseT


class Appended(NamedTuple):
    """One batch: its offsets (None: a tombstone), and whether it removes the group."""

    partition: int
    group_id: str
    offsets: list[tuple[str, int, int | None]]
    removes_group: bool


class RecordingLog:
    """A `ChangeLog` in memory that decodes its batches.

    ``error``: the error of each write. ``waits``: changes are settled by `settle`, not at once.
    """

    keeps = True

    def __init__(self, error: int = 0, *, waits: bool = False) -> None:
        self.error = error
        self.waits = waits
        self.appended: list[Appended] = []
        self.removed: list[list[bytes]] = []  # the keys of the tombstones of each batch
        self._changes: list[Change] = []
        self._responses: list[DeferredResponse] = []

    def append(self, partition: int, change: Change, batch: bytes, record_count: int) -> None:
        found = read_batch(batch)
        assert found is not None, "a whole batch"
        records = found[0].records()
        assert (found[1], len(records)) == (len(batch), record_count)
        self.appended.append(_read(partition, change, records))
        self.removed.append([record.key for record in records if record.value is None and record.key])
        self._changes.append(change)
        if not self.waits:
            self.settle()

    def write_now(self, partition: int, checked: bytes, record_count: int) -> None:
        return None

    def without_topic(self) -> RecordingLog:
        return self

    def then(self, respond: Callable[[], ResponseT]) -> ResponseT | DeferredResponse:
        if not self._changes:
            return respond()
        self._responses.append(after := DeferredResponse(respond))
        return after

    def in_flight(self) -> Iterable[Change]:
        return self._changes

    def settle_next(self, error: int) -> None:
        """Settle the first change; those behind it fail with it."""
        count = len(self._changes) if error else 1
        changes, self._changes = self._changes[:count], self._changes[count:]
        for change in changes:
            change.settle(error)

    def settle(self) -> None:
        """Settle all changes, and make the deferred responses."""
        changes, self._changes = self._changes, []
        responses, self._responses = self._responses, []
        for change in changes:
            change.settle(self.error)
        for after in responses:
            after.complete()


def _read(partition: int, change: Change, records: Iterable[Record]) -> Appended:
    offsets: list[tuple[str, int, int | None]] = []
    removes_group = False
    for record in records:
        read = read_offsets_record(record.key, record.value)
        assert not isinstance(read, UnknownRecord)
        if isinstance(read.key, OffsetCommitKey):
            assert read.key.group == change.group_id
            offsets.append((read.key.topic, read.key.partition, None if read.value is None else read.value.offset))  # type: ignore[attr-defined]
        elif isinstance(read.key, GroupMetadataKey | ConsumerGroupMetadataKey):
            removes_group = read.value is None
    return Appended(partition, change.group_id, offsets, removes_group)
