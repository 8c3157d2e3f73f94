"""What an answered commit survives, as a row of the tables names it."""

from __future__ import annotations

from typing import Literal, get_args

Durability = Literal["memory", "os", "fsync"]
"""``memory``: nothing; ``os``: the end of the process; ``fsync``: the end of the machine."""
DURABILITIES: tuple[Durability, ...] = get_args(Durability)
ON_DISK: tuple[Durability, ...] = ("os", "fsync")
"""Those that leave a directory from which the server can be started again."""
AS_ASKED: dict[Durability, Durability] = {each: each for each in DURABILITIES}
"""For a server that knows all three."""
