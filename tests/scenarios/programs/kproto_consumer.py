"""A consumer of kproto.client; SETTINGS has its settings as JSON."""

import json
import os
import sys

from kproto.client import Consumer

consumer = Consumer(
    {
        "bootstrap.servers": os.environ["KAFKA_BOOTSTRAP_SERVERS"],
        "group.id": os.environ["KPROTO_GROUP"],
        **json.loads(os.environ["SETTINGS"]),
    }
)
consumer.subscribe([os.environ["KPROTO_TOPIC"]])
while True:
    record = consumer.poll(1.0)
    if record is not None and record.error() is None:
        sys.stdout.write(f"{record.partition()} {record.offset()}\n")
