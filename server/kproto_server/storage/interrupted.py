"""What an interrupted compaction, or the removal of a segment, has left in a partition's directory (LF-63)."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kproto_server.storage.disk import Disk

REMOVED_SUFFIXES = (".deleted", ".cleaned")
SWAP_SUFFIX = ".swap"


def finish_compaction(disk: Disk, directory: str) -> None:
    """Do what is left to do: a real broker's ".swap" is complete, unless some of its ".cleaned" is still there.

    Raises:
        OSError: not all of it is done.
    """
    names = disk.names(directory)
    cleaned = [name for name in names if name.endswith(".cleaned")]
    for name in names:
        if name.endswith(REMOVED_SUFFIXES):
            disk.remove(f"{directory}/{name}")
    lowest = min(cleaned, default=None)
    for name in names:
        if name.endswith(SWAP_SUFFIX):
            final = name.removesuffix(SWAP_SUFFIX)
            if lowest is not None and lowest <= f"{final}.cleaned":
                disk.remove(f"{directory}/{name}")
            else:
                disk.rename(f"{directory}/{name}", f"{directory}/{final}")
    if any(name.endswith((*REMOVED_SUFFIXES, SWAP_SUFFIX)) for name in names):
        disk.sync_directory(directory)
