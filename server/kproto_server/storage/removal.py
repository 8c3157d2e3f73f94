"""Removal of logs as Kafka does it: a directory is renamed first, so that a log is there with all its files, or gone.

Files that are not removed then are removed by the next start, of kproto or of a real broker.
"""

from __future__ import annotations

import logging
import re
from contextlib import suppress
from itertools import count
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from kproto_server.storage.disk import Disk

REMOVED = re.compile(r"[A-Za-z0-9._-]+-[0-9]+\.[0-9a-f]{32}-delete")
NAME_LENGTH_MAX = 255

logger = logging.getLogger("kproto.log")


class Removal:
    """Removes the directories of logs in two steps, of which the first can be undone."""

    def __init__(self, disk: Disk) -> None:
        self._disk = disk
        self._not_undone: dict[str, str] = {}
        """The new names of directories that still have to get their old ones again: their logs are not removed."""

    def rename(self, directories: Iterable[str]) -> dict[str, str]:
        """Rename the directories of logs; return their new names.

        Raises:
            OSError: the directories have their old names, or get them by `retry_undo`.
        """
        renamed: dict[str, str] = {}
        try:
            for directory in directories:
                name = self._not_undone.pop(directory, None)
                if name is None:
                    name = _removed_name(self._disk, directory)
                    self._disk.rename(directory, name)
                renamed[directory] = name
        except OSError:
            self.undo(renamed)
            raise
        return renamed

    def undo(self, renamed: Mapping[str, str]) -> None:
        """Give directories their old names again; `retry_undo` does what fails now."""
        for directory, name in renamed.items():
            try:
                self._disk.rename(name, directory)
            except OSError as error:
                self._not_undone[directory] = name
                logger.error("%s has the name of a removed log, and can't be renamed to %s: %s", name, directory, error)

    def retry_undo(self) -> None:
        """Give directories their old names again that could not get them."""
        for directory, name in list(self._not_undone.items()):
            with suppress(OSError):
                self._disk.rename(name, directory)
                del self._not_undone[directory]
                self._disk.sync_directory("")

    def remove_renamed(self) -> None:
        """Remove the renamed directories with their files, as far as that succeeds."""
        disk, kept = self._disk, self._not_undone.values()
        for directory in disk.names(""):
            if REMOVED.fullmatch(directory) and directory not in kept:
                with suppress(OSError):
                    for name in disk.names(directory):
                        disk.remove(f"{directory}/{name}")
                    disk.remove(directory)


def _removed_name(disk: Disk, directory: str) -> str:
    """Return a name that Kafka takes for that of a removed log, with the beginning of a long topic name."""
    topic, _, partition = directory.rpartition("-")
    for number in count():
        end = f"-{partition}.{number:032x}-delete"
        name = topic[: NAME_LENGTH_MAX - len(end)] + end
        if not disk.exists(name):
            break
    return name
