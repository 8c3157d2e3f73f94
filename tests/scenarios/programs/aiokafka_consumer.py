"""A consumer as people write it with aiokafka; AUTO_OFFSET_RESET is its setting of that name."""

import asyncio
import os
import sys

from aiokafka import AIOKafkaConsumer


async def main() -> None:
    consumer = AIOKafkaConsumer(
        os.environ["KPROTO_TOPIC"],
        bootstrap_servers=os.environ["KAFKA_BOOTSTRAP_SERVERS"],
        group_id=os.environ["KPROTO_GROUP"],
        auto_offset_reset=os.environ["AUTO_OFFSET_RESET"],
    )
    await consumer.start()
    async for record in consumer:
        sys.stdout.write(f"{record.partition} {record.offset}\n")


asyncio.run(main())
