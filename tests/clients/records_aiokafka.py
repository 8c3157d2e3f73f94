"""The commands of `records_programs.py` with aiokafka: COMMAND BOOTSTRAP TOPIC COMPRESSION COUNT."""

import asyncio
import json
import sys

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition


async def produce(bootstrap: str, topic: str, compression: str, count: int) -> dict[str, int]:
    codec = None if compression == "none" else compression
    producer = AIOKafkaProducer(bootstrap_servers=bootstrap, enable_idempotence=True, compression_type=codec)
    await producer.start()
    try:
        sent = [await producer.send(topic, b"value %d" % n, key=b"%d" % n, partition=n % 2) for n in range(count)]
        return {"last": max([(await future).offset for future in sent])}
    finally:
        await producer.stop()


async def consume(bootstrap: str, topic: str, count: int) -> list[list[str]]:
    consumer = AIOKafkaConsumer(bootstrap_servers=bootstrap, auto_offset_reset="earliest")
    await consumer.start()
    try:
        consumer.assign([TopicPartition(topic, 0), TopicPartition(topic, 1)])
        records_read: list[list[str]] = []
        while len(records_read) < count:
            record = await asyncio.wait_for(consumer.getone(), 20)
            records_read.append([f"{record.partition}:{record.offset}", record.key.decode(), record.value.decode()])
        return sorted(records_read)
    finally:
        await consumer.stop()


async def main(command: str, bootstrap: str, topic: str, compression: str, count: str) -> object:
    if command == "produce":
        return await produce(bootstrap, topic, compression, int(count))
    return await consume(bootstrap, topic, int(count))


if __name__ == "__main__":
    print(json.dumps(asyncio.run(main(*sys.argv[1:]))))
