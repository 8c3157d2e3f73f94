"""What must be true of the logs of a data directory, whatever happens to them.

A history keeps, of one log, what was appended and not refused, in the order of appending. What is found after a crash
has to be what the first so many of these make, with all that was answered among them: then nothing that was
acknowledged is lost (OS-11), no commit is there in part (OS-20, OS-21), nothing is invented, what was refused does not
come back, and the order is kept (OS-28, OS-29). What is found is read by a few lines of their own, not by what is
tested. Values are unlike each other, so that each tells which commit it is of.
"""

from __future__ import annotations

from typing import NamedTuple

from kproto.records.batches import read_batch
from kproto.records.record import Record
from kproto.records.record_batch import build_record_batch
from kproto_server.storage.disk import Disk, read_all

TOPIC = "__consumer_offsets"
PARTITIONS = 3

KEYS = [b"k%d" % number for number in range(5)]

State = dict[bytes, bytes]


class Commit(NamedTuple):
    """What is written together: a value, or None for a tombstone, for each of some keys."""

    number: int
    partition: int
    entries: dict[bytes, bytes | None]

    def apply(self, state: State) -> None:
        for key, value in self.entries.items():
            if value is None:
                state.pop(key, None)
            else:
                state[key] = value

    def batch(self) -> bytes:
        records = [
            Record(key, value, timestamp=self.number, offset=offset)
            for offset, (key, value) in enumerate(self.entries.items())
        ]
        return build_record_batch(records, base_offset=0, base_sequence=0)


class LogModel:
    """What was appended to one log and not refused."""

    def __init__(self) -> None:
        self.sent: list[Commit] = []
        """Everything, in its order; what was refused too."""
        self.settled: State = {}
        """What is surely there."""
        self.appended: list[Commit] = []
        """What may be there, in its order, all that stands before something that is there too."""
        self.refused: set[bytes] = set()
        """Values of commits whose write failed."""

    def acknowledge(self, commit: Commit) -> None:
        assert self.appended[0] is commit, f"{commit} is acknowledged before {self.appended[0]}"
        self.appended.pop(0).apply(self.settled)

    def explains(self, found: State) -> bool:
        """Whether the first so many of those that may be there make what was found."""
        state = dict(self.settled)
        if state == found:
            return True
        for commit in self.appended:
            commit.apply(state)
            if state == found:
                return True
        return False

    def problem(self, found: State) -> str | None:
        """Say what can't be, where anything that was not synced may be lost: values never sent, commits in part."""
        senders = {value: commit for commit in self.sent for value in commit.entries.values() if value is not None}
        foreign = found.values() - senders.keys()
        if foreign:
            return f"nobody sent {foreign}"
        for commit in {senders[value].number: senders[value] for value in found.values()}.values():
            for key, value in commit.entries.items():
                there = found.get(key)
                last = max((c.number for c in self.sent if c.entries.get(key, key) == there), default=0)
                if there != value and last < commit.number:
                    return f"a part of {commit}"
        return None

    def take(self, found: State) -> None:
        """What was found is what counts from now on: others may have seen it."""
        self.settled = dict(found)
        self.appended.clear()
        self.refused -= set(found.values())  # without power in ``os`` mode


def read_log(disk: Disk, partition: int) -> tuple[State, list[int]]:
    """Return what a log says, and the offsets of its records; every octet of its segments has to be a batch's."""
    state: State = {}
    offsets: list[int] = []
    end = 0
    for name in disk.names(f"{TOPIC}-{partition}"):
        if not name.endswith(".log"):
            continue
        data = read_all(disk, f"{TOPIC}-{partition}/{name}")
        assert int(name[:20]) >= end, f"{partition}/{name} begins before offset {end}"
        position = 0
        while position < len(data):
            found = read_batch(data, position)
            assert found is not None, f"{partition}/{name} is torn at byte {position}"
            batch, position = found
            for record in batch.records():
                assert record.key is not None
                assert record.offset >= end, f"{name}: offset {record.offset} after {end - 1}"
                end = record.offset + 1
                offsets.append(record.offset)
                Commit(0, partition, {record.key: record.value}).apply(state)
            assert batch.last_offset + 1 >= end
            end = batch.last_offset + 1
    return state, offsets


def image(disk: Disk) -> dict[str, bytes]:
    """Return the content of all segments."""
    directories = [f"{TOPIC}-{partition}" for partition in range(PARTITIONS)]
    paths = [f"{directory}/{name}" for directory in directories for name in disk.names(directory)]
    return {path: read_all(disk, path) for path in paths if path.endswith(".log")}
