"""Ten thousand crashes: nothing acknowledged is lost, no commit is there in part, nothing is invented or comes back.

Random lives on a simulated disk (`tests.storage.crash_driver`), each from its seed, judged by what was answered
(`tests.storage.crash_model`). The crashes are counted, and what has to happen on the way is looked for: else a
mistake in the driver would be the best of all proofs. That the judge can tell is shown by sabotage.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable

import pytest

from kproto.errors import DecodeError, LogError
from kproto_server.storage import compaction, interrupted_compaction, recovery
from kproto_server.storage.disk import Disk
from kproto_server.storage.fast_retained_records import FastRetainedRecords
from kproto_server.storage.log_scan import LogScan, ValidEnd
from kproto_server.storage.log_writer import Durability, GroupCommit
from kproto_server.storage.partition_log import LogSync, PartitionLog
from kproto_server.storage.recovery import Recovery
from kproto_server.storage.retained_records import RetainedRecords
from kproto_server.storage.segment_sync import RecoveryPoints, SegmentSync
from tests.storage.crash_driver import Driver
from tests.storage.simulated_files import Directory, Inode

LIVES_TIMES = 10 if os.environ.get("KPROTO_HYPOTHESIS") == "exhaustive" else 1
EVENTS = {
    "fsync": (
        "crash", "kill", "close", "power lost while opening", "batches came from the journal", "compacted", "in doubt",
        "never acknowledged", "segments synced: None", ": 56", "Input/output error", "No space left",
    ),
    "os": ("kill", "close", "power lost while opening", "compacted", ": 56", "Input/output error", "No space left"),
}  # fmt: skip
"""What each durability has to have gone through, as the traces say it."""


def events_of(seeds: range, durability: Durability, *, power_fails: bool) -> Counter[str]:
    """Live all lives of these seeds; return in how many what happened, and the number of crashes."""
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
    """In ``os`` mode a power loss may take what was not synced, but never a part of a commit."""
    found = events_of(range(seeds * LIVES_TIMES), durability, power_fails=power_fails)
    record_property("crashes", found["crashes"])
    assert found["crashes"] >= crashes_min
    for event in EVENTS[durability]:
        assert found[event] >= 10, f"{event!r} has come {found[event]} times only"
    assert (found["repair"] > 0) == (durability == "os" and power_fails), "damage is refused where it may be one"


def nothing(*_: object) -> None:
    """Instead of what has to be done."""


def only_renamed(disk: Disk, directory: str, swap: str, replaced: list[str]) -> None:
    disk.rename(swap, replaced[0])


def not_quickly(newest: object, held: bytes, start: int, *_: object) -> tuple[int, list[tuple[int, int]]]:
    return start, []


SABOTAGE: dict[str, list[tuple[object, str, object]]] = {
    "disks lie about files": [(Inode, "sync", nothing)],
    "disks lie about names": [(Directory, "sync", nothing)],
    "rounds are not synced": [(GroupCommit, "sync", nothing)],
    "segments are not synced": [(SegmentSync, "run", nothing)],
    "what was refused is not cut off": [(PartitionLog, "_truncate_tail", nothing)],
    "files are taken for durable that have no name": [(LogSync, "has_new_files", False)],
    "recovery looks at nothing": [
        (LogScan, "segment", lambda self, file, size, *_: ValidEnd(size, self.next_offset, None))
    ],
    "recovery does not replay": [(Recovery, "_replay", nothing)],
    "recovery leaves old segments": [(Recovery, "_remove", nothing)],
    "segments that were merged are left": [
        (compaction, "finish_swap", only_renamed),
        (interrupted_compaction, "finish_swap", only_renamed),
    ],
    "merging is not finished": [(recovery, "finish_compaction", nothing)],
    "compaction keeps the oldest": [
        (FastRetainedRecords, "keep", not_quickly),
        (RetainedRecords, "_is_newest", lambda self, key, offset: self.newest.get(key, 0) >= offset),
    ],
    "compaction keeps no record of some key": [
        (FastRetainedRecords, "keep", not_quickly),
        (RetainedRecords, "_is_newest", lambda self, key, offset: key != b"k0"),
    ],
    "tombstones go before what is older": [(FastRetainedRecords, "note", lambda _, held, *rest: len(held))],
    "compaction runs ahead of the disk": [(RecoveryPoints, "note", nothing)],
}


@pytest.mark.parametrize("sabotage", SABOTAGE)
def test_sabotage_is_found(sabotage: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """So the judge can tell. (Most of these take a few lives.)"""
    for place, name, instead in SABOTAGE[sabotage]:
        monkeypatch.setattr(place, name, instead)
    with pytest.raises((AssertionError, LogError, DecodeError)):
        events_of(range(300), "fsync", power_fails=True)
