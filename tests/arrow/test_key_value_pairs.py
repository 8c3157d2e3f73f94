"""Keys and values without batches give the same commits as the log that they are from."""

from __future__ import annotations

import io
from datetime import UTC, datetime

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kproto.arrow import reference
from kproto.arrow.decoding import DecodeRequest, View
from kproto.arrow.key_value_pairs import commits_of_pairs, groups_of_pairs
from kproto.logs import errors
from kproto.logs.batches import batch_at
from kproto.logs.blocks import SegmentBlocks
from kproto.records.batches import read_records
from kproto.records.record import Record
from tests.arrow.made_logs import make_log
from tests.fixture_files import golden_log
from tests.records.made import COMMIT_KEY, COMMIT_VALUE, NOW

CONNECTOR_SCHEMA = pa.schema(
    [
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("timestamp", pa.timestamp("us", tz="UTC")),
        ("key", pa.binary()),
        ("value", pa.binary()),
    ]
)


def connector_rows(records: list[Record], partition: int = 4) -> pa.RecordBatch:
    timestamps = [datetime.fromtimestamp(record.timestamp / 1000, UTC) for record in records]
    columns = [
        [partition] * len(records),
        [record.offset for record in records],
        timestamps,
        [record.key for record in records],
        [record.value for record in records],
    ]
    arrays = [pa.array(column, field.type) for column, field in zip(columns, CONNECTOR_SCHEMA, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=CONNECTOR_SCHEMA)


@given(seed=st.integers(0, 2**32))
def test_a_log_and_its_pairs_have_the_same_commits(seed: int) -> None:
    made = make_log(seed, 4, 20, ("plain", "compressed"))
    base = max(0, made.next_offset - 2**31 + 1)
    (block,) = SegmentBlocks(io.BytesIO(made.data), "log", base_offset=base, is_newest=True)
    request = DecodeRequest(view=View.COMMITS, log_partition=4, outcomes=lambda pairs: [0] * len(pairs))
    rows = reference.decode_block(block, request).rows
    assert rows is not None
    expected = [{**row, "txn_state": None} for row in rows.to_pylist()]
    assert commits_of_pairs(connector_rows(list(read_records(made.data)))).to_pylist() == expected


@pytest.mark.parametrize("release", ["2.1.1", "4.4.0"])
def test_a_log_and_its_pairs_have_the_same_group_records(release: str) -> None:
    found, expected = [], []
    for path in sorted(golden_log(release).glob("__consumer_offsets-*/*.log")):
        number = int(path.parent.name.rpartition("-")[2])
        with path.open("rb") as file:
            for block in SegmentBlocks(file, path.name, base_offset=int(path.stem), is_newest=True):
                request = DecodeRequest(view=View.GROUPS, log_partition=number, outcomes=lambda pairs: [0] * len(pairs))
                decoded = reference.decode_block(block, request).rows
                assert decoded is not None
                expected += decoded.to_pylist()
                placed = [batch_at(block, start, check_crc=True) for start in block.starts]
                records = [record for batch in placed if not batch.batch.is_control for record in batch.records()]
                found += groups_of_pairs(connector_rows(records, number)).to_pylist()
    assert expected
    assert found == expected


def test_rows_of_several_partitions_are_decoded_by_partition() -> None:
    one, other = Record(COMMIT_KEY, COMMIT_VALUE, (), NOW, 7), Record(COMMIT_KEY, None, (), NOW, 3)
    table = pa.Table.from_batches([connector_rows([one], 9), connector_rows([other], 2)])
    found = commits_of_pairs(table.combine_chunks().to_batches()[0]).to_pylist()
    assert [(row["log_partition"], row["log_offset"], row["tombstone"]) for row in found] == [
        (2, 3, True),
        (9, 7, False),
    ]


def test_no_rows_give_no_rows() -> None:
    assert len(commits_of_pairs(connector_rows([]))) == 0


@pytest.mark.parametrize(
    ("key", "value", "kind"),
    [
        (None, COMMIT_VALUE, errors.BadKey),
        (b"\0", None, errors.BadKey),
        (COMMIT_KEY + b"\0", COMMIT_VALUE, errors.BadKey),
        (COMMIT_KEY, COMMIT_VALUE[:-1], errors.BadValue),
    ],
)
def test_damage_raises_its_class(key: bytes | None, value: bytes | None, kind: type[errors.Damage]) -> None:
    with pytest.raises(kind, match="__consumer_offsets-4 at byte 0, offset 5"):
        commits_of_pairs(connector_rows([Record(key, value, (), NOW, 5)]))
