"""Where to start in partitions that were assigned without a position: KIP-842's answer first, then KIP-333's."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

from confluent_kafka import TopicPartition

from kproto.client.catching_up import CatchingUp
from kproto.client.core.reset import out_of_range
from kproto.client.core.settings import Settings
from kproto.client.facts import Facts
from kproto.client.places import Place
from kproto.client.resets import Resets


@dataclass(slots=True)
class Decided:
    """Each partition asked about is in one of the first three."""

    at: dict[Place, TopicPartition] = field(default_factory=dict)
    no_offset: list[Place] = field(default_factory=list)
    out_of_range: list[Place] = field(default_factory=list)
    to_commit: dict[Place, int] = field(default_factory=dict)
    """Resets that are to be committed at once (CK-15)."""


def decide(
    places: Collection[Place],
    settings: Settings,
    facts: Facts,
    resets: Resets,
    parallel: CatchingUp | None,
    limit_s: float,
) -> Decided:
    """Decide for all of these partitions, and begin to catch up with those that are behind.

    Raises:
        KafkaException: the brokers did not answer in time; nothing was begun.
    """
    starts = resets.starts(places, limit_s)
    decided = Decided(at=starts.at, no_offset=starts.nowhere, to_commit=starts.to_commit)
    if parallel is None or not starts.committed:
        return decided
    logs = facts.logs(starts.committed, limit_s)
    positions: dict[Place, TopicPartition] = {}
    for place in sorted(starts.committed):
        committed = starts.at.pop(place)
        offset = out_of_range(settings, logs[place], committed.offset)
        if offset is None:
            decided.out_of_range.append(place)
        else:
            positions[place] = committed if offset == committed.offset else TopicPartition(*place, offset)
    for place, head in parallel.begin(positions, logs).items():
        at_head = positions[place].offset == head
        decided.at[place] = positions[place] if at_head else TopicPartition(*place, head)
    return decided
