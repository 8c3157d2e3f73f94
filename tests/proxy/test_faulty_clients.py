"""A real client behind `kproto proxy --faults`: librdkafka gets the errors, and produces and commits all the same.

Method. The proxy is a process in front of a broker of kproto, or of a real one (test_real_kafka). The client produces
five records, reads them and commits. What it returns, and the report of the proxy, say what has happened.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from confluent_kafka import Consumer, Producer, TopicPartition

from kproto_server.broker.broker import Broker
from tests.proxy.proxies import proxy_of

RULES = """
- {api: Produce, topic: faulty, error: NOT_LEADER_OR_FOLLOWER, times: 2}
- {api: FindCoordinator, delay_ms: 50, times: 1}
- {api: FindCoordinator, group: billing, error: COORDINATOR_NOT_AVAILABLE, times: 1}
- {api: OffsetCommit, group: billing, close: true, when: after, times: 1}
- {client_id: rdkafka, api: Fetch, nth: 2, truncate_bytes: 9}
"""
TOPIC = "faulty"
RECORDS = 5
LIMIT_S = 60


def produce_and_commit(servers: str) -> None:
    producer = Producer(
        {
            "bootstrap.servers": servers,
            "log_level": 0,
            "linger.ms": 0,
            "retry.backoff.ms": 10,
            "max.in.flight.requests.per.connection": 1,  # a batch that is repeated does not change places with the next
        }
    )
    for number in range(RECORDS):
        producer.produce(TOPIC, b"%d" % number)
    assert producer.flush(LIMIT_S) == 0
    consumer = Consumer(
        {"bootstrap.servers": servers, "log_level": 0, "group.id": "billing", "enable.auto.commit": False}
    )
    consumer.assign([TopicPartition(TOPIC, 0, 0)])
    found = [record.value() for record in consumer.consume(RECORDS, LIMIT_S)]
    assert found == [b"%d" % number for number in range(RECORDS)]
    consumer.commit(offsets=[TopicPartition(TOPIC, 0, RECORDS)], asynchronous=False)
    (committed,) = consumer.committed([TopicPartition(TOPIC, 0)], LIMIT_S)
    assert committed.offset == RECORDS
    consumer.close()


def check_that_librdkafka_recovers(servers: str, folder: Path) -> None:
    rules = folder / "rules.yaml"
    rules.write_text(RULES)
    with proxy_of(servers, folder, "--faults", str(rules)) as proxy:
        produce_and_commit(proxy.address)
        (client,) = proxy.end()["clients"]
    errors = Counter({(row["api"], row["error"]): row["count"] for row in client["errors"]})
    assert errors["Produce", "NOT_LEADER_OR_FOLLOWER"] == 2
    assert errors["FindCoordinator", "COORDINATOR_NOT_AVAILABLE"]  # also that of a new cluster
    fired = Counter(line.rpartition("fault rule ")[2] for line in proxy.errors.splitlines() if ": fault rule " in line)
    assert fired["3"] == 1
    assert fired["4"] == 2  # its line, and that of the closed connection
    assert fired["5"] == 2
    assert client["closed"] == []


def test_librdkafka_recovers_in_front_of_kproto(tmp_path: Path) -> None:
    with Broker.running() as broker:
        check_that_librdkafka_recovers(broker.bootstrap_servers, tmp_path)
