"""The effect of each record on offsets and groups: the reference implementation of loading (LF-31 to LF-37).

Theory of operation. Records are applied in the order of the log, as the later record of a key replaces the earlier one.
There are four kinds of batches:

- ordinary batches: their offsets are visible at once;
- batches of a transaction: their offsets are pending until the producer's marker comes, in a control batch;
- control batches: a COMMIT marker makes the producer's pending offsets visible, an ABORT marker drops them;
- batches with records of groups, which `restored_groups` collects.

A tombstone deletes the offset with its key, or a pending offset: `_delete` has the difference between releases.

Before anything changes the offsets of a group, `before_change` is called: `repeated_commits` may have older commits of
this group, which have to be applied first.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from kproto.declaration import ZERO_UUID
from kproto.jvm.arithmetic import wrapped
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
from kproto_server.coordinator.loading.restored_groups import (
    CONSUMER_GROUP_TYPES,
    GROUP_TYPE,
    STREAMS_GROUP_TYPES,
    RestoredGroups,
)
from kproto_server.coordinator.offsets import OffsetAndMetadata
from kproto_server.coordinator.pending_offsets import PendingOffset, PendingOffsets

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from kproto.records.batches import Batch
    from kproto.records.record import Record
    from kproto_server.coordinator.coordinator import GroupCoordinator, ShareGroupsLoad
    from kproto_server.coordinator.offsets import CommitEntries, OffsetStore
    from kproto_server.coordinator.pending_offsets import OffsetKey

OFFSET_TYPES = frozenset({0, 1})
SHARE_GROUP_TYPES = frozenset({10, 11, 12, 13, 14, 15})
READ_TYPES = OFFSET_TYPES | {GROUP_TYPE} | CONSUMER_GROUP_TYPES | SHARE_GROUP_TYPES


class _CommitRun:
    """Consecutive offset records of one group, which are applied in one step."""

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
        """Apply the collected records."""
        group_id, entries = self.group_id, self._entries
        self.group_id, self._entries = None, []
        if group_id is not None and entries:
            self._replay.commit(group_id, entries)


class Replay:
    """The records of one offsets partition, in the order of its log."""

    def __init__(self, coordinator: GroupCoordinator, offsets: OffsetStore, *, decodes_all: bool = False) -> None:
        """``decodes_all``: do not use the fast decoder."""
        self._decodes_all = decodes_all
        self.before_change: Callable[[str], None] | None = None
        """Called with a group's id before the offsets of the group change."""
        self.groups: RestoredGroups = RestoredGroups(coordinator.behavior)
        self.pending: PendingOffsets = PendingOffsets()
        self.skipped: Counter[int] = Counter()
        """The number of records of unknown types, by type (EX-55)."""
        self.share_groups: ShareGroupsLoad | None = None
        """The share groups, if there is a record of one."""
        self._begin_share_groups = coordinator.begin_share_groups_load
        self.group_ids: set[str] = set()
        """Groups that have got offsets."""
        self._offsets = offsets
        self._newest = coordinator.behavior.is_new_coordinator
        self._read_types = READ_TYPES | STREAMS_GROUP_TYPES if coordinator.behavior.has_streams_groups else READ_TYPES
        self._retention_ms = limits_of(coordinator.settings.current).retention_ms
        self.deadline: Callable[[int, int | None], int] | None = (
            self._deadline if coordinator.behavior.offsets_have_expire_timestamp else None
        )
        """Returns an offset's expire timestamp, which may be missing in the record; None if the record decides."""

    def batch(self, batch: Batch) -> None:
        """Apply a batch.

        Raises:
            DecodeError: a key or a value is malformed.
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
            self._records(records, producer_id)

    def _records(self, records: Iterable[Record], producer_id: int | None) -> None:
        """Apply records by the fast decoder where it knows them; consecutive offsets of a group in one step."""
        run = _CommitRun(self)
        for record in records:
            key = record.key
            # A transaction's offsets become pending, one by one: that is for the reference implementation.
            row = None if key is None or producer_id is not None else decode_offset_record(key, record.value)
            if row is None:
                run.end()
                self._record(record, producer_id)
                continue
            group_id, topic, partition, stored = row
            if group_id != run.group_id:
                run.end()
                self._before_change(group_id)
                run.group_id = group_id
            if stored is None:
                # The tombstone may delete an offset of this run, so the run has to be in the tables.
                run.end()
                self._delete((group_id, topic, partition), None)
                continue
            if self.pending:
                self.pending.became_visible((group_id, topic, partition), record.offset)
            if self.deadline is not None:
                expire_ms = self.deadline(stored.commit_timestamp_ms, stored.expire_timestamp_ms)
                stored = stored._replace(expire_timestamp_ms=expire_ms)
            run.add(topic, partition, stored)
        run.end()

    def _before_change(self, group_id: str) -> None:
        if self.before_change is not None:
            self.before_change(group_id)

    def _marker(self, record: Record, producer_id: int | None) -> None:
        """End a producer's transaction."""
        number = control_type(record.key)
        if producer_id is not None and number in (ControlType.ABORT, ControlType.COMMIT):
            for key, stored in self.pending.end(producer_id, commits=number == ControlType.COMMIT):
                self._commit_one(key, stored)

    def _record(self, record: Record, producer_id: int | None) -> None:
        """Apply one record by its declaration."""
        key = record.key
        if key is not None and len(key) >= 2:
            record_type = int.from_bytes(key[:2], "big", signed=True)
            if record_type not in self._read_types:
                # Written by a newer release: ignored, as by a real broker after a downgrade.
                self.skipped[record_type] += 1
                return
        found = read_offsets_record(key, record.value)
        assert isinstance(found, CoordinatorRecord), "the type is one that is read"
        if type(found.key)._record_type in SHARE_GROUP_TYPES:
            self.share_groups = self.share_groups or self._begin_share_groups()
            self.share_groups.replay(found)
            return
        if isinstance(found.key, OffsetCommitKey | LegacyOffsetCommitKey):
            offset_key = found.key.group, found.key.topic, found.key.partition
            self._before_change(offset_key[0])
            stored = self._stored(found)
            if stored is None:
                self._delete(offset_key, producer_id)
            elif producer_id is not None:
                self.pending.add(producer_id, offset_key, PendingOffset(record.offset, stored))
            else:
                self.pending.became_visible(offset_key, record.offset)
                self._commit_one(offset_key, stored)
        else:
            self.groups.replay(found)

    def _stored(self, found: CoordinatorRecord) -> OffsetAndMetadata | None:
        """Return the offset of a record; None for a tombstone."""
        value = found.value
        if isinstance(value, OffsetCommitValue):
            expire_ms = None if value.expire_timestamp == NO_EXPIRE_TIMESTAMP else value.expire_timestamp
            leader_epoch, topic_id = value.leader_epoch, value.topic_id
        elif isinstance(value, LegacyOffsetCommitValue):
            expire_ms, leader_epoch, topic_id = None, NO_EPOCH, ZERO_UUID
        else:
            return None
        if self.deadline is not None:
            expire_ms = self.deadline(value.commit_timestamp, expire_ms)
        return OffsetAndMetadata(
            offset=value.offset,
            leader_epoch=leader_epoch,
            metadata=value.metadata,
            commit_timestamp_ms=value.commit_timestamp,
            expire_timestamp_ms=expire_ms,
            topic_id=topic_id,
        )

    def _deadline(self, commit_ms: int, expire_ms: int | None) -> int:
        """Return the expire timestamp of an offset before KIP-211, when each offset had one (EX-41)."""
        return wrapped(commit_ms + self._retention_ms) if expire_ms is None else expire_ms

    def commit(self, group_id: str, entries: CommitEntries) -> None:
        """Put visible offsets into the tables."""
        self.group_ids.add(group_id)
        self._offsets.apply_commit(group_id, entries)

    def _commit_one(self, key: OffsetKey, stored: OffsetAndMetadata) -> None:
        group_id, topic, partition = key
        self.commit(group_id, [(topic, [(partition, stored)])])

    def _delete(self, key: OffsetKey, producer_id: int | None) -> None:
        """Apply a tombstone (LF-34).

        Up to 3.9 a tombstone in a transaction deletes that producer's pending offset, and any other the visible offset.
        The new coordinator deletes both, those of all producers.
        """
        if self._newest:
            self.pending.remove_all(key)
        elif producer_id is not None:
            self.pending.remove(producer_id, key)
            return
        group_id, topic, partition = key
        self._offsets.apply_deletion(group_id, [(topic, [partition])])
