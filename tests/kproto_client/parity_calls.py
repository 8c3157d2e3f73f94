"""Calls of confluent-kafka's Consumer: every method with every form of its arguments, in each state of a consumer.

A form is valid or not; the outcome of a call is its result or its exception. `outcomes` makes the calls of one consumer
and returns all outcomes, for a comparison of two consumer classes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import confluent_kafka
from confluent_kafka import OFFSET_INVALID, KafkaError, Message, TopicPartition

from tests.waiting import wait_until

LIMIT_S = 30.0
RECORDS = 10
"""Records in each partition of the topic."""

IS_OLD = confluent_kafka.libversion()[1] < 0x02060000
CRASH_WHEN_CLOSED = frozenset({"pause", "resume", "list_topics", "set_sasl_credentials"} if IS_OLD else ())
"""Methods that end the process if confluent-kafka's consumer is closed."""

TYPE_ERROR = "raises TypeError"
Outcome = object
Outcomes = dict[str, Outcome]


class Call:
    """The arguments of one call."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self.args, self.kwargs = args, kwargs

    def __str__(self) -> str:
        return ", ".join([*map(shown, self.args), *(f"{name}={shown(each)}" for name, each in self.kwargs.items())])


@dataclass
class Program:
    """A consumer under test: its class, its configuration and a topic of two partitions with `RECORDS` records each."""

    consumer_class: type[confluent_kafka.Consumer]
    config: dict[str, Any]
    topic: str

    def at(self, partition: int, offset: int = OFFSET_INVALID, metadata: str | None = None) -> TopicPartition:
        if metadata is None:
            return TopicPartition(self.topic, partition, offset)
        return TopicPartition(self.topic, partition, offset, metadata)

    def consumer(self, **config: Any) -> confluent_kafka.Consumer:
        return self.consumer_class({**self.config, **config})


def forms(program: Program, record: Message | None, event: Message | None) -> Iterator[tuple[str, Call]]:
    """Return each method with each form of its arguments, in an order in which the calls disturb each other little.

    Args:
        record: a record that the consumer has read.
        event: an end-of-partition event.
    """
    at = program.at
    unknown = TopicPartition(program.topic, 77, 3)
    missing = TopicPartition("no-such-topic", 0, 3)
    wrong_lists: list[Any] = ["x", None, 5, [3], ["x"], (at(0),), [at(0), None]]

    for name in ("assignment", "memberid", "unsubscribe", "unassign", "consumer_group_metadata", "close"):
        yield name, Call(1)
        yield name, Call(x=1)
    for name in ("assignment", "memberid"):
        yield name, Call()

    for call in (Call("x"), Call([]), Call((1, 2)), Call(0, 0), Call(x=0), Call(timeout="x"), Call(None, None)):
        yield "poll", call
    for call in (Call("x"), Call(1.5), Call(None), Call(-1, 0), Call(1_000_001, 0), Call(1, "x"), Call(1, 0, 0)):
        yield "consume", call
    yield from (("consume", each) for each in (Call(x=0), Call(num_messages="x"), Call(1, timeout="x"), Call(0, 0)))

    for name in ("pause", "resume", "position"):
        yield name, Call()
        yield name, Call([at(0)], 1)
        yield name, Call(x=[at(0)])
        yield name, Call([])
        yield from ((name, Call(wrong)) for wrong in wrong_lists)
        yield name, Call([unknown])
        yield name, Call([missing])
        yield name, Call([at(0), at(0)])
        yield name, Call([at(0), at(1), unknown])
        yield name, Call(partitions=[at(0)])
        yield name, Call(partitions=[at(1, 3)])
        yield "position", Call([at(0), at(1)])

    for call in (Call(), Call(at(0), 1), Call(x=at(0, 3)), Call("x"), Call(None), Call([at(0, 3)]), Call(unknown)):
        yield "seek", call
    for call in (Call(missing), Call(at(0, -7)), Call(at(0, 3)), Call(partition=at(1, 4))):
        yield "seek", call
        yield "position", Call([at(0), at(1)])

    for name in ("assign", "incremental_assign", "incremental_unassign"):
        yield name, Call()
        yield name, Call(partitions=[at(0)])
        yield name, Call([at(0)], 1)
        yield from ((name, Call(wrong)) for wrong in wrong_lists)
    yield "incremental_unassign", Call([unknown])
    yield "incremental_unassign", Call([])
    yield "incremental_assign", Call([])

    yield from committing_forms(program, record, event)
    yield from querying_forms(program)
    yield from subscribing_forms(program)


def committing_forms(program: Program, record: Message | None, event: Message | None) -> Iterator[tuple[str, Call]]:
    """Return the forms of `store_offsets` and `commit`."""
    at = program.at
    unknown = TopicPartition(program.topic, 77, 3)
    for call in (
        Call(),
        Call(None),
        Call(None, None),
        Call("x"),
        Call(offsets="x"),
        Call(offsets=[3]),
        Call(offsets=[]),
        Call([at(0, 3)]),
        Call(offsets=[unknown]),
        Call(offsets=[at(0)]),
        Call(offsets=[at(0, -7)]),
        Call(x=1),
        Call(record, [at(0, 3)]),
        Call(record, [at(0, 3)], 1),
        Call(message=event),
        Call(offsets=[at(0, 4)]),
        Call(None, [at(0, 4, "metadata")]),
        Call(message=record),
        Call(record, None),
    ):
        yield "store_offsets", call
    for call in (
        Call(x=1),
        Call("x", asynchronous=False),
        Call(offsets="x", asynchronous=False),
        Call(offsets=[3], asynchronous=False),
        Call(record, [at(0, 3)]),
        Call(record, [at(0, 3)], False),
        Call(1, 2, 3, 4, 5),
        Call(message=event, asynchronous=False),
        Call([at(0, 3)], asynchronous=False),
        Call(offsets=[at(0, 3, "metadata")], asynchronous=False),
        Call(offsets=[], asynchronous=False),
        Call(offsets=[]),
        Call(offsets=[at(0)], asynchronous=False),
        Call(offsets=[at(0, -7)], asynchronous=False),
        Call(offsets=[unknown], asynchronous=False),
        Call(offsets=[at(0, 2), unknown], asynchronous=False),
        Call(None, [at(0, 3)], False),
        Call(None, [at(0, 4)], 1, 0),
        Call(None, [at(0, 5)], **{"async": False}),
        Call(None, [at(0, 6)], **{"async": False}, asynchronous=True),
        Call(None, [at(0, 6)], False, asynchronous=True),
        Call(message=record, asynchronous=False),
        Call(record, None, False),
        Call(record, **{"async": 0}),
        Call(record, asynchronous=None),
        Call(asynchronous=False),
        Call(asynchronous=False),
        Call(**{"async": False}),
        Call(None, None, False),
        Call(None, None, True, False),
        Call(asynchronous=[]),
        Call(message=None, offsets=None, asynchronous=False),
        Call(asynchronous=True),
        Call(),
        Call(**{"async": True}),
        Call(record),
        Call(offsets=[at(0, 7)]),
    ):
        yield "commit", call
    yield "committed", Call([at(0), at(1), unknown], LIMIT_S)


def querying_forms(program: Program) -> Iterator[tuple[str, Call]]:
    """Return the forms of the methods that query the brokers."""
    at = program.at
    for call in (
        Call(),
        Call("x"),
        Call([3]),
        Call([], LIMIT_S),
        Call([at(0)], "x"),
        Call([at(0)], 1, 2),
        Call([at(0), at(1)], LIMIT_S),
        Call(partitions=[at(1)], timeout=LIMIT_S),
    ):
        yield "committed", call
        yield "offsets_for_times", call
    yield "offsets_for_times", Call([at(0, 0), at(1, -1)], LIMIT_S)
    yield "offsets_for_times", Call([at(0, -2), at(1, 1 << 60)], timeout=LIMIT_S)
    for call in (
        Call(),
        Call("x"),
        Call(at(0), "x"),
        Call(at(0), LIMIT_S, False, 1),
        Call(at(0), LIMIT_S),
        Call(partition=at(1), timeout=LIMIT_S, cached=False),
    ):
        yield "get_watermark_offsets", call
    for call in (Call(3), Call("x", "x"), Call(program.topic, LIMIT_S), Call(topic=program.topic, timeout=LIMIT_S)):
        yield "list_topics", call
    yield "consumer_group_metadata", Call()
    for call in (Call(), Call("user"), Call("user", 3), Call("user", "secret"), Call(username="u")):
        yield "set_sasl_credentials", call
    if hasattr(confluent_kafka.Consumer, "cluster_id"):
        yield "cluster_id", Call(LIMIT_S)
        yield "cluster_id", Call("x")


def subscribing_forms(program: Program) -> Iterator[tuple[str, Call]]:
    """Return the forms of `subscribe` that are refused."""
    topics = [program.topic]
    for call in (
        Call(),
        Call(None),
        Call("x"),
        Call([3]),
        Call([None]),
        Call([""]),
        Call([]),
        Call((program.topic,)),
        Call(x=topics),
        Call(topics, 1),
        Call(topics, print, 1),
        Call(topics, print, print, 1),
        Call(topics, print, print, print, print),
        *(Call(topics, **{name: wrong}) for name in ("on_assign", "on_revoke", "on_lost") for wrong in (1, "x", None)),
    ):
        yield "subscribe", call


def outcomes(program: Program) -> Outcomes:
    """Return the outcome of each form in each state: without an assignment, reading, and closed."""
    consumer = program.consumer()
    found = {"new": in_one_state(consumer, forms(program, None, None))}
    consumer.assign([program.at(0, 0), program.at(1, 0)])
    record, event = read_to_the_ends(consumer)
    found["reading"] = in_one_state(consumer, forms(program, record, event))
    consumer.close()
    # Whether a closed consumer looks at invalid arguments first depends on the release.
    valid = [
        (name, call)
        for (name, call), each in zip(forms(program, record, event), found["reading"].values(), strict=True)
        if each != TYPE_ERROR and name not in CRASH_WHEN_CLOSED
    ]
    found["closed"] = in_one_state(consumer, [*valid, ("close", Call()), ("close", Call())])
    return {f"{state} {call}": each for state, of_state in found.items() for call, each in of_state.items()}


def in_one_state(consumer: confluent_kafka.Consumer, calls: Iterable[tuple[str, Call]]) -> Outcomes:
    """Return the outcomes of all calls in their order."""
    return {f"{number}: {name}({call})": outcome(consumer, name, call) for number, (name, call) in enumerate(calls)}


def read_to_the_ends(consumer: confluent_kafka.Consumer) -> tuple[Message, Message]:
    """Read both partitions; return the first record of partition 0 and the end-of-partition event of partition 1."""
    records: dict[int | None, Message] = {}
    events: dict[int | None, Message] = {}

    def are_at_the_ends() -> bool:
        message = consumer.poll(0.1)
        error = None if message is None else message.error()
        if message is not None and (error is None or error.code() == KafkaError._PARTITION_EOF):
            (records if error is None else events).setdefault(message.partition(), message)
        return len(events) == 2

    wait_until(are_at_the_ends, "the ends of both partitions")
    return records[0], events[1]


def outcome(consumer: confluent_kafka.Consumer, name: str, call: Call) -> Outcome:
    return attempt(lambda: getattr(consumer, name)(*call.args, **call.kwargs))


def attempt(call: Callable[[], object]) -> Outcome:
    """Return the shown result of a call or its exception; of a TypeError only the type, as its text is Python's."""
    try:
        return shown(call())
    except TypeError:
        return TYPE_ERROR
    except Exception as error:  # noqa: BLE001  # all exceptions are outcomes
        return f"raises {type(error).__name__}: {error.args!r}"


def shown(value: object) -> str:
    """Return a text that is equal for equal results of two consumers."""
    if isinstance(value, TopicPartition):
        parts = [value.offset, value.metadata, value.leader_epoch, value.error]
        return f"{value.topic.split('-')[0]}[{value.partition}]{parts}"
    if isinstance(value, Message):
        return f"Message({value.partition()}, {value.offset()}, {value.value()!r}, {value.leader_epoch()})"
    if isinstance(value, list | tuple):
        return f"{type(value).__name__}({', '.join(map(shown, value))})"
    if isinstance(value, str):
        return repr(value)
    if value is None or isinstance(value, bool | int | float):
        return repr(value)
    return type(value).__name__
