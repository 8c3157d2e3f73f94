"""The verbs of `programs.py` with aiokafka: VERB BOOTSTRAP GROUP TOPIC [PARTITION:OFFSET:METADATA]...

Its consumer does not tell the metadata of a commit, its admin client does. Its consumer also commits again and
again where the topic is unknown, and creates the topics that it is assigned, so there too the admin client is asked.
"""

import asyncio
import json
import sys

from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.errors import for_code


async def commit(consumer: AIOKafkaConsumer, topic: str, offsets: tuple[str, ...]) -> dict[str, object]:
    commits = {
        TopicPartition(topic, int(partition)): (int(offset), metadata)
        for partition, offset, metadata in (text.split(":", 2) for text in offsets)
    }
    consumer.assign(list(commits))
    await consumer.commit(commits)
    return {}


async def poll(consumer: AIOKafkaConsumer, topic: str) -> dict[str, object]:
    partitions = [TopicPartition(topic, 0), TopicPartition(topic, 1)]
    consumer.assign(partitions)
    positions = {str(p.partition): await consumer.position(p) for p in partitions}
    if await consumer.getmany(timeout_ms=300):
        raise SystemExit("records in an empty topic")
    return positions


async def fetch(admin: AIOKafkaAdminClient, group: str) -> dict[str, object]:
    found = await admin.list_consumer_group_offsets(group)
    return {str(p.partition): [c.offset, c.metadata] for p, c in found.items()}


async def unknown(admin: AIOKafkaAdminClient, topic: str) -> dict[str, object]:
    answer = await admin.delete_topics([topic])
    [(_, code)] = answer.topic_error_codes
    return {"error": for_code(code).__name__}


async def main(verb: str, bootstrap: str, group: str, topic: str, *offsets: str) -> dict[str, object]:
    if verb in ("commit", "poll"):
        consumer = AIOKafkaConsumer(
            bootstrap_servers=bootstrap,
            group_id=group,
            enable_auto_commit=False,
            auto_offset_reset="earliest",
            fetch_max_wait_ms=100,
        )
        await consumer.start()
        try:
            return await (commit(consumer, topic, offsets) if verb == "commit" else poll(consumer, topic))
        finally:
            await consumer.stop()
    admin = AIOKafkaAdminClient(bootstrap_servers=bootstrap)
    await admin.start()
    try:
        return await (fetch(admin, group) if verb == "fetch" else unknown(admin, topic))
    finally:
        await admin.close()


print(json.dumps(asyncio.run(main(*sys.argv[1:]))))
