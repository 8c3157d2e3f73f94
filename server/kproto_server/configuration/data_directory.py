"""The data directory of a broker, and the durability of its commits (D6)."""

from __future__ import annotations

from typing import Literal, NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeGuard

Durability = Literal["os", "fsync"]
"""``os``: commits survive restarts and process crashes. ``fsync``: commits survive power loss too."""

IN_MEMORY = "memory"
ON_DISK = ("os", "fsync")


class DataDirectory(NamedTuple):
    """A directory in Kafka's format, and the durability of writes to it."""

    path: str
    durability: Durability = "fsync"
    repair: bool = False
    """Truncate a damaged log at the damage and start; otherwise a damaged log raises `LogError`."""


def data_directory(path: str | None, durability: str | None, *, repair: bool) -> DataDirectory | None:
    """Return the data directory for these options; None: the broker keeps its data in memory.

    Without a path there is no data directory; without a durability it is ``fsync``.

    Raises:
        ValueError: the options contradict each other; the text says what to do.
    """
    if durability is not None and durability != IN_MEMORY and not _is_on_disk(durability):
        raise ValueError(f"durability {durability!r} is not known: use memory, os or fsync")
    if path is None:
        if durability is not None and durability != IN_MEMORY:
            raise ValueError(f"durability {durability} needs a data directory")
        if repair:
            raise ValueError("there is nothing to repair without a data directory")
        return None
    if durability is None:
        return DataDirectory(path, repair=repair)
    if not _is_on_disk(durability):
        raise ValueError("durability memory keeps nothing: leave the data directory out, or use os or fsync")
    return DataDirectory(path, durability, repair)


def _is_on_disk(durability: str) -> TypeGuard[Durability]:
    return durability in ON_DISK
