"""The values of `message.format.version` that a release accepts, as its `MetadataVersionValidator` decides.

Source:
    CreateTopics on 2.1.1 to 3.9.2, each with all names of versions. 2.0.1 and earlier accept any value.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from kproto_server.releases.release import VersionBehavior

if TYPE_CHECKING:
    from collections.abc import Iterator

CONFIG = "message.format.version"
LAST_STEPS = {
    "0.8.0": -1, "0.8.1": -1, "0.8.2": -1, "0.9.0": -1, "0.10.0": 1, "0.10.1": 2, "0.10.2": 0, "0.11.0": 2,
    "1.0": 0, "1.1": 0, "2.0": 1, "2.1": 2, "2.2": 1, "2.3": 1, "2.4": 1, "2.5": 0, "2.6": 0, "2.7": 2, "2.8": 1,
    "3.0": 1, "3.1": 0, "3.2": 0, "3.3": 3, "3.4": 0, "3.5": 2, "3.6": 2, "3.7": 4, "3.8": 0, "3.9": 0,
}  # fmt: skip
"""The releases, each with the number of its last step: 2.1 has 2.1-IV0 to 2.1-IV2. -1: it has none, as before 0.10."""
OF_THE_NEXT: dict[tuple[int, int], tuple[str, ...]] = {
    (3, 7): ("3.8-IV0",),
    (3, 8): ("3.9-IV0",),
    (3, 9): ("4.0-IV0", "4.0-IV1"),
}
"""The steps of the next release that a release knows."""


class MessageFormatVersions(VersionBehavior):
    """The versions that a release knows."""

    def problem(self, value: str) -> str | None:
        """Return why a topic cannot have the value, in a broker's words; None if it can."""
        if not self.at_least(2, 1) or _known_as(value) in self._known:
            return None
        shown = value if self.at_least(3, 3) else f"`{value}`"
        return f"Version {shown} is not a valid version"

    @cached_property
    def _known(self) -> frozenset[str]:
        return frozenset(self._names())

    def _names(self) -> Iterator[str]:
        for release, last in LAST_STEPS.items():
            if self.at_least(*map(int, release.split("."))):
                yield release
                yield from (f"{release}-IV{step}" for step in range(last + 1))
        for since, names in OF_THE_NEXT.items():
            if self.at_least(*since) and not self.at_least(since[0], since[1] + 1):
                yield from names


def _known_as(value: str) -> str:
    """Return a version without what follows the release: 2.8 for 2.8.2, 0.10.2 for 0.10.2.1."""
    parts = value.split(".")
    count = 3 if value.startswith("0.") else 2
    return ".".join(parts[:count]) if len(parts) > count else value
