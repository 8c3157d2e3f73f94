"""Members of the classic protocol and of KIP-848 in one group, which changes while it runs: librdkafka has both."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from kproto_server.broker.broker import Broker
from tests.clients.admin import create_topic
from tests.oracle.cluster import NEWEST, real_kafka
from tests.waiting import wait_until

confluent_kafka: Any = pytest.importorskip("confluent_kafka")
admin: Any = pytest.importorskip("confluent_kafka.admin")

SETTINGS = {
    "group.consumer.migration.policy": "bidirectional",
    "group.consumer.min.heartbeat.interval.ms": "100",
    "group.consumer.heartbeat.interval.ms": "100",
    "group.initial.rebalance.delay.ms": "0",
    "offsets.topic.num.partitions": "1",
}
POLL_S = 0.02
LIMIT_S = 30.0
COUNT = 5
"""The records of each partition that are written at a time."""


class Members:
    """Members of a group on a topic with two partitions, and the records that they get."""

    def __init__(self, address: str) -> None:
        self._address = address
        self._members: dict[str, Any] = {}
        self._owned: dict[str, set[int]] = {}
        self._producer = confluent_kafka.Producer({"bootstrap.servers": address})
        self._written = 0
        self.received: Counter[str] = Counter()

    def join(self, name: str, protocol: str) -> None:
        """Begin a member of this `group.protocol`."""
        configs = {"heartbeat.interval.ms": 100} if protocol == "classic" else {}
        member = confluent_kafka.Consumer(
            {
                "bootstrap.servers": self._address,
                "group.id": "g",
                "group.protocol": protocol,
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                **configs,
            }
        )
        owned = self._owned[name] = set()

        def assign(_: Any, partitions: list[Any]) -> None:
            owned.update(one.partition for one in partitions)

        def revoke(_: Any, partitions: list[Any]) -> None:
            owned.difference_update(one.partition for one in partitions)

        member.subscribe(["t"], on_assign=assign, on_revoke=revoke, on_lost=revoke)
        self._members[name] = member

    def close(self, *names: str) -> None:
        for name in names or [*self._members]:
            self._members.pop(name).close()
            del self._owned[name]

    def wait_for(self, **counts: int) -> None:
        """Poll all members until they own so many partitions; none is owned twice then."""
        self._poll_until(lambda: {name: len(owned) for name, owned in self._owned.items()} == counts, str(counts))
        assert sorted(index for owned in self._owned.values() for index in owned) == [0, 1]

    def write_and_read(self) -> None:
        """Write records to both partitions; the owners read and commit them, and no others."""
        for number in range(self._written, self._written + COUNT):
            for partition in range(2):
                self._producer.produce("t", f"{partition}-{number}", partition=partition)
        assert self._producer.flush(LIMIT_S) == 0
        self._written += COUNT
        everything = {f"{partition}-{number}": 1 for partition in range(2) for number in range(self._written)}
        self._poll_until(lambda: len(self.received) >= len(everything), "all records")
        assert self.received == everything
        for name, member in self._members.items():
            if self._owned[name]:
                member.commit(asynchronous=False)

    def _poll_until(self, condition: Callable[[], bool], what: str) -> None:
        def polled() -> bool:
            for member in self._members.values():
                message = member.poll(POLL_S)
                if message is not None and message.error() is None:
                    self.received[message.value().decode()] += 1
            return condition()

        wait_until(polled, what)


@contextmanager
def kproto() -> Iterator[Any]:
    with Broker.running(settings=SETTINGS) as broker:
        yield broker.bootstrap_servers


@contextmanager
def kafka() -> Iterator[Any]:
    with real_kafka(NEWEST, props=SETTINGS) as broker:
        yield broker.bootstrap


@pytest.mark.parametrize(
    "served", [pytest.param(kproto, id="kproto"), pytest.param(kafka, marks=pytest.mark.oracle, id=NEWEST)]
)
def test_a_group_changes_its_protocol_and_back(served: Any) -> None:
    with served() as address:
        create_topic(address, "t", 2)
        kinds = Kinds(address)
        members = Members(address)
        members.join("old", "classic")
        members.wait_for(old=2)
        members.write_and_read()
        assert kinds.of_group() == "CLASSIC"
        members.join("new", "consumer")
        members.wait_for(old=1, new=1)
        members.write_and_read()
        assert kinds.of_group() == "CONSUMER"
        members.close("old")
        members.wait_for(new=2)
        members.write_and_read()
        members.join("older", "classic")
        members.wait_for(new=1, older=1)
        members.write_and_read()
        assert kinds.of_group() == "CONSUMER"
        members.close("new")
        members.wait_for(older=2)
        members.write_and_read()
        assert kinds.of_group() == "CLASSIC"
        members.close()


class Kinds:
    """What ListGroups says of the group."""

    def __init__(self, address: str) -> None:
        self._admin = admin.AdminClient({"bootstrap.servers": address})

    def of_group(self) -> str:
        listed = self._admin.list_consumer_groups().result(LIMIT_S)
        assert not listed.errors
        [group] = [one for one in listed.valid if one.group_id == "g"]
        return str(group.type.name)
