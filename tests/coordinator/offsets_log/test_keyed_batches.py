"""Batches of one record: the same bytes as those of the declared batch."""

from __future__ import annotations

import pytest

from kproto.records.record import Record
from kproto.records.record_batch import build_record_batch
from kproto_server.coordinator.offsets_log.batches import keyed_batch

NOW_MS = 1_700_000_000_000


@pytest.mark.parametrize("value", [None, b"", b"value", bytes(70_000)])
@pytest.mark.parametrize("key", [b"", b"key", bytes(100)])
def test_a_batch_of_one_record(key: bytes, value: bytes | None) -> None:
    declared = build_record_batch([Record(key, value, timestamp=NOW_MS, offset=0)], partition_leader_epoch=0)
    assert keyed_batch(key, value, NOW_MS) == declared
