"""What `Consumer` does when one of the proposals is used: the same calls, with positions decided and records in order.

Everything happens in the user's own calls; librdkafka's threads fetch and keep the membership meanwhile. A partition
that is assigned is in one of these states:

    plain      librdkafka reads it, and what it reads is the user's
    waiting    its position could not be decided yet, for the brokers did not answer: it is held, and each poll asks
    silent     it has no position, and the user was told; it is held until the user seeks
    refused    librdkafka says that its position is out of range, and it is not decided yet where to go
    behind     a `CatchUp` has a say (KIP-333)

As long as all are plain, `poll` is little more than librdkafka's.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable
from time import monotonic

from confluent_kafka import (
    OFFSET_END,
    OFFSET_INVALID,
    OFFSET_STORED,
    Consumer,
    KafkaError,
    KafkaException,
    Message,
    TopicPartition,
)

from kproto.client.assignment import Assignment
from kproto.client.catching_up import CatchingUp
from kproto.client.commits import Commits
from kproto.client.configuration import Configuration
from kproto.client.core.settings import OnInvalidOffset
from kproto.client.errors import NoOffsetForPartition, OffsetOutOfRange
from kproto.client.facts import Facts
from kproto.client.places import Place, copy_of, names, partitions_at, partitions_of, place_of, place_of_message
from kproto.client.positions import Positions
from kproto.client.refusals import after_refusal
from kproto.client.resets import Resets
from kproto.client.starting import Decided, decide

logger: logging.Logger = logging.getLogger("kproto.client")

SLICE_S = 0.1
"""How long librdkafka may wait at once: it knows nothing of what else there is to do."""
HEAD_EVERY_S = 0.02
"""How often the head is read while there are records of the past to hand out."""
HEAD_BATCH = 500
QUERY_LIMIT_S = 10.0
RETRY_LIMIT_S = 1.0
"""The same in a poll, which has to come back."""


class Engine:
    """One consumer's state beside librdkafka's.

    Args:
        consumer: the wrapped one: methods called on it are confluent-kafka's own.
    """

    def __init__(self, consumer: Consumer, configuration: Configuration) -> None:
        self._poll = consumer.poll
        self._consume = consumer.consume
        self._consumer = consumer
        self._settings = configuration.settings
        self._decides_invalid = self._settings.on_invalid_offset is OnInvalidOffset.NEAREST
        self._facts = Facts(consumer, configuration)
        self._resets = Resets(self._facts, configuration)
        self._assignment = Assignment(consumer)
        self.positions: Positions = Positions(consumer, self._assignment, auto_store=configuration.auto_store)
        self.commits: Commits = Commits(
            consumer, configuration, self.positions.to_commit, lambda: self._resets.metadata, self._committed
        )
        self.commits_itself: bool = configuration.commits_itself
        self._parallel: CatchingUp | None = None
        if self._settings.parallel:
            self._parallel = CatchingUp(consumer, configuration, self._facts, self.commits.commit_now)
            self.positions.parallel = self._parallel
        self._waiting: set[Place] = set()
        self._silent: set[Place] = set()
        self._refused: dict[Place, Message] = {}
        self._resets_to_commit: dict[Place, int] = {}
        self._errors: list[KafkaException] = []
        self._ends: dict[Place, Message] = {}
        """What librdkafka said of the end of partitions that are behind."""
        self._head_read_at = 0.0
        self._due = False
        """Whether there is something to decide or to tell."""
        self._is_plain = True
        self._commits_when_plain = self.commits_itself and self.commits.is_automatic
        self._past: list[Message] = []
        """Records of the past that `poll` hands out before it looks at anything else, the next one last."""
        self._look_at = 0.0
        """When it looks again all the same."""

    # -- records

    def poll(self, timeout_s: float) -> Message | None:
        if self._is_plain:
            if self._commits_when_plain and monotonic() >= self.commits.due_at:
                self._tick()
            message = self._poll(SLICE_S if timeout_s > SLICE_S or timeout_s < 0 else timeout_s)
            if message is not None and message.error() is None and self._is_plain:
                return message
        elif self._past and monotonic() < self._look_at:
            return self._past.pop()
        else:
            message = None
        return self._poll_on(message, timeout_s)

    def _poll_on(self, message: Message | None, timeout_s: float) -> Message | None:
        """There is more to do than to hand out the first message that comes."""
        limit = None if timeout_s < 0 else monotonic() + timeout_s
        if message is not None:
            message = self._route(message)
        elif self._is_plain and limit is not None:
            limit -= min(timeout_s, SLICE_S)  # librdkafka has waited so long for nothing
        else:
            message = self._next(0)
        while message is None and (left := _left(limit)) > 0:
            message = self._next(left)
        return message

    def consume(self, count: int, timeout_s: float) -> list[Message]:
        limit = None if timeout_s < 0 else monotonic() + timeout_s
        found: list[Message] = []
        while True:
            left = _left(limit)
            some = self._some(count - len(found), left, tell=not found)
            found = found + some if found else some
            if len(found) >= count or left <= 0:
                return found

    def _next(self, wait_s: float) -> Message | None:
        found = self._some(1, wait_s)
        if self._parallel is not None and not self._due:
            self._past = self._parallel.run()
            self._look_at = min(self._head_read_at + HEAD_EVERY_S, self.commits.due_at)
        return found[0] if found else None

    def _some(self, count: int, wait_s: float, *, tell: bool = True) -> list[Message]:
        """Up to so many records, after one look at each source; errors are raised if there is no record to lose."""
        self._past = []
        self._tick()
        if not self._is_plain:
            self._catch_up_on_decisions()
            if tell:
                self._raise_error()
        if self._is_plain:
            return self._routed(self._consume(count, _slice(wait_s)))
        found = self._from_head_if_due()
        if self._parallel is not None:
            found = found or self._parallel.take(count)
            if not found and self._parallel.wants_past:
                self._parallel.fetch(_slice(wait_s))
                found = self._parallel.take(count)
                self._note_lost_past()
            found += self._ends_reached(count - len(found))
            self._refresh()
        return found or self._routed(self._wait_for_head(wait_s))

    def _ends_reached(self, count: int) -> list[Message]:
        """What was said of an end while the past was handed out is true by now."""
        machines = self._parallel.machines if self._parallel is not None else {}
        reached = [place for place in self._ends if place not in machines]
        return [self._ends.pop(place) for place in reached[:count]]

    def _from_head_if_due(self) -> list[Message]:
        """Read the head while others have records ready; it is librdkafka's heartbeat too (max.poll.interval.ms)."""
        now = monotonic()
        if now - self._head_read_at < HEAD_EVERY_S:
            return []
        self._head_read_at = now
        for _ in range(HEAD_BATCH):
            message = self._poll(0)
            if message is None:
                return []
            found = self._route(message)
            if found is not None:
                return [found]
        return []

    def _wait_for_head(self, wait_s: float) -> list[Message]:
        catches_up = self._parallel is not None and self._parallel.wants_past
        message = self._poll(0 if catches_up else _slice(wait_s))
        return [] if message is None else [message]

    def _routed(self, messages: list[Message]) -> list[Message]:
        """Those of them that are the user's now."""
        if self._is_plain and not any(map(Message.error, messages)):
            return messages
        return [found for message in messages if (found := self._route(message)) is not None]

    def _route(self, message: Message) -> Message | None:
        error = message.error()
        if error is None:
            if self._parallel is None or not self._parallel.machines:
                return message
            place = place_of_message(message)
            if place not in self._parallel.machines:
                return message
            self._parallel.head_read(place, [message])
            self._ends.pop(place, None)
            return None
        if error.code() == KafkaError._AUTO_OFFSET_RESET and self._decides_invalid:
            self._refused[place_of_message(message)] = message
            self._refresh()
            return None
        if error.code() == KafkaError._PARTITION_EOF and self._parallel is not None:
            place = place_of_message(message)
            if place in self._parallel.machines:
                self._ends[place] = message
                return None
        return message

    # -- decisions that are due

    def _tick(self) -> None:
        if self.commits_itself and self.commits.tick() and self._parallel is not None:
            self._parallel.checkpoint()

    def _catch_up_on_decisions(self) -> None:
        try:
            if self._refused:
                self._decide_refused()
            if self._waiting:
                self._start_waiting()
            if self._resets_to_commit:
                self._commit_resets()
        except KafkaException as error:
            logger.warning("asked again at the next poll: %s", error)
        self._refresh()

    def _refresh(self) -> None:
        """Something has changed: the next poll looks at everything, unless all is plain."""
        self._past = []
        behind = self._parallel is not None and bool(self._parallel.machines)
        self._due = bool(self._waiting or self._refused or self._resets_to_commit or self._errors)
        self._is_plain = not behind and not self._due

    def _raise_error(self) -> None:
        if self._errors:
            error = self._errors.pop(0)
            self._refresh()
            raise error

    def _decide_refused(self) -> None:
        refused = {place: message for place, message in self._refused.items() if place in self._assignment}
        logs = self._facts.logs(refused, RETRY_LIMIT_S) if refused else {}
        self._refused.clear()
        targets: dict[Place, int] = {}
        for place, message in refused.items():
            target = after_refusal(self._settings, message, logs[place])
            assert target is not None, "nearest always names a place"
            logger.warning("%s: out of range at %s, goes to %d", names([place]), message.offset(), target)
            targets[place] = target if self._parallel is None else self._parallel.head_goes_to(place, target)
        self._assignment.move(partitions_at(targets.items()))

    def _start_waiting(self) -> None:
        decided = self._decide(sorted(self._waiting), RETRY_LIMIT_S)
        self._waiting.clear()
        self._assignment.move(list(decided.at.values()))
        self._note(decided)

    def _decide(self, places: Collection[Place], limit_s: float) -> Decided:
        return decide(places, self._settings, self._facts, self._resets, self._parallel, limit_s)

    def _note(self, decided: Decided) -> None:
        self._silence(decided.no_offset, NoOffsetForPartition)
        self._silence(decided.out_of_range, OffsetOutOfRange)
        self._resets_to_commit.update(decided.to_commit)

    def _commit_resets(self) -> None:
        """At once (CK-15), whatever is said of automatic commits; if it fails, at the next poll."""
        offsets = partitions_at(self._resets_to_commit.items(), self._resets.metadata)
        for answer in self._consumer.commit(offsets=offsets, asynchronous=False):
            if answer.error is not None:
                raise KafkaException(answer.error)
        self._resets_to_commit.clear()

    def _silence(self, places: Collection[Place], error: type[NoOffsetForPartition | OffsetOutOfRange]) -> None:
        if places:
            self._silent.update(places)
            self._errors.append(error(partitions_of(places)))

    def _note_lost_past(self) -> None:
        """What the side consumer could not read, and the settings have no answer or a log before it."""
        assert self._parallel is not None
        for place in self._parallel.out_of_range:
            self._parallel.cancel(place)
            self._assignment.hold([place])
            self._silence([place], OffsetOutOfRange)
        self._parallel.out_of_range.clear()
        for place, target in self._parallel.rewound.items():
            self._parallel.cancel(place)
            self._assignment.move(partitions_at([(place, target)]))
        self._parallel.rewound.clear()

    # -- partitions come and go

    def comes_from_group(self, *, is_cooperative: bool) -> None:
        """The user has subscribed; a cooperative group tells of partitions as differences."""
        self._assignment.is_cooperative = is_cooperative

    def assign(self, partitions: Iterable[TopicPartition], *, incremental: bool) -> None:
        """Assign partitions; where the user names no position, one is decided."""
        copies = [copy_of(each) for each in partitions]
        unset = [place_of(each) for each in copies if each.offset in (OFFSET_INVALID, OFFSET_STORED)]
        if not incremental:
            self._forget(self._assignment.places)
        decided, waiting = Decided(), list[Place]()
        try:
            decided = self._decide(unset, QUERY_LIMIT_S) if unset else decided
        except KafkaException as error:
            logger.warning("%s: where to start is not known yet: %s", names(unset), error)
            waiting = unset
        held = [*waiting, *decided.no_offset, *decided.out_of_range]
        nowhere = {place: TopicPartition(*place, OFFSET_END) for place in held}
        given = {place_of(each): each for each in copies}
        targets = list({**given, **decided.at, **nowhere}.values())
        assign = self._assignment.add if incremental else self._assignment.replace
        assign(targets, held)
        self._waiting.update(waiting)
        self._note(decided)
        self._catch_up_on_decisions()

    def revoked(self, places: Collection[Place], *, lost: bool = False) -> None:
        """Partitions go: commit what was handed out, unless they are another's already."""
        if self.commits_itself and not lost:
            self.commits.commit_now(places)
        self._forget(places)

    def unassign(self) -> None:
        """Before librdkafka has nothing assigned any more."""
        self.revoked(self._assignment.places)

    def commit_at_end(self) -> None:
        """Before librdkafka leaves the group, which takes the partitions away."""
        if self.commits_itself:
            self.commits.commit_now()

    def close(self) -> None:
        """After librdkafka has left the group."""
        self._forget(self._assignment.places)
        if self._parallel is not None:
            self._parallel.close()

    def _forget(self, places: Collection[Place]) -> None:
        self._waiting.difference_update(places)
        self._silent.difference_update(places)
        for place in places:
            self._refused.pop(place, None)
            self._resets_to_commit.pop(place, None)
            self._ends.pop(place, None)
        if self._parallel is not None:
            self._parallel.drop(places)
        self.positions.forget(places)
        self.commits.forget(places)
        self._assignment.forget(places)
        self._refresh()

    # -- what the user does with them

    def seek(self, target: TopicPartition) -> None:
        """Go there, whatever was to be decided or caught up with (CK-36, CK-67)."""
        place = place_of(target)
        undecided = place in self._waiting or place in self._silent or place in self._refused
        was_behind = self._parallel is not None and self._parallel.cancel(place)
        self._waiting.discard(place)
        self._silent.discard(place)
        self._refused.pop(place, None)
        self.positions.forget([place])
        if undecided or was_behind:
            self._assignment.move([copy_of(target)])
        else:
            self._consumer.seek(target)
            self._assignment.sought(copy_of(target))
        self._refresh()

    def pause(self, places: Collection[Place]) -> None:
        self._past = []
        self._assignment.pause(places)
        if self._parallel is not None:
            self._parallel.pause(places)

    def resume(self, places: Collection[Place]) -> None:
        full = self._parallel.full_heads if self._parallel is not None else frozenset[Place]()
        self._assignment.resume([place for place in places if place not in full])
        if self._parallel is not None:
            self._parallel.resume(places)

    # -- commits

    def _committed(self, place: Place, offset: int) -> None:
        if self._parallel is not None:
            self._parallel.committed(place, offset)


def _slice(wait_s: float) -> float:
    return SLICE_S if wait_s < 0 else min(wait_s, SLICE_S)


def _left(limit: float | None) -> float:
    return SLICE_S if limit is None else max(0.0, limit - monotonic())
