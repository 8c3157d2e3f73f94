"""The scenarios with confluent-kafka (librdkafka)."""

import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from typing import Any

from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, KafkaException, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from tests.clients.drivers.contract import (
    LIBRDKAFKA_SECURITY,
    LIMIT_S,
    METADATA_MAX_BYTES,
    NOTES,
    Run,
    attempts,
    format_record,
    key_of,
    main,
    member_scenarios,
    scenario,
    unsupported,
    value_of,
    wait_until,
)


def consumer(run: Run, **settings: object) -> Consumer:
    return Consumer(
        {
            "bootstrap.servers": run.bootstrap,
            **LIBRDKAFKA_SECURITY,
            "group.id": run.name,
            "enable.auto.commit": False,
            "allow.auto.create.topics": False,
            "auto.offset.reset": "earliest",
            "session.timeout.ms": 6000,
            "heartbeat.interval.ms": 100,
            "fetch.wait.max.ms": 50,
            "topic.metadata.refresh.interval.ms": 500,
            "partition.assignment.strategy": "range",
            **{name.replace("_", "."): value for name, value in settings.items()},
        }
    )


def admin(run: Run) -> AdminClient:
    return AdminClient({"bootstrap.servers": run.bootstrap, **LIBRDKAFKA_SECURITY})


def send(run: Run, count: int, partitions: int = 1, idempotent: bool = False) -> list[Message]:
    """Return the delivered records."""
    producer = Producer(
        {
            "bootstrap.servers": run.bootstrap,
            **LIBRDKAFKA_SECURITY,
            "enable.idempotence": idempotent,
            "acks": "all",
            "linger.ms": 5,
        }
    )
    delivered: list[Message] = []

    def note(error: Any, message: Message) -> None:
        if error is None:
            delivered.append(message)

    for n in range(count):
        producer.produce(run.name, value_of(n), key_of(n), n % partitions, on_delivery=note)
    producer.flush(LIMIT_S)
    return delivered


def take(reader: Consumer, count: int) -> list[Message]:
    found: list[Message] = []
    for _ in attempts(f"{count} records"):
        for message in reader.consume(count - len(found), timeout=0.5):
            if message.error():
                raise KafkaException(message.error())
            found.append(message)
        if len(found) == count:
            return found
    raise AssertionError


def format_records(records: list[Message]) -> list[str]:
    return [format_record(_bytes(record.key()), _bytes(record.value())) for record in records]


def _bytes(found: str | bytes | None) -> bytes | None:
    return found.encode() if isinstance(found, str) else found


def partitions_of(run: Run, *offsets: int) -> list[TopicPartition]:
    return [TopicPartition(run.name, p, offset) for p, offset in enumerate(offsets)]


@contextmanager
def assigned(run: Run, *offsets: int) -> Iterator[Consumer]:
    with closing(consumer(run)) as reader:
        reader.assign(partitions_of(run, *offsets))
        yield reader


@contextmanager
def subscribed(run: Run) -> Iterator[Consumer]:
    with closing(consumer(run)) as reader:
        reader.subscribe([run.name])
        yield reader


def commit(reader: Consumer, *offsets: TopicPartition) -> None:
    error = error_of_commit(reader, *offsets)
    if error:
        raise RuntimeError(f"commit failed with error code {error}")


def error_of_commit(reader: Consumer, *offsets: TopicPartition) -> int:
    try:
        results = reader.commit(offsets=list(offsets), asynchronous=False)
    except KafkaException as error:
        return int(error.args[0].code())
    return next((int(p.error.code()) for p in results or () if p.error is not None), 0)


def committed(reader: Consumer, run: Run, partitions: int = 1) -> list[TopicPartition]:
    found = reader.committed(partitions_of(run, *[0] * partitions), timeout=LIMIT_S)
    return [p for p in found if p.offset >= 0]


class Member:
    """A consumer of the group that polls in its own thread."""

    def __init__(self, run: Run, **settings: object) -> None:
        self.rebalances = 0
        self.revoked: list[int] = []
        self._changed = threading.Condition()
        self._partitions: list[int] = []
        self._is_closing = False
        self._consumer = consumer(run, **settings)
        self._consumer.subscribe([run.name], on_assign=self._on_assign, on_revoke=self._on_revoke)
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._is_closing:
            self._consumer.poll(0.02)
            with self._changed:
                self._partitions = sorted(p.partition for p in self._consumer.assignment())
                self._changed.notify_all()
        self._consumer.close()

    def _on_assign(self, _: Consumer, partitions: list[TopicPartition]) -> None:
        self.rebalances += 1

    def _on_revoke(self, _: Consumer, partitions: list[TopicPartition]) -> None:
        self.revoked = sorted(p.partition for p in partitions)

    def wait(self, count: int) -> list[int]:
        with self._changed:
            if not self._changed.wait_for(lambda: len(self._partitions) == count, LIMIT_S):
                raise TimeoutError(f"{self._partitions} assigned, not {count} partitions")
            return self._partitions

    def close(self) -> None:
        self._is_closing = True
        self._thread.join(LIMIT_S)


def new_member(run: Run, *, instance_id: str | None = None, is_cooperative: bool = False) -> Member:
    instance = {} if instance_id is None else {"group_instance_id": instance_id}
    assignor = {"partition_assignment_strategy": "cooperative-sticky"} if is_cooperative else {}
    return Member(run, **instance, **assignor)


member_scenarios(new_member)


@scenario
def create_topic(run: Run) -> None:
    client = admin(run)

    def created() -> int:
        try:
            client.create_topics([NewTopic(run.name, 3, 1)])[run.name].result(LIMIT_S)
        except KafkaException as error:
            return int(error.args[0].code())
        return 0

    if created() != 0:
        raise RuntimeError("not created")
    wait_until(lambda: run.name in client.list_topics(timeout=LIMIT_S).topics, "the topic")
    run.report("partitions", len(client.list_topics(timeout=LIMIT_S).topics[run.name].partitions))
    run.report("again", created())


@scenario
def produce_100(run: Run) -> None:
    acks = send(run, 100, partitions=2)
    run.report("acknowledged", len(acks))
    run.report("last", [max(ack.offset() or 0 for ack in acks if ack.partition() == p) for p in range(2)])
    with assigned(run, 0, 0) as reader:
        records = take(reader, 100)
    run.report("read", [format_records([r for r in records if r.partition() == p]) for p in range(2)])


@scenario
def idempotent_produce(run: Run) -> None:
    acks = send(run, 100, idempotent=True)
    run.report("acknowledged", len(acks))
    run.report("last", max(ack.offset() or 0 for ack in acks))
    with assigned(run, 0) as reader:
        run.report("read", format_records(take(reader, 100)))


@scenario
def consume_and_commit(run: Run) -> None:
    send(run, 10)
    read, found = [], []
    with subscribed(run) as reader:
        for _ in range(2):
            read += take(reader, 5)
            commit(reader, *partitions_of(run, len(read)))
            found.append(committed(reader, run)[0].offset)
    run.report("read", format_records(read))
    run.report("committed", found)


@scenario
def restart_and_continue(run: Run) -> None:
    send(run, 10)
    with subscribed(run) as reader:
        run.report("first", format_records(take(reader, 4)))
        commit(reader, *partitions_of(run, 4))
    with subscribed(run) as reader:
        run.report("second", format_records(take(reader, 6)))


@scenario
def rewind(run: Run) -> None:
    send(run, 10)
    with assigned(run, 0) as reader:
        take(reader, 10)
        commit(reader, *partitions_of(run, 10))
        reader.seek(TopicPartition(run.name, 0, 3))
        run.report("after_seek", format_records(take(reader, 1))[0])
        commit(reader, *partitions_of(run, 2))
        run.report("committed", committed(reader, run)[0].offset)
    with subscribed(run) as reader:
        run.report("after_commit", format_records(take(reader, 1))[0])


@scenario
def commit_with_metadata(run: Run) -> None:
    with closing(consumer(run)) as reader:
        run.report("before", noted(reader, run))
        commit(reader, *(TopicPartition(run.name, p, *note) for p, note in NOTES.items()))
    with closing(consumer(run)) as reader:
        run.report("committed", noted(reader, run))
        commit(reader, TopicPartition(run.name, 0, 2, "new"))
        run.report("replaced", noted(reader, run))


def noted(reader: Consumer, run: Run) -> dict[str, list[object]]:
    return {str(p.partition): [p.offset, p.metadata] for p in committed(reader, run, 2)}


@scenario
def metadata_too_large(run: Run) -> None:
    """The client appends a byte to the metadata, so the largest accepted text has one byte less."""
    with closing(consumer(run)) as reader:
        commit(reader, TopicPartition(run.name, 0, 1, "x" * (METADATA_MAX_BYTES - 1)))
        run.report("error", error_of_commit(reader, TopicPartition(run.name, 0, 2, "x" * (METADATA_MAX_BYTES + 1))))
        (found,) = committed(reader, run)
    run.report("committed", found.offset)
    run.report("length", len(found.metadata or ""))


@scenario
def unknown_topic(run: Run) -> None:
    with closing(consumer(run)) as reader:
        run.report("error", error_of_commit(reader, *partitions_of(run, 0)))


@scenario
def lag(run: Run) -> None:
    send(run, 10)
    with closing(consumer(run)) as reader:
        commit(reader, *partitions_of(run, 4))
        (found,) = committed(reader, run)
        beginning, end = reader.get_watermark_offsets(TopicPartition(run.name, 0), timeout=LIMIT_S)
    run.report("beginning", beginning)
    run.report("end", end)
    run.report("committed", found.offset)
    run.report("lag", end - found.offset)


def commit_alone(run: Run, *offsets: int) -> None:
    with closing(consumer(run)) as reader:
        commit(reader, *partitions_of(run, *offsets))


def transactional(run: Run, timeout_ms: int = 60_000) -> Producer:
    settings = {
        "bootstrap.servers": run.bootstrap,
        **LIBRDKAFKA_SECURITY,
        "transactional.id": run.name,
        "transaction.timeout.ms": timeout_ms,
        "linger.ms": 5,
    }
    producer = Producer(settings)
    producer.init_transactions(LIMIT_S)
    return producer


def begin(producer: Producer, run: Run, number: int) -> None:
    producer.begin_transaction()
    producer.produce(run.name, value_of(number), key_of(number), 0)
    producer.flush(LIMIT_S)


@contextmanager
def committed_reader(run: Run, partition: int) -> Iterator[Consumer]:
    with closing(consumer(run, isolation_level="read_committed")) as reader:
        reader.assign([TopicPartition(run.name, partition, 0)])
        yield reader


def error_of(call: Callable[[float], object]) -> int:
    try:
        call(LIMIT_S)
    except KafkaException as error:
        return int(error.args[0].code())
    return 0


@scenario
def exactly_once(run: Run) -> None:
    send(run, 6)
    producer = transactional(run)
    with committed_reader(run, 0) as reader:
        for number in range(6):
            for commits in (False, True) if number % 2 else (True,):
                (record,) = take(reader, 1)
                producer.begin_transaction()
                producer.produce(run.name, record.value(), record.key(), 1)
                after = TopicPartition(run.name, 0, (record.offset() or 0) + 1)
                producer.send_offsets_to_transaction([after], reader.consumer_group_metadata(), LIMIT_S)
                (producer.commit_transaction if commits else producer.abort_transaction)(LIMIT_S)
                if not commits:
                    reader.seek(TopicPartition(run.name, 0, record.offset() or 0))
        run.report("committed", committed(reader, run)[0].offset)
    with committed_reader(run, 1) as reader:
        run.report("copied", format_records(take(reader, 6)))


@scenario
def fenced_producer(run: Run) -> None:
    first = transactional(run)
    begin(first, run, 0)
    second = transactional(run)
    begin(second, run, 1)
    run.report("error", error_of(first.commit_transaction))
    second.commit_transaction(LIMIT_S)
    with committed_reader(run, 0) as reader:
        run.report("read", format_records(take(reader, 1)))


@scenario
def transaction_timeout(run: Run) -> None:
    producer = transactional(run, timeout_ms=1000)
    begin(producer, run, 0)
    plain = Producer({"bootstrap.servers": run.bootstrap, **LIBRDKAFKA_SECURITY, "linger.ms": 5})
    plain.produce(run.name, value_of(1), key_of(1), 0)
    plain.flush(LIMIT_S)
    with committed_reader(run, 0) as reader:
        run.report("read", format_records(take(reader, 1)))
    run.report("error", error_of(producer.commit_transaction))


@scenario
def list_groups(run: Run) -> None:
    commit_alone(run, 1)
    run.report("listed", is_listed(admin(run), run.name))


def is_listed(client: AdminClient, group: str) -> bool:
    return group in [found.group_id for found in client.list_consumer_groups().result(LIMIT_S).valid]


@scenario
def describe_group(run: Run) -> None:
    client = admin(run)

    def described() -> Any:
        return client.describe_consumer_groups([run.name])[run.name].result(LIMIT_S)

    member = Member(run)
    member.wait(2)
    group = described()
    run.report("state", group.state.name.title())
    run.report("members", len(group.members))
    run.report("assigned", sorted(p.partition for p in group.members[0].assignment.topic_partitions))
    member.close()
    wait_until(lambda: not described().members, "a group without members")
    run.report("then", described().state.name.title())


@scenario
def delete_group(run: Run) -> None:
    client = admin(run)
    commit_alone(run, 1)

    def deleted() -> int:
        try:
            client.delete_consumer_groups([run.name])[run.name].result(LIMIT_S)
        except KafkaException as error:
            return int(error.args[0].code())
        return 0

    member = Member(run)
    member.wait(1)
    run.report("busy", deleted())
    member.close()
    run.report("deleted", deleted())
    run.report("listed", is_listed(client, run.name))
    run.report("again", deleted())


@scenario
def list_group_offsets(run: Run) -> None:
    commit_alone(run, 3, 7)
    client = admin(run)
    (future,) = client.list_consumer_group_offsets([ConsumerGroupTopicPartitions(run.name)]).values()
    run.report("offsets", {str(p.partition): p.offset for p in future.result(LIMIT_S).topic_partitions})


unsupported("delete-offsets", "its admin client does not delete offsets")
main()
