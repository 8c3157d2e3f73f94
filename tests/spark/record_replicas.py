"""Record the log.dirs of a real cluster of three brokers in `fixtures/offsets-logs/three-brokers`.

    python -m tests.spark.record_replicas

All brokers replicate all partitions. Broker 3 stops, the others go on and stop: `broker-1`, `broker-2` and `broker-3`
are copied, and broker 3 is behind. Then broker 3 starts alone and becomes the leader by an unclean election; its log
after other commits is `broker-3-elected`.
"""

from __future__ import annotations

import shutil

from confluent_kafka import KafkaException

from tests.oracle.cluster import Cluster, real_kafka
from tests.spark.record_logs import KEPT, TARGET, copy, make_topic
from tests.waiting import wait_until

RELEASE = "2.8.2"
FOLDER = TARGET / "three-brokers" / RELEASE
SETTINGS = {
    "offsets.topic.num.partitions": "2",
    "offsets.topic.replication.factor": "3",
    "default.replication.factor": "3",
    "num.partitions": "1",
    "min.insync.replicas": "1",
    "unclean.leader.election.enable": "true",
}
GROUPS = tuple(f"group-{number}" for number in range(6))


def produce(servers: str, count: int) -> None:
    from confluent_kafka import Producer

    producer = Producer({"bootstrap.servers": servers, "batch.num.messages": 5})
    for number in range(count):
        producer.produce("orders", f"record {number}".encode(), partition=0)
    assert producer.flush(60) == 0


def commit(servers: str, group: str, offset: int) -> None:
    from confluent_kafka import Consumer, TopicPartition

    consumer = Consumer({"bootstrap.servers": servers, "group.id": group})

    def is_committed() -> bool:
        try:
            consumer.commit(offsets=[TopicPartition("orders", 0, offset)], asynchronous=False)
        except KafkaException:  # no coordinator yet
            return False
        return True

    wait_until(is_committed, f"the commit of {group}")
    consumer.close()


def save(cluster: Cluster, node_id: int, name: str) -> None:
    copy(cluster.folder / f"node-{node_id}" / "data", FOLDER / name, ("__consumer_offsets", "orders"), KEPT)


def main() -> None:
    shutil.rmtree(FOLDER, ignore_errors=True)
    with real_kafka(RELEASE, brokers=3, props=SETTINGS) as cluster:
        make_topic(cluster.addresses[0], "orders")
        produce(cluster.bootstrap, 20)
        for group in GROUPS:
            commit(cluster.bootstrap, group, 5)
        cluster.stop(3)
        both = ",".join(cluster.addresses[:2])
        produce(both, 20)
        for group in GROUPS:
            commit(both, group, 30)
        cluster.stop(2)
        cluster.stop(1)
        for node_id in (1, 2, 3):
            save(cluster, node_id, f"broker-{node_id}")
        cluster.start(3)
        alone = cluster.addresses[2]
        produce(alone, 5)
        for group in GROUPS[:2]:
            commit(alone, group, 22)
        cluster.stop(3)
        save(cluster, 3, "broker-3-elected")


if __name__ == "__main__":
    main()
