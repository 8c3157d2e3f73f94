"""A consumer as people write it with kafka-python; AUTO_OFFSET_RESET is its setting of that name."""

import os
import sys

from kafka import KafkaConsumer

consumer = KafkaConsumer(
    os.environ["KPROTO_TOPIC"],
    bootstrap_servers=os.environ["KAFKA_BOOTSTRAP_SERVERS"],
    group_id=os.environ["KPROTO_GROUP"],
    auto_offset_reset=os.environ["AUTO_OFFSET_RESET"],
    metadata_max_age_ms=1000,
)
for record in consumer:
    sys.stdout.write(f"{record.partition} {record.offset}\n")
