"""The features of KIP-584 that each release supports and finalizes by default: ApiVersions returns them from 2.7 on.

Only KRaft brokers have features. Level and range of ``metadata.version`` grow with each release, the other features
were added one by one. Clients use two of them: ``transaction.version`` and ``group.version``.

Source:
    ApiVersions v3 and v4 responses of running brokers of all lines from 2.4 to 4.4 (fixtures/golden/releases).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from kproto_server.releases.kafka_version import KafkaVersion

NO_EPOCH = -1


class Features(NamedTuple):
    """The features in an ApiVersions response."""

    supported: tuple[tuple[str, int, int], ...] = ()
    """Name, least and greatest level."""
    finalized: tuple[tuple[str, int], ...] = ()
    """Name and level of the cluster."""
    epoch: int = NO_EPOCH
    """Grows with each change of the finalized features; -1: unknown."""


METADATA_OLDEST: dict[tuple[int, ...], int] = {(3,): 1, (4,): 7}
METADATA_NEWEST: dict[tuple[int, ...], int] = {
    (3, 3): 7,
    (3, 4): 8,
    (3, 5): 11,
    (3, 6): 14,
    (3, 7): 19,
    (3, 8): 20,
    (3, 9): 21,
    (4, 0): 25,
    (4, 1): 27,
    (4, 2): 29,
    (4, 3): 30,
    (4, 4): 33,
}

SUPPORTED_SINCE = (
    ("group.version", (4, 0), 1),
    ("kraft.version", (3, 9), 1),
    ("share.version", (4, 1), 1),
    ("share.version", (4, 4), 2),
    ("streams.version", (4, 2), 1),
    ("transaction.version", (4, 0), 2),
    ("eligible.leader.replicas.version", (4, 0), 1),
)
"""Name, release, and the greatest level from that release on; the least level is 0."""

FINALIZED_SINCE = (
    ("group.version", (4, 0), 1),
    ("streams.version", (4, 2), 1),
    ("transaction.version", (4, 0), 2),
    ("eligible.leader.replicas.version", (4, 1), 1),
    ("share.version", (4, 2), 1),
    ("share.version", (4, 4), 2),
)
"""Name, release, and the level of a cluster that was created with that release."""


def features_of(kafka_version: KafkaVersion) -> Features:
    """Return the features of a fresh cluster of the Kafka version's release."""
    if not kafka_version.is_kraft:
        return Features(epoch=0 if kafka_version.at_least(2, 7) else NO_EPOCH)
    newest = METADATA_NEWEST[kafka_version.release[:2]]
    supported = {name: (name, 0, level) for name, since, level in SUPPORTED_SINCE if kafka_version.at_least(*since)}
    supported["metadata.version"] = ("metadata.version", METADATA_OLDEST[kafka_version.release[:1]], newest)
    finalized = {name: (name, level) for name, since, level in FINALIZED_SINCE if kafka_version.at_least(*since)}
    finalized["metadata.version"] = ("metadata.version", newest)
    # In a new metadata log, some records precede one record for each finalized feature.
    return Features(tuple(supported.values()), tuple(finalized.values()), epoch=len(finalized) + 9)
