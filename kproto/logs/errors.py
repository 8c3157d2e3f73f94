"""Damage to the segments of a log: one error class for each kind.

A reader never skips damage. Two things are not damage and are counted instead: a torn tail (LF-62,
`kproto.logs.blocks.TornTail`) and record types of newer brokers (LF-36).
"""

from __future__ import annotations

from kproto.errors import CorruptLog


class Damage(CorruptLog):
    """A segment is invalid from a position on. Always one of the subclasses; the text contains the class name."""

    def __init__(self, file: str, position: int, offset: int | None, reason: str) -> None:
        super().__init__(file, position, offset, f"{type(self).__name__}: {reason}")
        self.reason = reason

    def __reduce__(self) -> tuple[type[Damage], tuple[str, int, int | None, str]]:
        """Return how to pickle the error: Spark's workers send it to the driver."""
        return type(self), (self.file, self.position, self.offset, self.reason)


class Truncated(Damage):
    """Bytes after the last whole batch are not a torn tail: the segment is not the newest, or they begin no batch."""


class BadSize(Damage):
    """A batch announces a size that no batch can have."""


class UnknownMagic(Damage):
    """A batch has a message format version that does not exist."""


class BadChecksum(Damage):
    """The checksum of a batch, or of a message in it, does not match the content."""


class BadBatch(Damage):
    """The header of a batch has counts or lengths that are impossible."""


class BadOffset(Damage):
    """Offsets do not rise, or are outside of their segment or batch. No checksum covers the offset of a batch."""


class BadCompression(Damage):
    """The content of a batch cannot be decompressed."""


class BadRecords(Damage):
    """The records of a batch are malformed, or do not fill the batch."""


class BadMarker(Damage):
    """A control record does not end a transaction."""


class BadKey(Damage):
    """A record has no key, or a key that is malformed for its type."""


class BadValue(Damage):
    """A value has an unknown version, or is malformed for its version."""
