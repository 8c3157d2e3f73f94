"""`members.py` with aiokafka: BOOTSTRAP GROUP TOPIC VERB."""

import asyncio
import json
import sys
from collections.abc import Callable

from aiokafka import AIOKafkaConsumer, ConsumerRebalanceListener


class Member(ConsumerRebalanceListener):  # type: ignore[misc]  # the library has no types
    def __init__(self, bootstrap: str, group: str, topic: str, instance: str | None) -> None:
        self.rebalances = 0
        self.partitions: list[int] = []
        self._changed = asyncio.Condition()
        self._consumer = AIOKafkaConsumer(
            bootstrap_servers=bootstrap,
            group_id=group,
            group_instance_id=instance,
            heartbeat_interval_ms=100,
            session_timeout_ms=6000,
            fetch_max_wait_ms=50,
        )
        self._consumer.subscribe([topic], listener=self)

    async def start(self) -> None:
        await self._consumer.start()

    async def on_partitions_revoked(self, revoked: object) -> None:
        pass

    async def on_partitions_assigned(self, assigned: set[object]) -> None:
        async with self._changed:
            self.rebalances += 1
            self.partitions = sorted(p.partition for p in self._consumer.assignment())
            self._changed.notify_all()

    async def wait(self, is_done: Callable[[list[int]], bool]) -> list[int]:
        async with self._changed:
            await asyncio.wait_for(self._changed.wait_for(lambda: is_done(self.partitions)), 30)
            return self.partitions

    async def close(self) -> None:
        await self._consumer.stop()


async def main(bootstrap: str, group: str, topic: str, verb: str) -> dict[str, object]:
    instances = ("one", "two") if verb == "static" else (None, None)
    first, second = (Member(bootstrap, group, topic, instance) for instance in instances)
    await asyncio.gather(first.start(), second.start())
    both = [await member.wait(lambda partitions: len(partitions) == 2) for member in (first, second)]
    before = second.rebalances
    await first.close()
    if verb == "static":
        again = Member(bootstrap, group, topic, "one")
        await again.start()
        told = {"both": both, "again": await again.wait(bool), "rebalances": second.rebalances - before}
        await again.close()
    else:
        told = {"both": both, "alone": await second.wait(lambda partitions: len(partitions) == 4)}
    await second.close()
    return told


print(json.dumps(asyncio.run(main(*sys.argv[1:]))))
