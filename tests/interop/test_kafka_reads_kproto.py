"""Real Kafka on directories that kproto wrote: its tools read them, its brokers serve the same offsets and groups.

Method: a client fills `kproto serve --data-dir` in the Kafka version of a release, which is then killed or shut down. A
real broker of that release must serve the same from a copy of the directory; neither the broker nor the release's
DumpLogSegments may report a warning or an error.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.interop.filling import Filler, fill, fill_members
from tests.interop.kafka_dumps import check_dump, has_lost_records, offsets_segments, written_records
from tests.interop.kproto_process import kproto_on, verify
from tests.interop.real_brokers import real_broker, start_on
from tests.interop.served import served_by
from tests.network.raw_client import RawClient
from tests.oracle.cluster import NEWEST
from tests.waiting import wait_until

pytestmark = pytest.mark.oracle

PARTITIONS = {"offsets.topic.num.partitions": "4"}
SMALL_SEGMENTS = {**PARTITIONS, "offsets.topic.segment.bytes": "2048"}
COMPACTED = {"log.cleaner.backoff.ms": "20", "log.cleaner.min.cleanable.ratio": "0.01"}
WHOLE = {"log.cleaner.enable": "false"}
TOOLS = {"2.0.1": ("2.0.1", "2.1.1"), "2.1.1": ("2.1.1", "2.8.2"), "2.8.2": ("2.8.2", "3.9.2")}
"""Release -> releases whose tool knows its record versions; the newest tool reads all of them."""


@pytest.mark.parametrize(
    ("release", "durability", "is_compacted", "ending"),
    [
        ("2.0.1", "os", True, "killed"),
        ("2.1.1", "fsync", False, "stopped"),
        ("2.8.2", "fsync", True, "stopped"),
        ("3.9.2", "os", False, "killed"),
        ("4.4.0", "fsync", True, "killed"),
    ],
)
def test_a_real_broker_serves_the_directory_of_kproto(
    release: str, durability: str, is_compacted: bool, ending: str, tmp_path: Path
) -> None:
    log_dir = tmp_path / "data"
    with kproto_on(log_dir, release, SMALL_SEGMENTS | (COMPACTED if is_compacted else WHOLE), durability) as ours:
        with RawClient(ours.address) as client:
            filler = Filler(client, release, {})
            fill(filler)
            fill_members(filler)
            served = served_by(ours.address, release, filler.expected)
        if is_compacted:
            wait_until(lambda: has_lost_records(log_dir), "a compaction")
        if ending == "killed":
            ours.kill()

    assert served.offsets == filler.expected
    assert len(offsets_segments(log_dir)) > len(list(log_dir.glob("__consumer_offsets-*"))), "no segment was full"
    verify(log_dir)
    records = {tool: check_dump(tool, log_dir) for tool in {*TOOLS.get(release, ()), NEWEST}}
    assert len(set(records.values())) == 1
    assert records[NEWEST] >= sum(len(offsets) for offsets in filler.expected.values())
    assert (records[NEWEST] < written_records(log_dir)) == is_compacted

    with real_broker(release, PARTITIONS) as theirs:
        address = start_on(theirs, log_dir)
        assert served_by(address, release, filler.expected) == served
        assert theirs.complaints() == []
