"""One offsets partition on its way from the log into the tables, in steps of a few milliseconds at most."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kproto.errors import DecodeError, MissingPackage
from kproto.records.batch_header import LOG_OVERHEAD
from kproto.records.batches import batch_size, read_batch
from kproto.records.segment import BATCH_SIZE_MAX
from kproto_server.coordinator.loading.repeated_commits import BatchTemplates, RepeatedCommits
from kproto_server.coordinator.loading.replay import Replay

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Iterable, Iterator

    from kproto_server.coordinator.coordinator import GroupCoordinator
    from kproto_server.coordinator.groups import Group
    from kproto_server.coordinator.offsets import OffsetStore
    from kproto_server.coordinator.pending_offsets import PendingOffsets

STEP_SIZE_BYTES = 64 << 10
"""Of the log, read in one step: records of 70 bytes at 3 microseconds each make 3 ms."""
GROUPS_AT_ONCE = 50
"""Groups made, or offsets of groups taken back, in one step."""


class PartitionLoad:
    """The loading of one offsets partition; `step` until it says that it is over."""

    def __init__(
        self,
        coordinator: GroupCoordinator,
        slices: Iterable[bytes],
        now_ms: int,
        *,
        offsets: OffsetStore | None = None,
        templates: BatchTemplates | None = None,
        decodes_all: bool = False,
    ) -> None:
        """Read a log from its slices, which may be cut anywhere.

        Args:
            offsets: gets the offsets; None: the coordinator's own.
            layouts: what loads of other partitions have learned, and this one will.
            decodes_all: take the plain path only, by the declarations of all records.
        """
        self.read_size_bytes = 0
        """How much of the log has been gone through."""
        self.batch_count = 0
        """Batches that the plain path has read."""
        self.failed: str | None = None
        """Why the partition can't be served (LF-36): a batch, key or value that can't be read. Nothing of it is in the
        tables then."""
        self.torn_size_bytes = 0
        """What the log ends with and is no whole batch (LF-62)."""
        self.groups: list[Group] = []
        """The groups of which the log has more than offsets; in the registry since the end."""
        self._groups = coordinator.groups
        self._now_ms = now_ms
        self._offsets = coordinator.offsets if offsets is None else offsets
        self._replay = Replay(coordinator, self._offsets, decodes_all=decodes_all)
        self._repeated_commits = (
            None if decodes_all else RepeatedCommits(self._replay, {} if templates is None else templates)
        )
        if self._repeated_commits is not None:
            self._replay.settle = self._repeated_commits.settle
        self._work = self._all_work(slices)

    @property
    def pending(self) -> PendingOffsets:
        """Offsets of transactions that had not ended (LF-33)."""
        return self._replay.pending

    @property
    def group_ids(self) -> set[str]:
        """Groups that have got offsets; some may have lost them again."""
        return self._replay.group_ids

    @property
    def skipped(self) -> Counter[int]:
        """Records of types that mean nothing here, by type (EX-55)."""
        return self._replay.skipped

    def step(self) -> bool:
        """Go on for a few milliseconds at most; return whether it is over."""
        return next(self._work, self) is self

    def run(self) -> None:
        """Go on to the end."""
        for _ in self._work:
            pass

    def _all_work(self, slices: Iterable[bytes]) -> Iterator[None]:
        try:
            yield from self._read(slices)
            if self._repeated_commits is not None:
                yield from self._repeated_commits.flush_all()
        except (DecodeError, MissingPackage) as error:
            self.failed = f"batch at byte {self.read_size_bytes} of the log: {error}"
            yield from self._take_back()
            return
        for index, group in enumerate(self._replay.groups.make(self._groups, self._now_ms), 1):
            self.groups.append(group)
            if index % GROUPS_AT_ONCE == 0:
                yield

    def _read(self, slices: Iterable[bytes]) -> Iterator[None]:
        data = b""
        for next_slice in slices:
            data += next_slice
            start = mark = 0
            while (stop := self._go(data, start)) > start:
                start = stop
                if start - mark >= STEP_SIZE_BYTES:
                    mark = start
                    if self._repeated_commits is not None and self._repeated_commits.is_full:
                        yield from self._repeated_commits.flush_all()
                    yield
            data = data[start:]
            yield
        self.torn_size_bytes = len(data)

    def _go(self, data: bytes, start: int) -> int:
        """Go through some batches; return where they end."""
        if self._repeated_commits is not None:
            until = start + STEP_SIZE_BYTES
            stop = self._repeated_commits.take(data, start, len(data), until)
            self.read_size_bytes += stop - start
            start = stop
            if start >= until:
                return start
        if len(data) - start >= LOG_OVERHEAD:
            size = batch_size(data, start)
            if size > BATCH_SIZE_MAX:
                raise DecodeError("batch", start, f"size {size}, {BATCH_SIZE_MAX} is the most")
        found = read_batch(data, start)
        if found is None:
            return start
        batch, stop = found
        self._replay.batch(batch)
        self.batch_count += 1
        self.read_size_bytes += batch.size
        return stop

    def _take_back(self) -> Iterator[None]:
        """Take out what has got into the tables already."""
        offsets = self._offsets
        for index, group_id in enumerate(self._replay.group_ids, 1):
            stored = offsets.of_group(group_id)
            offsets.apply_deletion(group_id, [(topic, list(partitions)) for topic, partitions in stored.items()])
            if index % GROUPS_AT_ONCE == 0:
                yield
