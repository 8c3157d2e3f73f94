"""KIP-333 for one partition, rule by rule: the state machine, the ranges and the checkpoint records.

`test_catch_up_model.py` has random histories; this module has the boundary cases of each rule.
"""

from __future__ import annotations

import json

import pytest

from kproto.client.configuration import read
from kproto.client.decisions.buffer1 import RECORD_BYTES, SLOTS_MAX, KeyedBuffer1, RangeKeys, size_of
from kproto.client.decisions.catch_up import (
    Commit,
    PartitionCatchUp,
    PauseConsumer1,
    Phase,
    ResumeConsumer1,
    StopConsumer2,
)
from kproto.client.decisions.catch_up_ranges import OPEN_END, CatchUpPlan, OffsetRange, plan_catch_up
from kproto.client.decisions.checkpoints import Checkpoint, CheckpointKey, ranges_of_topic
from kproto.client.decisions.resets import LogBounds
from tests.kproto_client.catch_up_model import ModelRecord


def plan(position: int, end: int, checkpointed: dict[int, OffsetRange] | None = None) -> CatchUpPlan:
    bounds = LogBounds(start=0, end=end)
    return plan_catch_up(position=position, bounds=bounds, checkpointed=checkpointed or {}, merge=checkpointed is None)


def new_catch_up(
    position: int = 70, end: int = 120, checkpointed: dict[int, OffsetRange] | None = None
) -> PartitionCatchUp[ModelRecord]:
    """Return the catch-up of the proposal's example, with the checkpoints of earlier crashes."""
    return PartitionCatchUp(plan(position, end, checkpointed), buffer1_limit_bytes=size_of([ModelRecord(0)] * 5))


def records(start: int, end: int) -> list[ModelRecord]:
    return [ModelRecord(offset) for offset in range(start, end)]


def offsets(taken: list[ModelRecord]) -> list[int]:
    return [record.offset() for record in taken]


def test_consumer2_reads_all_ranges_in_order() -> None:
    """CK-55, CK-80: consumer 2 reads one of three ranges at a time."""
    catch_up = new_catch_up(10, 40, {0: OffsetRange(10, 20), 1: OffsetRange(20, 30), 2: OffsetRange(30, OPEN_END)})
    assert list(catch_up.ranges) == [OffsetRange(10, 20), OffsetRange(20, 30), OffsetRange(30, 40)]
    catch_up.consumer2_read(records(10, 25))
    assert catch_up.consumer2_position == 25
    assert offsets(catch_up.take(12)) == list(range(10, 22))
    assert list(catch_up.ranges) == [OffsetRange(22, 30), OffsetRange(30, 40)]


@pytest.mark.parametrize("last_record", [69, 99, 119])
def test_the_position_of_consumer2_ends_the_catch_up(last_record: int) -> None:
    """CK-61: offsets without records at the end of the range (markers, compaction) do not hang the catch-up."""
    catch_up = new_catch_up()
    catch_up.consumer2_read(records(70, last_record + 1))
    catch_up.take(100)
    if last_record < 119:
        assert catch_up.advance() == []
        assert catch_up.phase is Phase.CATCHING_UP
        catch_up.consumer2_is_at(120)
    assert catch_up.advance() == [Commit(120), StopConsumer2()]
    assert catch_up.phase is Phase.NORMAL


def test_the_catch_up_lasts_until_all_records_are_delivered() -> None:
    """CK-61, CK-60: consumer 2 has read all records, the user has not received all."""
    catch_up = new_catch_up()
    catch_up.consumer2_read(records(70, 120))
    catch_up.consumer1_read(records(120, 122))
    assert catch_up.consumer2_has_finished
    assert catch_up.advance() == []
    assert offsets(catch_up.take(100)) == list(range(70, 120))
    assert offsets(catch_up.take(100)) == []
    catch_up.advance()
    assert offsets(catch_up.take(100)) == [120, 121]


@pytest.mark.parametrize("fetched_to", [121, 130])
def test_records_of_consumer1_that_consumer2_fetched_are_dropped(fetched_to: int) -> None:
    """CK-66: a batch crosses the end of the range; consumer 1 delivers its records itself."""
    catch_up = new_catch_up()
    catch_up.consumer2_read(records(70, fetched_to))
    assert catch_up.consumer2_has_finished
    assert offsets(catch_up.take(1000)) == list(range(70, 120))
    catch_up.consumer1_read(records(120, 130))
    catch_up.advance()
    assert offsets(catch_up.take(1000)) == list(range(120, 130))


def test_buffer1_is_delivered_over_several_polls() -> None:
    """CK-62: after that the partition is in normal mode and the buffers are empty."""
    catch_up = new_catch_up(119, 120)
    catch_up.consumer2_read(records(119, 120))
    catch_up.consumer1_read(records(120, 124))
    catch_up.take(1)
    deliveries = []
    catch_up.advance()
    while catch_up.phase is not Phase.NORMAL:
        deliveries.append(offsets(catch_up.take(3)))
        catch_up.advance()
    assert deliveries == [[120, 121, 122], [123]]
    assert catch_up.phase is Phase.NORMAL
    assert catch_up.buffer1_bytes == 0


def test_a_full_buffer1_pauses_consumer1_until_half_of_it_is_free() -> None:
    """CK-65, I5."""
    catch_up = new_catch_up(119, 120)
    assert catch_up.consumer1_read(records(120, 124)) == []
    assert catch_up.consumer1_read(records(124, 130)) == [PauseConsumer1()]
    assert catch_up.consumer1_read(records(130, 131)) == [], "the rest of the batch"
    catch_up.consumer2_read(records(119, 120))
    catch_up.take(1)
    assert catch_up.advance() == [Commit(120), StopConsumer2()]
    catch_up.take(8)
    assert catch_up.advance() == [], "3 of 5 records are left"
    catch_up.take(1)
    assert catch_up.advance() == [ResumeConsumer1()]


def test_records_without_values_fill_buffer1() -> None:
    """CK-65, I5: each costs memory, too."""
    catch_up = PartitionCatchUp[ModelRecord](plan(70, 120), buffer1_limit_bytes=3 * RECORD_BYTES)
    tombstones = [ModelRecord(offset, size_bytes=0) for offset in range(120, 123)]
    assert catch_up.consumer1_read(tombstones) == [PauseConsumer1()]


def test_decreasing_offsets_are_rejected() -> None:
    """CK-63, I1: for consumer 1 and consumer 2."""
    catch_up = new_catch_up()
    catch_up.consumer2_read(records(70, 80))
    with pytest.raises(AssertionError):
        catch_up.consumer2_read(records(79, 81))
    with pytest.raises(AssertionError):
        catch_up.consumer1_read(records(119, 121))


def by_key(end: int = 120) -> tuple[PartitionCatchUp[ModelRecord], RangeKeys]:
    """Return the catch-up of the range from 70 to `end`, ordered by key."""
    keys = RangeKeys(70, end)
    return PartitionCatchUp(plan(70, end), size_of([ModelRecord(0)] * 100), buffer1=KeyedBuffer1(keys)), keys


def keyed(*records: tuple[int, int | None]) -> list[ModelRecord]:
    """Return records of these offsets and keys."""
    return [ModelRecord(offset, key_number=key) for offset, key in records]


def test_order_by_key_holds_a_record_until_the_records_of_its_key_are_delivered() -> None:
    """CK-60, I3: 121 and 123 wait for 71; 120 and 122, whose keys the range has not, alternate with the range."""
    catch_up, keys = by_key(73)
    in_range = keyed((70, 1), (71, 2), (72, 1))
    catch_up.consumer2_read(in_range[:])
    catch_up.consumer1_read(keyed((120, 9), (121, 2), (122, 8), (123, 2)))
    assert not catch_up.has_free_record, "the keys of the range are not known"
    keys.add(in_range)
    assert [offsets(catch_up.take(1)) for _ in range(4)] == [[70], [120], [71], [122]]
    assert offsets(catch_up.take(10)) == [72, 121, 123]
    assert catch_up.advance() == [Commit(124), StopConsumer2()]


def test_records_without_a_key_are_free_at_once() -> None:
    catch_up, _ = by_key()
    catch_up.consumer1_read(keyed((120, 1), (121, None)))
    assert offsets(catch_up.take(10)) == [121]
    assert catch_up.offset_to_commit() == 70, "I4: a commit covers what is delivered without a gap"


def test_the_offset_to_commit_after_the_range_is_before_the_first_held_record() -> None:
    """CK-73, CK-62: by key, the records that are left keep the order of their offsets."""
    catch_up, keys = by_key(72)
    in_range = keyed((70, 1), (71, 2))
    keys.add(in_range)
    catch_up.consumer2_read(in_range)
    catch_up.consumer1_read(keyed((72, 2), (73, 3), (74, 2)))
    assert offsets(catch_up.take(2)) == [70, 73]
    assert catch_up.offset_to_commit() == 71
    assert offsets(catch_up.take(1)) == [71]
    assert catch_up.advance()[0] == Commit(72)
    assert offsets(catch_up.take(10)) == [72, 74]
    assert catch_up.offset_to_commit() == 75


def test_the_table_of_keys_is_limited_and_never_too_low() -> None:
    """A key that shares its slots with others waits too long, never too short; records after the range do not count."""
    assert len(RangeKeys(0, 10**9)._ends) == SLOTS_MAX
    keys = RangeKeys(70, 72)
    in_range = keyed(*((70 + number, number) for number in range(5000)))
    keys.end = 70 + len(in_range)
    keys.add(in_range)
    assert keys.is_complete
    assert all(keys.last_of(record.key() or b"") > record.offset() for record in in_range)
    small = RangeKeys(70, 72)
    small.add(keyed((70, 1), (72, 5)))
    assert small.is_complete
    assert small.last_of(b"1") == 71
    assert small.last_of(b"5") <= 71


def test_few_keys_wait_because_of_others() -> None:
    keys = RangeKeys(0, 10_000)
    keys.add(keyed(*((number, number) for number in range(10_000))))
    waiting = sum(keys.last_of(b"new %d" % number) > 0 for number in range(10_000))
    assert waiting < 100, "13 are expected"


def test_checkpoint_records_have_the_fields_of_the_proposal() -> None:
    """CK-71: group, topic, partition and range; start, end (-1: open), position and time."""
    key = CheckpointKey("billing", "orders", 3, 1)
    assert json.loads(key.encode()) == [1, "billing", "orders", 3, 1]
    assert CheckpointKey.decode(key.encode()) == key
    checkpoint = Checkpoint(range=OffsetRange(120, OPEN_END), position=133, time_ms=5, topic_id="abc")
    written = {"start": 120, "end": -1, "position": 133, "t": 5, "topic_id": "abc"}
    assert json.loads(checkpoint.encode()) == written
    assert Checkpoint.decode(checkpoint.encode()) == checkpoint


@pytest.mark.parametrize("data", [None, b"", b"{", b"7", b"[2,1]", b'{"start":1}', b"\xff"])
def test_records_of_another_format_are_ignored(data: bytes | None) -> None:
    """CK-71: keys and values of another format or of a later version."""
    assert CheckpointKey.decode(data) is None
    assert Checkpoint.decode(data) is None


def test_ranges_of_a_deleted_topic_of_the_same_name_are_dropped() -> None:
    """CK-87: by topic id, if the broker has topic ids."""
    stored = {
        number: Checkpoint(range=OffsetRange(0, 5), position=0, time_ms=0, topic_id=topic_id)
        for number, topic_id in enumerate(["old", "new", None])
    }
    assert ranges_of_topic(stored, "new").keys() == {1, 2}
    assert ranges_of_topic(stored, None).keys() == {0, 1, 2}


def test_stale_ranges_are_clipped_and_empty_ranges_deleted() -> None:
    """CK-85, CK-83: at the committed offset; together with consumer 1's range they cover all later offsets."""
    checkpointed = {
        0: OffsetRange(10, 40),
        1: OffsetRange(40, 60),
        2: OffsetRange(60, 80),
        3: OffsetRange(80, OPEN_END),
    }
    assert plan(50, 90, checkpointed).ranges == (OffsetRange(50, 60), OffsetRange(60, 80), OffsetRange(80, 90))
    assert plan(85, 90, checkpointed).ranges == (OffsetRange(85, 90),)


def test_consumer2_has_the_users_fetch_settings() -> None:
    """CK-92; `bench/client.py` measures the throughput."""
    fetch = {"fetch.min.bytes": 7, "max.partition.fetch.bytes": 900, "queued.max.messages.kbytes": 5000}
    config = read({"group.id": "g", "enable.parallel.rebalance": True, **fetch}).for_consumer2()
    assert {name: config[name] for name in fetch} == fetch


def test_consumer2_is_not_a_group_member() -> None:
    """CK-54: consumer 2 has no member settings and does not commit."""
    member_settings = {
        "group.instance.id": "one",
        "partition.assignment.strategy": "range",
        "group.protocol": "classic",
    }
    config = read({"group.id": "g", "enable.parallel.rebalance": True, **member_settings}).for_consumer2()
    assert not config.keys() & member_settings.keys()
    assert (config["enable.auto.commit"], config["enable.auto.offset.store"]) == (False, False)
