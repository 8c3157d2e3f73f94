"""Record the offsets logs of real brokers in `fixtures/offsets-logs`: one directory for each situation and release.

    python -m tests.spark.record_logs [SITUATION...]

Situation `recreated` also records `before-recreation`, the log before its topic was deleted.

Each broker is fresh and alone and has one partition of the offsets topic, if its situation does not say otherwise. What
is kept of its data directory: segments, checkpoints and metadata files of the offsets topic and of the topics of the
situation, and indexes where the situation is about them.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from kproto.messages.k03_metadata import MetadataRequest, MetadataRequestTopic
from kproto.messages.k08_offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kproto.messages.k10_find_coordinator import FindCoordinatorRequest
from kproto.messages.k20_delete_topics import DeleteTopicsRequest
from kproto.messages.k47_offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from tests.examples.two_weeks import DAY_MS, OldClient
from tests.fixture_files import FIXTURES
from tests.oracle.cluster import Cluster, real_kafka
from tests.waiting import wait_until

TARGET = FIXTURES / "offsets-logs"
KEPT = (".log", "checkpoint", ".metadata", "meta.properties")
SETTINGS = {"offsets.topic.num.partitions": "1", "num.partitions": "1"}

RETENTIONS = {
    "no-request": (2, [-1]),
    "a-day": (2, [DAY_MS]),
    "a-month": (3, [28 * DAY_MS]),
    "a-bit-more": (4, [28 * DAY_MS + 1]),
    "changing": (4, [60 * DAY_MS, -1, 3600_000]),
}
"""By group: the version of OffsetCommit, and the `retention_time_ms` of each."""


class Situation(NamedTuple):
    """What happens at the brokers of some releases."""

    releases: Mapping[str, Mapping[str, str]]
    """The settings by directory name, which begins with the release."""
    act: Callable[[Cluster], None]
    topics: tuple[str, ...]
    kept: tuple[str, ...] = KEPT
    """The ends of the names of the files that are kept."""


def commit(servers: str, group: str, topic: str, offset: int, *, version: int = 2, retention_ms: int = -1) -> None:
    """Commit an offset of partition 0, again until the group has a coordinator."""
    partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=offset, committed_metadata="")
    topics = (OffsetCommitRequestTopic(name=topic, partitions=(partition,)),)
    request = OffsetCommitRequest(group_id=group, retention_time_ms=retention_ms, topics=topics)
    with OldClient(servers, group) as client:

        def is_committed() -> bool:
            client.ask(FindCoordinatorRequest(key=group), 0)
            error_code: int = client.ask(request, version).topics[0].partitions[0].error_code
            return error_code == 0

        wait_until(is_committed, f"the commit of {group}")


def make_topic(servers: str, topic: str) -> None:
    """Let the broker create a topic, as all releases do on a Metadata request."""
    with OldClient(servers, "admin") as client:
        request = MetadataRequest(topics=(MetadataRequestTopic(name=topic),))
        wait_until(lambda: client.ask(request, 0).topics[0].error_code == 0, topic)


def produce(servers: str, topic: str, count: int) -> None:
    from confluent_kafka import Producer

    producer = Producer({"bootstrap.servers": servers})
    for number in range(count):
        producer.produce(topic, f"record {number}".encode(), partition=0)
    assert producer.flush(30) == 0


def requested_retentions(cluster: Cluster) -> None:
    make_topic(cluster.bootstrap, "orders")
    produce(cluster.bootstrap, "orders", 7)
    for group, (version, retentions) in RETENTIONS.items():
        for retention_ms in retentions:
            commit(cluster.bootstrap, group, "orders", 3, version=version, retention_ms=retention_ms)


def compacted(cluster: Cluster) -> None:
    """Commit 201 times, 28 times with a retention; delete a group with a retention; wait for the cleaner."""
    from kafka import KafkaAdminClient

    servers = cluster.bootstrap
    make_topic(servers, "orders")
    commit(servers, "deleted", "orders", 1, retention_ms=40 * DAY_MS)
    for number in range(201):
        commit(servers, "seasonal", "orders", number, retention_ms=60 * DAY_MS if 50 <= number < 78 else -1)
    admin = KafkaAdminClient(bootstrap_servers=servers)
    admin.delete_groups(["deleted"])
    admin.close()
    folder = cluster.folder / "node-1" / "data" / "__consumer_offsets-0"
    before = segments(folder)
    for number in range(40):
        commit(servers, "filler", "orders", number)
    wait_until(lambda: segments(folder) < before, "the cleaner")


def segments(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.glob("*.log"))


def old_format(cluster: Cluster) -> None:
    make_topic(cluster.bootstrap, "orders")
    version = 1 if cluster.version.startswith("0.8") else 2
    for number in range(5):
        for group in ("billing", "search"):
            retention_ms = DAY_MS if number == 2 and version == 2 else -1
            commit(cluster.bootstrap, group, "orders", number, version=version, retention_ms=retention_ms)


def no_records(cluster: Cluster) -> None:
    """Commit to a topic without records, and to one whose records all expire."""
    servers = cluster.bootstrap
    for topic in ("empty", "emptied"):
        make_topic(servers, topic)
    produce(servers, "emptied", 204)
    commit(servers, "readers", "empty", 0)
    commit(servers, "readers", "emptied", 100)
    folder = cluster.folder / "node-1" / "data" / "emptied-0"
    wait_until(lambda: [path.name for path in folder.glob("*.log")] == [f"{204:020}.log"], "the deletion of segments")


def open_transaction(cluster: Cluster) -> None:
    """Leave a transaction open that goes back to a lower offset, with commits of other groups after it."""
    from confluent_kafka import Consumer, Producer, TopicPartition

    servers = cluster.bootstrap
    make_topic(servers, "orders")
    commit(servers, "plain", "orders", 1)
    commit(servers, "transactional", "orders", 20)
    producer = Producer({"bootstrap.servers": servers, "transactional.id": "t", "transaction.timeout.ms": 600_000})
    producer.init_transactions(30)
    consumer = Consumer({"bootstrap.servers": servers, "group.id": "transactional"})
    producer.begin_transaction()
    metadata = consumer.consumer_group_metadata()
    producer.send_offsets_to_transaction([TopicPartition("orders", 0, 5)], metadata, 30)
    commit(servers, "plain", "orders", 2)
    commit(servers, "later", "orders", 3)
    consumer.close()


def replaced_commits(cluster: Cluster) -> None:
    """Commit 20, and then lower offsets in transactions, some of which no client could ever see."""
    from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, Producer, TopicPartition
    from confluent_kafka.admin import AdminClient

    servers = cluster.bootstrap
    make_topic(servers, "orders")
    admin = AdminClient({"bootstrap.servers": servers})

    def committed(group: str) -> int:
        """Return the offset that the broker returns once the marker of the transaction is in its log."""
        found: list[TopicPartition] = []

        def is_stable() -> bool:
            asked = admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group)], require_stable=True)
            found[:] = asked[group].result().topic_partitions
            return found[0].error is None

        wait_until(is_stable, f"the end of the transaction of {group}")
        offset: int = found[0].offset
        return offset

    for group, steps in REPLACED.items():
        returned: list[int] = []
        commit(servers, group, "orders", 20)
        producer = Producer({"bootstrap.servers": servers, "transactional.id": group})
        producer.init_transactions(30)
        consumer = Consumer({"bootstrap.servers": servers, "group.id": group})
        metadata = consumer.consumer_group_metadata()
        producer.begin_transaction()
        for step in steps:
            match step:
                case "commit":
                    producer.commit_transaction(30)
                case "abort":
                    producer.abort_transaction(30)
                case ("in transaction", int(offset)):
                    producer.send_offsets_to_transaction([TopicPartition("orders", 0, offset)], metadata, 30)
                case (_, offset):
                    commit(servers, group, "orders", offset)
            if step in ("commit", "abort"):
                returned.append(committed(group))
        consumer.close()
        assert committed(group) == 30, group
        assert (5 in returned) == (group == "seen")


def deleted_while_pending(cluster: Cluster) -> None:
    """Delete a group's offset while a transaction has a pending one for the same partition; then the transaction ends.

    No broker returns an offset then. But the coordinator before 4.0 returns the pending one after a restart: when it
    loads the log, a tombstone does not remove it.
    """
    from confluent_kafka import (
        OFFSET_INVALID,
        Consumer,
        ConsumerGroupTopicPartitions,
        KafkaException,
        Producer,
        TopicPartition,
    )
    from confluent_kafka.admin import AdminClient

    servers, group = cluster.bootstrap, "deleted"
    make_topic(servers, "orders")
    commit(servers, group, "orders", 20)
    producer = Producer({"bootstrap.servers": servers, "transactional.id": group})
    producer.init_transactions(30)
    consumer = Consumer({"bootstrap.servers": servers, "group.id": group})
    producer.begin_transaction()
    producer.send_offsets_to_transaction([TopicPartition("orders", 0, 5)], consumer.consumer_group_metadata(), 30)
    consumer.close()
    topics = (OffsetDeleteRequestTopic(name="orders", partitions=(OffsetDeleteRequestPartition(partition_index=0),)),)
    with OldClient(servers, group) as client:
        client.ask(FindCoordinatorRequest(key=group), 0)
        response = client.ask(OffsetDeleteRequest(group_id=group, topics=topics), 0)
        assert (response.error_code, response.topics[0].partitions[0].error_code) == (0, 0)
    producer.commit_transaction(30)

    def committed() -> int:
        found: list[TopicPartition] = []

        def is_stable() -> bool:
            asked = ConsumerGroupTopicPartitions(group, [TopicPartition("orders", 0)])
            admin = AdminClient({"bootstrap.servers": servers})
            try:
                result = admin.list_consumer_group_offsets([asked], require_stable=True)[group].result()
            except KafkaException:  # the broker has just started
                return False
            found[:] = result.topic_partitions
            return found[0].error is None

        wait_until(is_stable, "the end of the transaction")
        offset: int = found[0].offset
        return offset

    assert committed() == OFFSET_INVALID
    cluster.stop(1)
    cluster.start(1)
    assert committed() == (OFFSET_INVALID if cluster.version == "4.4.0" else 5), "after a restart"


def consumer_group(cluster: Cluster) -> None:
    """Let two members of a KIP-848 group join and leave, one after the other."""
    from confluent_kafka import Consumer

    servers = cluster.bootstrap
    make_topic(servers, "orders")
    settings = {"bootstrap.servers": servers, "group.id": "modern", "group.protocol": "consumer"}
    members = []
    for _ in range(2):
        member = Consumer(settings)
        member.subscribe(["orders"])
        members.append(member)

        def is_member(member: Consumer = member) -> bool:
            member.poll(0.1)
            return bool(member.memberid()) and len(members[0].assignment()) == 1

        wait_until(is_member, "the assignment")
    for member in members:
        member.close()


def several_partitions(cluster: Cluster) -> None:
    """Commit for groups in all partitions of the offsets topic, and produce until the topic has several segments."""
    servers = cluster.bootstrap
    make_topic(servers, "orders")
    for _ in range(24):
        produce(servers, "orders", 5)
    for number in range(12):
        commit(servers, f"group-{number}", "orders", number)
    commit(servers, "group-0", "orders", 50)


def recreated(cluster: Cluster) -> None:
    """Commit for a topic of 300 records; copy the log; delete the topic, create it again with 10, and commit.

    One group has the empty id, which brokers accept for simple consumers.
    """
    servers = cluster.bootstrap
    data = cluster.folder / "node-1" / "data"
    make_topic(servers, "orders")
    produce(servers, "orders", 300)
    commit(servers, "readers", "orders", 4)
    commit(servers, "", "orders", 7)
    cluster.stop(1)
    copy(data, TARGET / "before-recreation" / cluster.version, ("__consumer_offsets", "orders"), KEPT)
    cluster.start(1)
    with OldClient(servers, "admin") as client:
        request = DeleteTopicsRequest(topic_names=("orders",), timeout_ms=10_000)
        assert client.ask(request, 1).responses[0].error_code == 0
    wait_until(lambda: not (data / "orders-0").exists(), "the deletion of the topic")
    make_topic(servers, "orders")
    produce(servers, "orders", 10)
    commit(servers, "readers", "orders", 4)


Step = str | tuple[str, int]
REPLACED: Mapping[str, tuple[Step, ...]] = {
    "seen": (("in transaction", 5), "commit", ("plain", 30)),
    "aborted": (("in transaction", 5), "abort", ("plain", 30)),
    "replaced by a plain commit": (("in transaction", 5), ("plain", 30), "commit"),
    "replaced in its transaction": (("in transaction", 5), ("in transaction", 30), "commit"),
}
"""By group: the commits after that of 20, and the end of the transaction. Only the first group was ever back at 5."""

FAST_CLEANER = {
    "offsets.topic.segment.bytes": "6000",
    "log.cleaner.min.cleanable.ratio": "0.01",
    "log.cleaner.backoff.ms": "200",
}
SHORT_LIVES = {"log.retention.ms": "1", "log.retention.check.interval.ms": "500", "log.segment.delete.delay.ms": "0"}

MANY_SEGMENTS = {"offsets.topic.num.partitions": "4", "log.segment.bytes": "1000", "log.index.interval.bytes": "200"}

SITUATIONS = {
    "requested-retentions": Situation({"2.0.1": {}, "4.4.0": {}}, requested_retentions, ("orders",)),
    "compacted": Situation({"2.0.1": FAST_CLEANER}, compacted, ()),
    "old-formats": Situation(
        {
            "0.8.2.2-gzip": {"offsets.topic.compression.codec": "1"},
            "0.9.0.1": {},
            "0.10.2.2": {},
            "0.10.2.2-gzip": {"offsets.topic.compression.codec": "1"},
        },
        old_format,
        (),
    ),
    "no-records": Situation({"2.8.2": SHORT_LIVES}, no_records, ("empty", "emptied")),
    "open-transaction": Situation({"2.8.2": {}}, open_transaction, ()),
    "replaced-commits": Situation({"2.8.2": {}, "4.4.0": {}}, replaced_commits, ()),
    "deleted-while-pending": Situation({"2.8.2": {}, "4.4.0": {}}, deleted_while_pending, ()),
    "consumer-group": Situation({"4.4.0": {}}, consumer_group, ()),
    "recreated": Situation({"2.0.1": {}, "4.4.0": {}}, recreated, ("orders",)),
    "several-partitions": Situation({"2.8.2": MANY_SEGMENTS}, several_partitions, ("orders",), (*KEPT, ".index")),
}


def record(name: str, situation: Situation) -> None:
    for directory, settings in situation.releases.items():
        with real_kafka(directory.partition("-")[0], props={**SETTINGS, **settings}) as cluster:
            situation.act(cluster)
            cluster.stop(1)
            data = cluster.folder / "node-1" / "data"
            copy(data, TARGET / name / directory, ("__consumer_offsets", *situation.topics), situation.kept)


def copy(data: Path, target: Path, topics: Iterable[str], kept: tuple[str, ...]) -> None:
    shutil.rmtree(target, ignore_errors=True)
    for folder in (data, *(found for topic in topics for found in sorted(data.glob(f"{topic}-[0-9]")))):
        (target / folder.relative_to(data)).mkdir(parents=True)
        for path in folder.iterdir():
            if path.is_file() and path.name.endswith(kept):
                shutil.copy(path, target / path.relative_to(data))


if __name__ == "__main__":
    for name in sys.argv[1:] or SITUATIONS:
        record(name, SITUATIONS[name])
