"""The load of one partition of `__transaction_state`: the newest record of each transactional id counts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kproto.errors import DecodeError, MissingPackage
from kproto.records.batches import read_batch
from kproto_server.transactions.records import read_transaction
from kproto_server.transactions.transaction import Transaction, TransactionValues

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

STEP_SIZE_BYTES = 64 << 10
"""The bytes of the log that a step reads, at least."""


class TransactionLoad:
    """The load of one partition. Call `step` until it returns True."""

    def __init__(self, slices: Iterable[bytes]) -> None:
        """``slices``: the content of the log; they may end anywhere."""
        self.failed: str | None = None
        """Why the partition can't be served: a record that can't be decoded."""
        self._values: dict[str, TransactionValues] = {}
        self._work = self._all_steps(slices)

    def step(self) -> bool:
        """Load for some milliseconds; return whether the load is complete."""
        return next(self._work, self) is self

    def transactions(self) -> list[Transaction]:
        """Return the transactional ids of the partition."""
        return [Transaction(name, values) for name, values in self._values.items()]

    def _all_steps(self, slices: Iterable[bytes]) -> Iterator[None]:
        try:
            data = b""
            for next_slice in slices:
                data += next_slice
                start = step_start = 0
                while (found := read_batch(data, start)) is not None:
                    batch, start = found
                    if not batch.is_control:
                        for record in batch.records():
                            self._apply(record.key, record.value)
                    if start - step_start >= STEP_SIZE_BYTES:
                        step_start = start
                        yield
                data = data[start:]
                yield
        except (DecodeError, MissingPackage) as error:
            self.failed = str(error)

    def _apply(self, key: bytes | None, value: bytes | None) -> None:
        found = read_transaction(key, value)
        if found is not None:
            name, values = found
            if values is None:
                self._values.pop(name, None)
            else:
                self._values[name] = values
