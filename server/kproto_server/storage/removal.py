"""Removal of logs as Kafka does it: a directory is renamed first, so that a log is there with all its files, or gone.

Files that are not removed then are removed by the next start, of kproto or of a real broker.
"""

from __future__ import annotations

import re
from contextlib import suppress
from itertools import count
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from kproto_server.storage.disk import Disk

REMOVED = re.compile(r"[A-Za-z0-9._-]+-[0-9]+\.[0-9a-f]{32}-delete")
NAME_LENGTH_MAX = 255


def rename_removed(disk: Disk, directories: Iterable[str]) -> dict[str, str]:
    """Rename the directories of logs; return their new names.

    Raises:
        OSError: the directories have their old names.
    """
    renamed: dict[str, str] = {}
    try:
        for directory in directories:
            name = _removed_name(disk, directory)
            disk.rename(directory, name)
            renamed[directory] = name
    except OSError:
        undo_removal(disk, renamed)
        raise
    return renamed


def undo_removal(disk: Disk, renamed: dict[str, str]) -> None:
    """Give directories their old names again."""
    for directory, name in renamed.items():
        with suppress(OSError):
            disk.rename(name, directory)


def _removed_name(disk: Disk, directory: str) -> str:
    """Return a name that Kafka takes for that of a removed log, with the beginning of a long topic name."""
    topic, _, partition = directory.rpartition("-")
    for number in count():
        end = f"-{partition}.{number:032x}-delete"
        name = topic[: NAME_LENGTH_MAX - len(end)] + end
        if not disk.exists(name):
            break
    return name


def remove_renamed(disk: Disk) -> None:
    """Remove the renamed directories with their files, as far as that succeeds."""
    for directory in disk.names(""):
        if REMOVED.fullmatch(directory):
            with suppress(OSError):
                for name in disk.names(directory):
                    disk.remove(f"{directory}/{name}")
                disk.remove(directory)
