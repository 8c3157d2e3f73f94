"""The topics of a running broker, and their records, as a test makes, reads and removes them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kproto.errors import UsageError
from kproto_server.broker.thread import run_in_turns
from kproto_server.broker.waiting import NotYet, Wait, blocking, check_count, in_coroutine, wait

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping, Sequence

    from kproto_server.broker.producing import CompressionName, NewRecord, Outcome, ProducedRecord, Text
    from kproto_server.broker.records import IsolationLevel, TopicRecord
    from kproto_server.broker.thread import RunInBrokerThread
    from kproto_server.broker.topic_description import TopicDescription
    from kproto_server.network.server import Server

TIMEOUT_MS = 60_000
EXPIRE_S = 30.0
RECORDS_A_TURN = 500
"""Records that one turn in the broker's thread appends: 5 ms. Clients are served between two turns."""
CREATE_TOPICS, DELETE_TOPICS, DELETE_RECORDS = 7, 5, 2
"""The newest versions to use: DeleteTopics 6 has another layout."""


class BrokerTopics:
    """The topics of a running broker.

    What clients can ask for (`create`, `delete`, `produce`, `delete_records`) is handled as a client's request is, with
    the errors of a real broker; but no fault rule acts on it, and `Broker.requests` does not have it.
    """

    def __init__(self, run: RunInBrokerThread) -> None:
        self._run = run

    def list(self, *, internal: bool = False) -> tuple[TopicDescription, ...]:
        """Return the topics, sorted by name; with ``internal``, also those of the broker."""

        from kproto_server.broker.topic_description import list_steps

        return run_in_turns(self._run, lambda server: list_steps(server, internal=internal))

    def describe(self, topic: str) -> TopicDescription:
        """Return a topic with its partitions.

        Raises:
            RequestRefused: it does not exist.
        """
        from kproto_server.broker.records import indexed_partitions, topic_named
        from kproto_server.broker.topic_description import described

        def look(server: Server) -> Generator[None, None, TopicDescription]:
            yield from indexed_partitions(server, topic)
            return described(topic_named(server, topic))

        return run_in_turns(self._run, look)

    def create(
        self,
        topic: str,
        *,
        partitions: int | None = None,
        replication_factor: int | None = None,
        configs: Mapping[str, str | int | float | bool] | None = None,
    ) -> TopicDescription:
        """Create a topic, and return it.

        ``partitions``, ``replication_factor``: None: the broker's default; ``configs``: by Kafka's names:
        ``{"retention.ms": 1000}``.

        Raises:
            RequestRefused: the broker refuses it: the name, a number or a config is wrong, or the topic exists.
            UsageError: a number does not fit its field.
        """
        from kproto.messages.k19_create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
        from kproto_server.broker.own_requests import ask, check
        from kproto_server.broker.topic_description import described

        for name, number, limit in (
            ("partitions", partitions, 2**31),
            ("replication_factor", replication_factor, 2**15),
        ):
            if number is not None and (type(number) is not int or not 0 <= number < limit):
                raise UsageError(f"{name} is a number from 0 to {limit - 1}, not {number!r}")
        given = tuple(CreatableTopicConfig(name=name, value=_config(value)) for name, value in (configs or {}).items())

        def create(server: Server) -> TopicDescription:
            defaults = server.state.cluster.defaults  # old releases have no number for them
            creatable = CreatableTopic(
                name=topic,
                num_partitions=defaults.num_partitions if partitions is None else partitions,
                replication_factor=defaults.replication_factor if replication_factor is None else replication_factor,
                assignments=(),
                configs=given,
            )
            (made,) = ask(server, CreateTopicsRequest(topics=(creatable,), timeout_ms=TIMEOUT_MS), CREATE_TOPICS).topics
            check(f"topic {topic!r}", made.error_code, made.error_message)
            return described(server.state.cluster.topics[topic])

        return self._run(create)

    def delete(self, topic: str) -> None:
        """Delete a topic, with what groups have committed for it.

        Raises:
            RequestRefused: the broker refuses it: the topic does not exist, or ``delete.topic.enable`` is false.
        """
        from kproto.messages.k20_delete_topics import DeleteTopicsRequest
        from kproto_server.broker.own_requests import ask, check

        def delete(server: Server) -> None:
            request = DeleteTopicsRequest(topic_names=(topic,), timeout_ms=TIMEOUT_MS)
            (deleted,) = ask(server, request, DELETE_TOPICS).responses
            is_enabled = server.state.settings.current.bool("delete.topic.enable")
            message = deleted.error_message if is_enabled else "delete.topic.enable is false"
            check(f"topic {topic!r}", deleted.error_code, message)

        self._run(delete)

    def produce(
        self,
        topic: str,
        value: Text = None,
        *,
        key: Text = None,
        headers: Mapping[str, Text] | Sequence[tuple[str, Text]] = (),
        timestamp_ms: int | None = None,
        partition: int | None = None,
        records: Sequence[NewRecord | str | bytes] | None = None,
        compression: CompressionName = "none",
        transaction: Outcome | None = None,
        transactional_id: str = "kproto",
    ) -> tuple[ProducedRecord, ...]:
        """Append a record, or ``records``, and return where they are.

        A topic that does not exist is created as for a producer. A text is encoded in UTF-8. Keys choose partitions as
        in Java's producer; records without key go to the partition with the fewest records.

        Args:
            timestamp_ms: None: the broker's time.
            partition: None: of each record, as above.
            records: many records instead of one; ``partition`` is for those that name none.
            transaction: ``"commit"`` or ``"abort"``: the records are in a transaction, which ends so; ``"open"``: it
                stays open, until the next one of its transactional id or its timeout of a minute aborts it.

        Raises:
            RequestRefused: the broker refuses them, or the topic does not exist and is not created.
            EncodeError: the release has no such records.
            MissingPackage: the compression needs a package that is not installed.
            UsageError: an argument is wrong, or the release has no transactions.
        """
        from kproto.records.compression import Compression
        from kproto_server.broker import producing
        from kproto_server.broker.own_requests import when_loaded

        if compression.upper() not in Compression.__members__:
            raise UsageError(f"compression is one of {', '.join(Compression.__members__).lower()}, not {compression!r}")
        if transaction not in (None, "commit", "abort", "open"):
            raise UsageError(f"transaction is commit, abort or open, not {transaction!r}")
        if records is None:
            chosen = [producing.NewRecord(value, key, headers, timestamp_ms, partition)]
        elif any((value is not None, key is not None, headers, timestamp_ms is not None)):
            raise UsageError("value, key, headers and timestamp_ms are those of one record: give them in records")
        else:
            given = [producing.NewRecord(one) if isinstance(one, (str, bytes)) else one for one in records]
            chosen = [one._replace(partition=partition) if one.partition is None else one for one in given]
        codec = Compression[compression.upper()]
        found: list[ProducedRecord] = []
        step = len(chosen) if transaction else RECORDS_A_TURN  # a transaction is begun and ended once
        for start in range(0, len(chosen), max(step, 1)):
            part = chosen[start : start + step]
            found += when_loaded(
                self._run,
                lambda server: producing.produce(server, topic, part, codec, transaction, transactional_id),  # noqa: B023 - called at once
            )
        return tuple(found)

    def records(
        self,
        topic: str,
        *,
        partition: int | None = None,
        offset: int = 0,
        limit: int | None = None,
        newest: bool = False,
        isolation_level: IsolationLevel = "read_uncommitted",
        control: bool = False,
    ) -> tuple[TopicRecord, ...]:
        """Return the records of a topic by partition and offset, decompressed and decoded.

        Args:
            partition: None: all partitions.
            offset: leave out the records before it.
            limit: return so many records at most; None: all.
            newest: with ``limit``, return the newest ones, by timestamp.
            isolation_level: as that of consumers: with ``"read_committed"``, no records of transactions that are open
                or aborted.
            control: also return the markers that end transactions.

        Raises:
            RequestRefused: the topic or the partition does not exist.
            DecodeError: a batch does not have its layout.
            MissingPackage: a compression needs a package that is not installed.
            UsageError: ``limit`` or ``offset`` is no number from 0 on, or there is no such isolation level.
        """
        from kproto_server.broker.records import RecordReader, read_newest, read_oldest

        check_count(offset, "offset")
        if limit is not None:
            check_count(limit, "limit")
        if isolation_level not in ("read_uncommitted", "read_committed"):
            raise UsageError(f"isolation_level is read_uncommitted or read_committed, not {isolation_level!r}")
        reader = RecordReader(self._run, topic, isolation_level, has_control=control)
        if newest and limit is not None:
            return tuple(read_newest(reader, partition, offset, limit))
        return tuple(read_oldest(reader, partition, offset, limit))

    @blocking
    def wait_records(
        self,
        topic: str,
        *,
        count: int = 1,
        partition: int | None = None,
        offset: int = 0,
        isolation_level: IsolationLevel = "read_uncommitted",
        timeout_s: float = 30.0,
    ) -> Wait[tuple[TopicRecord, ...]]:
        """Wait until a topic has ``count`` records, and return all of them as `records` does.

        Raises:
            TimeoutError: it has fewer after ``timeout_s`` of real time; the text has the newest one.
            UsageError: ``count``, ``offset`` or ``timeout_s`` is no number from 0 on, or there is no such isolation
                level.
        """
        from kproto_server.broker.own_requests import RequestRefused
        from kproto_server.broker.topic_description import count_limit

        check_count(count)
        chosen: dict[str, Any] = {"partition": partition, "offset": offset, "isolation_level": isolation_level}

        def describe() -> str:
            try:
                found = self.records(topic, **chosen)
            except RequestRefused as error:
                return f"no records: {error}"
            newest = f"; the newest is {max(found, key=lambda one: one.timestamp_ms)!r}" if found else ""
            return f"topic {topic!r} has {len(found)} records, not {count}{newest}"

        def look() -> tuple[TopicRecord, ...] | NotYet:
            if self._run(lambda server: count_limit(server, topic, partition, offset)) >= count:
                found = self.records(topic, **chosen)
                if len(found) >= count:
                    return found
            return NotYet(describe)

        return Wait(look, timeout_s)

    @in_coroutine(wait_records)
    def wait_records_async(self) -> None:
        """As `wait_records`, for a coroutine: other tasks run meanwhile."""

    def delete_records(
        self, topic: str, *, partition: int | None = None, before_offset: int | None = None
    ) -> dict[tuple[str, int], int]:
        """Delete the records before an offset, as DeleteRecords does; return the first offsets that can be read.

        ``partition``: None: of all partitions; ``before_offset``: None: all records.

        Raises:
            RequestRefused: the broker refuses it: there is no such partition or offset, or the topic is compacted.
            UsageError: ``before_offset`` is no number from 0 on.
        """
        from kproto.messages.k21_delete_records import DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic
        from kproto_server.broker.own_requests import ask, check
        from kproto_server.broker.records import indexed_partitions

        if before_offset is not None:
            check_count(before_offset, "before_offset")
        offset = -1 if before_offset is None else before_offset

        def delete(server: Server) -> Generator[None, None, dict[tuple[str, int], int]]:
            found = {}
            for one in (yield from indexed_partitions(server, topic, partition)):
                part = DeleteRecordsPartition(partition_index=one.index, offset=offset)
                request = DeleteRecordsRequest(
                    topics=(DeleteRecordsTopic(name=topic, partitions=(part,)),), timeout_ms=TIMEOUT_MS
                )
                ((result,),) = (each.partitions for each in ask(server, request, DELETE_RECORDS, one.leader).topics)
                check(f"{topic}-{one.index}", result.error_code)
                found[topic, one.index] = result.low_watermark
            return found

        return run_in_turns(self._run, delete)

    def expire(self, topic: str) -> dict[tuple[str, int], int]:
        """Delete the records that ``retention.ms`` and ``retention.bytes`` do not retain at the broker's time.

        The broker does so itself every ``log.retention.check.interval.ms``. Returns the first offsets that can be read.

        Raises:
            RequestRefused: the topic does not exist.
            TimeoutError: the disk does not remove segments within `EXPIRE_S`.
        """
        from kproto_server.broker.records import indexed_partitions, topic_named
        from kproto_server.log_manager.retention_task import RetentionTask

        def expire(server: Server) -> Generator[None, None, dict[int, int]]:
            yield from indexed_partitions(server, topic)
            (task,) = (one for one in server.periodic_tasks if isinstance(one, RetentionTask))
            return task.check_topic(topic_named(server, topic), server.state.clock.now_ms())

        def offsets(server: Server) -> dict[int, int]:
            return {one.index: one.log_start_offset for one in topic_named(server, topic).partitions}

        expected = run_in_turns(self._run, expire)

        def look() -> dict[tuple[str, int], int] | NotYet:
            found = self._run(offsets)
            if all(found.get(index, end) >= end for index, end in expected.items()):
                return {(topic, index): offset for index, offset in found.items()}
            return NotYet(f"the partitions of {topic!r} begin at {found}, not at {expected}")

        return wait(Wait(look, EXPIRE_S))


def _config(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
