"""A Kafka release, and the base class of the switches that say what a release does differently (D3).

Theory of operation. Code that depends on the release never compares releases itself. It asks a named switch of a
`VersionBehavior` class, which stands in the module or package that it changes:

    kafka_version.behavior(ListOffsetsBehavior).returns_leader_epochs

Each class is instantiated once per Kafka version. A switch is a `cached_property`: a plain attribute after its first
use. `grep -r "(VersionBehavior)"` lists all classes, `grep -r "at_least("` all turning points.

Each switch names the rule or the measurement that it rests on. "Measured on 2.2.2 and 2.3.1" means that running brokers
of the last release before the change and of the first release after the change were asked. Where only one release is
named, the switch turns at the first release known to behave so.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Mode", "Release", "VersionBehavior"]

Mode = Literal["zookeeper", "kraft"]
"""Where a broker keeps its cluster's metadata. Releases 3.3 to 3.9 have both modes, older ones ZooKeeper, newer ones
KRaft."""

B = TypeVar("B", bound="VersionBehavior")


class Release:
    """The release of a Kafka version, its mode, and the switches that depend on them."""

    def __init__(self, release: tuple[int, ...], mode: Mode, *, is_latest: bool) -> None:
        self.release = release
        """The release line in numbers; for "latest" that of the newest release."""
        self.mode = mode
        self.is_kraft: bool = mode == "kraft"
        self.is_latest = is_latest
        """Whether this is "latest": the APIs of all releases at once."""
        self._behaviors: dict[type[VersionBehavior], Any] = {}

    def at_least(self, *release: int) -> bool:
        """Return whether this is the given release or a later one: ``at_least(2, 1)``."""
        return self.release >= release

    def behavior(self, area: type[B]) -> B:
        """Return the switches of one area; the same object at every call."""
        found: B | None = self._behaviors.get(area)
        if found is None:
            found = self._behaviors[area] = area(self)
        return found


class VersionBehavior:
    """The switches of one area for one release; subclasses define them."""

    def __init__(self, of: Release) -> None:
        self.release: tuple[int, ...] = of.release
        self.is_kraft: bool = of.is_kraft
        self.is_latest: bool = of.is_latest
        self.at_least: Callable[..., bool] = of.at_least
