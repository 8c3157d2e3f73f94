"""The scenarios with kafka-python."""

import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from functools import partial
from typing import Any

from kafka import ConsumerRebalanceListener, KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from kafka import errors as kafka_errors
from kafka.admin import NewTopic
from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor
from kafka.coordinator.assignors.range import RangePartitionAssignor
from kafka.structs import OffsetAndMetadata

from tests.clients.drivers.contract import (
    LIMIT_S,
    METADATA_MAX_BYTES,
    NOTES,
    SECURITY,
    Run,
    attempts,
    format_record,
    key_of,
    main,
    member_scenarios,
    scenario,
    value_of,
    wait_until,
)

NAMES = {
    "SECURITY_PROTOCOL": "security_protocol",
    "SSL_CA_LOCATION": "ssl_cafile",
    "SASL_MECHANISM": "sasl_mechanism",
    "SASL_USERNAME": "sasl_plain_username",
    "SASL_PASSWORD": "sasl_plain_password",
}
SECURED: dict[str, Any] = {NAMES[name]: value for name, value in SECURITY.items()}


def consumer(run: Run, group: bool = True, **settings: Any) -> KafkaConsumer:
    return KafkaConsumer(
        bootstrap_servers=run.bootstrap,
        **SECURED,
        group_id=run.name if group else None,
        enable_auto_commit=False,
        auto_offset_reset="earliest",
        fetch_max_wait_ms=50,
        heartbeat_interval_ms=100,
        session_timeout_ms=6000,
        allow_auto_create_topics=False,
        **{"partition_assignment_strategy": [RangePartitionAssignor], **settings},
    )


def admin(run: Run) -> "closing[KafkaAdminClient]":
    return closing(KafkaAdminClient(bootstrap_servers=run.bootstrap, **SECURED))


def send(run: Run, count: int, partitions: int = 1, idempotent: bool = False) -> list[Any]:
    """Return the acknowledgment of each record."""
    with closing(
        KafkaProducer(bootstrap_servers=run.bootstrap, **SECURED, acks="all", enable_idempotence=idempotent)
    ) as producer:
        sent = [
            producer.send(run.name, key=key_of(n), value=value_of(n), partition=n % partitions) for n in range(count)
        ]
        producer.flush(LIMIT_S)
        return [future.get(LIMIT_S) for future in sent]


def take(reader: KafkaConsumer, count: int) -> list[Any]:
    """Return the next `count` records."""
    found: list[Any] = []
    for _ in attempts(f"{count} records"):
        for records in reader.poll(timeout_ms=500, max_records=count - len(found)).values():
            found += records
        if len(found) == count:
            return found
    raise AssertionError


def format_records(records: list[Any]) -> list[str]:
    return [format_record(record.key, record.value) for record in records]


def partitions_of(run: Run, count: int) -> list[TopicPartition]:
    return [TopicPartition(run.name, p) for p in range(count)]


def offset(number: int, metadata: str = "") -> OffsetAndMetadata:
    return OffsetAndMetadata(number, metadata, -1)


@contextmanager
def assigned(run: Run, partitions: int, group: bool = True) -> Iterator[tuple[KafkaConsumer, list[TopicPartition]]]:
    with closing(consumer(run, group)) as reader:
        reader.assign(partitions_of(run, partitions))
        yield reader, partitions_of(run, partitions)


@contextmanager
def subscribed(run: Run) -> Iterator[KafkaConsumer]:
    with closing(consumer(run)) as reader:
        reader.subscribe([run.name])
        yield reader


def commit(run: Run, *offsets: int) -> None:
    with assigned(run, len(offsets)) as (reader, partitions):
        reader.commit({p: offset(o) for p, o in zip(partitions, offsets, strict=True)})


class Member(ConsumerRebalanceListener):  # type: ignore[misc]  # the library has no types
    """A consumer of the group that polls in its own thread."""

    def __init__(self, run: Run, **settings: Any) -> None:
        self.rebalances = 0
        self.revoked: list[int] = []
        self._changed = threading.Condition()
        self._partitions: set[int] = set()
        self._is_closing = False
        self._consumer = consumer(run, metadata_max_age_ms=500, **settings)
        self._consumer.subscribe([run.name], listener=self)
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._is_closing:
            # A poll that ends during its rebalance loses the assignment, in 3.0.12, with real brokers too.
            self._consumer.poll(timeout_ms=1000)
        self._consumer.close()

    def on_partitions_revoked(self, revoked: set[TopicPartition]) -> None:
        with self._changed:
            self.revoked = sorted(p.partition for p in revoked)
            self._partitions -= set(self.revoked)
            self._changed.notify_all()

    def on_partitions_assigned(self, assigned: set[TopicPartition]) -> None:
        with self._changed:
            self.rebalances += 1
            self._partitions |= {p.partition for p in assigned}
            self._changed.notify_all()

    def wait(self, count: int) -> list[int]:
        with self._changed:
            if not self._changed.wait_for(lambda: len(self._partitions) == count, LIMIT_S):
                raise TimeoutError(f"{self._partitions} assigned, not {count} partitions")
            return sorted(self._partitions)

    def close(self) -> None:
        self._is_closing = True
        self._thread.join(LIMIT_S)


def new_member(run: Run, *, instance_id: str | None = None, is_cooperative: bool = False) -> Member:
    instance = {} if instance_id is None else {"group_instance_id": instance_id}
    assignor = {"partition_assignment_strategy": [CooperativeStickyAssignor]} if is_cooperative else {}
    return Member(run, **instance, **assignor)


member_scenarios(new_member)


@scenario
def create_topic(run: Run) -> None:
    with admin(run) as client:
        client.create_topics([NewTopic(run.name, 3, 1)])
        for _ in attempts("the topic"):
            found = [t for t in client.describe_topics() if t["name"] == run.name]
            if found:
                break
        run.report("partitions", len(found[0]["partitions"]))
        run.report("again", error_of(partial(client.create_topics, [NewTopic(run.name, 3, 1)])))


def error_of(call: Callable[[], object]) -> int:
    try:
        call()
    except kafka_errors.BrokerResponseError as error:
        return int(error.errno)
    return 0


@scenario
def produce_100(run: Run) -> None:
    acks = send(run, 100, partitions=2)
    run.report("acknowledged", len(acks))
    run.report("last", [max(ack.offset for ack in acks if ack.partition == p) for p in range(2)])
    with assigned(run, 2, group=False) as (reader, _):
        records = take(reader, 100)
    run.report("read", [format_records([r for r in records if r.partition == p]) for p in range(2)])


@scenario
def idempotent_produce(run: Run) -> None:
    acks = send(run, 100, idempotent=True)
    run.report("acknowledged", len(acks))
    run.report("last", max(ack.offset for ack in acks))
    with assigned(run, 1, group=False) as (reader, _):
        run.report("read", format_records(take(reader, 100)))


@scenario
def consume_and_commit(run: Run) -> None:
    send(run, 10)
    (partition,) = partitions_of(run, 1)
    read, committed = [], []
    with subscribed(run) as reader:
        for _ in range(2):
            read += take(reader, 5)
            reader.commit({partition: offset(read[-1].offset + 1)})
            committed.append(reader.committed(partition))
    run.report("read", format_records(read))
    run.report("committed", committed)


@scenario
def restart_and_continue(run: Run) -> None:
    send(run, 10)
    with subscribed(run) as reader:
        run.report("first", format_records(take(reader, 4)))
        reader.commit({TopicPartition(run.name, 0): offset(4)})
    with subscribed(run) as reader:
        run.report("second", format_records(take(reader, 6)))


@scenario
def rewind(run: Run) -> None:
    send(run, 10)
    with assigned(run, 1) as (reader, (partition,)):
        take(reader, 10)
        reader.commit({partition: offset(10)})
        reader.seek(partition, 3)
        run.report("after_seek", format_records(take(reader, 1))[0])
        reader.commit({partition: offset(2)})
        run.report("committed", reader.committed(partition))
    with subscribed(run) as reader:
        run.report("after_commit", format_records(take(reader, 1))[0])


@scenario
def commit_with_metadata(run: Run) -> None:
    with assigned(run, 2) as (reader, partitions):
        run.report("before", noted(reader, partitions))
        reader.commit({TopicPartition(run.name, p): offset(*note) for p, note in NOTES.items()})
    with assigned(run, 2) as (reader, partitions):
        run.report("committed", noted(reader, partitions))
        reader.commit({partitions[0]: offset(2, "new")})
        run.report("replaced", noted(reader, partitions))


def noted(reader: KafkaConsumer, partitions: list[TopicPartition]) -> dict[str, list[object]]:
    found = {p.partition: reader.committed(p, metadata=True) for p in partitions}
    return {str(p): [c.offset, c.metadata] for p, c in found.items() if c is not None}


@scenario
def metadata_too_large(run: Run) -> None:
    with assigned(run, 1) as (reader, (partition,)):
        reader.commit({partition: offset(1, "x" * METADATA_MAX_BYTES)})
        run.report("error", error_of(lambda: reader.commit({partition: offset(2, "x" * (METADATA_MAX_BYTES + 1))})))
        found = reader.committed(partition, metadata=True)
    run.report("committed", found.offset)
    run.report("length", len(found.metadata))


@scenario
def unknown_topic(run: Run) -> None:
    """commit() repeats until it times out, so the driver sends a single asynchronous commit."""
    partition = TopicPartition(run.name, 0)
    with closing(consumer(run)) as reader:
        reader.committed(partition)  # finds the coordinator: commit_async does not wait for it
        future = reader.commit_async({partition: offset(0)})
        for _ in attempts("the response to the commit"):
            if future.is_done:
                break
            reader.poll(timeout_ms=100)
        run.report("error", future.exception.errno)


@scenario
def lag(run: Run) -> None:
    send(run, 10)
    with assigned(run, 1) as (reader, (partition,)):
        reader.commit({partition: offset(4)})
        end, committed = reader.end_offsets([partition])[partition], reader.committed(partition)
        run.report("beginning", reader.beginning_offsets([partition])[partition])
    run.report("end", end)
    run.report("committed", committed)
    run.report("lag", end - committed)


def transactional(run: Run, timeout_ms: int = 60_000) -> KafkaProducer:
    producer = KafkaProducer(
        bootstrap_servers=run.bootstrap, **SECURED, transactional_id=run.name, transaction_timeout_ms=timeout_ms
    )
    producer.init_transactions()
    return producer


def begin(producer: KafkaProducer, run: Run, number: int) -> None:
    producer.begin_transaction()
    producer.send(run.name, key=key_of(number), value=value_of(number), partition=0).get(LIMIT_S)


@contextmanager
def committed_reader(run: Run, partition: int, group: bool = False) -> Iterator[KafkaConsumer]:
    with closing(consumer(run, group, isolation_level="read_committed")) as reader:
        reader.assign([TopicPartition(run.name, partition)])
        yield reader


@scenario
def exactly_once(run: Run) -> None:
    send(run, 6)
    source = TopicPartition(run.name, 0)
    with closing(transactional(run)) as producer, committed_reader(run, 0, group=True) as reader:
        for number in range(6):
            for commits in (False, True) if number % 2 else (True,):
                (record,) = take(reader, 1)
                producer.begin_transaction()
                producer.send(run.name, key=record.key, value=record.value, partition=1)
                producer.send_offsets_to_transaction({source: offset(record.offset + 1)}, run.name)
                (producer.commit_transaction if commits else producer.abort_transaction)()
                if not commits:
                    reader.seek(source, record.offset)
        run.report("committed", reader.committed(source))
    with committed_reader(run, 1) as reader:
        run.report("copied", format_records(take(reader, 6)))


@scenario
def fenced_producer(run: Run) -> None:
    first = transactional(run)
    begin(first, run, 0)
    with closing(transactional(run)) as second:
        begin(second, run, 1)
        run.report("error", error_of(first.commit_transaction))
        second.commit_transaction()
    with committed_reader(run, 0) as reader:
        run.report("read", format_records(take(reader, 1)))
    first.close(0)


@scenario
def transaction_timeout(run: Run) -> None:
    producer = transactional(run, timeout_ms=1000)
    begin(producer, run, 0)
    with closing(KafkaProducer(bootstrap_servers=run.bootstrap, **SECURED)) as plain:
        plain.send(run.name, key=key_of(1), value=value_of(1), partition=0).get(LIMIT_S)
    with committed_reader(run, 0) as reader:
        run.report("read", format_records(take(reader, 1)))
    run.report("error", error_of(producer.commit_transaction))
    producer.close(0)


@scenario
def list_groups(run: Run) -> None:
    commit(run, 1)
    with admin(run) as client:
        run.report("listed", is_listed(client, run.name))


def is_listed(client: KafkaAdminClient, group: str) -> bool:
    return group in [found["group_id"] for found in client.list_groups()]


@scenario
def describe_group(run: Run) -> None:
    with admin(run) as client:

        def described() -> Any:
            return client.describe_groups([run.name])[run.name]

        member = Member(run)
        member.wait(2)
        wait_until(lambda: described()["group_state"] == "Stable", "a stable group")
        group = described()
        run.report("state", group["group_state"])
        run.report("members", len(group["members"]))
        (topic,) = group["members"][0]["member_assignment"]["assigned_partitions"]
        run.report("assigned", sorted(topic["partitions"]))
        member.close()
        wait_until(lambda: not described()["members"], "a group without members")
        run.report("then", described()["group_state"])


@scenario
def delete_group(run: Run) -> None:
    commit(run, 1)
    with admin(run) as client:

        def deleted() -> int:
            name = client.delete_groups([run.name])[run.name]
            return 0 if name == "OK" else int(getattr(kafka_errors, name).errno)

        member = Member(run)
        member.wait(1)
        run.report("busy", deleted())
        member.close()
        run.report("deleted", deleted())
        run.report("listed", is_listed(client, run.name))
        run.report("again", deleted())


@scenario
def list_group_offsets(run: Run) -> None:
    commit(run, 3, 7)
    with admin(run) as client:
        run.report("offsets", offsets_of(client, run.name))


def offsets_of(client: KafkaAdminClient, group: str) -> dict[str, int]:
    return {str(p.partition): found.offset for p, found in client.list_group_offsets(group)[group].items()}


@scenario
def delete_offsets(run: Run) -> None:
    commit(run, 3, 7)
    partition = TopicPartition(run.name, 0)
    with admin(run) as client:

        def deleted() -> int:
            return int(client.delete_group_offsets(run.name, [partition])[partition].errno)

        member = Member(run)
        member.wait(2)
        run.report("busy", deleted())
        member.close()
        run.report("deleted", deleted())
        run.report("left", offsets_of(client, run.name))


main()
