"""The parallel catch-up of KIP-333 around a confluent-kafka consumer.

Theory of operation
-------------------
`decisions.catch_up` decides for one partition; this module carries the decisions out for all partitions of a consumer.
Consumer 1 is the user's own consumer, the member of the group. Consumer 2 (`consumer2`) is created while a partition
catches up. Both consumers are polled within the user's own calls, and librdkafka's threads fetch in between.

The life of a partition:

1. `start` at the assignment: plans the range, writes its checkpoints, and assigns the range to consumer 2. The caller
   assigns consumer 1 at the log end. From here on the partition is in `catch_ups`. Without
   `parallel.rebalance.merge`, `serve` reads the checkpoints of earlier owners and then divides the range.
2. `fetch` fills buffer 2, `consumer1_read` fills buffer 1, `take` and `current_run` deliver.
3. `take` finds that the phase has ended, commits the switch, and removes consumer 2's assignment. In normal mode the
   partition leaves `catch_ups`. It stays in `_uncommitted` until a commit covers its checkpoints; then `committed`
   deletes them.

At any time `stop` (revocation) leaves the checkpoints to the next owner, and `cancel` (seek) deletes them.

Errors of consumer 2. If librdkafka rejects a position as out of range, the reset rule for invalid offsets decides
(CK-86). A target within the range continues the catch-up there. Without a target, the partition moves to
`out_of_range`; a target before consumer 2's position means that the log was truncated and rewritten, and the partition
moves to `diverged`. `pending_resets` ends the catch-up in both cases.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Mapping
from concurrent.futures import Future
from typing import TypeAlias, assert_never

from confluent_kafka import Consumer, KafkaException, Message, TopicPartition

from kproto.client.assignment import Assignment
from kproto.client.broker_queries import THREAD_QUERY_LIMIT_S, BrokerQueries, log_bounds_of_any, now_ms
from kproto.client.catch_up_events import CatchUpEvents
from kproto.client.checkpoint_topic import CheckpointTopic
from kproto.client.configuration import Configuration
from kproto.client.consumer2 import Consumer2, Consumer2Failed, Fetched
from kproto.client.decisions.buffer1 import KeyedBuffer1, RangeKeys
from kproto.client.decisions.catch_up import (
    Commit,
    PartitionCatchUp,
    PauseConsumer1,
    Phase,
    ResumeConsumer1,
    StopConsumer2,
)
from kproto.client.decisions.catch_up_ranges import plan_catch_up
from kproto.client.decisions.checkpoints import Checkpoint, ranges_of_topic
from kproto.client.decisions.events import StopReason, position_reset
from kproto.client.decisions.resets import LogBounds, position_after_error, reason_after_error
from kproto.client.decisions.settings import Order
from kproto.client.earlier_ranges import EarlierRanges
from kproto.client.events import Publish
from kproto.client.key_scan import KeyScan
from kproto.client.topic_partitions import PartitionKey, at_offset

logger: logging.Logger = logging.getLogger("kproto.client")

CatchUp: TypeAlias = PartitionCatchUp[Message]


class ParallelCatchUp:
    """The catch-ups of one consumer.

    The object owns consumer 2 and the checkpoint producer; `close` closes both. The wrapped consumer belongs to the
    caller.

    Args:
        consumer: consumer 1; an object whose methods are confluent-kafka's own.
        assignment: of consumer 1.
        commit: commits the user's positions in partitions, if commits are automatic.
    """

    def __init__(
        self,
        consumer: Consumer,
        assignment: Assignment,
        configuration: Configuration,
        queries: BrokerQueries,
        commit: Callable[[Collection[PartitionKey]], None],
        publish: Publish,
    ) -> None:
        self._consumer1 = consumer
        self._assignment = assignment
        self._settings = configuration.settings
        self._queries = queries
        self._commit = commit
        self._publish = publish
        self._events = CatchUpEvents(publish)
        self._checkpoint_topic = CheckpointTopic(queries, configuration, publish)
        self._earlier_ranges = EarlierRanges(queries, configuration, self._checkpoint_topic, self._commit_read_position)

        def open_consumer2() -> Consumer:
            return configuration.clients.consumer(configuration.for_consumer2())

        self._consumer2 = Consumer2(open_consumer2)
        self._key_scan = KeyScan(open_consumer2)

        self.catch_ups: dict[PartitionKey, CatchUp] = {}
        """Partitions that are not in normal mode: the user gets the records in their buffers."""
        self._uncommitted: dict[PartitionKey, CatchUp] = {}
        """Partitions in normal mode whose checkpoints wait for a commit."""
        self.switched_at: dict[PartitionKey, TopicPartition] = {}
        """The user's position when a partition entered normal mode; valid until librdkafka reads a record there."""
        self._paused: set[PartitionKey] = set()
        """Paused by the user; a partition stays paused when it is revoked, as in librdkafka."""

        self._rejected: dict[PartitionKey, Message] = {}
        """Consumer 2's out-of-range errors, until the log bounds are known."""
        self._queried_bounds: dict[PartitionKey, Future[dict[PartitionKey, LogBounds]]] = {}
        self.out_of_range: list[PartitionKey] = []
        """Partitions whose catch-up range is gone, while no setting names a reset position."""
        self.diverged: dict[PartitionKey, int] = {}
        """Partitions whose log was rewritten from this offset on."""

    # -- assignment

    def start(
        self, positions: Mapping[PartitionKey, TopicPartition], bounds: Mapping[PartitionKey, LogBounds]
    ) -> dict[PartitionKey, int]:
        """Start to catch up with each partition whose position is before the log end.

        Args:
            positions: the committed or reset position of each partition, within its bounds.

        Returns:
            The offset at which consumer 1 starts in each partition.
        """
        behind = [each for each, position in positions.items() if position.offset < bounds[each].end]
        keys: dict[PartitionKey, RangeKeys] = {}
        for partition in behind:
            plan = plan_catch_up(
                position=positions[partition].offset, bounds=bounds[partition], checkpointed={}, merge=True
            )
            buffer1 = None
            if self._settings.order is Order.KEY:
                keys[partition] = RangeKeys(positions[partition].offset, plan.consumer1_start)
                buffer1 = KeyedBuffer1[Message](keys[partition])
            self.catch_ups[partition] = CatchUp(plan, self._settings.buffer1_bytes, buffer1)
            self._events.started(partition, self.catch_ups[partition])
        if behind:
            if not self._settings.merge:
                self._earlier_ranges.start(behind)
            self._write_checkpoints(behind)
            self._consumer2.assign({partition: positions[partition] for partition in behind})
            self._consumer2.pause(self._paused)
        if keys:
            self._key_scan.start(keys, {partition: positions[partition] for partition in keys})
        return {partition: bounds[partition].end for partition in positions}

    def stop(self, partitions: Collection[PartitionKey]) -> None:
        """Stop for revoked partitions; the next owner continues with their checkpoints (CK-84)."""
        for partition in partitions:
            self._forget(partition, StopReason.REVOKED)
        self._stop_consumer2(partitions)

    def cancel(self, partition: PartitionKey) -> bool:
        """Cancel a catch-up and delete its checkpoints (CK-67); return whether there was one."""
        catch_up = self._forget(partition, StopReason.CANCELLED)
        self._assignment.release(partition)
        self._stop_consumer2([partition])
        if catch_up is not None:
            self._checkpoint_topic.write(partition, {}, catch_up.checkpoints())
        return catch_up is not None

    def close(self) -> None:
        self._consumer2.close()
        self._key_scan.close()
        self._earlier_ranges.close()
        self._checkpoint_topic.close()

    def serve(self) -> None:
        """Continue to read keys, and the work on the checkpoint topic, without waiting; publish the progress."""
        self._events.publish_progress(self.catch_ups)
        self._key_scan.serve()
        for partition, existing in self._earlier_ranges.serve().items():
            stale = set(existing)
            catch_up = self.catch_ups.get(partition)
            if catch_up is not None:
                catch_up.divide(ranges_of_topic(existing, self._earlier_ranges.topic_ids.get(partition[0])))
                stale -= catch_up.checkpoints().keys()
                self._events.divided(partition, catch_up)
            self._write_checkpoints([partition])
            self._checkpoint_topic.write(partition, {}, stale)
        self._checkpoint_topic.serve()

    @property
    def is_busy(self) -> bool:
        """Whether `serve` has something to do."""
        return self._checkpoint_topic.is_busy or bool(self._earlier_ranges.awaited) or self._key_scan.is_open

    # -- records

    def consumer1_read(self, partition: PartitionKey, records: list[Message]) -> None:
        """Append records of consumer 1 to buffer 1."""
        for action in self.catch_ups[partition].consumer1_read(records):
            assert isinstance(action, PauseConsumer1)
            self._assignment.hold(partition)

    def reset_consumer1(self, partition: PartitionKey, position: int | None, target: int) -> tuple[int | None, int]:
        """Return from where to where consumer 1 goes after `position` was out of range and was reset to `target`.

        A target before consumer 1's position means that the log was truncated and rewritten: the catch-up is cancelled,
        and consumer 1 goes back as far as the user's position.
        """
        catch_up = self.catch_ups.get(partition)
        if catch_up is None or target >= catch_up.consumer1_position:
            return position, target
        user_position = catch_up.position
        self.cancel(partition)
        return user_position, min(target, user_position)

    def fetch(self, count: int, wait_s: float) -> None:
        """Append up to `count` records of consumer 2 to the buffers; wait up to `wait_s` for the first one.

        Further fetched records wait in librdkafka's own queue.
        """
        self._add(self._fetch(count, wait_s))

    @property
    def passes_through(self) -> bool:
        """Whether `pass_through` may deliver: nothing waits in the buffers, or for the bounds of a log."""
        return (
            self._consumer2.is_open
            and not self._paused
            and not self._rejected
            and all(each.phase is Phase.CATCHING_UP and not each.current_run() for each in self.catch_ups.values())
        )

    def pass_through(self, count: int) -> list[Message]:
        """Return up to `count` records that consumer 2 has fetched, as `fetch` and `take` do, at a lower cost."""
        fetched = self._fetch(count, 0)
        if fetched.ends or fetched.rejected:
            self._add(fetched)
            return []
        taken: list[Message] = []
        for partition, run in fetched.runs:
            catch_up = self.catch_ups[partition]
            records = catch_up.pass_through(run)
            taken = taken + records if taken else records
            if catch_up.consumer2_has_finished:
                self._consumer2.unassign([partition])
        return taken

    def _fetch(self, count: int, wait_s: float) -> Fetched:
        try:
            return self._consumer2.fetch(count, wait_s)
        except Consumer2Failed as error:
            logger.warning("consumer 2 failed and is replaced: %s", error)
            self._replace_consumer2()
            return Fetched()

    def _add(self, fetched: Fetched) -> None:
        for partition, run in fetched.runs:
            self.catch_ups[partition].consumer2_read(run)
        for partition, end in fetched.ends.items():
            self.catch_ups[partition].consumer2_is_at(end)
        self._rejected.update(fetched.rejected)
        for partition, message in list(self._rejected.items()):
            self._reset_consumer2(partition, message)
        finished = [each for each, catch_up in self.catch_ups.items() if catch_up.consumer2_has_finished]
        self._consumer2.unassign(finished)

    def take(self, count: int) -> list[Message]:
        """Return up to `count` records for the user.

        The partitions take turns: a partition that has delivered is the last one in the next call.
        """
        taken: list[Message] = []
        for partition, catch_up in list(self.catch_ups.items()):
            if catch_up.waits_for_consumer2 or partition in self._paused:
                continue
            # A phase can only have ended if buffer 2 is empty.
            if catch_up.buffer1_is_full or not catch_up.current_run():
                self._advance(partition, catch_up)
            if catch_up.phase is not Phase.NORMAL:
                records = catch_up.take(count - len(taken))
                if records:
                    taken = taken + records if taken else records
                    self.catch_ups[partition] = self.catch_ups.pop(partition)
                if len(taken) >= count:
                    break
        return taken

    @property
    def delivers_buffer1(self) -> bool:
        """Whether records of buffer 1 are ready; `current_run` has none of them."""
        return any(
            each.phase is Phase.DRAINING_BUFFER1 or each.has_free_record
            for partition, each in self.catch_ups.items()
            if partition not in self._paused
        )

    def holds_all(self, partitions: Collection[PartitionKey]) -> bool:
        """Return whether no record of consumer 1 can be for the user now, if it reads these partitions."""
        is_in_order = self._settings.order is Order.PARTITION
        return is_in_order and all(
            each in self.catch_ups and self.catch_ups[each].phase is Phase.CATCHING_UP for each in partitions
        )

    def current_run(self) -> list[Message]:
        """Return records of buffer 2 that the caller delivers by popping them; see `PartitionCatchUp.current_run`."""
        runs = (catch_up.current_run() for each, catch_up in self.catch_ups.items() if each not in self._paused)
        return next(filter(None, runs), [])

    @property
    def consumer2_is_open(self) -> bool:
        """Whether consumer 2 has a range to read."""
        return self._consumer2.is_open

    def pause(self, partitions: Collection[PartitionKey]) -> None:
        """Pause for the user: neither buffer is delivered, and consumer 2 stops fetching."""
        self._paused.update(partitions)
        self._consumer2.pause(partitions)

    def resume(self, partitions: Collection[PartitionKey]) -> None:
        """Resume for the user."""
        self._paused.difference_update(partitions)
        self._consumer2.resume(partitions)

    # -- commits

    def limit_commit(self, partition: PartitionKey, offset: int) -> int:
        """Return the offset to commit where the user commits `offset`.

        With order by key, a record of buffer 1 is delivered before older records. Its commit covers what is delivered
        without a gap.
        """
        catch_up = self.catch_ups.get(partition)
        if self._settings.order is Order.PARTITION or catch_up is None or offset <= catch_up.consumer1_start:
            return offset
        return min(offset, catch_up.position)

    def committed(self, partition: PartitionKey, offset: int) -> None:
        """Note a successful commit: delete the checkpoints that it covers."""
        catch_up = self.catch_ups.get(partition) or self._uncommitted.get(partition)
        if catch_up is None:
            return
        deleted = catch_up.committed(offset)
        if deleted:
            self._checkpoint_topic.write(partition, {}, deleted)
        if catch_up.is_finished:
            self._uncommitted.pop(partition, None)

    def write_checkpoints(self) -> None:
        """Write the current positions to the checkpoints of all partitions that catch up."""
        self._write_checkpoints(self.catch_ups)

    # -- internals

    def _stop_consumer2(self, partitions: Collection[PartitionKey]) -> None:
        """End what reads the partitions for consumer 2, and what is known of their bounds."""
        self._consumer2.unassign(partitions)
        self._key_scan.stop(partitions)
        for partition in partitions:
            self._rejected.pop(partition, None)
            self._queried_bounds.pop(partition, None)

    def _forget(self, partition: PartitionKey, reason: StopReason) -> CatchUp | None:
        self._earlier_ranges.forget(partition)
        self.switched_at.pop(partition, None)
        catch_up = self.catch_ups.pop(partition, None) or self._uncommitted.pop(partition, None)
        if catch_up is not None:
            self._events.stopped(partition, catch_up, reason)
            catch_up.drop_buffers()
        return catch_up

    def _advance(self, partition: PartitionKey, catch_up: CatchUp) -> None:
        for action in catch_up.advance():
            match action:
                case Commit(offset):
                    self._events.done(partition, offset)
                    self._commit([partition])
                    # If the offset is committed already, no later commit deletes the checkpoints.
                    self.committed(partition, catch_up.committed_offset)
                case StopConsumer2():
                    self._stop_consumer2([partition])
                case ResumeConsumer1():
                    self._assignment.release(partition)
                case PauseConsumer1():
                    pass  # only `consumer1_read` fills buffer 1
                case _:
                    assert_never(action)
        if catch_up.phase is Phase.NORMAL:
            del self.catch_ups[partition]
            self.switched_at[partition] = at_offset(partition, catch_up.position, leader_epoch=catch_up.leader_epoch)
            if not catch_up.is_finished:
                self._uncommitted[partition] = catch_up

    def _reset_consumer2(self, partition: PartitionKey, rejected: Message) -> None:
        """Apply the reset rule for invalid offsets to consumer 2 (CK-86)."""
        catch_up = self.catch_ups[partition]
        if partition not in self._queried_bounds:
            self._queried_bounds[partition] = self._queries.in_thread(
                log_bounds_of_any, [partition], THREAD_QUERY_LIMIT_S
            )
        if not self._queried_bounds[partition].done():
            return
        try:
            bounds = self._queried_bounds.pop(partition).result()[partition]
        except KafkaException as error:
            logger.warning("%s [%d]: consumer 2 is out of range, no log bounds: %s", *partition, error)
            return
        del self._rejected[partition]
        error_text = str(rejected.error())
        target = position_after_error(self._settings, bounds, catch_up.consumer2_position, error_text)
        if target is None:
            self.out_of_range.append(partition)
            return
        reason, why = reason_after_error(self._settings, bounds, error_text)
        if target < catch_up.consumer2_position:
            # The records between the user's position and the target are still there, and are fetched again.
            before = catch_up.position
            self.diverged[partition] = after = min(before, target)
            if before != after:
                self._publish(position_reset(partition, before, after, reason, why))
            return
        if target != catch_up.consumer2_position:  # otherwise it is in range by now
            after = min(target, catch_up.consumer1_start)
            self._publish(position_reset(partition, catch_up.consumer2_position, after, reason, why))
        # A target past the ranges (a reset to latest) ends the catch-up: consumer 1 has read the records after them.
        catch_up.consumer2_is_at(target)
        if not catch_up.consumer2_has_finished:
            self._consumer2.assign({partition: TopicPartition(*partition, catch_up.consumer2_position)})
            self._consumer2.pause(self._paused)

    def _replace_consumer2(self) -> None:
        self._consumer2.close()
        positions = {
            partition: TopicPartition(*partition, catch_up.consumer2_failed())
            for partition, catch_up in self.catch_ups.items()
            if catch_up.phase is Phase.CATCHING_UP and not catch_up.consumer2_has_finished
        }
        if positions:
            self._consumer2.assign(positions)
            self._consumer2.pause(self._paused)

    def _write_checkpoints(self, partitions: Iterable[PartitionKey]) -> None:
        """Write the checkpoints of partitions, except where they would overwrite earlier ones that are not read yet."""
        time_ms = now_ms()
        for partition in partitions:
            catch_up = self.catch_ups.get(partition)
            if catch_up is not None and partition not in self._earlier_ranges.awaited:
                topic_id = self._earlier_ranges.topic_ids.get(partition[0])
                checkpoints = {
                    number: Checkpoint(range=each, position=position, time_ms=time_ms, topic_id=topic_id)
                    for number, (each, position) in catch_up.checkpoints().items()
                }
                self._checkpoint_topic.write(partition, checkpoints)

    def _commit_read_position(self, position: TopicPartition) -> None:
        self._consumer1.commit(offsets=[position], asynchronous=True)
