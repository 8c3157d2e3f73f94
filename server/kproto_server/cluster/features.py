"""The finalized features of a cluster (KIP-584): their levels, which UpdateFeatures changes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kproto_server.releases.features import features_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kproto_server.releases.features import Features
    from kproto_server.releases.kafka_version import KafkaVersion

KRAFT_VERSION = "kraft.version"
METADATA_VERSION = "metadata.version"
TRANSACTION_VERSION = "transaction.version"
GROUP_VERSION = "group.version"
SHARE_VERSION = "share.version"
STREAMS_VERSION = "streams.version"


class FinalizedFeatures:
    """The level of each feature; those of a new cluster are the release's."""

    __slots__ = ("_levels", "changes", "of_release")

    def __init__(self, kafka_version: KafkaVersion) -> None:
        self.of_release: Features = features_of(kafka_version)
        """What the release supports, and finalizes in a new cluster."""
        self._levels: dict[str, int] = dict(self.of_release.finalized)
        self.changes: int = 0
        """How often the levels were changed."""

    @property
    def levels(self) -> Mapping[str, int]:
        """The levels of all finalized features; those at level 0 are missing."""
        return self._levels

    @property
    def epoch(self) -> int:
        """Grows with each change; -1: the release has no features."""
        return self.of_release.epoch + self.changes

    def level(self, name: str) -> int:
        """Return the level of a feature: 0 if it is not finalized."""
        return self._levels.get(name, 0)

    def replace(self, levels: Mapping[str, int]) -> None:
        """Replace all levels."""
        self._levels = {name: level for name, level in levels.items() if level > 0}
        self.changes += 1

    @property
    def changed_levels(self) -> dict[str, int]:
        """The levels that differ from those of a new cluster."""
        initial = dict(self.of_release.finalized)
        return {
            name: self.level(name) for name in {**initial, **self._levels} if self.level(name) != initial.get(name, 0)
        }

    def restore(self, changed_levels: Mapping[str, int]) -> None:
        """Take levels from a data directory; those that the release does not support are left out."""
        supported = {name: range(low, high + 1) for name, low, high in self.of_release.supported}
        known = {name: level for name, level in changed_levels.items() if level in supported.get(name, ())}
        if known:
            self.replace({**self._levels, **known})

    def reset(self) -> None:
        """Return to the levels of a new cluster."""
        self._levels = dict(self.of_release.finalized)
