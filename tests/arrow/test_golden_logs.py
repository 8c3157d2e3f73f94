"""Both decoders return each record of logs recorded from real brokers as Kafka's own dump tool prints it."""

from __future__ import annotations

from collections import Counter

import pytest

from kproto.arrow.batch_rows import batch_rows
from kproto.arrow.decoding import View
from kproto.arrow.reading import RangeReader
from kproto.logs.files import find_partitions
from kproto.logs.ranges import OffsetRange
from tests.arrow import golden
from tests.arrow.golden import RELEASES, Row
from tests.fixture_files import golden_log
from tests.records.dumps import lines_of

each_release = pytest.mark.parametrize("release", RELEASES)
each_decoder = pytest.mark.parametrize("decoder", ["fast", "reference"])


def whole(release: str) -> OffsetRange:
    (partition,) = find_partitions(str(golden.directory(release)))
    return OffsetRange(partition, 0, None)


def rows(release: str, view: View, decoder: str) -> list[Row]:
    reader = RangeReader(whole(release), view, decoder=decoder)
    return [row for decoded in reader if decoded.rows is not None for row in decoded.rows.to_pylist()]


@each_release
@each_decoder
def test_each_commit_is_as_kafka_prints_it(release: str, decoder: str) -> None:
    found = rows(release, View.COMMITS, decoder)
    expected = golden.commits(release)
    assert len(expected) >= 19
    assert [{name: row[name] for name in printed} for row, printed in zip(found, expected, strict=True)] == expected
    assert {row["log_partition"] for row in found} == {0}
    if release == "4.4.0":
        assert expected[0].keys() | {"log_partition"} == found[0].keys()


@each_release
@each_decoder
def test_each_group_record_is_as_kafka_prints_it(release: str, decoder: str) -> None:
    found = rows(release, View.GROUPS, decoder)
    expected = golden.groups(release)
    assert len(expected) >= 3
    assert [{name: row[name] for name in printed} for row, printed in zip(found, expected, strict=True)] == expected


@each_release
@each_decoder
def test_each_record_is_counted(release: str, decoder: str) -> None:
    """Records of types that no table has (KIP-848) are counted by type number."""
    reader = RangeReader(whole(release), View.NOTHING, decoder=decoder)
    assert all(decoded.rows is None for decoded in reader)
    counts = reader.counts
    printed = list(golden.printed(release))
    commits = Counter(row["tombstone"] for row in golden.commits(release))
    assert counts.records == len(printed)
    assert (counts.commits, counts.tombstones) == (commits[False], commits[True])
    assert counts.group_records == len(golden.groups(release))
    assert counts.markers == 2
    assert counts.skipped == ({6: 1, 7: 1, 8: 1} if release == "4.4.0" else {})
    others = counts.commits + counts.tombstones + counts.group_records + counts.markers
    assert counts.records == others + counts.skipped.total()


OFFSETS, TRANSACTIONS = "__consumer_offsets-0", "__transaction_state-0"


def headers(release: str, name: str) -> list[Row]:
    (partition,) = find_partitions(str(golden_log(release) / name))
    return [row for rows in batch_rows(OffsetRange(partition, 0, None)) for row in rows.to_pylist()]


@pytest.mark.parametrize(("release", "name"), [*((release, OFFSETS) for release in RELEASES), ("4.4.0", TRANSACTIONS)])
def test_each_batch_is_as_kafka_prints_it(release: str, name: str) -> None:
    text = (golden_log(release) / name / golden.DUMPS[release]).read_text()
    expected = [line.fields for line in lines_of(text) if line.is_batch]
    found = headers(release, name)
    assert len(found) == len(expected) >= 8
    for row, printed in zip(found, expected, strict=True):
        assert row["base_offset"] == int(printed["baseoffset"])
        assert row["last_offset"] == int(printed["lastoffset"])
        assert row["record_count"] == int(printed["count"])
        assert row["max_ts"] == golden.moment(int(printed["createtime"]))
        assert row["bytes"] == int(printed["size"])
        assert row["codec"] == printed["compresscodec"]
        assert row["magic"] == int(printed["magic"])
        assert row["control"] is (printed["iscontrol"] == "true")
        assert row["transactional"] is (printed["istransactional"] == "true")
        assert row["producer_id"] == (None if printed["producerid"] == "-1" else int(printed["producerid"]))


@pytest.mark.parametrize("release", ["2.0.1", "2.1.1"])
def test_batches_of_transaction_logs_match_the_records_in_old_dumps(release: str) -> None:
    lines = list(lines_of((golden_log(release) / TRANSACTIONS / "dump.txt").read_text()))
    printed = [(int(line.fields["offset"]), golden.moment(int(line.fields["createtime"]))) for line in lines]
    found = headers(release, TRANSACTIONS)
    assert [(row["last_offset"], row["max_ts"]) for row in found] == printed
    positions = [sum(row["bytes"] for row in found[:number]) for number in range(len(found))]
    assert positions == [int(line.fields["position"]) for line in lines]
    assert len(printed) >= 5
