"""What a commit survives after its response; rows of the tables name it."""

from __future__ import annotations

from typing import Literal, get_args

Durability = Literal["memory", "os", "fsync"]
"""``memory``: nothing; ``os``: the end of the process; ``fsync``: the end of the machine."""
DURABILITIES: tuple[Durability, ...] = get_args(Durability)
ON_DISK: tuple[Durability, ...] = ("os", "fsync")
"""The durabilities with a data directory that a restarted server can read."""
AS_ASKED: dict[Durability, Durability] = {each: each for each in DURABILITIES}
"""For a server with all three durabilities."""
