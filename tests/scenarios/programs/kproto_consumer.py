"""A consumer of kproto.client that reads older records in parallel (KIP-333)."""

import os
import sys

from kproto.client import Consumer

consumer = Consumer(
    {
        "bootstrap.servers": os.environ["KAFKA_BOOTSTRAP_SERVERS"],
        "group.id": os.environ["KPROTO_GROUP"],
        "auto.offset.reset.on.invalid.offset": "nearest",
        "enable.parallel.rebalance": True,
    }
)
consumer.subscribe([os.environ["KPROTO_TOPIC"]])
while True:
    record = consumer.poll(1.0)
    if record is not None and record.error() is None:
        sys.stdout.write(f"{record.partition()} {record.offset()}\n")
