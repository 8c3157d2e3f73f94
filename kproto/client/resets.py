"""Where a consumer starts in partitions that it was assigned, and what it commits for that at once (KIP-842)."""

from __future__ import annotations

import logging
from collections.abc import Collection
from dataclasses import dataclass, field

from confluent_kafka import TopicPartition

from kproto.client.configuration import Configuration
from kproto.client.core import group_start
from kproto.client.core.reset import Missing, without_offset
from kproto.client.core.settings import OnNoInitialOffset
from kproto.client.facts import Facts, now_ms
from kproto.client.places import Place

logger: logging.Logger = logging.getLogger("kproto.client")


@dataclass(slots=True)
class Starts:
    """What was decided for some partitions."""

    at: dict[Place, TopicPartition] = field(default_factory=dict)
    """A committed offset with its leader epoch, by which librdkafka sees a truncated log (KIP-320), or where to go."""
    committed: set[Place] = field(default_factory=set)
    """Those that go on where the group was."""
    nowhere: list[Place] = field(default_factory=list)
    """The user is to be told that these have no offset."""
    to_commit: dict[Place, int] = field(default_factory=dict)
    """Of the topics' other partitions too, if the group starts; see `Resets`."""


class Resets:
    """Finds out what `core.reset` has to know, and asks it.

    When a group starts, the first member to see that decides for all partitions of the topic, and commits for all. Else
    a member that joins at the same time, and sees offsets of the first one's partitions only, would take its own for
    added later.
    """

    def __init__(self, facts: Facts, configuration: Configuration) -> None:
        self._facts = facts
        self._configuration = configuration
        self._settings = configuration.settings
        self._own_start_ms = now_ms()
        self._group_start_ms: int | None = None

    @property
    def metadata(self) -> str | None:
        """What this group's commits have to carry, where the user says nothing."""
        return None if self._group_start_ms is None else group_start.metadata(self._group_start_ms)

    def starts(self, places: Collection[Place], limit_s: float) -> Starts:
        """Decide where these partitions start.

        Raises:
            KafkaException: what has to be known could not be found out in time.
        """
        found = Starts()
        topics: dict[str, list[Place]] = {}
        for place in places:
            topics.setdefault(place[0], []).append(place)
        if self._settings.on_no_initial_offset is OnNoInitialOffset.SAFE_LATEST and self._group_start_ms is None:
            self._group_start_ms = group_start.earliest(self._own_start_ms, self._facts.metadata_of_group(limit_s))
        for topic, own in topics.items():
            self._starts_of_topic(topic, own, limit_s, found)
        return found

    def _starts_of_topic(self, topic: str, own: list[Place], limit_s: float, found: Starts) -> None:
        looks_at_start = self._settings.on_no_initial_offset.looks_at_start
        known = self._facts.partitions_of_topic(topic, limit_s) if looks_at_start else []
        every = list(dict.fromkeys([*own, *known]))
        committed = self._facts.committed(every, limit_s)
        found.at.update({place: committed[place] for place in own if place in committed})
        found.committed.update(committed.keys() & set(own))
        missing = [place for place in own if place not in committed]
        if not missing:
            return
        starts = looks_at_start and group_start.starts(_offset(committed.get(place)) for place in every)
        asked = every if starts else missing
        answers = self._decide(asked, starts, limit_s)
        for place in missing:
            offset = answers[place]
            logger.info("%s [%d] has no committed offset: %s", *place, "no policy" if offset is None else offset)
            if offset is None:
                found.nowhere.append(place)
            else:
                found.at[place] = TopicPartition(*place, offset)
        if looks_at_start and self._settings.commit_reset_position:
            self._note_commits(answers, set(own), limit_s, found)

    def _decide(self, places: list[Place], starts: bool, limit_s: float) -> dict[Place, int | None]:
        logs = self._facts.logs(places, limit_s)
        timestamps: dict[Place, int] = {}
        if self._group_start_ms is not None:
            filled = [place for place in places if logs[place].start < logs[place].end]
            timestamps = self._facts.first_timestamps(filled, limit_s) if filled else {}
        return {
            place: without_offset(
                self._settings,
                Missing(
                    log=logs[place],
                    group_starts=starts,
                    first_timestamp_ms=timestamps.get(place),
                    group_start_ms=self._group_start_ms,
                ),
            )
            for place in places
        }

    def _note_commits(self, answers: dict[Place, int | None], own: set[Place], limit_s: float, found: Starts) -> None:
        """Another member may have committed its partitions by now: those are its own business."""
        others = [place for place in answers if place not in own]
        by_others = self._facts.committed(others, limit_s) if others else {}
        offsets = {place: offset for place, offset in answers.items() if offset is not None}
        found.to_commit.update({place: offset for place, offset in offsets.items() if place not in by_others})


def _offset(committed: TopicPartition | None) -> int | None:
    return None if committed is None else committed.offset
