"""Where the user is in each partition, which is not always where librdkafka is, and what commits say of that."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from confluent_kafka import OFFSET_INVALID, Consumer, TopicPartition

from kproto.client.assignment import Assignment
from kproto.client.catching_up import CatchingUp
from kproto.client.places import Place, place_of


class Positions:
    """Of one consumer, whose methods are confluent-kafka's own.

    Args:
        auto_store: whether what was handed out is what a commit says; else the user tells, by `store`.
    """

    def __init__(self, consumer: Consumer, assignment: Assignment, *, auto_store: bool) -> None:
        self._consumer = consumer
        self._assignment = assignment
        self._auto_store = auto_store
        self._stored: dict[Place, int] = {}
        self.parallel: CatchingUp | None = None
        """Once it is there; it has a say first."""

    def tell(self, partitions: list[TopicPartition]) -> list[TopicPartition]:
        """confluent-kafka's answer, but for partitions of which the user is not where librdkafka is."""
        answers = self._consumer.position(partitions)
        if self.parallel is not None:
            for answer in answers:
                place = place_of(answer)
                machine = self.parallel.machines.get(place)
                if machine is not None:
                    answer.offset = machine.position
                elif answer.offset < 0:
                    answer.offset = self.parallel.reached.get(place, OFFSET_INVALID)
        return answers

    def store(self, offsets: Iterable[TopicPartition]) -> None:
        """After librdkafka has taken them."""
        self._stored.update({place_of(each): each.offset for each in offsets})

    def forget(self, places: Collection[Place]) -> None:
        for place in places:
            self._stored.pop(place, None)

    def to_commit(self, places: Collection[Place] | None) -> dict[Place, int]:
        """What a commit of these partitions (None: all) says now."""
        wanted = [place for place in self._assignment.places if places is None or place in places]
        if not self._auto_store:
            return {place: self._stored[place] for place in wanted if place in self._stored}
        if self.parallel is None:
            return self._assignment.positions(wanted)
        machines, reached = self.parallel.machines, self.parallel.reached
        behind = {place: machines[place].to_commit() for place in wanted if place in machines}
        caught_up = {place: reached[place] for place in wanted if place in reached}
        return {**caught_up, **self._assignment.positions(wanted), **behind}
