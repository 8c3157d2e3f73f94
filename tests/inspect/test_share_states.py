"""`kproto log` reads the records of `__share_group_state`, kproto's and those of a real broker."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from kproto.errors import CorruptLog
from kproto.records.partitioning import SHARE_STATE_TOPIC, partition_for, share_partition_name
from kproto.records.segment_files import segment_name
from kproto_server.inspect.directory import find_logs
from kproto_server.inspect.dump import dump
from kproto_server.inspect.export import export
from kproto_server.inspect.verify import verify
from kproto_server.share_groups.in_flight import RecordState, StateBatch
from kproto_server.share_groups.records import snapshot_batch, update_batch
from kproto_server.share_groups.share_states import SharePartitionKey, ShareState, StateWrite
from tests.inspect.logs import NOW

KEY = SharePartitionKey("g", bytes(range(16)), 3)
TOPIC_ID = "AAECAwQFBgcICQoLDA0ODw"
PARTITIONS = 5
OWN = partition_for(share_partition_name(*KEY), PARTITIONS)
BATCH = StateBatch(7, 9, RecordState.ACKNOWLEDGED, 2)


def log_dir(at: Path, number: int = OWN) -> Path:
    """Make a log with a snapshot, an update and a tombstone."""
    for index in range(PARTITIONS):
        (at / f"{SHARE_STATE_TOPIC}-{index}").mkdir()
    batches = [
        snapshot_batch(KEY, ShareState(5, 1, 2, 3, 0, (BATCH,), NOW, NOW), NOW),
        update_batch(KEY, 3, StateWrite(1, 2, -1, 3, (BATCH,)), NOW),
        snapshot_batch(KEY, None, NOW),
    ]
    data = b"".join(offset.to_bytes(8, "big") + batch[8:] for offset, batch in enumerate(batches))
    (at / f"{SHARE_STATE_TOPIC}-{number}" / segment_name(0)).write_bytes(data)
    return at


def dumped(at: Path, form: str) -> str:
    lines: list[str] = []
    dump(find_logs(str(at)), form, write=lines.append, note=pytest.fail)
    return "".join(lines)


def test_each_record_is_dumped(tmp_path: Path) -> None:
    rows = [json.loads(line) for line in dumped(log_dir(tmp_path), "jsonl").splitlines()]
    records = [row for row in rows if row["type"] == "record"]
    key: dict[str, Any] = {"group_id": "g", "topic_id": TOPIC_ID, "partition": 3}
    assert [(row["key"]["name"], row["key"]["data"]) for row in records] == [
        ("ShareSnapshot", key),
        ("ShareUpdate", key),
        ("ShareSnapshot", key),
    ]
    batch = {"first_offset": 7, "last_offset": 9, "delivery_state": 2, "delivery_count": 2}
    assert records[0]["value"]["data"] == {
        "snapshot_epoch": 3,
        "state_epoch": 1,
        "leader_epoch": 2,
        "start_offset": 5,
        "delivery_complete_count": 0,
        "create_timestamp": NOW,
        "write_timestamp": NOW,
        "state_batches": [batch],
    }
    assert (records[1]["value"]["data"]["state_batches"], records[2]["value"]) == ([batch], None)
    text = dumped(tmp_path, "text")
    assert f'ShareUpdate group_id="g" topic_id="{TOPIC_ID}" partition=3 -> v0 snapshot_epoch=3' in text


def test_each_record_is_exported(tmp_path: Path) -> None:
    output = tmp_path / "states.parquet"
    exported = export(str(log_dir(tmp_path)), "share_states", None, str(output), pytest.fail)
    assert (exported.rows, exported.partitions) == (3, PARTITIONS)
    first, second, third = pq.read_table(output).to_pylist()
    when = datetime.fromtimestamp(NOW / 1000, UTC)
    assert first == {
        "log_partition": OWN,
        "log_offset": 0,
        "log_ts": when,
        "group_id": "g",
        "topic_id": KEY.topic_id,
        "partition": 3,
        "kind": "snapshot",
        "tombstone": False,
        "snapshot_epoch": 3,
        "state_epoch": 1,
        "leader_epoch": 2,
        "start_offset": 5,
        "delivery_complete_count": 0,
        "create_ts": when,
        "write_ts": when,
        "batches": ["7-9 2 2"],
    }
    assert (second["kind"], second["state_epoch"], second["start_offset"]) == ("update", None, None)
    assert (third["kind"], third["tombstone"], third["batches"]) == ("snapshot", True, None)


def test_each_share_partition_is_in_its_partition(tmp_path: Path) -> None:
    logs = find_logs(str(log_dir(tmp_path)))
    verified = verify(logs, partitions=None, note=lambda text: None, progress=lambda count: None)
    assert (verified.partitions, verified.records) == (PARTITIONS, 3)


def test_a_share_partition_in_another_partition_is_damage(tmp_path: Path) -> None:
    logs = find_logs(str(log_dir(tmp_path, (OWN + 1) % PARTITIONS)))
    with pytest.raises(CorruptLog, match=rf"'g:{TOPIC_ID}:3' belongs to partition {OWN} of {PARTITIONS}"):
        verify(logs, partitions=None, note=lambda text: None, progress=lambda count: None)
