"""Model of one log over crashes: the content that the log must have, and may have, after each of them.

A model keeps the commits that were appended and not refused. After a crash the log must have the result of a prefix of
these commits that includes every acknowledged one. Then nothing acknowledged is lost (OS-11), no commit is there in
part (OS-20, OS-21), nothing is invented, refused commits do not come back, and the order is kept (OS-28, OS-29).
`read_log` reads the files with a few lines of its own instead of the tested code. All values are different, so that
each one identifies its commit.
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
    """One batch: a value for each of some keys, or None for a tombstone."""

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
    """The commits of one log."""

    def __init__(self) -> None:
        self.sent: list[Commit] = []
        """All commits in order, refused ones too."""
        self.acknowledged: State = {}
        """The result of the acknowledged commits: the log must have at least these."""
        self.pending: list[Commit] = []
        """Commits without a response, in order: the log may have a prefix of these."""
        self.refused: set[bytes] = set()
        """Values of commits whose write failed: the log must not have them."""

    def acknowledge(self, commit: Commit) -> None:
        assert self.pending[0] is commit, f"{commit} is acknowledged before {self.pending[0]}"
        self.pending.pop(0).apply(self.acknowledged)

    def explains(self, found: State, last: int | None = None) -> bool:
        """Return whether the acknowledged commits and a prefix of the pending ones have this result.

        ``last``: the number of the last commit in the prefix, or of a commit of another log; None: any prefix.
        """
        state = dict(self.acknowledged)
        if state == found and last is None:
            return True
        for commit in self.pending:
            if last is not None and commit.number > last:
                break
            commit.apply(state)
            if state == found and last is None:
                return True
        return state == found and last is not None

    def problem_after_loss(self, found: State) -> str | None:
        """Return what is wrong with a log that may have lost any batch: a value never sent, or a commit in part."""
        senders = {value: commit for commit in self.sent for value in commit.entries.values() if value is not None}
        invented = found.values() - senders.keys()
        if invented:
            return f"values that were never sent: {invented}"
        for commit in {senders[value].number: senders[value] for value in found.values()}.values():
            for key, value in commit.entries.items():
                there = found.get(key)
                last = max((c.number for c in self.sent if c.entries.get(key, key) == there), default=0)
                if there != value and last < commit.number:
                    return f"a part of {commit}"
        return None

    def adopt(self, found: State) -> None:
        """Take the found content as acknowledged: clients may have read it."""
        self.acknowledged = dict(found)
        self.pending.clear()
        self.refused -= set(found.values())  # possible only after a power loss in ``os`` mode


def read_log(disk: Disk, partition: int) -> tuple[State, list[int]]:
    """Return the table of a log and the offsets of its records; check that its files have whole batches only."""
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


def segment_contents(disk: Disk) -> dict[str, bytes]:
    """Return the content of all segments by path."""
    directories = [f"{TOPIC}-{partition}" for partition in range(PARTITIONS)]
    paths = [f"{directory}/{name}" for directory in directories for name in disk.names(directory)]
    return {path: read_all(disk, path) for path in paths if path.endswith(".log")}
