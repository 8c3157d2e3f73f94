"""kproto on the log.dirs of real brokers, and those brokers on them again: nothing is lost on the way there and back.

Method: a real broker is filled by clients, among them real ones, and stopped or killed. kproto starts on its log.dir,
in place, and has to serve what that broker served. Then kproto takes more commits, and the same broker starts again.
"""

from __future__ import annotations

import pytest
from kafka import KafkaConsumer, TopicPartition
from kafka.structs import OffsetAndMetadata

from tests.commandline.commands import kproto
from tests.interop.asked import Committed, what_is_served
from tests.interop.dumped import check_dump
from tests.interop.filled import Filler, fill, fill_members, fill_transactions
from tests.interop.ours import kproto_on, verify
from tests.interop.real import real_broker
from tests.network.raw_client import RawClient
from tests.oracle.cluster import NEWEST

pytestmark = pytest.mark.oracle

Expected = dict[str, dict[tuple[str, int], Committed]]
PARTITIONS = {"offsets.topic.num.partitions": "4"}


def commit_with_kafka_python(address: str) -> None:
    consumer = KafkaConsumer(bootstrap_servers=address, group_id="kafka-python", enable_auto_commit=False)
    try:
        place = TopicPartition("t", 2)
        consumer.assign([place])
        consumer.commit({place: OffsetAndMetadata(77, "real client", -1)})
    finally:
        consumer.close()


def fill_real(address: str, release: str) -> Expected:
    expected: Expected = {}
    with RawClient(address) as client:
        filler = Filler(client, release, expected)
        fill(filler)
        fill_members(filler)
        fill_transactions(filler)
    commit_with_kafka_python(address)
    expected["kafka-python"] = {("t", 2): Committed(77, -1, "real client")}
    return expected


def change(filler: Filler) -> None:
    """Overwrite, add and delete."""
    filler.commit("simple-1", {("t", 0): Committed(1001, 0, "by kproto"), ("t", 1): Committed(1002, 0)})
    filler.commit("new", {("t", 2): Committed(1003), ("wide", 7): Committed(1004)})
    filler.commit("left", {("t", 0): Committed(1005)})
    filler.commit("exactly-once", {("t", 0): Committed(1006)})
    filler.delete_group("simple-2")
    filler.delete_group("revived")


@pytest.mark.parametrize(
    ("release", "their_end", "our_end"),
    [
        ("2.0.1", "stopped", "killed"),
        ("2.8.2", "stopped", "stopped"),
        ("4.4.0", "killed", "killed"),
    ],
)
def test_there_and_back(release: str, their_end: str, our_end: str) -> None:
    with real_broker(release, PARTITIONS) as theirs:
        address = theirs.start()
        expected = fill_real(address, release)
        served = what_is_served(address, release, expected)
        assert served.offsets == expected
        refused = kproto("serve", "--port", "0", "--data-dir", str(theirs.log_dir))
        assert (refused.returncode, "is in use by another broker" in refused.stderr) == (2, True)
        theirs.kill() if their_end == "killed" else theirs.stop()

        with kproto_on(theirs.log_dir, release, PARTITIONS, "fsync") as ours:
            assert what_is_served(ours.address, release, expected) == served
            with RawClient(ours.address) as client:
                change(Filler(client, release, expected))
            served = what_is_served(ours.address, release, expected)
            assert served.offsets == expected
            if our_end == "killed":
                ours.kill()
        verify(theirs.log_dir)
        check_dump(NEWEST, theirs.log_dir)

        address = theirs.start()
        assert what_is_served(address, release, expected) == served
        assert theirs.complaints() == []
        with RawClient(address) as client:
            Filler(client, release, expected).commit("new", {("t", 2): Committed(1007), ("t", 1): Committed(1008)})
        theirs.kill()
        with kproto_on(theirs.log_dir, release, PARTITIONS) as ours:
            assert what_is_served(ours.address, release, expected).offsets == expected


def test_a_real_broker_keeps_out_while_ours_has_the_directory() -> None:
    with real_broker(NEWEST, PARTITIONS) as theirs:
        with kproto_on(theirs.log_dir, NEWEST, PARTITIONS), pytest.raises(pytest.fail.Exception):
            theirs.start()
        assert "Failed to acquire lock on file .lock" in theirs.said()
