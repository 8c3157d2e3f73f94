"""The commands of `records_programs.py` with kafka-python: COMMAND BOOTSTRAP TOPIC COMPRESSION COUNT."""

import json
import sys

from kafka import KafkaConsumer, KafkaProducer, TopicPartition


def produce(bootstrap: str, topic: str, compression: str, count: int) -> dict[str, int]:
    codec = None if compression == "none" else compression
    producer = KafkaProducer(bootstrap_servers=bootstrap, enable_idempotence=True, compression_type=codec, linger_ms=5)
    sent = [producer.send(topic, key=b"%d" % n, value=b"value %d" % n, partition=n % 2) for n in range(count)]
    producer.flush()
    last = max(future.get(30).offset for future in sent)
    producer.close()
    return {"last": last}


def consume(bootstrap: str, topic: str, count: int) -> list[list[str]]:
    consumer = KafkaConsumer(bootstrap_servers=bootstrap, auto_offset_reset="earliest", consumer_timeout_ms=20_000)
    consumer.assign([TopicPartition(topic, 0), TopicPartition(topic, 1)])
    records_read: list[list[str]] = []
    for record in consumer:
        records_read.append([f"{record.partition}:{record.offset}", record.key.decode(), record.value.decode()])
        if len(records_read) == count:
            break
    consumer.close()
    return sorted(records_read)


if __name__ == "__main__":
    command, bootstrap, topic, compression, count = sys.argv[1:]
    if command == "produce":
        print(json.dumps(produce(bootstrap, topic, compression, int(count))))
    else:
        print(json.dumps(consume(bootstrap, topic, int(count))))
