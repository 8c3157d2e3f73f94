"""The load of one partition of `__transaction_state`: the newest record of each transactional id counts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kproto_server.coordinator.record_load import RecordLoad
from kproto_server.transactions.records import read_transaction
from kproto_server.transactions.transaction import Transaction, TransactionValues

if TYPE_CHECKING:
    from collections.abc import Iterable


class TransactionLoad(RecordLoad):
    """The load of one partition. Call `step` until it returns True."""

    def __init__(self, slices: Iterable[bytes]) -> None:
        """``slices``: the content of the log; they may end anywhere."""
        self._values: dict[str, TransactionValues] = {}
        super().__init__(slices, self._apply)

    def transactions(self) -> list[Transaction]:
        """Return the transactional ids of the partition."""
        return [Transaction(name, values) for name, values in self._values.items()]

    def _apply(self, key: bytes | None, value: bytes | None) -> None:
        found = read_transaction(key, value)
        if found is not None:
            name, values = found
            if values is None:
                self._values.pop(name, None)
            else:
                self._values[name] = values
