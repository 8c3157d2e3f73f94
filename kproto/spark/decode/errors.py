"""What can be wrong with a log, by name: each kind of damage is a class of its own.

Nothing is skipped in silence. A torn tail is no damage (LF-62) and record types of newer brokers are none (LF-36);
both are counted (`kproto.spark.decode.counts`). Everything else ends the reading with one of these.
"""

from __future__ import annotations

from kproto.errors import CorruptLog


class Damaged(CorruptLog):
    """A segment is not as it must be: from this byte of the file on, at this offset of the log (None: not known)."""

    def __init__(self, file: str, position: int, offset: int | None, reason: str) -> None:
        super().__init__(file, position, offset, f"{type(self).__name__}: {reason}")
        self.reason = reason

    def __reduce__(self) -> tuple[type[Damaged], tuple[str, int, int | None, str]]:
        """Errors go from Spark's workers to the driver pickled."""
        return type(self), (self.file, self.position, self.offset, self.reason)


class Truncated(Damaged):
    """A batch ends after its file, and that file is not the newest, or what is there can't be the beginning of one."""


class BadSize(Damaged):
    """A batch announces a size that no batch has."""


class UnknownMagic(Damaged):
    """A batch is of a generation that does not exist."""


class BadChecksum(Damaged):
    """A batch's checksum, or that of a message within it, is not that of the content."""


class BadBatch(Damaged):
    """Counts or lengths in the header of a batch can't be."""


class BadOffset(Damaged):
    """Offsets do not rise, or are not among those of their segment or batch. No checksum covers those of batches."""


class BadCompression(Damaged):
    """The content of a batch can't be uncompressed."""


class BadRecords(Damaged):
    """The records of a batch do not have their layout, or do not fill it."""


class BadMarker(Damaged):
    """A control record is no end of a transaction."""


class BadKey(Damaged):
    """A record has no key, or one without the layout of its type."""


class BadValue(Damaged):
    """A value has a version that is not known, or not the layout of that version."""
