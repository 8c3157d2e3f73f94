"""The file descriptors of a process that serves: how many there may be, and how many of them for what."""

from __future__ import annotations

import sys
from typing import NamedTuple

FILES_SHARE = 4
"""One of so many descriptors is for files, if there is a data directory: connections must not stop commits."""
MODULES_DESCRIPTORS = 16
"""So many descriptors are for files without a data directory: a handler is imported with the first request for it."""
OPEN_SEGMENTS_SHARE = 2
"""One of so many descriptors is for logs that are written: logs must not stop connections."""


class Descriptors(NamedTuple):
    """How many descriptors of the process may be used for what."""

    all_but_files: int = sys.maxsize
    """While the process has so many, connections wait to be accepted."""
    open_segments: int = sys.maxsize
    """So many logs have their active segment open."""


def descriptors_of_process(*, has_data: bool) -> Descriptors:
    """Return what the process may have by its limit on open files; without a limit any number.

    ``has_data``: there is a data directory.
    """
    if sys.platform == "win32":
        return Descriptors()
    import resource

    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if limit == resource.RLIM_INFINITY:
        return Descriptors()
    for_files = limit // FILES_SHARE
    return Descriptors(
        limit - (for_files if has_data else min(for_files, MODULES_DESCRIPTORS)), limit // OPEN_SEGMENTS_SHARE
    )


def raise_limit() -> None:
    """Raise the soft limit on open files to the hard one, as Java does for a real broker.

    Each connection has a descriptor, and each log that is written while there are enough
    (`storage.open_segments`). Many systems have a soft limit of 1024, and macOS has one of 256.
    """
    if sys.platform == "win32":
        return
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        except (ValueError, OSError):
            return  # macOS reports an unlimited hard limit, and refuses it
