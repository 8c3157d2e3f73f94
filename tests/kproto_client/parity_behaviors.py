"""Behaviors of confluent-kafka's Consumer that depend on more than one call. Each returns a trace to compare."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import confluent_kafka
from confluent_kafka import OFFSET_BEGINNING, OFFSET_END, OFFSET_STORED, KafkaError, TopicPartition

from tests.kproto_client.parity_calls import RECORDS, Call, Outcome, Program, attempt, outcome, shown
from tests.waiting import wait_until

Trace = list[Outcome]
QUIET_POLLS = 15
"""Polls that show that nothing comes any more."""
QUIET_POLL_S = 0.02


def construction(program: Program) -> Trace:
    """The forms of the constructor."""
    config = program.config
    without_group = {name: each for name, each in config.items() if name != "group.id"}
    consumer_class: Any = program.consumer_class

    def construct(*args: Any, **kwargs: Any) -> Outcome:
        def make() -> None:
            consumer_class(*args, **kwargs).close()

        return attempt(make)

    callbacks = ("on_commit", "error_cb", "stats_cb", "throttle_cb", "logger", "oauth_cb")
    return [
        construct(),
        construct({}),
        construct(None),
        construct(3),
        construct([config]),
        construct(config, config),
        construct(without_group),
        construct(config),
        construct(**config),
        construct(config, **{"client.id": "x"}),
        construct(config, **{"no.such.setting": 1}),
        construct({**config, "no.such.setting": 1}),
        construct({**config, "fetch.min.bytes": "many"}),
        construct({**config, 3: 3}),
        construct({**config, "default.topic.config": {"auto.offset.reset": "earliest"}}),
        *(construct({**config, name: wrong}) for name in callbacks for wrong in (3, "x")),
    ]


def commits_of_nothing(program: Program) -> Trace:
    """A commit of nothing new: by `commit` and in the callback of commits."""
    trace: Trace = []

    def on_commit(error: KafkaError | None, partitions: list[TopicPartition]) -> None:
        trace.append(("on_commit", None if error is None else error.name(), shown(partitions)))

    consumer = program.consumer(on_commit=on_commit)
    trace.append(outcome(consumer, "commit", Call()))
    wait_for(consumer, lambda: len(trace) == 2)
    consumer.assign([program.at(0, 0), program.at(1, 0)])
    read(consumer, 2 * RECORDS)
    consumer.store_offsets(offsets=[program.at(0, 3, "of the user"), program.at(1, 4)])
    trace.append(outcome(consumer, "commit", Call(asynchronous=False)))
    trace.append(outcome(consumer, "commit", Call(asynchronous=False)))
    trace.append(outcome(consumer, "commit", Call(**{"async": True})))
    wait_for(consumer, lambda: len(trace) == 6)
    consumer.store_offsets(offsets=[program.at(1, 5)])
    trace.append(outcome(consumer, "commit", Call()))
    wait_for(consumer, lambda: len(trace) == 8)
    trace.append(outcome(consumer, "committed", Call([program.at(0), program.at(1)], 30)))
    consumer.close()
    return trace


def group(program: Program) -> Trace:
    """A member from `subscribe` to `close`, with callbacks, and with other callbacks after a second `subscribe`."""
    trace: Trace = []

    def note(name: str) -> Callable[[confluent_kafka.Consumer, list[TopicPartition]], None]:
        def note_call(member: confluent_kafka.Consumer, partitions: list[TopicPartition]) -> None:
            trace.append((name, member is consumer, shown(sorted(partitions))))

        return note_call

    commit_at_zero(program)
    consumer = program.consumer()
    partitions = [program.at(0), program.at(1)]
    consumer.subscribe([program.topic], on_assign=note("on_assign"), on_revoke=note("on_revoke"))
    trace.append(outcome(consumer, "position", Call(partitions)))
    read(consumer, 1)
    trace.append(len(consumer.assignment()))
    trace.append(outcome(consumer, "memberid", Call()) is not None)
    consumer.unsubscribe()
    trace.append(("records after unsubscribe", count_records(consumer)))
    wait_for(consumer, lambda: not consumer.assignment())
    trace.append(outcome(consumer, "position", Call(partitions)))

    consumer.subscribe([program.topic], note("second on_assign"))
    trace.append(sorted(read(consumer, 2 * RECORDS)))
    trace.append(outcome(consumer, "position", Call(partitions)))
    consumer.pause(partitions)
    consumer.seek(program.at(0, 5))
    trace.append(("records while paused", count_records(consumer)))
    consumer.resume(partitions)
    trace.append(read(consumer, RECORDS - 5))
    consumer.store_offsets(offsets=[program.at(0, 3), program.at(1, 4)])
    consumer.close()
    trace += [outcome(consumer, "close", Call()), outcome(consumer, "poll", Call(0))]
    return trace


def own_assignment(program: Program) -> Trace:
    """Partitions assigned by the user: at logical offsets, incrementally, and removed."""
    trace: Trace = []
    commit_at_zero(program)
    consumer = program.consumer()
    consumer.assign([program.at(0, OFFSET_BEGINNING), program.at(1, OFFSET_END)])
    trace.append(read(consumer, RECORDS))
    trace.append(outcome(consumer, "incremental_assign", Call([program.at(1)])))
    consumer.assign([program.at(0, 7)])
    trace.append(read(consumer, 3))
    trace.append(outcome(consumer, "unsubscribe", Call()))
    consumer.unassign()
    trace.append(("records after unassign", count_records(consumer)))
    trace.append(outcome(consumer, "assignment", Call()))
    consumer.incremental_assign([program.at(0, 8)])
    trace.append(read(consumer, 2))
    trace.append(outcome(consumer, "incremental_assign", Call([program.at(0)])))
    trace.append(outcome(consumer, "incremental_assign", Call([program.at(1, 6), program.at(1, 6)])))
    trace.append(outcome(consumer, "incremental_assign", Call([program.at(1, OFFSET_STORED)])))
    trace.append(sorted(read(consumer, RECORDS)))
    trace.append(outcome(consumer, "incremental_unassign", Call([program.at(0)])))
    trace.append(outcome(consumer, "position", Call([program.at(1)])))
    consumer.close()
    return trace


BEHAVIORS: dict[str, Callable[[Program], Trace]] = {
    "construction": construction,
    "commits of nothing": commits_of_nothing,
    "group": group,
    "own assignment": own_assignment,
}


def commit_at_zero(program: Program) -> None:
    """Commit offset 0 of both partitions, so that no setting has to choose a start position."""
    plain = confluent_kafka.Consumer({name: program.config[name] for name in ("bootstrap.servers", "group.id")})
    plain.commit(offsets=[program.at(0, 0), program.at(1, 0)], asynchronous=False)
    plain.close()


def read(consumer: confluent_kafka.Consumer, count: int) -> list[tuple[int | None, int | None]]:
    """Return partition and offset of the next records."""
    found: list[tuple[int | None, int | None]] = []

    def are_read() -> bool:
        message = consumer.poll(0.1)
        if message is not None and message.error() is None:
            found.append((message.partition(), message.offset()))
        return len(found) >= count

    wait_until(are_read, f"{count} records")
    return found


def count_records(consumer: confluent_kafka.Consumer) -> int:
    messages = [consumer.poll(QUIET_POLL_S) for _ in range(QUIET_POLLS)]
    return sum(message is not None and message.error() is None for message in messages)


def wait_for(consumer: confluent_kafka.Consumer, condition: Callable[[], bool]) -> None:
    """Poll until the condition is true."""

    def is_true() -> bool:
        consumer.poll(0.02)
        return condition()

    wait_until(is_true, "a callback")
