"""Check that the entries of a segment's indexes point at its batches.

Theory of operation. Entries and batches both rise, so both are walked side by side: each check receives every batch and
takes the entries that belong to it. Brokers have written the offset of a batch's first record into the index, of its
last record, and of the last record of an append of several batches. The checks accept each of them, because a search in
the index finds the right batch with each.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kproto.records.segment_files import IndexEntry, TimeIndexEntry
    from kproto_server.inspect.checks import BatchExtent
    from kproto_server.inspect.index_files import IndexEntries


class IndexCheck:
    """Checks an ``.index``: each position is that of a batch, and a search from there finds the entry's offset."""

    def __init__(self, base_offset: int, entries: IndexEntries[IndexEntry]) -> None:
        self._base_offset = base_offset
        self._entries = entries
        self._last_offset = base_offset - 1
        self._highest = base_offset - 1

    def batch(self, extent: BatchExtent) -> None:
        """Check the entries that point at this batch.

        Raises:
            CorruptLog: an entry points into the batch, or has an offset before it.
        """
        while (entry := self._entries.next) is not None and entry.position < extent.end:
            offset = self._base_offset + entry.relative_offset
            if entry.position != extent.position:
                raise self._entries.damage(f"no batch begins there; one begins at {extent.position}")
            if offset < extent.base_offset or offset <= self._last_offset:
                raise self._entries.damage(f"the batch there begins with offset {extent.base_offset}, not {offset}")
            self._highest = offset
            self._entries.advance()
        self._last_offset = extent.last_offset

    def end(self, torn: bool) -> None:
        """Check that no entry is left. With a torn tail, the broker rebuilds the index (LF-60), so any may be left.

        Raises:
            CorruptLog: an entry points after the last batch.
        """
        if torn:
            return
        if self._entries.next is not None:
            raise self._entries.damage("after the last batch")
        if self._highest > self._last_offset:
            raise self._entries.damage_before(f"offset {self._highest} is after the last batch")


class TimeIndexCheck:
    """Checks a ``.timeindex``: each offset is in a batch, and the timestamp is the greatest one of that batch."""

    def __init__(self, base_offset: int, entries: IndexEntries[TimeIndexEntry]) -> None:
        self._base_offset = base_offset
        self._entries = entries

    def batch(self, extent: BatchExtent) -> None:
        """Check the entries that point at this batch.

        Raises:
            CorruptLog: an entry points before the batch, or has another timestamp.
        """
        while (entry := self._entries.next) is not None:
            offset = self._base_offset + entry.relative_offset
            if offset > extent.last_offset:
                return
            if offset < extent.base_offset:
                raise self._entries.damage(f"no batch has offset {offset}")
            if entry.timestamp != extent.max_timestamp:
                raise self._entries.damage(f"the batch of offset {offset} has timestamp {extent.max_timestamp}")
            self._entries.advance()

    def end(self, torn: bool) -> None:
        """Check that no entry is left. With a torn tail, the broker rebuilds the index (LF-60), so any may be left.

        Raises:
            CorruptLog: an entry points after the last batch.
        """
        if self._entries.next is not None and not torn:
            raise self._entries.damage("after the last batch")
