"""KIP-333 around a confluent-kafka consumer: a `CatchUp` for each partition that is behind, and what they ask for.

The user's consumer is the head; the side consumer reads the past. Both are only ever used from the user's own calls:
librdkafka's threads fetch meanwhile.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping
from typing import TypeAlias, assert_never

from confluent_kafka import Consumer, KafkaException, Message, TopicPartition

from kproto.client.checkpoint_topic import CheckpointTopic
from kproto.client.configuration import Configuration
from kproto.client.core import checkpoints as stored
from kproto.client.core.catch_up import CatchUp, Commit, EndCatchUp, PauseHead, Phase, ResumeHead
from kproto.client.core.ranges import plan
from kproto.client.core.reset import Log
from kproto.client.facts import Facts, now_ms
from kproto.client.places import Place, names, partitions_of
from kproto.client.refusals import after_refusal
from kproto.client.side_consumer import SideConsumer, SideConsumerFailed

logger: logging.Logger = logging.getLogger("kproto.client")

QUERY_LIMIT_S = 10.0
Machine: TypeAlias = CatchUp[Message]


class CatchingUp:
    """All partitions of one consumer that are caught up with.

    Args:
        consumer: the wrapped one.
        commit: commits what these partitions' positions say, if commits are automatic.
    """

    def __init__(
        self,
        consumer: Consumer,
        configuration: Configuration,
        facts: Facts,
        commit: Callable[[Collection[Place]], None],
    ) -> None:
        self._consumer = consumer
        self._settings = configuration.settings
        self._facts = facts
        self._commit = commit
        self._checkpoints = CheckpointTopic(facts, configuration)
        self._side = SideConsumer(configuration.for_catch_up())
        self._topic_ids: dict[str, str] = {}
        self._settled: dict[Place, Machine] = {}
        """Partitions in normal mode whose checkpoints wait for a commit."""
        self.machines: dict[Place, Machine] = {}
        """Partitions of which the user gets what is in their buffers."""
        self.reached: dict[Place, int] = {}
        """Where the user was when partitions became normal; true until librdkafka has read a record there."""
        self.paused: set[Place] = set()
        """By the user."""
        self.out_of_range: list[Place] = []
        """Partitions whose past is gone, and the settings name no place to go."""
        self.rewound: dict[Place, int] = {}
        """Partitions whose log is another one than was read, from here on: there is nothing to be caught up with."""
        self._refused: dict[Place, Message] = {}
        """What the side consumer can't read, until the log's bounds are known."""

    # -- partitions come and go

    def begin(self, positions: Mapping[Place, TopicPartition], logs: Mapping[Place, Log]) -> dict[Place, int]:
        """Plan for partitions at these positions, within their logs; return where the head starts in each."""
        behind = [place for place, position in positions.items() if position.offset < logs[place].end]
        known = self._checkpoints.read(behind) if behind else {}
        self._find_topic_ids({topic for topic, _ in behind})
        for place in behind:
            ranges = stored.of_topic(known[place], self._topic_ids.get(place[0]))
            planned = plan(position=positions[place].offset, log=logs[place], known=ranges, merge=self._settings.merge)
            machine = Machine(planned, self._settings.buffer_bytes)
            self.machines[place] = machine
            gone = [number for number in known[place] if number >= len(planned.keep)]
            self._checkpoints.write(place, self._written(place, machine), gone)
            logger.info("%s: catches up with %s, its head is at %d", names([place]), planned.ranges, planned.head)
        if behind:
            self._checkpoints.flush()
            self._side.read({place: positions[place] for place in behind})
        return {place: logs[place].end for place in positions}

    def drop(self, places: Collection[Place]) -> None:
        """These partitions are no longer ours: whoever has them goes on with their checkpoints."""
        for place in places:
            self._forget(place)
        self._side.leave(places)

    def cancel(self, place: Place) -> bool:
        """The user seeks: nothing is left to be caught up with; return whether there was something."""
        machine = self._forget(place)
        self._side.leave([place])
        if machine is not None:
            self._checkpoints.write(place, {}, machine.checkpoints())
        return machine is not None

    def close(self) -> None:
        self._side.close()
        self._checkpoints.close()

    # -- records

    def head_read(self, place: Place, records: list[Message]) -> None:
        for action in self.machines[place].head_read(records):
            assert isinstance(action, PauseHead)
            self._consumer.pause(partitions_of([place]))

    def head_goes_to(self, place: Place, target: int) -> int:
        """The head is out of range, and is to go there; return where it really has to.

        If that is back, the log is another one than before: there is nothing to be caught up with.
        """
        machine = self.machines.get(place)
        if machine is None or target >= machine.ahead_read:
            return target
        self.cancel(place)
        return min(target, machine.position)

    def fetch(self, wait_s: float) -> None:
        """Take what the side consumer has."""
        try:
            fetched = self._side.fetch(wait_s)
        except SideConsumerFailed as error:
            logger.warning("the catch-up starts again: %s", error)
            self._restart_side()
            return
        for place, run in fetched.runs:
            self.machines[place].catch_up_read(run)
        for place, end in fetched.ends.items():
            self.machines[place].catch_up_is_at(end)
        self._refused.update(fetched.refused)
        for place, message in list(self._refused.items()):
            self._go_on_after(place, message)
        done = [place for place, machine in self.machines.items() if machine.has_read_all]
        self._side.leave(done)

    def take(self, count: int) -> list[Message]:
        """Up to so many of the records that it is time for."""
        taken: list[Message] = []
        for place, machine in list(self.machines.items()):
            if place in self.paused:
                continue
            if not machine.run():
                self._settle(place, machine)
            if machine.phase is not Phase.NORMAL:
                records = machine.take(count - len(taken))
                taken = taken + records if taken else records
                if len(taken) >= count:
                    break
        return taken

    def run(self) -> list[Message]:
        """Records of the past to hand out until there is something else to do, the next one last; see `CatchUp.run`."""
        runs = (machine.run() for place, machine in self.machines.items() if place not in self.paused)
        return next(filter(None, runs), [])

    @property
    def wants_past(self) -> bool:
        """Whether there is something to fetch for someone who has nothing to hand out."""
        return self._side.is_open

    def pause(self, places: Collection[Place]) -> None:
        """The user pauses: neither buffer is handed out, and the side consumer waits too."""
        self.paused.update(places)
        self._side.pause(places)

    def resume(self, places: Collection[Place]) -> None:
        """The user resumes; a head that has read enough stays paused."""
        self.paused.difference_update(places)
        self._side.resume(places)

    @property
    def full_heads(self) -> frozenset[Place]:
        """Heads that are paused since as much as may wait of them does."""
        return frozenset(place for place, machine in self.machines.items() if machine.is_full)

    # -- commits

    def committed(self, place: Place, offset: int) -> None:
        """The group has this offset now."""
        machine = self.machines.get(place) or self._settled.get(place)
        if machine is None:
            return
        gone = machine.committed(offset)
        if gone:
            self._checkpoints.write(place, {}, gone)
        if machine.is_over:
            self._settled.pop(place, None)

    def checkpoint(self) -> None:
        """Write how far all partitions are."""
        for place, machine in self.machines.items():
            self._checkpoints.write(place, self._written(place, machine))

    # -- inside

    def _forget(self, place: Place) -> Machine | None:
        self._refused.pop(place, None)
        self.reached.pop(place, None)
        machine = self.machines.pop(place, None) or self._settled.pop(place, None)
        if machine is not None:
            machine.drop()
        return machine

    def _settle(self, place: Place, machine: Machine) -> None:
        for action in machine.settle():
            match action:
                case Commit(offset):
                    logger.info("%s: has caught up, and goes on at %d", names([place]), offset)
                    self._commit([place])
                case EndCatchUp():
                    self._side.leave([place])
                case ResumeHead() if place not in self.paused:
                    self._consumer.resume(partitions_of([place]))
                case ResumeHead() | PauseHead():
                    pass  # the user will resume
                case _:
                    assert_never(action)
        if machine.phase is Phase.NORMAL:
            del self.machines[place]
            self.reached[place] = machine.position
            if not machine.is_over:
                self._settled[place] = machine

    def _go_on_after(self, place: Place, refused: Message) -> None:
        """The past is gone in part (CK-86): the rule for invalid offsets says what to do.

        To go to the log's latest is to be done with the past: what the head has read since is newer still.
        """
        machine = self.machines[place]
        try:
            log = self._facts.logs([place], QUERY_LIMIT_S)[place]
        except KafkaException as error:
            logger.warning("%s: out of range, and its bounds are not known: %s", names([place]), error)
            return
        del self._refused[place]
        target = after_refusal(self._settings, refused, log)
        logger.warning("%s: can't be caught up with from %s on, but %s", names([place]), refused.offset(), target)
        if target is None:
            self.out_of_range.append(place)
            return
        if target < machine.read:
            self.rewound[place] = target
            return
        machine.catch_up_is_at(target)
        if not machine.has_read_all:
            self._side.read({place: TopicPartition(*place, machine.read)})

    def _restart_side(self) -> None:
        self._side.close()
        positions = {
            place: TopicPartition(*place, machine.catch_up_failed())
            for place, machine in self.machines.items()
            if machine.phase is Phase.CATCHING_UP and not machine.has_read_all
        }
        if positions:
            self._side.read(positions)
            self._side.pause(self.paused)

    def _written(self, place: Place, machine: Machine) -> dict[int, stored.Checkpoint]:
        topic_id, time_ms = self._topic_ids.get(place[0]), now_ms()
        return {
            number: stored.Checkpoint(range=each, position=position, time_ms=time_ms, topic_id=topic_id)
            for number, (each, position) in machine.checkpoints().items()
        }

    def _find_topic_ids(self, topics: set[str]) -> None:
        """A topic that was deleted and made again has the same name; what was to be read of the old one is gone."""
        if topics:
            try:
                self._topic_ids.update(self._facts.topic_ids(topics, QUERY_LIMIT_S))
            except KafkaException as error:
                logger.warning("the ids of %s are not known: %s", ", ".join(sorted(topics)), error)
