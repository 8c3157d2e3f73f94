"""A consumer as people write it with confluent-kafka; AUTO_OFFSET_RESET is its setting of that name."""

import os
import sys

from confluent_kafka import Consumer, KafkaException

consumer = Consumer(
    {
        "bootstrap.servers": os.environ["KAFKA_BOOTSTRAP_SERVERS"],
        "group.id": os.environ["KPROTO_GROUP"],
        "auto.offset.reset": os.environ["AUTO_OFFSET_RESET"].replace("none", "error"),
    }
)
consumer.subscribe([os.environ["KPROTO_TOPIC"]])
while True:
    record = consumer.poll(1.0)
    if record is None:
        continue
    if record.error():
        raise KafkaException(record.error())
    sys.stdout.write(f"{record.partition()} {record.offset()}\n")
