"""kproto on the log.dirs of real brokers, and those brokers on them again: no offset is lost in either direction.

Method: clients fill a real broker, which is then stopped or killed. kproto starts on its log.dir, in place, and must
serve the same offsets and groups. Then kproto accepts more commits, and the same broker starts again.
"""

from __future__ import annotations

import pytest
from kafka import KafkaConsumer, TopicPartition
from kafka.structs import OffsetAndMetadata

from tests.commandline.commands import kproto
from tests.interop.filling import Filler, fill, fill_members, fill_transactions
from tests.interop.kafka_dumps import check_dump
from tests.interop.kproto_process import kproto_on, verify
from tests.interop.real_brokers import real_broker
from tests.interop.served import Committed, served_by
from tests.network.raw_client import RawClient
from tests.oracle.cluster import NEWEST

pytestmark = pytest.mark.oracle

Expected = dict[str, dict[tuple[str, int], Committed]]
PARTITIONS = {"offsets.topic.num.partitions": "4"}


def commit_with_kafka_python(address: str) -> None:
    consumer = KafkaConsumer(bootstrap_servers=address, group_id="kafka-python", enable_auto_commit=False)
    try:
        partition = TopicPartition("t", 2)
        consumer.assign([partition])
        consumer.commit({partition: OffsetAndMetadata(77, "real client", -1)})
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
    """Overwrite, add and delete offsets."""
    filler.commit("simple-1", {("t", 0): Committed(1001, 0, "by kproto"), ("t", 1): Committed(1002, 0)})
    filler.commit("new", {("t", 2): Committed(1003), ("wide", 7): Committed(1004)})
    filler.commit("left", {("t", 0): Committed(1005)})
    filler.commit("exactly-once", {("t", 0): Committed(1006)})
    filler.delete_group("simple-2")
    filler.delete_group("revived")


@pytest.mark.parametrize(
    ("release", "broker_end", "kproto_end"),
    [("2.0.1", "stopped", "killed"), ("2.8.2", "stopped", "stopped"), ("4.4.0", "killed", "killed")],
)
def test_kproto_and_the_broker_serve_each_others_directory(release: str, broker_end: str, kproto_end: str) -> None:
    with real_broker(release, PARTITIONS) as theirs:
        address = theirs.start()
        expected = fill_real(address, release)
        served = served_by(address, release, expected)
        assert served.offsets == expected
        refused = kproto("serve", "--port", "0", "--data-dir", str(theirs.log_dir))
        assert (refused.returncode, "is in use by another broker" in refused.stderr) == (2, True)
        theirs.kill() if broker_end == "killed" else theirs.stop()

        with kproto_on(theirs.log_dir, release, PARTITIONS, "fsync") as ours:
            assert served_by(ours.address, release, expected) == served
            with RawClient(ours.address) as client:
                change(Filler(client, release, expected))
            served = served_by(ours.address, release, expected)
            assert served.offsets == expected
            if kproto_end == "killed":
                ours.kill()
        verify(theirs.log_dir)
        check_dump(NEWEST, theirs.log_dir)

        address = theirs.start()
        assert served_by(address, release, expected) == served
        assert theirs.complaints() == []
        with RawClient(address) as client:
            Filler(client, release, expected).commit("new", {("t", 2): Committed(1007), ("t", 1): Committed(1008)})
        theirs.kill()
        with kproto_on(theirs.log_dir, release, PARTITIONS) as ours:
            assert served_by(ours.address, release, expected).offsets == expected


def test_a_real_broker_does_not_start_on_a_directory_that_kproto_uses() -> None:
    with real_broker(NEWEST, PARTITIONS) as theirs:
        with kproto_on(theirs.log_dir, NEWEST, PARTITIONS), pytest.raises(pytest.fail.Exception):
            theirs.start()
        assert "Failed to acquire lock on file .lock" in theirs.log()
