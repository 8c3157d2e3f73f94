"""Files that a command writes for other programs: a reader finds the whole content or no file.

A program that waits for a file reads it as soon as it exists. So a file gets its name when its content is complete, and
the check that it can be written, before an hour's run, never makes a file of that name.
"""

from __future__ import annotations

import errno
import os
import stat
from contextlib import contextmanager

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

NOT_REPLACEABLE = (errno.EACCES, errno.EPERM, errno.EROFS, errno.EBUSY)
"""A file in a folder that can't be written, or one that is mounted into a container."""


def check_writable(path: str) -> None:
    """Check that `write` would succeed now; no program can see the check under the file's name.

    Raises:
        OSError: the file can't be written.
    """
    if not os.path.exists(path):
        with _partial(os.path.realpath(path), path) as partial:
            _write_in_place(partial, "")
    elif not _is_pipe(path):  # opening a pipe would wait for its reader
        os.close(os.open(path, os.O_WRONLY | os.O_APPEND))


def write(path: str, text: str, *, is_private: bool = False) -> None:
    """Write a file in one rename; a pipe or a device is written in place. Only its owner reads a private file.

    Raises:
        OSError: the file can't be written. A file of that name is unchanged, unless it can't be replaced either.
    """
    if is_written_in_place(path):
        _write_in_place(path, text)
        return
    target = os.path.realpath(path)  # a symbolic link stays one
    try:
        with _partial(target, path) as partial:
            _write_in_place(partial, text, is_private=is_private)
            os.replace(partial, target)
    except OSError as error:
        if error.errno not in NOT_REPLACEABLE or not os.path.exists(target):
            raise
        _write_in_place(target, text, is_private=is_private)


@contextmanager
def completed(path: str) -> Iterator[str]:
    """Yield the path of a file to write, which gets its name after the block; a pipe or a device is written in place.

    After an exception a file of that name is unchanged.

    Raises:
        OSError: the file can't get its name.
    """
    if is_written_in_place(path):
        yield path
        return
    target = os.path.realpath(path)
    with _partial(target, path) as partial:
        yield partial
        os.replace(partial, target)


def is_written_in_place(path: str) -> bool:
    """Return whether a path is a pipe or a device: opening a pipe waits for its reader."""
    return os.path.exists(path) and not os.path.isfile(path)


def remove(path: str, content: str | None = None) -> None:
    """Remove a regular file, if it exists and, unless ``content`` is None, has this content."""
    try:
        if not os.path.isfile(path):
            return
        if content is not None:
            with open(path, encoding="utf-8") as file:
                if file.read() != content:
                    return
        os.remove(path)
    except (OSError, UnicodeDecodeError):  # not ours to remove: the write, if one follows, reports it
        pass


def opened_private(path: str, flags: int) -> int:
    """Open a file that only its owner may read, also one that others could read so far: an ``opener`` for `open`.

    Raises:
        OSError: the file can't be opened, or stays readable for others.
    """
    descriptor = os.open(path, flags, 0o600)
    try:
        if stat.S_ISREG(mode := os.fstat(descriptor).st_mode) and mode & 0o077:
            os.fchmod(descriptor, 0o600)
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


def _write_in_place(path: str, text: str, *, is_private: bool = False) -> None:
    with open(path, "w", encoding="utf-8", opener=opened_private if is_private else None) as file:
        file.write(text)


@contextmanager
def _partial(target: str, path: str) -> Iterator[str]:
    """Yield the name of a file beside ``target`` for the block to write and rename; it never stays behind.

    An error that names this file names ``path``, the name that the user gave.
    """
    folder, name = os.path.split(target)
    partial = os.path.join(folder, f".{name}.{os.getpid()}.partial")
    try:
        yield partial
    except OSError as error:
        if error.filename == partial:
            error.filename = path
            del error.filename2
        raise
    finally:
        if os.path.exists(partial):
            os.remove(partial)


def _is_pipe(path: str) -> bool:
    return stat.S_ISFIFO(os.stat(path).st_mode)
