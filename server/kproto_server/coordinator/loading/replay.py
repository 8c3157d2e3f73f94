"""What each record of an offsets partition does to offsets and groups: the plain path of loading (LF-31 to LF-37)."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from kproto.declaration import ZERO_UUID
from kproto.java_arithmetic import wrapped
from kproto.records.batch_header import NO_EPOCH
from kproto.records.control import ControlType, control_type
from kproto.records.coordinator import CoordinatorRecord
from kproto.records.offset_records import (
    NO_EXPIRE_TIMESTAMP,
    LegacyOffsetCommitKey,
    LegacyOffsetCommitValue,
    OffsetCommitKey,
    OffsetCommitValue,
)
from kproto.records.offsets_topic import read_offsets_record
from kproto.records.record_batch import RecordBatch
from kproto_server.coordinator.commit import limits_of
from kproto_server.coordinator.loading.fast_decoder import decode_offset_record
from kproto_server.coordinator.loading.restored_groups import CONSUMER_GROUP_TYPES, GROUP_TYPE, RestoredGroups
from kproto_server.coordinator.offsets import OffsetAndMetadata
from kproto_server.coordinator.pending_offsets import PendingOffset, PendingOffsets

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from kproto.records.batches import Batch
    from kproto.records.record import Record
    from kproto_server.coordinator.coordinator import GroupCoordinator
    from kproto_server.coordinator.offsets import CommitEntries, OffsetStore
    from kproto_server.coordinator.pending_offsets import Place

OFFSET_TYPES = frozenset({0, 1})
READ_TYPES = OFFSET_TYPES | {GROUP_TYPE} | CONSUMER_GROUP_TYPES


class _CommitRun:
    """Offsets of one group, one record after the other."""

    __slots__ = ("_entries", "_replay", "group_id")

    def __init__(self, replay: Replay) -> None:
        self.group_id: str | None = None
        self._replay = replay
        self._entries: list[tuple[str, list[tuple[int, OffsetAndMetadata]]]] = []

    def add(self, topic: str, partition: int, stored: OffsetAndMetadata) -> None:
        entries = self._entries
        if not entries or entries[-1][0] != topic:
            entries.append((topic, []))
        entries[-1][1].append((partition, stored))

    def end(self) -> None:
        """Apply what has been gathered."""
        group_id, entries = self.group_id, self._entries
        self.group_id, self._entries = None, []
        if group_id is not None and entries:
            self._replay.commit(group_id, entries)


class Replay:
    """The records of one offsets partition, in order."""

    def __init__(self, coordinator: GroupCoordinator, offsets: OffsetStore, *, decodes_all: bool = False) -> None:
        """``decodes_all``: by the declarations only."""
        self._decodes_all = decodes_all
        self.settle: Callable[[str], None] | None = None
        """Called before anything happens to a group's offsets, if somebody holds some of it back."""
        self.groups = RestoredGroups(coordinator.behavior)
        self.pending = PendingOffsets()
        self.skipped: Counter[int] = Counter()
        """Records of types that mean nothing to this broker, by type (EX-55)."""
        self.group_ids: set[str] = set()
        """Groups that have got offsets."""
        self._offsets = offsets
        self._newest = coordinator.behavior.is_new_coordinator
        self._retention_ms = limits_of(coordinator.settings.current).retention_ms
        self.own_deadline = self._own_deadline if coordinator.behavior.offsets_have_expire_timestamp else None
        """By which a record's deadline is worked out where it may have none, but must."""

    def batch(self, batch: Batch) -> None:
        """Apply a batch.

        Raises:
            DecodeError: a key or a value does not have its layout.
            MissingPackage: a compression needs a package that is not installed.
        """
        producer_id = None
        if isinstance(batch, RecordBatch) and batch.is_transactional:
            producer_id = batch.header.producer_id
        records = batch.records()
        if batch.is_control:
            for record in records:
                self._marker(record, producer_id)
        elif self._decodes_all:
            for record in records:
                self._record(record, producer_id)
        else:
            self._replay_fast(records, producer_id)

    def _replay_fast(self, records: Iterable[Record], producer_id: int | None) -> None:
        """Apply records; offsets of one group that follow each other are applied in one go."""
        run = _CommitRun(self)
        for record in records:
            key = record.key
            row = None if key is None or producer_id is not None else decode_offset_record(key, record.value)
            if row is None:
                run.end()
                self._record(record, producer_id)
                continue
            group_id, topic, partition, stored = row
            if group_id != run.group_id:
                run.end()
                self._before(group_id)
                run.group_id = group_id
            if stored is None:
                run.end()
                self._tombstone((group_id, topic, partition), None)
                continue
            if self.pending:
                self.pending.became_visible((group_id, topic, partition), record.offset)
            if self.own_deadline is not None:
                expire_ms = self.own_deadline(stored.commit_timestamp_ms, stored.expire_timestamp_ms)
                stored = stored._replace(expire_timestamp_ms=expire_ms)
            run.add(topic, partition, stored)
        run.end()

    def _before(self, group_id: str) -> None:
        """Something happens to a group's offsets."""
        if self.settle is not None:
            self.settle(group_id)

    def _marker(self, record: Record, producer_id: int | None) -> None:
        number = control_type(record.key)
        if producer_id is not None and number in (ControlType.ABORT, ControlType.COMMIT):
            for place, stored in self.pending.end(producer_id, commits=number == ControlType.COMMIT):
                self._apply(place, stored)

    def _record(self, record: Record, producer_id: int | None) -> None:
        key = record.key
        if key is not None and len(key) >= 2:
            record_type = int.from_bytes(key[:2], "big", signed=True)
            if record_type not in READ_TYPES:
                self.skipped[record_type] += 1
                return
        found = read_offsets_record(key, record.value)
        assert isinstance(found, CoordinatorRecord), "it is of a known type"
        if isinstance(found.key, OffsetCommitKey | LegacyOffsetCommitKey):
            place = found.key.group, found.key.topic, found.key.partition
            self._before(place[0])
            stored = self._stored(found)
            if stored is None:
                self._tombstone(place, producer_id)
            elif producer_id is not None:
                self.pending.add(producer_id, place, PendingOffset(record.offset, stored))
            else:
                self.pending.became_visible(place, record.offset)
                self._apply(place, stored)
        else:
            self.groups.replay(found)

    def _stored(self, found: CoordinatorRecord) -> OffsetAndMetadata | None:
        value = found.value
        if isinstance(value, OffsetCommitValue):
            expire_ms = None if value.expire_timestamp == NO_EXPIRE_TIMESTAMP else value.expire_timestamp
            leader_epoch, topic_id = value.leader_epoch, value.topic_id
        elif isinstance(value, LegacyOffsetCommitValue):
            expire_ms, leader_epoch, topic_id = None, NO_EPOCH, ZERO_UUID
        else:
            return None
        if self.own_deadline is not None:
            expire_ms = self.own_deadline(value.commit_timestamp, expire_ms)
        return OffsetAndMetadata(
            offset=value.offset,
            leader_epoch=leader_epoch,
            metadata=value.metadata,
            commit_timestamp_ms=value.commit_timestamp,
            expire_timestamp_ms=expire_ms,
            topic_id=topic_id,
        )

    def _own_deadline(self, commit_ms: int, expire_ms: int | None) -> int:
        """Return when an offset expires by itself: before KIP-211 every one does (EX-41)."""
        return wrapped(commit_ms + self._retention_ms) if expire_ms is None else expire_ms

    def commit(self, group_id: str, entries: CommitEntries) -> None:
        """Take in offsets that are visible."""
        self.group_ids.add(group_id)
        self._offsets.apply_commit(group_id, entries)

    def _apply(self, place: Place, stored: OffsetAndMetadata) -> None:
        group_id, topic, partition = place
        self.commit(group_id, [(topic, [(partition, stored)])])

    def _tombstone(self, place: Place, producer_id: int | None) -> None:
        """LF-34: up to 3.9 a tombstone is a transaction's, or it is not; in the new coordinator it takes everything."""
        if self._newest:
            self.pending.remove_all(place)
        elif producer_id is not None:
            self.pending.remove(producer_id, place)
            return
        group_id, topic, partition = place
        self._offsets.apply_deletion(group_id, [(topic, [partition])])
