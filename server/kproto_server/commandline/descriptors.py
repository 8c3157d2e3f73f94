"""The limit on open files of a process that serves."""

from __future__ import annotations

import sys


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
