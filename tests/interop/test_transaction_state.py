"""Transactional ids whose directory goes from a real broker to kproto and back, in the middle of a transaction.

Method: a producer has an open transaction, with offsets, on a real broker, which is stopped. kproto starts on its
log.dir, in place, and the producer commits; another one leaves a transaction open, and kproto is killed. It commits on
the real broker. Producer ids and epochs go on.
"""

from __future__ import annotations

from typing import Any

import pytest

from kproto_server.releases.kafka_version import KafkaVersion
from tests.interop.kproto_process import kproto_on
from tests.interop.real_brokers import real_broker
from tests.membership.socket_transport import SocketTransport
from tests.transactions.producers import Producers
from tests.transactions.record_transcripts import is_ready
from tests.waiting import wait_until

pytestmark = pytest.mark.oracle

SETTINGS = {"offsets.topic.num.partitions": "1", "transaction.state.log.num.partitions": "4"}


class Program:
    """Producers on one broker after the other."""

    def __init__(self, release: str) -> None:
        self._version = KafkaVersion.named(release)
        self._ids: dict[str, tuple[int, int]] = {}

    def on(self, address: str) -> Producers:
        transport = SocketTransport(address)
        wait_until(lambda: is_ready(transport), "the topic and the coordinators")
        producers = Producers(transport, self._version, "program", 0)
        producers.ids = self._ids
        return producers


def last(producers: Producers) -> Any:
    """Return the newest response."""
    return producers.steps[-1].responses["A"][0]


def begin(producers: Producers, transactional_id: str, offset: int) -> None:
    producers.add(transactional_id)
    producers.add_offsets(transactional_id)
    assert last(producers)["error_code"] == 0
    producers.commit_offsets(transactional_id, offsets={"t": {0: offset}})
    assert last(producers)["topics"][0]["partitions"][0]["error_code"] == 0


def committed_offset(producers: Producers) -> int:
    producers.fetch_offsets()
    found: int = last(producers)["topics"][0]["partitions"][0]["committed_offset"]
    return found


@pytest.mark.parametrize("release", ["2.8.2", "4.4.0"])
def test_a_transaction_goes_on_where_the_directory_is(release: str) -> None:
    program = Program(release)
    with real_broker(release, SETTINGS) as theirs:
        producers = program.on(theirs.start())
        for name in ("a", "b", "c"):
            producers.init(name)
        begin(producers, "a", 5)
        theirs.stop()

        with kproto_on(theirs.log_dir, release, SETTINGS, "fsync") as ours:
            producers = program.on(ours.address)
            assert committed_offset(producers) == -1
            producers.end("a")
            assert last(producers)["error_code"] == 0
            assert committed_offset(producers) == 5
            begin(producers, "b", 6)
            ours.kill()

        producers = program.on(theirs.start())
        assert committed_offset(producers) == 5
        producers.end("b")
        assert last(producers)["error_code"] == 0
        wait_until(lambda: committed_offset(producers) == 6, "the marker")
        for name in ("a", "b", "c"):
            pid, epoch = producers.ids[name]
            producers.init(name)
            assert producers.ids[name] == (pid, epoch + 1)
