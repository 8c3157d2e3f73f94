"""Groups in a snapshot, with offsets, transactions and share partitions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from kproto.errors import LogError
from kproto_server.coordinator.change_log import NO_BATCH, Change
from kproto_server.coordinator.coordinator import V0_PARTITION
from kproto_server.coordinator.groups import NO_GENERATION

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from kproto_server.coordinator.coordinator import GroupCoordinator
    from kproto_server.coordinator.groups import Group, Kind
    from kproto_server.coordinator.offsets import CommitEntries, OffsetStore
    from kproto_server.share_groups.share_states import SharePartitionKey, ShareState
    from kproto_server.state import BrokerState
    from kproto_server.transactions.transaction import TransactionValues

OFFSETS_AT_ONCE = 1000
"""Offsets of a group in one batch."""


class GroupImage(NamedTuple):
    """A group without its members."""

    group_id: str
    kind: Kind
    protocol_type: str | None
    generation: int
    state_timestamp_ms: int | None
    data: Any
    """What a group of KIP-848, KIP-932 or KIP-1071 has, with its members; it never changes."""


class PendingImage(NamedTuple):
    """Offsets of an open transaction."""

    partition: int
    group_id: str
    entries: CommitEntries
    producer_id: int
    producer_epoch: int


class Groups(NamedTuple):
    """What the coordinators have."""

    offsets: Mapping[str, CommitEntries]
    v0_offsets: Mapping[str, CommitEntries]
    groups: tuple[GroupImage, ...]
    pending: tuple[PendingImage, ...]
    transactions: Mapping[str, TransactionValues]
    share_states: Mapping[SharePartitionKey, ShareState]

    @classmethod
    def of(cls, state: BrokerState, now_ms: int) -> Groups:
        """Return what the coordinators of a broker have."""
        coordinator = state.coordinator
        transactions, share_groups = state.used_transactions, state.used_share_groups
        return cls(
            _entries(coordinator.offsets),
            _entries(coordinator.v0_offsets),
            tuple(_image(group, now_ms) for group in coordinator.groups),
            tuple(_pending(coordinator)),
            {} if transactions is None else {name: one.values for name, one in transactions.transactions.items()},
            {} if share_groups is None else dict(share_groups.store.states),
        )

    @property
    def group_count(self) -> int:
        """The number of groups."""
        return len(self.offsets.keys() | {group.group_id for group in self.groups})

    def restore(self, state: BrokerState, now_ms: int, drain: Callable[[], object]) -> None:
        """Write everything to the logs of a broker that has no groups.

        Raises:
            LogError: a log does not take it.
        """
        coordinator = state.coordinator
        for group in self.groups:
            _restore_group(state, group, now_ms)
        drain()
        for group_id, entries in self.offsets.items():
            partition = coordinator.partition_of(group_id)
            assert partition is not None, "offsets have a topic"
            write_offsets(coordinator, partition, coordinator.offsets, group_id, entries, now_ms, drain)
        if self.v0_offsets:
            coordinator.prepare_v0_log()
        for group_id, entries in self.v0_offsets.items():
            write_offsets(coordinator, V0_PARTITION, coordinator.v0_offsets, group_id, entries, now_ms, drain)
        self._restore_transactions(state, now_ms)
        drain()
        if len(coordinator.offsets) != sum(len(rows) for entries in self.offsets.values() for _, rows in entries):
            raise LogError("the data directory does not take the offsets of the snapshot")

    def _restore_transactions(self, state: BrokerState, now_ms: int) -> None:
        coordinator = state.coordinator
        if self.pending:
            from kproto_server.coordinator.transactional_offsets import add_offsets

            for one in self.pending:
                add_offsets(coordinator, *one, now_ms, lambda error: None)
        if self.share_states:
            state.share_groups.store.restore(self.share_states, now_ms)
        if self.transactions:
            state.transactions.restore(self.transactions, now_ms)


def _entries(store: OffsetStore) -> dict[str, CommitEntries]:
    return {
        group_id: [(name, list(offsets.items())) for name, offsets in store.of_group(group_id).items()]
        for group_id in sorted(store.group_ids())
    }


def _image(group: Group, now_ms: int) -> GroupImage:
    """Return a group as if its members had left."""
    is_left = bool(group.members)
    return GroupImage(
        group.group_id,
        group.kind,
        group.protocol_type,
        group.generation + (is_left and group.kind == "classic"),
        now_ms if is_left else group.state_timestamp_ms,
        getattr(group, "data", None),
    )


def _pending(coordinator: GroupCoordinator) -> Iterator[PendingImage]:
    for partition, pending in coordinator.pending_offsets.items():
        for producer_id, (group_id, topic, index), one in sorted(pending, key=lambda row: row[2].record_offset):
            entries = [(topic, [(index, one.stored)])]
            yield PendingImage(partition, group_id, entries, producer_id, pending.epochs.get(producer_id, 0))


def write_offsets(
    coordinator: GroupCoordinator,
    partition: int,
    store: OffsetStore,
    group_id: str,
    entries: CommitEntries,
    now_ms: int,
    drain: Callable[[], object],
) -> None:
    """Write committed offsets to the log of an offsets partition, in batches; ``drain`` has the log settle them."""
    from kproto_server.coordinator.offsets_log.commits import commit_batch

    rows = [(name, row) for name, offsets in entries for row in offsets]
    for start in range(0, len(rows), OFFSETS_AT_ONCE):
        topics: dict[str, list[Any]] = {}
        for name, row in rows[start : start + OFFSETS_AT_ONCE]:
            topics.setdefault(name, []).append(row)
        some: CommitEntries = list(topics.items())

        def settle(error: int, some: CommitEntries = some) -> None:
            if not error:
                store.apply_commit(group_id, some)

        keeps = coordinator.log.keeps
        batch = commit_batch(group_id, some, now_ms, coordinator.behavior) if keeps else NO_BATCH
        coordinator.log.append(partition, Change(group_id, settle, some), *batch)
        if start:  # a log queues few large batches
            drain()


def _restore_group(state: BrokerState, image: GroupImage, now_ms: int) -> None:
    coordinator = state.coordinator
    partition = coordinator.partition_of(image.group_id)
    if image.kind == "classic":
        group = coordinator.groups.create(image.group_id, now_ms)
        group.protocol_type, group.generation = image.protocol_type, image.generation
        group.state_timestamp_ms = image.state_timestamp_ms
        is_stored = image.protocol_type is not None and image.generation > NO_GENERATION
        if coordinator.log.keeps and is_stored and partition is not None:
            from kproto_server.coordinator.offsets_log.groups import group_batch

            batch = group_batch(group, now_ms, coordinator.behavior)
            coordinator.log.append(partition, Change(image.group_id, lambda error: None), *batch)
        return
    if image.kind == "share":
        from kproto_server.share_groups.heartbeat import restore_group as restore_share_group

        restored: Group = restore_share_group(state.share_groups.members, image.group_id, image.data, now_ms)
    elif image.kind == "streams":
        from kproto_server.coordinator.streams_groups.leaving import restore_group as restore_streams_group

        restored = restore_streams_group(coordinator, image.group_id, image.data, now_ms)
    else:
        from kproto_server.coordinator.consumer_groups.leaving import restore_group

        restored = restore_group(coordinator, image.group_id, image.data, now_ms)
    restored.state_timestamp_ms = image.state_timestamp_ms
