"""Files that a command reads: compressed or not, or standard input."""

from __future__ import annotations

import errno
import gzip
import io
import os
import sys
import zlib
from contextlib import contextmanager
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import BinaryIO

STANDARD_INPUT = "-"
READ_BYTES = 1024 * 1024


@contextmanager
def opened(path: str, advance: Callable[[int], None]) -> Iterator[io.BufferedReader]:
    """Yield the content of a file, which may be compressed (``.gz``); ``-`` is standard input.

    Args:
        advance: takes the number of bytes of each read of the file.

    Raises:
        OSError: it cannot be read; also while reading, if a compressed file is damaged.
    """
    if path == STANDARD_INPUT:
        if sys.stdin is None:
            raise OSError(errno.EBADF, os.strerror(errno.EBADF))
        yield cast("io.BufferedReader", sys.stdin.buffer)
        return
    with open(path, "rb", buffering=0) as raw:
        counted = _Counted(cast("BinaryIO", raw), advance)
        if path.endswith(".gz"):
            with gzip.GzipFile(fileobj=io.BufferedReader(counted, READ_BYTES)) as content:
                try:
                    yield io.BufferedReader(cast("io.RawIOBase", content), READ_BYTES)
                except (EOFError, zlib.error, gzip.BadGzipFile) as error:
                    raise OSError(f"not a whole gzip file ({error})") from None
        else:
            yield io.BufferedReader(counted, READ_BYTES)


class _Counted(io.RawIOBase):
    """A file whose reads advance a bar."""

    def __init__(self, file: BinaryIO, advance: Callable[[int], None]) -> None:
        self._file = file
        self._advance = advance

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: bytearray | memoryview) -> int:  # type: ignore[override]  # of typeshed's Buffer
        size: int = self._file.readinto(buffer)  # type: ignore[attr-defined]  # BinaryIO does not have it
        self._advance(size)
        return size
