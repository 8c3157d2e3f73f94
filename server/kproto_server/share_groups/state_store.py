"""The share coordinator: the states of all share partitions, and their log `__share_group_state`.

All nodes of a process share it, as the brokers of a real cluster replicate that topic; the leader of a state's
partition coordinates it. A change is appended to the log, and visible once the log has it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kproto.codes import ErrorCode
from kproto.records.partitioning import SHARE_STATE_TOPIC, partition_for, share_partition_name
from kproto_server.cluster.topics import NO_LEADER
from kproto_server.coordinator.change_log import STORAGE_ERROR
from kproto_server.deferred import NO_RESPONSE
from kproto_server.share_groups.share_states import (
    NO_EPOCH,
    NO_OFFSET,
    SharePartitionKey,
    ShareState,
    StateWrite,
    initialize_refusal,
    initialized,
    read_refusal,
    snapshotted,
    stored_write,
    write_refusal,
    written,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from kproto_server.cluster.cluster import Cluster, Node
    from kproto_server.cluster.topics import Partition, Refusal
    from kproto_server.configuration.dynamic_settings import DynamicSettings
    from kproto_server.coordinator.coordinator import GroupCoordinator
    from kproto_server.deferred import NoResponse
    from kproto_server.log_manager.log_manager import LogManager
    from kproto_server.share_groups.in_flight import StateBatch
    from kproto_server.share_groups.pruning import StateTopicPruning
    from kproto_server.share_groups.version_behavior import ShareBehavior

UPDATES_SETTING = "share.coordinator.snapshot.update.records.per.snapshot"


class ShareStateStore:
    """The states of share partitions."""

    def __init__(
        self,
        behavior: ShareBehavior,
        settings: DynamicSettings,
        cluster: Cluster,
        groups: GroupCoordinator,
        log_manager: LogManager,
    ) -> None:
        self._behavior = behavior
        self.states: dict[SharePartitionKey, ShareState] = {}
        self.unavailable: dict[int, int] = {}
        """Partitions of `__share_group_state` that are not served, with the error of their share partitions."""
        self._newest: dict[SharePartitionKey, ShareState | None] = {}
        """The states after all changes that the log is writing; None: deleted."""
        self._settings = settings
        self._cluster = cluster
        self._groups = groups
        self._log_manager = log_manager
        self._pruning: StateTopicPruning | None = None
        self._images: Iterator[None] | None = None
        """Makes the records of `__share_group_state` in memory, in steps; None: no client has read it."""

    def partition_of(self, key: SharePartitionKey) -> Partition | None:
        """Return the partition of a share partition in `__share_group_state`; None: there is no such topic."""
        topic = self._cluster.topics.get(SHARE_STATE_TOPIC)
        return (
            None
            if topic is None
            else topic.partitions[partition_for(share_partition_name(*key), len(topic.partitions))]
        )

    def error_at(self, node: Node, key: SharePartitionKey) -> ErrorCode:
        """Return why a node does not coordinate a share partition; NONE if it does."""
        partition = self.partition_of(key)
        if partition is None or partition.leader != node.node_id:
            return ErrorCode.NOT_COORDINATOR
        return ErrorCode(self.unavailable.get(partition.index, 0))

    def create_topic(self, now_ms: int) -> bool:
        """Create the topic of the states unless it is there; return whether it is."""
        return bool(self._cluster.ensure_internal_topic(SHARE_STATE_TOPIC, now_ms))

    def error(self, key: SharePartitionKey, now_ms: int) -> ErrorCode:
        """Return why no node coordinates a share partition; NONE if one does. The topic is created first."""
        if not self.create_topic(now_ms):
            return ErrorCode.COORDINATOR_NOT_AVAILABLE
        partition = self.partition_of(key)
        if partition is None or partition.leader == NO_LEADER or partition.index in self.unavailable:
            return ErrorCode.COORDINATOR_NOT_AVAILABLE
        return ErrorCode.NONE

    # Clients may be refused. Each change calls ``settle`` with an error code, 0 once the log has the change.

    def read_refusal(self, key: SharePartitionKey, leader_epoch: int) -> Refusal | None:
        """Return why a leader may not read a state; None if it may."""
        return read_refusal(self._latest(key), leader_epoch, self._behavior)

    def read(
        self, key: SharePartitionKey, leader_epoch: int, now_ms: int, settle: Callable[[int], object]
    ) -> ShareState:
        """Return a state for a leader that may read it. Behind the read, leaders before this one are fenced."""
        state = self._latest(key)
        assert state is not None, "it may be read"
        if leader_epoch in (NO_EPOCH, state.fence_epoch):
            settle(0)
        else:
            write = StateWrite(state.state_epoch, leader_epoch, state.start_offset, state.done_count, ())
            self._write(key, state, write, now_ms, settle, is_new_leader=True)
        return state

    def has_start_offset(self, key: SharePartitionKey) -> bool:
        """Return whether a state has a start offset, so that no fetch has to choose one."""
        state = self._latest(key)
        return state is not None and state.start_offset != NO_OFFSET

    def write_refusal(self, key: SharePartitionKey, write: StateWrite) -> Refusal | None:
        """Return why a write is refused; None if it is not."""
        return write_refusal(self._latest(key), write, self._behavior)

    def batches(self, key: SharePartitionKey) -> tuple[StateBatch, ...]:
        """Return the batches of a state."""
        state = self._latest(key)
        return () if state is None else state.batches

    def write(self, key: SharePartitionKey, write: StateWrite, now_ms: int, settle: Callable[[int], object]) -> None:
        """Store what members of a share group have done, unless that is refused."""
        state, refusal = self._latest(key), self.write_refusal(key, write)
        if state is None or refusal is not None:
            settle(refusal.error if refusal else ErrorCode.INVALID_REQUEST)
            return
        self._write(key, state, write, now_ms, settle)

    def _write(
        self,
        key: SharePartitionKey,
        state: ShareState,
        write: StateWrite,
        now_ms: int,
        settle: Callable[[int], object],
        *,
        is_new_leader: bool = False,
    ) -> None:
        stored = stored_write(state, write, self._behavior, is_new_leader=is_new_leader)
        after = written(state, stored, self.updates_max, now_ms)
        is_update = after.snapshot_epoch == state.snapshot_epoch
        self._append(key, after, stored if is_update else None, now_ms, settle)

    @property
    def updates_max(self) -> int:
        """How many updates may follow a snapshot."""
        return self._settings.current.int(UPDATES_SETTING)

    def initialize_refusal(self, key: SharePartitionKey, state_epoch: int) -> Refusal | None:
        """Return why a state may not begin at a state epoch; None if it may."""
        return initialize_refusal(self._latest(key), state_epoch, self._behavior)

    def initialize(
        self, key: SharePartitionKey, state_epoch: int, start_offset: int, now_ms: int, settle: Callable[[int], object]
    ) -> None:
        """Begin the state of a share partition, or begin it again at another offset, unless that is refused."""
        refusal = self.initialize_refusal(key, state_epoch)
        if refusal is not None:
            settle(refusal.error)
            return
        after = initialized(self._latest(key), state_epoch, start_offset, self.updates_max, now_ms)
        self._append(key, after, None, now_ms, settle)

    def delete(self, key: SharePartitionKey, now_ms: int, settle: Callable[[int], object]) -> None:
        """Delete the state of a share partition."""
        if self._latest(key) is None:
            settle(0)
            return
        self._append(key, None, None, now_ms, settle)

    def then(self, do: Callable[[], object]) -> None:
        """Call a function when the log has settled everything appended so far."""

        def respond() -> NoResponse:
            do()
            return NO_RESPONSE

        self._groups.log.then(respond)

    def forget(self) -> None:
        """Drop all states: their topic was deleted, or the broker is reset."""
        self.states.clear()
        self._newest.clear()
        self.unavailable.clear()
        self._images = None
        if self._pruning is not None:
            self._pruning.stop()
            self._pruning = None

    def make_readable(self, now_ms: int) -> Iterator[None]:
        """Return the steps that write the records of a `__share_group_state` in memory, as if each state had a new
        snapshot; several readers share them.

        From now on each change is appended, as on disk. Most brokers of tests are never asked for them.
        """
        if self._log_manager.directory is not None:
            return iter(())
        if self._images is None:
            from kproto_server.coordinator.internal_topics import written_in_steps  # not at the start

            def write(key: SharePartitionKey) -> None:
                if key in self.states:
                    self._append(key, self.states[key], None, now_ms, lambda error: None)

            self._images = written_in_steps(list(self.states), write)
        return self._images

    def _latest(self, key: SharePartitionKey) -> ShareState | None:
        return self._newest[key] if key in self._newest else self.states.get(key)

    def _append(
        self,
        key: SharePartitionKey,
        after: ShareState | None,
        update: StateWrite | None,
        now_ms: int,
        settle: Callable[[int], object],
    ) -> None:
        """Append a snapshot, or an update if one is given."""
        self._newest[key] = after

        def settled(error: int) -> None:
            if not error and after is None:
                self.states.pop(key, None)
            elif not error and after is not None:
                self.states[key] = after
            if self._newest.get(key, self) is after:
                del self._newest[key]
            settle(error)

        topic, partition = self._cluster.topics.get(SHARE_STATE_TOPIC), self.partition_of(key)
        if topic is None or partition is None or (self._log_manager.directory is None and self._images is None):
            # In memory, the tables are all there is.
            settled(0)
            return
        from kproto_server.coordinator.internal_topics import begin_append  # not at the first use
        from kproto_server.share_groups.records import snapshot_batch, update_batch

        if update is None or after is None:
            batch = snapshot_batch(key, after, now_ms)
        else:
            batch = update_batch(key, after.snapshot_epoch, update, now_ms)
        append = begin_append(self._log_manager, topic, partition, batch, now_ms)
        if append is None:
            settled(STORAGE_ERROR)
            return
        pruning = self._get_pruning()

        def appended() -> None:
            settled(append.error)
            if not append.error and update is None:
                pruning.note(key, None if after is None else append.base_offset)

        self.then(appended)

    def _get_pruning(self) -> StateTopicPruning:
        """Return the pruning of the log, begun at its first record."""
        if self._pruning is None:
            from kproto_server.share_groups.pruning import StateTopicPruning

            self._pruning = StateTopicPruning(
                self.states,
                self.partition_of,
                self.snapshot,
                self._settings,
                self._cluster,
                self._groups.clock,
                self._log_manager,
            )
            self._pruning.start()
        return self._pruning

    def loaded(self, states: Mapping[SharePartitionKey, ShareState], offsets: Mapping[SharePartitionKey, int]) -> None:
        """Take the states that one partition of the log has, and the offsets of their snapshots."""
        self.states.update(states)
        self._get_pruning().snapshot_offsets.update(offsets)

    def restore(self, states: Mapping[SharePartitionKey, ShareState], now_ms: int) -> None:
        """Write the states of another store, each as a snapshot."""
        for key, state in states.items():
            self._append(key, state, None, now_ms, lambda error: None)

    def snapshot(self, key: SharePartitionKey, now_ms: int) -> None:
        """Write a new snapshot of a state that has not changed."""
        state = self._latest(key)
        if state is not None:
            self._append(key, snapshotted(state, self.updates_max, now_ms), None, now_ms, lambda error: None)
