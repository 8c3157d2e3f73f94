"""What can be wrong with records beyond their layout, and what this installation can't do."""

from __future__ import annotations

from kproto.errors import DecodeError, KprotoError


class CorruptBatch(DecodeError):
    """A batch's checksum is not that of its content. A broker answers CORRUPT_MESSAGE to such a Produce."""


class MissingPackage(KprotoError):
    """A compression needs a package that is not installed."""

    def __init__(self, compression: str, package: str) -> None:
        super().__init__(f"{compression} compression needs the package {package} (pip install {package})")
        self.compression = compression
        self.package = package
