"""The load of a partition: its steps, its slices, and the figures that it reports (LF-30, LF-36, LF-62)."""

from __future__ import annotations

import errno
from collections.abc import Iterator

import pytest

from kproto.records.compression import Compression
from kproto.records.control import ControlType
from kproto_server.coordinator.loading.load import STEP_SIZE_BYTES, PartitionLoad
from kproto_server.coordinator.loading.repeated_commits import BatchTemplates
from kproto_server.coordinator.record_load import RecordLoad
from tests.coordinator.broker_state import new_state
from tests.coordinator.loading.group_values import group_log_of
from tests.coordinator.loading.logs import NOW, Log, attempted, both_ways, loaded, slices, stored


def long_log(groups: int = 100, rounds: int = 40) -> Log:
    log = Log()
    for number in range(rounds):
        for group in range(groups):
            log.commit(f"g{group:03}", [("t", [(0, stored(number)), (1, stored(number))])])
    return log


@both_ways
def test_a_step_reads_a_bounded_part_of_the_log(decodes_all: bool) -> None:
    data = long_log().data
    assert len(data) > 5 * STEP_SIZE_BYTES
    load = PartitionLoad(new_state().coordinator, slices(data, 1 << 20), NOW, decodes_all=decodes_all)
    before = steps = 0
    while not load.step():
        assert load.read_size_bytes - before < STEP_SIZE_BYTES + 1000
        before = load.read_size_bytes
        steps += 1
    assert load.read_size_bytes == len(data)
    assert steps >= len(data) // STEP_SIZE_BYTES
    assert load.step()


def test_most_of_a_log_is_not_decoded() -> None:
    found = loaded(long_log().data)
    assert found.load.batch_count == 1
    assert len(found.offsets_as_dicts()) == 100


def test_partitions_share_batch_templates() -> None:
    templates: BatchTemplates = {}
    data = long_log(rounds=1).data
    assert loaded(data, templates=templates).load.batch_count == 1
    assert loaded(data, templates=templates).load.batch_count == 0


@both_ways
def test_an_empty_log(decodes_all: bool) -> None:
    found = loaded(b"", decodes_all=decodes_all)
    assert found.offsets_as_dicts() == {}
    assert found.load.step()


@both_ways
def test_an_incomplete_batch_at_the_end_fails_the_load(decodes_all: bool) -> None:
    """LF-62: storage truncates a torn batch when it opens the log, so this one has a damaged length."""
    log = long_log(groups=3, rounds=3)
    found = attempted(log.data[:-5], decodes_all=decodes_all)
    left = len(log.batches[-1]) - 5
    assert found.load.failed is not None
    assert found.load.failed.endswith(f"the last {left} bytes are no complete batch")
    assert found.offsets_as_dicts() == {}


@both_ways
def test_a_length_that_reaches_beyond_the_log_fails_the_load(decodes_all: bool) -> None:
    log = long_log(groups=3, rounds=3)
    data = bytearray(log.data)
    data[sum(map(len, log.batches[:4])) + 9] ^= 1  # the batch seems to be 65,536 bytes longer
    found = attempted(bytes(data), decodes_all=decodes_all)
    assert found.load.failed is not None
    assert found.offsets_as_dicts() == {}


@both_ways
def test_a_log_that_cannot_be_read_fails_the_load(decodes_all: bool) -> None:
    """What was read before is not served either."""

    def content() -> Iterator[bytes]:
        yield long_log(groups=3, rounds=3).data
        raise OSError(errno.EIO, "Input/output error")

    state = new_state()
    load = PartitionLoad(state.coordinator, content(), NOW, decodes_all=decodes_all)
    load.run()
    assert load.failed is not None
    assert "Input/output error" in load.failed
    assert not state.coordinator.offsets.of_group("g000")
    records = RecordLoad(content(), lambda key, value: None)
    while not records.step():
        pass
    assert records.failed == "[Errno 5] Input/output error"


@both_ways
def test_a_wrong_checksum_fails_the_load(decodes_all: bool) -> None:
    log = long_log(groups=3, rounds=3)
    position = sum(map(len, log.batches[:4]))
    data = bytearray(log.data)
    data[position + 70] ^= 1
    found = attempted(bytes(data), decodes_all=decodes_all)
    assert found.load.failed is not None
    assert found.load.failed.startswith(f"batch at byte {position} of the log: RecordBatch.crc")
    assert len(found.state.coordinator.offsets) == 0


@both_ways
@pytest.mark.parametrize("size", [-1, 0, 13, 2**31 - 1])
def test_an_impossible_size_fails_the_load(size: int, decodes_all: bool) -> None:
    """A damaged size must not make the load read a whole segment."""
    data = long_log(groups=1, rounds=3).data
    broken = data[:8] + size.to_bytes(4, "big", signed=True) + data[12:]
    failed = attempted(broken, decodes_all=decodes_all).load.failed
    assert failed is not None
    assert "size" in failed


def test_a_missing_package_fails_the_load(monkeypatch: pytest.MonkeyPatch) -> None:
    log = Log()
    log.commit("g", [("t", [(0, stored(1))])], compression=Compression.ZSTD)
    monkeypatch.setattr("kproto.records.compression.PACKAGE", "no_such_package")
    failed = attempted(log.data).load.failed
    assert failed is not None
    assert "zstd compression needs the package" in failed


def test_a_failed_load_does_not_affect_other_partitions() -> None:
    """LF-36: only this partition is unavailable."""
    state = new_state()
    good, bad = Log(), Log()
    for number in range(4):
        good.commit("good", [("t", [(0, stored(number))])])
        bad.commit("bad", [("t", [(0, stored(number))])])
    bad.raw(None, None)
    loaded(good.data, state=state)
    assert attempted(bad.data, state=state).load.failed is not None
    assert len(state.coordinator.offsets) == 1
    assert state.coordinator.offsets.of_group("good")["t"][0].offset == 3


def test_many_groups_take_many_steps() -> None:
    data = group_log_of(200).data
    load = PartitionLoad(new_state().coordinator, [data], NOW)
    made = [0]
    while not load.step():
        made.append(len(load.groups))
    assert len(load.groups) == 200
    assert max(after - before for before, after in zip(made, [*made[1:], 200], strict=True)) <= 50


@pytest.mark.parametrize("slice_size", [50, 1 << 18])
def test_records_of_other_coordinators_are_applied_one_by_one(slice_size: int) -> None:
    """All but control records, each with its offset; a slice may end within a batch."""
    log = Log()
    log.raw(b"a", b"1")
    log.marker(1, ControlType.COMMIT)
    log.raw(b"b", None)
    found: list[tuple[int, bytes | None, bytes | None]] = []
    load = RecordLoad(slices(log.data, slice_size), lambda key, value: found.append((load.offset, key, value)))
    while not load.step():
        pass
    assert load.failed is None
    assert found == [(0, b"a", b"1"), (2, b"b", None)]
