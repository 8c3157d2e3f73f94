"""The partitions that librdkafka has for us, where it was told to start in each, and which are paused, by whom.

librdkafka forgets a partition's position when it reports it out of range, and `seek` does not bring it back; only a
new assignment does. `move` is that: of the one partition if the group's protocol lets us, else of all, each at its
position.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from confluent_kafka import Consumer, TopicPartition

from kproto.client.places import Place, partitions_of, place_of


class Assignment:
    """Of one consumer, whose methods are confluent-kafka's own."""

    def __init__(self, consumer: Consumer) -> None:
        self._consumer = consumer
        self.is_cooperative = False
        """Whether it comes from a group whose members are told differences only."""
        self._started: dict[Place, TopicPartition] = {}
        self._paused: set[Place] = set()
        """By the user."""
        self._held: set[Place] = set()
        """By us: the user's `resume` does not start them."""

    def __contains__(self, place: Place) -> bool:
        return place in self._started

    @property
    def places(self) -> list[Place]:
        return list(self._started)

    @property
    def paused(self) -> frozenset[Place]:
        return frozenset(self._paused)

    def replace(self, partitions: Collection[TopicPartition], held: Collection[Place]) -> None:
        """Assign these instead of what there was."""
        self._started.clear()
        self._paused.clear()
        self._held.clear()
        self._consumer.assign(list(partitions))
        self._start(partitions, held)

    def add(self, partitions: Collection[TopicPartition], held: Collection[Place]) -> None:
        """Assign these too."""
        self._consumer.incremental_assign(list(partitions))
        self._start(partitions, held)

    def forget(self, places: Collection[Place]) -> None:
        """These are no longer assigned."""
        for place in places:
            self._started.pop(place, None)
        self._paused.difference_update(places)
        self._held.difference_update(places)

    def move(self, targets: Collection[TopicPartition]) -> None:
        """Go on in these partitions from there; they are held no longer."""
        places = {place_of(target) for target in targets}
        self._held -= places
        if self.is_cooperative:
            self._consumer.incremental_unassign(partitions_of(places))
            self._consumer.incremental_assign(list(targets))
        else:
            positions = self.positions(self._started)
            self._started = {place: _at(each, positions.get(place)) for place, each in self._started.items()}
            others = [each for place, each in self._started.items() if place not in places]
            self._consumer.assign([*targets, *others])
        self._started.update({place_of(target): target for target in targets})
        self._consumer.pause(partitions_of(self._paused | self._held))
        self._consumer.resume(partitions_of(places - self._paused))  # being paused outlives an assignment

    def sought(self, target: TopicPartition) -> None:
        """The user went there with librdkafka's own seek, which leaves no position until a record is read."""
        self._started[place_of(target)] = target

    def positions(self, places: Iterable[Place]) -> dict[Place, int]:
        """The next offset of the partitions in which a record was read."""
        answers = self._consumer.position(partitions_of(place for place in places if place in self._started))
        return {place_of(answer): answer.offset for answer in answers if answer.offset >= 0}

    def hold(self, places: Collection[Place]) -> None:
        """Read no more of these until `release` or `move`."""
        self._held.update(places)
        self._consumer.pause(partitions_of(places))

    def release(self, places: Collection[Place]) -> None:
        self._held.difference_update(places)
        self._consumer.resume(partitions_of(set(places) - self._paused))

    def pause(self, places: Collection[Place]) -> None:
        """For the user."""
        self._consumer.pause(partitions_of(places))
        self._paused.update(place for place in places if place in self._started)

    def resume(self, places: Collection[Place]) -> None:
        """For the user."""
        self._paused.difference_update(places)
        self._consumer.resume(partitions_of(set(places) - self._held))

    def _start(self, partitions: Collection[TopicPartition], held: Collection[Place]) -> None:
        self._started.update({place_of(each): each for each in partitions})
        if held:
            self.hold(held)


def _at(partition: TopicPartition, position: int | None) -> TopicPartition:
    return partition if position is None else TopicPartition(partition.topic, partition.partition, position)
