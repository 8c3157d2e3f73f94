"""The load of one offsets partition from its log into the tables, in steps of a few milliseconds.

Theory of operation. The work is a generator, which yields at the end of each step; `step` runs it to the next one. The
generator has three parts:

1. read all batches. Offsets go into the tables as they are read, or are kept back as repeated commits; groups are
   collected. Meanwhile the partition is unavailable (COORDINATOR_LOAD_IN_PROGRESS), so no client sees half of it;
2. if a batch or the log can't be read, remove what is in the tables already: the partition is served whole or not at
   all (LF-36);
3. else apply what was kept back, and create the groups.

A log may end with an incomplete batch, of a write that a crash has interrupted. It is not loaded (LF-62); `storage`
truncates it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kproto.errors import DecodeError
from kproto.records.batch_header import LOG_OVERHEAD
from kproto.records.batches import batch_size, read_batch
from kproto.records.segment import BATCH_SIZE_MAX
from kproto_server.coordinator.loading.repeated_commits import BatchTemplates, RepeatedCommits
from kproto_server.coordinator.loading.replay import Replay
from kproto_server.storage.errors import UNREADABLE

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Iterable, Iterator

    from kproto_server.coordinator.coordinator import GroupCoordinator
    from kproto_server.coordinator.groups import Group
    from kproto_server.coordinator.offsets import OffsetStore
    from kproto_server.coordinator.pending_offsets import PendingOffsets

STEP_SIZE_BYTES = 64 << 10
"""The bytes of the log that a step reads: about 900 records of 70 bytes, 3 ms at 3 microseconds each."""
GROUPS_PER_STEP = 50
"""Groups that a step creates, or whose offsets it removes again."""


class PartitionLoad:
    """The load of one offsets partition. Call `step` until it returns True."""

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
        """Load a log from its slices, which may end anywhere.

        Args:
            offsets: gets the offsets; None: the coordinator's own store.
            templates: batch templates of the partitions loaded before; this load adds its own.
            decodes_all: use the reference implementation alone.
        """
        self.read_size_bytes: int = 0
        """How much of the log has been read."""
        self.batch_count: int = 0
        """The number of batches that the reference implementation has read."""
        self.failed: str | None = None
        """Why the partition can't be served: a batch, key or value that can't be decoded, or a log that can't be read.
        The tables have nothing of the partition then (LF-36)."""
        self.groups: list[Group] = []
        """The registered groups that this load has created."""
        self._groups = coordinator.groups
        self._now_ms = now_ms
        self._offsets = coordinator.offsets if offsets is None else offsets
        self._replay = Replay(coordinator, self._offsets, decodes_all=decodes_all)
        self._repeated_commits: RepeatedCommits | None = None
        if not decodes_all:
            self._repeated_commits = RepeatedCommits(self._replay, {} if templates is None else templates)
            self._replay.before_change = self._repeated_commits.flush
        self._work = self._all_steps(slices)

    @property
    def pending(self) -> PendingOffsets:
        """The offsets of transactions that are open at the end of the log (LF-33)."""
        return self._replay.pending

    @property
    def group_ids(self) -> set[str]:
        """Groups with offsets in the log, including offsets that the log has deleted later."""
        return self._replay.group_ids

    @property
    def skipped(self) -> Counter[int]:
        """The number of records that the load ignores, by unknown type (EX-55)."""
        return self._replay.skipped

    def step(self) -> bool:
        """Load for a few milliseconds; return whether the load is complete."""
        return next(self._work, self) is self

    def run(self) -> None:
        """Load everything before this returns."""
        for _ in self._work:
            pass

    def _all_steps(self, slices: Iterable[bytes]) -> Iterator[None]:
        try:
            yield from self._read(slices)
            if self._repeated_commits is not None:
                yield from self._repeated_commits.flush_all()
        except UNREADABLE as error:
            self.failed = f"batch at byte {self.read_size_bytes} of the log: {error}"
            yield from self._undo()
            return
        # Groups come last: their records refer to nothing, and the newest record of each has it all.
        for index, group in enumerate(self._replay.groups.make(self._groups, self._now_ms), 1):
            self.groups.append(group)
            if index % GROUPS_PER_STEP == 0:
                yield
        if self._replay.share_groups is not None:
            self._replay.share_groups.finish(self._now_ms)

    def _read(self, slices: Iterable[bytes]) -> Iterator[None]:
        data = b""
        for next_slice in slices:
            # What is left of the slice before is less than a batch, as a rule.
            data += next_slice
            start = step_start = 0
            while (stop := self._read_batches(data, start)) > start:
                start = stop
                if start - step_start >= STEP_SIZE_BYTES:
                    step_start = start
                    # Memory for repeated commits is bounded; between two steps is the time to apply them.
                    if self._repeated_commits is not None and self._repeated_commits.is_full:
                        yield from self._repeated_commits.flush_all()
                    yield
            data = data[start:]
            yield
        if data:
            # Recovery has truncated what a crash left behind. Here a damaged length hides all batches behind it.
            raise DecodeError("batch", 0, f"the last {len(data)} bytes are no complete batch")

    def _read_batches(self, data: bytes, start: int) -> int:
        """Read some batches; return where they end, which is ``start`` if the next batch is incomplete."""
        if self._repeated_commits is not None:
            end_of_step = start + STEP_SIZE_BYTES
            stop = self._repeated_commits.read(data, start, len(data), end_of_step)
            self.read_size_bytes += stop - start
            start = stop
            if start >= end_of_step:
                return start
        # The fast path has stopped at a batch that it does not know: that one is for the reference implementation.
        if len(data) - start >= LOG_OVERHEAD:
            size = batch_size(data, start)
            if size > BATCH_SIZE_MAX:
                # Without this check a damaged size would have the load wait for gigabytes of "incomplete" batch.
                raise DecodeError("batch", start, f"size {size}, {BATCH_SIZE_MAX} is the most")
        found = read_batch(data, start)
        if found is None:
            return start
        batch, stop = found
        self._replay.batch(batch)
        self.batch_count += 1
        self.read_size_bytes += batch.size
        return stop

    def _undo(self) -> Iterator[None]:
        """Remove the offsets that the load has put into the tables."""
        offsets = self._offsets
        for index, group_id in enumerate(self._replay.group_ids, 1):
            stored = offsets.of_group(group_id)
            offsets.apply_deletion(group_id, [(topic, list(partitions)) for topic, partitions in stored.items()])
            if index % GROUPS_PER_STEP == 0:
                yield
