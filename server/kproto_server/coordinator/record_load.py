"""The load of one partition of a coordinator's topic: its records are applied one by one, in steps."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kproto.records.batches import read_batch
from kproto_server.storage.errors import UNREADABLE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

STEP_SIZE_BYTES = 64 << 10
"""The bytes of the log that a step reads, at least."""


class RecordLoad:
    """The load of one partition. Call `step` until it returns True."""

    def __init__(self, slices: Iterable[bytes], apply: Callable[[bytes | None, bytes | None], object]) -> None:
        """``slices``: the content of the log; they may end anywhere. ``apply`` takes key and value of each record."""
        self.failed: str | None = None
        """Why the partition can't be served: a record that can't be decoded, or a log that can't be read."""
        self.offset: int = 0
        """The offset of the record that is applied."""
        self._work = self._all_steps(slices, apply)

    def step(self) -> bool:
        """Load for some milliseconds; return whether the load is complete."""
        return next(self._work, self) is self

    def _all_steps(
        self, slices: Iterable[bytes], apply: Callable[[bytes | None, bytes | None], object]
    ) -> Iterator[None]:
        try:
            data = b""
            for next_slice in slices:
                data += next_slice
                start = step_start = 0
                while (found := read_batch(data, start)) is not None:
                    batch, start = found
                    if not batch.is_control:
                        for record in batch.records():
                            self.offset = record.offset
                            apply(record.key, record.value)
                    if start - step_start >= STEP_SIZE_BYTES:
                        step_start = start
                        yield
                data = data[start:]
                yield
        except UNREADABLE as error:
            self.failed = str(error)
