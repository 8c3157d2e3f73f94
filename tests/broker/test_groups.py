"""`Broker.groups` reports the state, the members and the offsets of groups of real consumers."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Consumer, Producer

from kproto_server import Broker

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def consuming(broker: Broker, *client_ids: str) -> Iterator[None]:
    """Run consumers of one group, each in a thread of its own."""
    ended = threading.Event()

    def consume(client_id: str) -> None:
        consumer = Consumer(
            {
                "bootstrap.servers": broker.bootstrap_servers,
                "group.id": "billing",
                "client.id": client_id,
                "heartbeat.interval.ms": 100,  # the delay until it learns of a rebalance
            }
        )
        consumer.subscribe(["orders"])
        while not ended.is_set():
            consumer.poll(0.05)
        consumer.close()

    threads = [threading.Thread(target=consume, args=(client_id,)) for client_id in client_ids]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        ended.set()
        for thread in threads:
            thread.join()


def test_members_own_all_partitions_and_leave_when_their_sessions_expire() -> None:
    with Broker.running(settings={"num.partitions": 4}) as broker:
        producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
        producer.produce("orders", b"1041", partition=3)
        assert producer.flush(10) == 0
        with consuming(broker, "one", "other"):
            broker.groups.wait_stable("billing", members=2, partitions=4)
            owned = [member.partitions for member in broker.groups.members("billing")]
            assert [len(partitions) for partitions in owned] == [2, 2]
            assert sorted(sum(owned, ())) == [("orders", index) for index in range(4)]
            broker.clock.advance(minutes=5)  # past the session timeout: no heartbeat comes in time
            assert broker.groups.state("billing") == "Empty"
            assert broker.groups.members("billing") == ()
        assert broker.groups.committed("billing").keys() <= {("orders", index) for index in range(4)}
        assert set(broker.groups.lag("billing").values()) <= {0, 1}


def test_a_group_that_does_not_become_stable_raises_timeout_error() -> None:
    with Broker.running() as broker:
        assert broker.groups.state("missing") == "Dead"
        assert broker.groups.committed("missing") == broker.groups.lag("missing") == {}
        with pytest.raises(TimeoutError, match="group 'missing' is Dead with 0 members, not Stable with 2 members"):
            broker.groups.wait_stable("missing", members=2, timeout_s=0.02)
        with pytest.raises(TimeoutError, match="is Dead with 0 members and 0 partitions, not Stable with 4 partitions"):
            broker.groups.wait_stable("missing", partitions=4, timeout_s=0.02)
