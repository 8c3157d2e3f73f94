"""The records of a group, collected while a log is read: the newest of each key counts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    from kproto.records.coordinator import CoordinatorKey, CoordinatorRecord


class NewestRecords:
    """The values of the records of one group so far."""

    def __init__(self) -> None:
        self._values: dict[type[CoordinatorKey], dict[CoordinatorKey, Any]] = {}

    def replay(self, record: CoordinatorRecord) -> None:
        """Apply the next record; a record without a value is a tombstone."""
        values = self._values.setdefault(type(record.key), {})
        if record.value is None:
            values.pop(record.key, None)
        else:
            values[record.key] = record.value

    def of_group(self, key: type[CoordinatorKey]) -> Any | None:
        """Return the value of the one record that has only the group in its key; None if there is none."""
        return next(iter(self._values.get(key, {}).values()), None)

    def by_name(self, key: type[CoordinatorKey]) -> dict[str, Any]:
        """Return the values of the records with keys of this class, by the name behind the group: a member id, or a
        regular expression. They are in the order of their first records."""
        return {record_key[1]: value for record_key, value in self._values.get(key, {}).items()}  # type: ignore[index]


class RestoredEpochGroup(NewestRecords):
    """The records of a consumer group or a streams group so far; a subclass makes the group of them."""

    metadata_key: ClassVar[type[CoordinatorKey]]
    """The key of the record whose tombstone deletes the group."""

    def __init__(self) -> None:
        super().__init__()
        self.is_deleted: bool = False

    def replay(self, record: CoordinatorRecord) -> None:
        """Apply the next record; a record without a value is a tombstone."""
        super().replay(record)
        self.is_deleted = record.value is None and isinstance(record.key, self.metadata_key)
