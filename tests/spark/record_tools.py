"""Record logs of real brokers with what Kafka's own tools print about them, in `fixtures/offsets-logs/kafka-tools`.

    python -m tests.spark.record_tools [RELEASE...]

While members of a group and a transaction are open, the tools of the release describe groups, offsets and transactions;
then the broker is killed, its log is copied, and the dump tool prints each segment. The output of a tool is
`NAME.txt` in the directory of the release. `kafka tool` says whose tools run: those of 4.2.2 for 4.4.0.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from tests.examples.two_weeks import DAY_MS
from tests.oracle.cluster import Cluster, kafka, real_kafka
from tests.spark.record_logs import KEPT, TARGET, commit, copy, make_topic
from tests.waiting import wait_until

FOLDER = TARGET / "kafka-tools"
RELEASES = ("0.10.2.2", "1.1.1", "2.0.1", "2.8.2", "4.4.0")
SETTINGS = {
    "offsets.topic.num.partitions": "2",
    "transaction.state.log.num.partitions": "1",
    "num.partitions": "3",
    "group.initial.rebalance.delay.ms": "0",
}
OFFSETS, TRANSACTIONS, TOPIC = "__consumer_offsets", "__transaction_state", "orders"
GROUPS = ("billing", "audit", "readers", "transfers")
MODERN = "modern"
"""A group of KIP-848, on 4.4.0."""


def number(release: str) -> tuple[int, ...]:
    return tuple(map(int, release.split(".")))


def has_transactions(release: str) -> bool:
    return number(release) >= (0, 11)


def produce(servers: str) -> None:
    """Produce 40 records to one partition, 25 to another, and none to the third."""
    from confluent_kafka import Producer

    producer = Producer({"bootstrap.servers": servers, "batch.num.messages": 5})
    for partition, count in ((0, 40), (1, 25)):
        for one in range(count):
            producer.produce(TOPIC, f"record {one}".encode(), partition=partition)
        assert producer.flush(30) == 0


def commits(servers: str) -> None:
    """Commit forwards and backwards, and with a retention."""
    for offset in (5, 12, 9, 12, 30):
        commit(servers, "billing", TOPIC, offset)
    commit(servers, "audit", TOPIC, 40, retention_ms=28 * DAY_MS)
    commit(servers, "deleted", TOPIC, 3)


def delete_group(servers: str) -> None:
    from kafka import KafkaAdminClient

    admin = KafkaAdminClient(bootstrap_servers=servers)
    admin.delete_groups(["deleted"])
    admin.close()


@contextmanager
def members(servers: str, group: str, **settings: str) -> Iterator[None]:
    """Let two members join one after the other and commit what they own; they stay until the end."""
    from confluent_kafka import Consumer, TopicPartition

    with ExitStack() as stack:
        joined: list[Consumer] = []
        for _ in range(2):
            member = Consumer(
                {"bootstrap.servers": servers, "group.id": group, "enable.auto.commit": False, **settings}
            )
            stack.callback(close, member)
            member.subscribe([TOPIC])
            joined.append(member)

            def is_balanced() -> bool:
                for one in joined:
                    one.poll(0.05)
                owned = [len(one.assignment()) for one in joined]
                return sum(owned) == 3 and all(owned)

            wait_until(is_balanced, f"the assignment of {group}")
        for member in joined:
            for owned in member.assignment():
                wanted = TopicPartition(TOPIC, owned.partition, 2 * owned.partition)
                member.commit(offsets=[wanted], asynchronous=False)
        yield


def close(member: object) -> None:
    with suppress(Exception):  # the broker is gone
        member.close()  # type: ignore[attr-defined]  # of confluent-kafka, which has no types


@contextmanager
def transactions(servers: str) -> Iterator[None]:
    """Commit offsets in two transactions; the second one stays open."""
    from confluent_kafka import Consumer, Producer, TopicPartition

    commit(servers, "transfers", TOPIC, 4)
    consumer = Consumer({"bootstrap.servers": servers, "group.id": "transfers"})
    metadata = consumer.consumer_group_metadata()
    producers = []
    for name, offset in (("done", 7), ("open", 11)):
        settings = {"bootstrap.servers": servers, "transactional.id": name, "transaction.timeout.ms": 600_000}
        producer = Producer(settings)
        producer.init_transactions(30)
        producer.begin_transaction()
        producer.send_offsets_to_transaction([TopicPartition(TOPIC, 0, offset)], metadata, 30)
        if name == "done":
            producer.commit_transaction(30)
        producers.append(producer)
    yield
    consumer.close()


def ask_tools(cluster: Cluster, save: Callable[[str, str], None]) -> None:
    """Save what the tools print about the running broker."""
    release, servers = cluster.version, cluster.bootstrap
    groups = [*GROUPS, *([MODERN] if number(release) >= (4,) else [])]
    for group in groups if has_transactions(release) else groups[:3]:
        old = ["--new-consumer"] if number(release) < (1,) else []
        words = [*old, "--bootstrap-server", servers, "--describe", "--group", group]
        save(f"describe-{group}", kafka("tool", release, "ConsumerGroupCommand", *words))
    to = "--bootstrap-server" if number(release) >= (4,) else "--broker-list"
    save("ends", kafka("tool", release, "GetOffsetShell", to, servers, "--topic", TOPIC, "--time", "-1"))
    if number(release) >= (3,):
        listed = ["TransactionsCommand", "--bootstrap-server", servers]
        save("transactions", kafka("tool", release, *listed, "list"))
        for name in ("done", "open"):
            save(f"transaction-{name}", kafka("tool", release, *listed, "describe", "--transactional-id", name))


def dump(release: str, log: Path, save: Callable[[str, str], None]) -> None:
    """Save what the dump tool prints about each segment."""
    decoders = {OFFSETS: ["--offsets-decoder"], TRANSACTIONS: ["--transaction-log-decoder"], TOPIC: []}
    for partition in sorted(path for path in log.iterdir() if path.is_dir()):
        (segment,) = partition.glob("*.log")
        words = ["--files", str(segment), *decoders[partition.name.rpartition("-")[0]]]
        printed = kafka("tool", release, "DumpLogSegments", *words)
        save(f"dump-{partition.name}", printed.replace(str(log), "."))


def record(release: str) -> None:
    target = FOLDER / release

    def save(name: str, printed: str) -> None:
        (target / f"{name}.txt").write_text(printed + "\n", encoding="utf-8")

    asked: dict[str, str] = {}
    topics = (OFFSETS, TOPIC, *((TRANSACTIONS,) if has_transactions(release) else ()))
    with real_kafka(release, props=SETTINGS) as cluster, ExitStack() as stack:
        servers = cluster.bootstrap
        make_topic(servers, TOPIC)
        produce(servers)
        commits(servers)
        if number(release) >= (1, 1):
            delete_group(servers)
        if has_transactions(release):
            stack.enter_context(transactions(servers))
        stack.enter_context(members(servers, "readers"))
        if number(release) >= (4,):
            stack.enter_context(members(servers, MODERN, **{"group.protocol": "consumer"}))
        ask_tools(cluster, asked.__setitem__)
        cluster.kill(1)
        copy(cluster.folder / "node-1" / "data", target, topics, KEPT)
        stack.close()
    for name, printed in asked.items():
        save(name, printed)
    dump(release, target, save)


if __name__ == "__main__":
    for release in sys.argv[1:] or RELEASES:
        record(release)
