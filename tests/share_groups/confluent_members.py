"""Two members of a share group with confluent-kafka (librdkafka): BOOTSTRAP. As `java/ShareClient.java`.

The first member releases records with an odd number at their first delivery and rejects the last one. Prints how often
each record was delivered when it was done with, and what the second member gets of the records that the first one has
acquired when it closes.
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any

from confluent_kafka import AcknowledgeType, Producer, ShareConsumer

COUNT = 10
PAUSE_S = 0.5
LIMIT_S = 30.0
TOPIC, BEGIN, LAST = "t", "begin", "last"


def member(bootstrap: str) -> Any:
    consumer = ShareConsumer(
        {"bootstrap.servers": bootstrap, "group.id": "g", "share.acknowledgement.mode": "explicit"}
    )
    consumer.subscribe([TOPIC])
    return consumer


class Members:
    """The producer, and the first member."""

    def __init__(self, bootstrap: str) -> None:
        self.bootstrap = bootstrap
        self.producer = Producer({"bootstrap.servers": bootstrap})
        self.first = member(bootstrap)
        self.sent_count = 0
        self.end_s = time.monotonic() + LIMIT_S
        self.done: dict[str, int] = {}

    def send(self, value: str) -> None:
        self.sent_count += 1
        self.producer.produce(TOPIC, value)
        assert self.producer.flush(LIMIT_S) == 0

    def poll(self, consumer: Any) -> list[Any]:
        assert time.monotonic() < self.end_s, f"done: {self.done}"
        return [message for message in consumer.poll(PAUSE_S) if message.error() is None]

    def begin(self) -> None:
        """Write records until the first member gets one."""
        begun = False
        while not begun:
            self.send(BEGIN)
            for message in self.poll(self.first):
                self.first.acknowledge(message)
                begun = True

    def read_all(self) -> None:
        for number in range(COUNT):
            self.send(str(number))
        while len(self.done) < COUNT:
            for message in self.poll(self.first):
                self.acknowledge(message)
            self.first.commit_sync()

    def acknowledge(self, message: Any) -> None:
        value = message.value().decode()
        if value == BEGIN:
            self.first.acknowledge(message)
            return
        if int(value) % 2 == 1 and message.delivery_count() == 1:
            self.first.acknowledge(message, AcknowledgeType.RELEASE)
            return
        is_last = int(value) == COUNT - 2
        self.first.acknowledge(message, AcknowledgeType.REJECT if is_last else AcknowledgeType.ACCEPT)
        self.done[value] = message.delivery_count()

    def take_over(self) -> list[str]:
        """Close the first member, which has acquired a record; return what the second one gets."""
        self.send(LAST)
        while not self.poll(self.first):
            pass
        other = member(self.bootstrap)
        self.poll(other)
        self.first.close()
        found: list[str] = []
        while not found:
            for message in self.poll(other):
                found.append(message.value().decode())
                other.acknowledge(message)
        other.close()
        return found


def main() -> None:
    members = Members(sys.argv[1])
    members.begin()
    members.read_all()
    second = members.take_over()
    print(json.dumps({"done": members.done, "second": second}))


if __name__ == "__main__":
    main()
