"""Where a broker keeps what was committed, and how sure it makes of it (D6)."""

from __future__ import annotations

from typing import Literal, NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeGuard

Durability = Literal["os", "fsync"]
"""``os``: survives the end of the process, however sudden. ``fsync``: also that of the machine's power."""

IN_MEMORY = "memory"
ON_DISK = ("os", "fsync")


class DataDirectory(NamedTuple):
    """A directory in Kafka's format, and how it is written to."""

    path: str
    durability: Durability = "fsync"
    repair: bool = False
    """Cut a log off where it is damaged, and go on with what is before; else a damaged log is refused."""


def data_directory(path: str | None, durability: str | None, *, repair: bool) -> DataDirectory | None:
    """Return what a path (None: none) and a durability (None: the usual one) ask for; None: to keep all in memory.

    Raises:
        ValueError: they do not go together; one line that says what to do.
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
