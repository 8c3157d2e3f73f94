"""The share partitions that brokers have loaded: their locks on the broker's clock, stored states and waiting fetches.

Theory of operation. The leader of a partition loads a share partition at the first fetch of a group, from the state
that the share coordinator has stored; without one, `share.auto.offset.reset` chooses the start offset. With a new
leader epoch, another node may have led the partition meanwhile, so it is loaded again; records that were acquired
become a gap. It is also loaded again after the share coordinator has fenced a write, because a start offset was set or
the state was deleted. Until then its members read on from their position, as in Kafka. The share partitions of a group
that has no session on a node any more are forgotten there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from kproto.codes import ErrorCode
from kproto.runtime import UNLIMITED
from kproto_server.clock import Steps
from kproto_server.partition_log.decoding import DecodingBudget
from kproto_server.share_groups.share_partition import Refused, SharePartition, Transition
from kproto_server.share_groups.share_states import NO_OFFSET, SharePartitionKey, StateWrite

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Sequence

    from kproto_server.clock import Clock, Timer
    from kproto_server.cluster.cluster import Cluster
    from kproto_server.cluster.topics import Partition
    from kproto_server.share_groups.dead_letters import DeadLetters
    from kproto_server.share_groups.group_settings import GroupSettings
    from kproto_server.share_groups.in_flight import StateBatch
    from kproto_server.share_groups.share_partition import Acknowledgement
    from kproto_server.share_groups.state_store import ShareStateStore
    from kproto_server.share_groups.version_behavior import ShareBehavior

WRITE_FAILED = "Error in write state RPC. "
STEP_RECORDS = 1_000
"""Records for dead letter queues that are written before clients are served: 10 to 20 ms."""
FENCED = (ErrorCode.FENCED_STATE_EPOCH, ErrorCode.FENCED_LEADER_EPOCH)
"""Errors of the share coordinator that end the use of a share partition."""
MEMBERS_ERRORS: dict[int, ErrorCode] = {
    ErrorCode.NONE: ErrorCode.NONE,
    ErrorCode.COORDINATOR_NOT_AVAILABLE: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.KAFKA_STORAGE_ERROR: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    **dict.fromkeys(FENCED, ErrorCode.NOT_LEADER_OR_FOLLOWER),
}
"""The errors that members get, by the error of the share coordinator; UNKNOWN_SERVER_ERROR for the rest."""


class Outcome:
    """The outcome of acknowledgements, which the log has to write first."""

    __slots__ = ("error", "message")

    def __init__(self, error: int = 0, message: str | None = None) -> None:
        self.error: int = error
        self.message: str | None = message


class Loaded(NamedTuple):
    """What a share partition was loaded for: another leader epoch needs another one."""

    topic_id: bytes
    leader_epoch: int


class LoadedPartition:
    """A share partition in use."""

    __slots__ = ("key", "loaded", "share", "state_epoch", "timer", "waiters")

    def __init__(self, key: SharePartitionKey, share: SharePartition, state_epoch: int, leader_epoch: int) -> None:
        self.key: SharePartitionKey = key
        self.share: SharePartition = share
        self.state_epoch: int = state_epoch
        self.loaded: Loaded = Loaded(key.topic_id, leader_epoch)
        self.timer: Timer | None = None
        """The timer of the first lock that may end."""
        self.waiters: dict[Callable[[], object], None] = {}
        """Called when records may be available again: fetches that wait for them."""

    def notify_waiters(self) -> None:
        for waiter in list(self.waiters):
            waiter()


class SharePartitions:
    """The share partitions in use, of all groups."""

    def __init__(
        self,
        cluster: Cluster,
        clock: Clock,
        store: ShareStateStore,
        settings_of: Callable[[str], GroupSettings],
        behavior: ShareBehavior,
        dead_letters: Callable[[], DeadLetters | None],
    ) -> None:
        """Create an empty table.

        Args:
            settings_of: returns the settings of a group.
            dead_letters: returns the writer of dead letter queues; None: the cluster has none.
        """
        self._cluster = cluster
        self._clock = clock
        self._store = store
        self._settings_of = settings_of
        self._behavior = behavior
        self._dead_letters = dead_letters
        self._loaded: dict[SharePartitionKey, LoadedPartition] = {}
        self._with_dead: dict[SharePartitionKey, LoadedPartition] = {}
        """Those that have records for the dead letter queue."""
        self._steps = Steps(clock)
        """Of writing them."""
        self._is_archiving = False

    def load(
        self, key: SharePartitionKey, partition: Partition, now_ms: int, budget: DecodingBudget
    ) -> Generator[None, None, LoadedPartition | ErrorCode | None]:
        """Load a share partition; return it, or why it cannot be used. Yields between slices.

        None: the budget was used up before, or another request has loaded it meanwhile; a later call returns it.

        Raises:
            DecodeError: records cannot be read whose times decide where the group begins.
            MissingPackage: their compression needs a package that is not installed.
            OSError: the file cannot be read.
        """
        settings = self._settings_of(key.group_id)
        reset_offset = None
        if not self._store.has_start_offset(key):
            if budget.is_used_up:
                return None
            reset_offset = yield from settings.reset_offset(partition.data, now_ms, budget)
            if self.known(key) is not None:
                return None
        error = self._store.error(key, now_ms)
        if error:
            return error
        refusal = self._store.read_refusal(key, partition.leader_epoch)
        if refusal is not None:
            return MEMBERS_ERRORS.get(refusal.error, ErrorCode.UNKNOWN_SERVER_ERROR)
        state = self._store.read(key, partition.leader_epoch, now_ms, lambda error: None)
        start_offset = state.start_offset
        if start_offset == NO_OFFSET:
            if reset_offset is None:
                return ErrorCode.OFFSET_NOT_AVAILABLE
            start_offset = reset_offset
        share = SharePartition(start_offset, settings.delivery_count_max, settings.in_flight_max)
        try:
            share.restore(state.batches)
        except ValueError:  # a delivery state that does not exist: any number can be stored
            return ErrorCode.UNKNOWN_SERVER_ERROR
        made = self._loaded[key] = LoadedPartition(key, share, state.state_epoch, partition.leader_epoch)
        self._limit(made)
        self._write_dead_letters(made)
        return made

    def known(self, key: SharePartitionKey) -> LoadedPartition | None:
        """Return a share partition if it is in use, and its leader is the one that has loaded it."""
        found = self._loaded.get(key)
        if found is None:
            return None
        partition = self._partition(key)
        if not partition or partition.leader_epoch != found.loaded.leader_epoch:
            self.drop(key)
            return None
        self._limit(found)
        return found

    def _partition(self, key: SharePartitionKey) -> Partition | None:
        topic = self._cluster.topic_by_id(key.topic_id)
        return topic.partition(key.partition) if topic else None

    def _limit(self, found: LoadedPartition) -> None:
        """Give a share partition the limits of its group, which its configs may have changed."""
        settings = self._settings_of(found.key.group_id)
        has_queue = bool(settings.dead_letter_topic) and self._dead_letters() is not None
        found.share.limit(settings.delivery_count_max, settings.in_flight_max, has_dead_letter_queue=has_queue)

    def drop(self, key: SharePartitionKey) -> None:
        """Forget a share partition: its leader has changed, or its group has another start offset."""
        found = self._loaded.pop(key, None)
        if found is not None:
            if found.timer is not None:
                found.timer.cancel()
            found.notify_waiters()

    def forget(self, topic_ids: Collection[bytes] | None = None) -> None:
        """Forget the share partitions of some topics; None: all."""
        for key in [key for key in self._loaded if topic_ids is None or key.topic_id in topic_ids]:
            self.drop(key)
        if topic_ids is None:
            self._with_dead.clear()
            self._steps.stop()
            self._is_archiving = False

    def forget_groups(self, group_ids: Collection[str], node_id: int) -> None:
        """Forget the share partitions of groups on a node, but not those with records for the dead letter queue."""
        for key in [key for key in self._loaded if key.group_id in group_ids]:
            found, partition = self.known(key), self._partition(key)
            if found is not None and partition and partition.leader == node_id and not found.share.has_dead:
                self.drop(key)

    def acknowledge(
        self, key: SharePartitionKey, member_id: str, acknowledgements: Sequence[Acknowledgement], now_ms: int
    ) -> Outcome:
        """Do what a member acknowledges; the outcome is complete when the log has settled what was appended so far."""
        found = self.known(key)
        if found is None:
            return Outcome(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION.message)
        settings = self._settings_of(key.group_id)
        lock_end_ms = now_ms + settings.lock_duration_ms if settings.renews_locks else None
        transition = found.share.acknowledge(member_id, acknowledgements, now_ms, lock_end_ms)
        if isinstance(transition, Refused):
            return Outcome(transition.error, transition.message)
        return self._store_transition(found, transition, now_ms)

    def release(self, keys: Iterable[SharePartitionKey], member_id: str, now_ms: int) -> None:
        """Release all records that a member has acquired, as its session has ended."""
        for key in keys:
            found = self.known(key)
            if found is not None:
                self._store_transition(found, found.share.release_all(member_id), now_ms)

    def _store_transition(self, found: LoadedPartition, transition: Transition, now_ms: int) -> Outcome:
        outcome = Outcome()
        if not transition.batches:
            self._set_timer(found)
            return outcome

        write = _state_write(found, transition.batches)
        refusal = self._store.write_refusal(found.key, write)

        def settle(error: int) -> None:
            found.share.complete(transition, commit=not error, now_ms=self._clock.now_ms())
            if error:
                outcome.error = MEMBERS_ERRORS.get(error, ErrorCode.UNKNOWN_SERVER_ERROR)
                message = refusal.message if refusal else self._behavior.message_of(error)
                outcome.message = f"{WRITE_FAILED}{message}"
            if error in FENCED and self._loaded.get(found.key) is found:
                self.drop(found.key)
            elif not error:
                self._write_dead_letters(found)
            found.notify_waiters()

        self._store.write(found.key, write, now_ms, settle)
        return outcome

    # Locks.

    def acquired(self, found: LoadedPartition) -> None:
        """Note that a member has acquired records."""
        self._set_timer(found)

    def _set_timer(self, found: LoadedPartition) -> None:
        """Have the clock end the locks of a share partition, the first one in time."""
        due_ms, timer = found.share.next_lock_end_ms, found.timer
        if due_ms is None or (timer is not None and timer.action is not None and timer.due_ms <= due_ms):
            return
        if timer is not None:
            timer.cancel()
        found.timer = self._clock.call_at(due_ms, lambda: self._end_locks(found), in_background=True)

    def _end_locks(self, found: LoadedPartition) -> None:
        now_ms = self._clock.now_ms()
        self._limit(found)
        released = found.share.end_locks(now_ms)

        def settle(error: int) -> None:
            found.share.move_start()
            self._write_dead_letters(found)

        if released:
            self._store.write(found.key, _state_write(found, released), now_ms, settle)
        self._set_timer(found)
        if released:
            found.notify_waiters()

    def _write_dead_letters(self, found: LoadedPartition) -> None:
        """Have records that are Archiving written to the dead letter queue, and archived, in steps."""
        if found.share.has_dead:
            self._with_dead[found.key] = found
            if not self._is_archiving:
                self._is_archiving = True
                self._steps.begin(self._archive_steps())

    def _archive_steps(self) -> Iterator[None]:
        budget = DecodingBudget(UNLIMITED, UNLIMITED, STEP_RECORDS)
        while self._with_dead:
            yield from self._archive_dead(self._with_dead.pop(next(iter(self._with_dead))), budget)
        self._is_archiving = False

    def _archive_dead(self, found: LoadedPartition, budget: DecodingBudget) -> Iterator[None]:
        """Write records to the dead letter queue, and archive them.

        The log gets both in this order, so each archived record is in the queue. If the share partition is dropped
        meanwhile, they are written again when it is loaded.
        """
        dead = found.share.dead()
        queue = self._dead_letters() if dead else None
        if queue is not None:
            for _ in queue.write(found.key, dead, self._settings_of(found.key.group_id), budget):
                yield
                if self._loaded.get(found.key) is not found:
                    return
        archived = found.share.archive_dead(dead)
        if archived:
            self._store.write(found.key, _state_write(found, archived), self._clock.now_ms(), lambda error: None)
            if found.share.move_start():
                found.notify_waiters()


def _state_write(found: LoadedPartition, batches: Iterable[StateBatch]) -> StateWrite:
    share = found.share
    return StateWrite(
        found.state_epoch, found.loaded.leader_epoch, share.start_offset, share.done_count, tuple(batches)
    )
