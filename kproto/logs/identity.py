"""Distinguish logs that have the same name: by cluster id, topic ids and leader epochs (LF-50)."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from kproto.records.partitioning import OFFSETS_TOPIC
from kproto.records.segment_files import LEADER_EPOCHS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from kproto.logs.files import PartitionDirectory
    from kproto.logs.locations import Location

TOPIC_FILE, BROKER_FILE = "partition.metadata", "meta.properties"


class LogIdentity(NamedTuple):
    """What identifies a log. Older releases store less of it."""

    cluster_id: str | None
    topic_ids: Mapping[str, str]
    """By topic."""
    epochs: Mapping[str, Mapping[str, int]]
    """By partition of the offsets topic: the first offset of each leader epoch."""

    def difference(self, later: LogIdentity) -> str | None:
        """Return in words why ``later`` cannot be the same log; None if nothing contradicts it."""
        if self.cluster_id and later.cluster_id and self.cluster_id != later.cluster_id:
            return f"they are of cluster {self.cluster_id}, and this log is of cluster {later.cluster_id}"
        for topic, topic_id in self.topic_ids.items():
            if later.topic_ids.get(topic, topic_id) != topic_id:
                return f"topic {topic} was deleted and created again"
        for number, epochs in self.epochs.items():
            others = later.epochs.get(number, {})
            # The first offset of the first epoch rises with the start of the log.
            compared = _after_first(epochs) & _after_first(others)
            if any(epochs[epoch] != others[epoch] for epoch in compared):
                return f"{OFFSETS_TOPIC}-{number} has leader epochs that begin at other offsets"
        return None

    def merged(self, later: LogIdentity) -> LogIdentity:
        """Return the identity with what ``later`` adds."""
        return LogIdentity(
            later.cluster_id or self.cluster_id, {**self.topic_ids, **later.topic_ids}, {**self.epochs, **later.epochs}
        )


def _after_first(epochs: Mapping[str, int]) -> set[str]:
    return set(sorted(epochs, key=int)[1:])


def read_identity(partitions: Iterable[PartitionDirectory]) -> LogIdentity:
    """Return the identity of the log of these partitions; what is missing or damaged counts as unknown."""
    cluster_id = None
    topic_ids: dict[str, str] = {}
    epochs: dict[str, dict[str, int]] = {}
    for partition in partitions:
        if cluster_id is None:
            cluster_id = broker_properties(partition.path.parent).get("cluster.id")
        topic_id = _values(partition.path / TOPIC_FILE, ":").get("topic_id")
        if topic_id is not None:
            topic_ids[partition.topic] = topic_id
        if partition.topic == OFFSETS_TOPIC:
            read = read_epochs(partition.path)
            epochs[str(partition.number)] = {str(epoch): offset for epoch, offset in read.items()}
    return LogIdentity(cluster_id, topic_ids, epochs)


def broker_properties(log_dir: Location) -> dict[str, str]:
    """Return the properties in the `meta.properties` of a log.dir; none if it is missing."""
    return _values(log_dir / BROKER_FILE, "=")


def _values(path: Location, separator: str) -> dict[str, str]:
    found = {}
    for line in _lines(path):
        name, _, value = line.partition(separator)
        found[name.strip()] = value.strip()
    return found


def read_epochs(partition: Location) -> dict[int, int]:
    """Return the first offset of each leader epoch of a partition; none if its checkpoint is missing or damaged.

    A checkpoint has a version, a count, and a line ``epoch offset`` for each epoch.
    """
    with suppress(ValueError):
        lines = (line.split() for line in _lines(partition / LEADER_EPOCHS)[2:])
        return {int(epoch): int(offset) for epoch, offset in lines}
    return {}


def _lines(path: Location) -> list[str]:
    try:
        return path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        return []
