"""Every record of the recorded logs of real brokers, by both decoders, equals what Kafka's own dump says of it."""

from __future__ import annotations

from collections import Counter

import pytest

from kproto.spark.decode.files import find_partitions
from kproto.spark.decode.header_rows import header_rows
from kproto.spark.decode.reading import Range, RangeBlocks, RangeReader
from kproto.spark.decode.tables import View
from tests.fixture_files import golden_log
from tests.records.dumps import lines_of
from tests.spark import golden
from tests.spark.golden import RELEASES, Row

each_release = pytest.mark.parametrize("release", RELEASES)
each_decoder = pytest.mark.parametrize("decoder", ["fast", "plain"])


def whole(release: str) -> Range:
    (partition,) = find_partitions(str(golden.directory(release)))
    return Range(partition, 0, None)


def rows(release: str, view: View, decoder: str) -> list[Row]:
    reader = RangeReader(whole(release), view, decoder=decoder)
    return [row for decoded in reader if decoded.rows is not None for row in decoded.rows.to_pylist()]


@each_release
@each_decoder
def test_every_commit_is_as_kafka_prints_it(release: str, decoder: str) -> None:
    found = rows(release, View.COMMITS, decoder)
    expected = golden.commits(release)
    assert len(expected) >= 19
    assert [{name: row[name] for name in said} for row, said in zip(found, expected, strict=True)] == expected
    assert {row["log_partition"] for row in found} == {0}
    if release == "4.4.0":
        assert expected[0].keys() | {"log_partition"} == found[0].keys()


@each_release
@each_decoder
def test_every_record_of_a_group_is_as_kafka_prints_it(release: str, decoder: str) -> None:
    found = rows(release, View.GROUPS, decoder)
    expected = golden.groups(release)
    assert len(expected) >= 3
    assert [{name: row[name] for name in said} for row, said in zip(found, expected, strict=True)] == expected


@each_release
@each_decoder
def test_every_record_is_counted(release: str, decoder: str) -> None:
    """Those of types without a table by their number (KIP-848)."""
    reader = RangeReader(whole(release), View.NOTHING, decoder=decoder)
    assert all(decoded.rows is None for decoded in reader)
    counts = reader.counts
    said = list(golden.printed(release))
    commits = Counter(row["tombstone"] for row in golden.commits(release))
    assert counts.records == len(said)
    assert (counts.commits, counts.tombstones) == (commits[False], commits[True])
    assert counts.group_records == len(golden.groups(release))
    assert counts.markers == 2
    assert counts.skipped == ({6: 1, 7: 1, 8: 1} if release == "4.4.0" else {})
    others = counts.commits + counts.tombstones + counts.group_records + counts.markers
    assert counts.records == others + counts.skipped.total()


OFFSETS, TRANSACTIONS = "__consumer_offsets-0", "__transaction_state-0"


def headers(release: str, name: str) -> list[Row]:
    (partition,) = find_partitions(str(golden_log(release) / name))
    blocks = RangeBlocks(Range(partition, 0, None))
    return [row for block in blocks for row in header_rows(block, "t", 0, 0, None).to_pylist()]


@pytest.mark.parametrize(("release", "name"), [*((release, OFFSETS) for release in RELEASES), ("4.4.0", TRANSACTIONS)])
def test_every_header_is_as_kafka_prints_it(release: str, name: str) -> None:
    text = (golden_log(release) / name / golden.DUMPS[release]).read_text()
    expected = [line.facts for line in lines_of(text) if line.is_batch]
    found = headers(release, name)
    assert len(found) == len(expected) >= 8
    for row, said in zip(found, expected, strict=True):
        assert row["base_offset"] == int(said["baseoffset"])
        assert row["last_offset"] == int(said["lastoffset"])
        assert row["record_count"] == int(said["count"])
        assert row["max_ts"] == golden.moment(int(said["createtime"]))
        assert row["bytes"] == int(said["size"])
        assert row["codec"] == said["compresscodec"]
        assert row["magic"] == int(said["magic"])
        assert row["control"] is (said["iscontrol"] == "true")
        assert row["transactional"] is (said["istransactional"] == "true")
        assert row["producer_id"] == (None if said["producerid"] == "-1" else int(said["producerid"]))


@pytest.mark.parametrize("release", ["2.0.1", "2.1.1"])
def test_logs_of_transactions_have_the_batches_that_old_dumps_tell_by_their_records(release: str) -> None:
    lines = list(lines_of((golden_log(release) / TRANSACTIONS / "dump.txt").read_text()))
    told = [(int(line.facts["offset"]), golden.moment(int(line.facts["createtime"]))) for line in lines]
    found = headers(release, TRANSACTIONS)
    assert [(row["last_offset"], row["max_ts"]) for row in found] == told
    positions = [sum(row["bytes"] for row in found[:number]) for number in range(len(found))]
    assert positions == [int(line.facts["position"]) for line in lines]
    assert len(told) >= 5
