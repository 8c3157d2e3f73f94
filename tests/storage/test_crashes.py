"""Ten thousand crashes: nothing acknowledged is lost, no commit is there in part, nothing is invented or comes back.

Random lives on a simulated disk (`tests.storage.crash_driver`), each from its seed, checked against a model
(`tests.storage.crash_model`). The test counts the crashes and looks for every event that the lives must contain,
because a driver that does nothing would pass all checks. Sabotage shows that the checks find what they should.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable

import pytest

from kproto.errors import DecodeError, LogError
from kproto_server.storage import compaction, interrupted_compaction, log_dir, recovery
from kproto_server.storage.fast_retained_records import FastRetainedRecords
from kproto_server.storage.group_commit import GroupCommit
from kproto_server.storage.log_scan import LogScan, ScanResult
from kproto_server.storage.log_writer import Durability
from kproto_server.storage.partition_log import LogSync, PartitionLog
from kproto_server.storage.recovery import Recovery
from kproto_server.storage.retained_records import RetainedRecords
from kproto_server.storage.segment_sync import RecoveryPoints, SegmentSync
from kproto_server.testing.simulated_files import Directory, Inode
from tests.storage.crash_driver import Driver

REPETITIONS = 10 if os.environ.get("KPROTO_HYPOTHESIS") == "exhaustive" else 1
EVENTS = {
    "fsync": (
        "crash", "kill", "close", "power lost during the start", "batches from the write-ahead log", "compacted",
        "in doubt", "segments synced: None", ": 56", "Input/output error", "No space left",
    ),
    "os": ("kill", "close", "power lost during the start", "compacted", ": 56", "Input/output error", "No space left"),
}  # fmt: skip
"""Texts that the traces of each durability must contain."""


def count_events(seeds: Iterable[int], durability: Durability, *, power_fails: bool) -> Counter[str]:
    """Run the lives of these seeds; return the number of crashes, and in how many runs each event happened."""
    found: Counter[str] = Counter()
    for seed in seeds:
        driver = Driver(seed, durability, power_fails=power_fails)
        try:
            found["crashes"] += driver.run()
        except Exception as error:
            error.add_note(f"Driver({seed}, {durability!r}, power_fails={power_fails}).run()")
            raise
        trace = "\n".join(driver.harness.trace)
        found.update(event for event in (*EVENTS[durability], "repair") if event in trace)
    return found


@pytest.mark.parametrize(
    ("durability", "power_fails", "seeds", "crashes_min"),
    [("fsync", True, 500, 6000), ("os", False, 200, 2000), ("os", True, 200, 2000)],
    ids=["fsync", "os, killed", "os, without power"],
)
def test_crashes(
    durability: Durability,
    power_fails: bool,
    seeds: int,
    crashes_min: int,
    record_property: Callable[[str, object], None],
) -> None:
    """In ``os`` mode a power loss may take unsynced commits, but never a part of one."""
    found = count_events(range(seeds * REPETITIONS), durability, power_fails=power_fails)
    record_property("crashes", found["crashes"])
    assert found["crashes"] >= crashes_min
    for event in EVENTS[durability]:
        assert found[event] >= 10, f"{event!r} happened only {found[event]} times"
    assert (found["repair"] > 0) == (durability == "os" and power_fails), "only lost batches need a repair"


def do_nothing(*_: object) -> None:
    """Replace a step."""


def take_no_batches(_: object, buffer: bytes, start: int, *rest: object) -> tuple[int, list[tuple[int, int]]]:
    return start, []


SABOTAGE: dict[str, list[tuple[object, str, object]]] = {
    "files are not synced by the disk": [(Inode, "sync", do_nothing)],
    "names are not synced by the disk": [(Directory, "sync", do_nothing)],
    "group commits are not synced": [(GroupCommit, "sync", do_nothing)],
    "segments are not synced": [(SegmentSync, "run", do_nothing)],
    "failed writes are not truncated": [(PartitionLog, "_truncate_tail", do_nothing)],
    "new names are not synced": [(LogSync, "has_new_files", False)],
    "recovery checks nothing": [
        (LogScan, "segment", lambda self, file, size, *_: ScanResult(size, self.next_offset, None))
    ],
    "the write-ahead log is not synced before it is restored": [(log_dir, "sync_write_ahead_log", do_nothing)],
    "recovery does not restore": [(Recovery, "_restore", do_nothing)],
    "recovery leaves later segments": [(Recovery, "_remove", do_nothing)],
    "merged segments are left": [
        (compaction, "remove_segments", do_nothing),
        (interrupted_compaction, "remove_segments", do_nothing),
    ],
    "interrupted compactions are not finished": [(recovery, "finish_compaction", lambda *_, repair: [])],
    "compaction keeps the oldest record": [
        (FastRetainedRecords, "keep", take_no_batches),
        (RetainedRecords, "_is_newest", lambda self, key, offset: self.offset_map.get(key, 0) >= offset),
    ],
    "compaction drops a key": [
        (FastRetainedRecords, "keep", take_no_batches),
        (RetainedRecords, "_is_newest", lambda self, key, offset: key != b"k0"),
    ],
    "tombstones go before older records": [(FastRetainedRecords, "note", lambda _, buffer, *rest: len(buffer))],
    "compaction does not save the recovery point": [(RecoveryPoints, "advance", do_nothing)],
}


LIVES = 1000
FOUND_BY = {
    "the write-ahead log is not synced before it is restored": 496,
    "interrupted compactions are not finished": 346,
    "compaction keeps the oldest record": 61,
    "tombstones go before older records": 141,
}
"""Seeds that found the sabotage when they were written down; the test begins with them. All others follow if they no
longer do."""


@pytest.mark.parametrize("sabotage", SABOTAGE)
def test_sabotage_is_found(sabotage: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Most of these are found within a few lives."""
    first = FOUND_BY.get(sabotage, 0)
    for owner, name, replacement in SABOTAGE[sabotage]:
        monkeypatch.setattr(owner, name, replacement)
    with pytest.raises((AssertionError, LogError, DecodeError)):
        count_events([*range(first, LIVES), *range(first)], "fsync", power_fails=True)
