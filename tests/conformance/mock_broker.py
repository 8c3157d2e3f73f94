"""Run librdkafka's mock broker until the process is terminated: its address comes on standard output."""

from __future__ import annotations

import signal

from confluent_kafka import Producer


def main() -> None:
    producer = Producer({"test.mock.num.brokers": 1, "bootstrap.servers": "ignored", "log_level": 0})
    (broker,) = producer.list_topics(timeout=10).brokers.values()
    print(f"{broker.host}:{broker.port}", flush=True)
    signal.pause()


if __name__ == "__main__":
    main()
