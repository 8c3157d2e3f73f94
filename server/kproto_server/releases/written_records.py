"""What a release writes to `__consumer_offsets`: the versions of its records and a detail of their batches.

A broker writes what the oldest of its cluster can read (inter.broker.protocol.version); here that is the release
itself, as is the default.
"""

from __future__ import annotations

from functools import cached_property


class WrittenRecords:
    """The part of a Kafka version that the log asks."""

    release: tuple[int, ...]

    @cached_property
    def offset_key_type(self) -> int:
        """The record type of an offset: 0 in 0.8.2, 1 since; both are read (OC-44)."""
        return 1 if self.release >= (0, 9) else 0

    @cached_property
    def offset_value_version(self) -> int:
        """The version of an offset's value where nothing but the group says when it expires (OC-43; the turn from 3 to
        4 is that of GroupCoordinatorRecordHelpers in the jars of 4.0.2 and 4.1.2)."""
        release = self.release
        if release >= (4, 1):
            return 4
        if release >= (2, 1):
            return 3
        return 1 if release >= (0, 9) else 0

    @cached_property
    def expiring_offset_value_version(self) -> int:
        """The version of the value of an offset with its own deadline: the only one that has room for it (OC-43)."""
        return 1 if self.release >= (0, 9) else 0

    @cached_property
    def group_value_version(self) -> int:
        """The version of a group's value (EX-50)."""
        release = self.release
        if release >= (2, 3):
            return 3
        if release >= (2, 1):
            return 2
        return 1 if release >= (0, 10, 1) else 0

    @cached_property
    def base_sequence_of_groups(self) -> int:
        """The base sequence of batches of tombstones and groups, which has no meaning without a producer: -1, but 0 in
        the coordinator that 4.0 brought. Batches of commits have 0 in all (LF-5; measured on 2.0.1, 2.1.1 and
        4.4.0)."""
        return 0 if self.release >= (4, 0) else -1
