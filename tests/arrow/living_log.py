"""A partition of the offsets topic on disk, changed as a broker does it: appends, rolls, cleaning, deletion."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Self

from kproto.arrow.decoding import View
from kproto.arrow.reading import RangeReader
from kproto.logs.files import PartitionDirectory
from kproto.logs.ranges import OffsetRange
from kproto.records.batch_header import TRANSACTIONAL
from kproto.records.control import ControlType, build_end_marker
from kproto.records.record import Record
from kproto.records.record_batch import build_record_batch
from kproto.records.segment_files import segment_name
from tests.records.made import COMMIT_KEY, COMMIT_VALUE, NOW

BATCH_RECORDS = 10


class LivingLog:
    """The directory of a partition, with the operations of a broker."""

    def __init__(self, directory: Path) -> None:
        directory.mkdir(parents=True)
        self.directory = directory
        self.partition = PartitionDirectory("__consumer_offsets", int(directory.name.rpartition("-")[2]), directory)
        self.next_offset = 0
        self.newest = 0
        self.roll()

    def path(self, base: int, suffix: str = "") -> Path:
        return self.directory / (segment_name(base) + suffix)

    def append(self, *, producer_id: int = -1, size: int | None = None) -> None:
        """Append a batch, or its first ``size`` bytes."""
        records = [Record(COMMIT_KEY, COMMIT_VALUE, (), NOW, self.next_offset + n) for n in range(BATCH_RECORDS)]
        flags = TRANSACTIONAL if producer_id >= 0 else 0
        data = build_record_batch(records, producer_id=producer_id, flags=flags)[:size]
        self._write(data, self.next_offset + BATCH_RECORDS - 1)
        self.next_offset += 0 if size else BATCH_RECORDS

    def end(self, producer_id: int, outcome: ControlType) -> None:
        marker = build_end_marker(
            outcome,
            offset=self.next_offset,
            timestamp=NOW,
            producer_id=producer_id,
            producer_epoch=0,
            coordinator_epoch=0,
            partition_leader_epoch=0,
        )
        self._write(marker, self.next_offset)
        self.next_offset += 1

    def _write(self, data: bytes, last_offset: int) -> None:
        with self.path(self.newest).open("ab") as file:
            position = file.tell()
            file.write(data)
        if len(data) > 61 and position:
            entry = (last_offset - self.newest).to_bytes(4, "big") + position.to_bytes(4, "big")
            with self.path(self.newest).with_suffix(".index").open("ab") as file:
                file.write(entry)

    def truncate(self, size: int) -> None:
        """Truncate the newest segment to ``size`` bytes; if negative, by that many."""
        path = self.path(self.newest)
        os.truncate(path, size if size >= 0 else path.stat().st_size + size)

    def roll(self) -> None:
        self.newest = self.next_offset
        self.path(self.newest).touch()

    def filled(self, segments: int, batches: int = 3) -> Self:
        for number in range(segments):
            if number:
                self.roll()
            for _ in range(batches):
                self.append()
        return self

    def clean(self, *bases: int) -> None:
        """Merge segments as the cleaner does; no record is superseded."""
        content = b"".join(self.path(base).read_bytes() for base in bases)
        self.path(bases[0], ".swap").write_bytes(content)
        for base in bases:
            self.path(base).rename(self.path(base, ".deleted"))
            self.path(base).with_suffix(".index").unlink(missing_ok=True)
        self.path(bases[0], ".swap").rename(self.path(bases[0]))

    def offsets(self, start: int = 0, end: int | None = None) -> Iterator[list[int]]:
        """Yield the offsets of each block."""
        for decoded in RangeReader(OffsetRange(self.partition, start, end), View.COMMITS):
            assert decoded.rows is not None
            yield decoded.rows["log_offset"].to_pylist()

    def all_offsets(self, start: int = 0, end: int | None = None) -> list[int]:
        return [offset for block in self.offsets(start, end) for offset in block]
