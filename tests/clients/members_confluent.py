"""`members.py` with confluent-kafka: BOOTSTRAP GROUP TOPIC VERB."""

import json
import sys
import time
from collections.abc import Callable

from confluent_kafka import Consumer


class Member:
    def __init__(self, bootstrap: str, group: str, topic: str, verb: str, instance: str | None) -> None:
        self.rebalances = 0
        config = {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "heartbeat.interval.ms": 100,
            "session.timeout.ms": 6000,
            "fetch.wait.max.ms": 50,
            "topic.metadata.refresh.interval.ms": 500,
            "partition.assignment.strategy": "cooperative-sticky" if verb == "cooperative" else "range",
        }
        if instance is not None:
            config["group.instance.id"] = instance
        self._consumer = Consumer(config)
        self._consumer.subscribe([topic], on_assign=self._assigned)

    def _assigned(self, consumer: Consumer, partitions: object) -> None:
        self.rebalances += 1

    def poll(self) -> list[int]:
        self._consumer.poll(0.02)
        return sorted(p.partition for p in self._consumer.assignment())

    def close(self) -> None:
        self._consumer.close()


def wait(is_done: Callable[[list[list[int]]], bool], *members: Member) -> list[list[int]]:
    """Have all members poll until they have what they should."""
    limit = time.monotonic() + 30
    while True:
        partitions = [member.poll() for member in members]
        if is_done(partitions):
            return partitions
        if time.monotonic() > limit:
            raise SystemExit(f"they have {partitions}")


def main(bootstrap: str, group: str, topic: str, verb: str) -> dict[str, object]:
    instances = ("one", "two") if verb == "static" else (None, None)
    first, second = (Member(bootstrap, group, topic, verb, instance) for instance in instances)
    both = wait(lambda has: [len(partitions) for partitions in has] == [2, 2], first, second)
    before = second.rebalances
    first.close()
    if verb == "static":
        again = Member(bootstrap, group, topic, verb, "one")
        has = wait(lambda has: bool(has[0]), again, second)
        told = {"both": both, "again": has[0], "rebalances": second.rebalances - before}
        again.close()
    else:
        told = {"both": both, "alone": wait(lambda has: len(has[0]) == 4, second)[0]}
    second.close()
    return told


print(json.dumps(main(*sys.argv[1:])))
