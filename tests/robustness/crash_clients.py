"""Clients of the crash driver: each changes state of its own, and knows what the broker must have after a kill.

After a kill each value is the acknowledged one, or one that it has after some of the changes without a response. A
client has one connection, on which the broker handles changes in order.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from random import Random
from typing import Any, NamedTuple

from kproto.headers import read_response
from tests.network.raw_client import RawClient
from tests.robustness import changes
from tests.robustness.changes import BROKER, TOPIC, Sent, State, errors_of

NOT_FOUND = 69
"""GROUP_ID_NOT_FOUND: there is nothing to delete."""
NOT_COORDINATOR = 16
PACKET_MAX = 12
Keys = Callable[[tuple[str, ...]], bool]


class Change(NamedTuple):
    """A request, and what it does to the state."""

    sent: Sent
    apply: Callable[[State], object]
    partial: Keys = lambda key: False
    """Keys that can have any value if the broker was killed before it responded."""
    accepts: tuple[int, ...] = ()
    """Errors that mean that there was nothing to change."""


class Unexpected(Exception):
    """A response has an error that the client did not ask for."""


class CrashClient:
    """A client and the state that it alone changes."""

    pause_s = 0.0
    """Pause between packets: a change that is synced to ``topics.json`` holds all other clients for milliseconds."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.state: State = {}
        """What was acknowledged."""
        self.pending: list[Change] = []
        """Sent without a response, in order."""
        self.is_shutting_down = False
        """Whether the broker shuts down cleanly: it ends rebalances with NOT_COORDINATOR."""
        self.acknowledged_count = 0
        self.compared_count = 0
        self._number = 0

    # Changes.

    def run(self, address: str, chance: Random) -> None:
        """Send packets of changes until the broker is gone.

        Raises:
            Unexpected: a response has an error.
        """
        try:
            with RawClient(address) as client:
                while True:
                    for step in range(chance.randrange(1, 6)):
                        self._send(
                            client, [self.next_change(self._planned(), chance)] if step else self._packet(chance)
                        )
                    time.sleep(self.pause_s)
        except (ConnectionError, TimeoutError):
            return

    def _packet(self, chance: Random) -> list[Change]:
        planned = self._planned()
        packet = []
        for _ in range(chance.randrange(1, PACKET_MAX)):
            change = self.next_change(planned, chance)
            change.apply(planned)
            packet.append(change)
        return packet

    def _planned(self) -> State:
        return {key: dict(value) if isinstance(value, dict) else value for key, value in self.state.items()}

    def _send(self, client: RawClient, packet: list[Change]) -> list[Any]:
        self.pending += packet
        client.send(*(change.sent for change in packet))
        return [self._receive(client) for _ in packet]

    def _receive(self, client: RawClient) -> Any:
        change = self.pending[0]
        request, version = change.sent
        response = read_response(client.read_frame(), type(request), version)[1]
        del self.pending[0]
        wrong = [error for error in errors_of(response) if error not in change.accepts]
        if wrong:
            raise Unexpected(f"{self.name}: {request}: {response}")
        if not errors_of(response):
            change.apply(self.state)
        self.acknowledged_count += 1
        return response

    def next_change(self, state: State, chance: Random) -> Change:
        """Return a change of this state."""
        raise NotImplementedError

    def next_value(self) -> int:
        """Return a number that no change has had."""
        self._number += 1
        return self._number

    # Comparison.

    def view(self, client: RawClient) -> State:
        """Return this client's part of the broker's state."""
        raise NotImplementedError

    def compare(self, found: State) -> str | None:
        """Return what the state after a kill has lost or invented; expect it from now on."""
        self.compared_count += len(found)
        problem = self._problem(found)
        self.state, self.pending = found, []
        return problem

    def _problem(self, found: State) -> str | None:
        states = [self._planned()]
        for change in self.pending:
            states.append({**states[-1]})
            change.apply(states[-1])
        for key in sorted({key for state in (*states, found) for key in state}):
            is_partial = any(change.partial(key) for change in self.pending)
            if not is_partial and all(state.get(key) != found.get(key) for state in states):
                return (
                    f"{self.name}: {key}: expected {short(states[0].get(key))}, found {short(found.get(key))} "
                    f"({len(self.pending)} pending)"
                )
        return None


def short(value: Any) -> str:
    if isinstance(value, dict):
        return f"{len(value)} records {min(value, default=None)} to {max(value, default=None)}"
    return repr(value)[:100]


class Committer(CrashClient):
    """Commits offsets, and deletes offsets and groups."""

    groups = 6

    def _group(self, number: int) -> str:
        return f"{self.name}-{number}"

    @property
    def topic(self) -> str:
        return f"{self.name}-topic"

    def next_change(self, state: State, chance: Random) -> Change:
        if ("partitions", self.topic) not in state:
            return created(self.topic, 3)
        group_id, partition = self._group(chance.randrange(self.groups)), chance.randrange(3)
        key = "offset", group_id, self.topic, str(partition)
        draw = chance.random()
        if draw < 0.04:
            return Change(
                changes.delete_group(group_id),
                lambda state: [state.pop(one) for one in list(state) if one[:2] == ("offset", group_id)],
                accepts=(NOT_FOUND,),
            )
        if draw < 0.1:
            sent = changes.delete_offset(group_id, self.topic, partition)
            return Change(sent, lambda state: state.pop(key, None), accepts=(NOT_FOUND,))
        value = self.next_value()
        if draw < 0.2:
            v0 = "v0", group_id, self.topic
            return Change(
                changes.commit(group_id, {self.topic: {0: value}}, 0), lambda state: state.update({v0: value})
            )
        version = chance.choice((2, 2, 2, 8))
        sent = changes.commit(group_id, {self.topic: {partition: value}}, version)
        return Change(sent, lambda state: state.update({key: value}))

    def view(self, client: RawClient) -> State:
        groups = [self._group(number) for number in range(self.groups)]
        state = changes.view(client, groups, is_mine=lambda name: name == self.topic)
        if ("partitions", self.topic) in state:
            for group_id in groups:
                state.update(changes.zookeeper_offset(client, group_id, self.topic))
        return state


class Recorder(CrashClient):
    """Produces records, also as idempotent producers, and deletes them."""

    partitions = 2
    records_max = 400

    def __init__(self, name: str, producer_ids: set[int]) -> None:
        """``producer_ids``: all that any broker on the directory has returned."""
        super().__init__(name)
        self._producer_ids = producer_ids
        self._producer: tuple[int, dict[int, int]] | None = None
        """Id and next sequence of each partition."""

    def run(self, address: str, chance: Random) -> None:
        self._producer = None
        super().run(address, chance)

    def _receive(self, client: RawClient) -> Any:
        response = super()._receive(client)
        producer_id = getattr(response, "producer_id", None)
        if producer_id is not None:
            if producer_id in self._producer_ids:
                raise Unexpected(f"{self.name}: producer id {producer_id} is used twice")
            self._producer_ids.add(producer_id)
            self._producer = producer_id, dict.fromkeys(range(self.partitions), 0)
        return response

    def next_change(self, state: State, chance: Random) -> Change:
        topic, partition = self.name, chance.randrange(self.partitions)
        key = topic, str(partition)
        if ("partitions", topic) not in state:
            return created(topic, self.partitions, segment_bytes="2000")
        start, end, records = state["start", *key], state["end", *key], state["records", *key]
        draw = chance.random()
        if draw < 0.03:
            return Change(changes.new_producer_id(), lambda state: None)
        if draw < 0.13 or len(records) > self.records_max:
            offset = chance.randint(end - self.records_max // 2 if len(records) > self.records_max else start, end)
            return Change(
                changes.delete_records(topic, offset, partition), lambda state: delete_before(state, key, offset)
            )
        values = [b"%d" % self.next_value() for _ in range(chance.randrange(1, 4))]
        if self._producer is None or draw < 0.6:
            return produced(topic, partition, values)
        producer_id, sequences = self._producer
        first = sequences[partition]
        sequences[partition] += len(values)
        return produced(topic, partition, values, producer_id=producer_id, producer_epoch=0, base_sequence=first)

    def view(self, client: RawClient) -> State:
        return changes.view(client, is_mine=lambda name: name == self.name)


class Administrator(CrashClient):
    """Creates, changes and deletes topics, and writes some records to them."""

    pause_s = 0.1

    def _name(self, chance: Random) -> str:
        return f"{self.name}-{chance.randrange(5)}"

    def next_change(self, state: State, chance: Random) -> Change:
        topic = self._name(chance)
        if ("partitions", topic) not in state:
            return created(topic, chance.randrange(1, 4))
        count, draw = state["partitions", topic], chance.random()
        if draw < 0.15:
            return Change(
                changes.delete_topic(topic),
                lambda state: [state.pop(key) for key in list(state) if key[1] == topic],
                partial=lambda key: key[1] == topic and key[0] in ("start", "end", "records"),
            )
        if draw < 0.25 and count < 6:
            return Change(
                changes.create_partitions(topic, count + 1), lambda state: add_partitions(state, topic, count + 1)
            )
        if draw < 0.45:
            value = str(1_000_000_000 + self.next_value())
            key = "config", topic, chance.choice(("retention.ms", "max.message.bytes"))
            return Change(changes.set_config(TOPIC, topic, key[2], value), lambda state: state.update({key: value}))
        if draw < 0.5:
            gone = "config", topic, "retention.ms"
            return Change(changes.set_config(TOPIC, topic, gone[2], None), lambda state: state.pop(gone, None))
        return produced(topic, chance.randrange(count), [b"%d" % self.next_value()])

    def view(self, client: RawClient) -> State:
        return changes.view(client, is_mine=lambda name: name.startswith(f"{self.name}-"))


class Configurer(CrashClient):
    """Changes the dynamic configs of the brokers."""

    pause_s = 0.2

    def next_change(self, state: State, chance: Random) -> Change:
        key = "config", chance.choice(("", "1")), chance.choice(("log.retention.ms", "message.max.bytes"))
        value = None if chance.random() < 0.2 else str(1_000_000_000 + self.next_value())
        return Change(
            changes.set_config(BROKER, key[1], key[2], value),
            lambda state: state.pop(key, None) if value is None else state.update({key: value}),
        )

    def view(self, client: RawClient) -> State:
        return changes.broker_configs(client)


class Member(CrashClient):
    """Joins groups as their only, static member, gets an assignment, and leaves them."""

    groups = 3

    def run(self, address: str, chance: Random) -> None:
        try:
            with RawClient(address) as client:
                while True:
                    self._rejoin(client, f"{self.name}-{chance.randrange(self.groups)}", chance)
        except (ConnectionError, TimeoutError):
            return

    def _rejoin(self, client: RawClient, group_id: str, chance: Random) -> None:
        key = "members", group_id
        is_mine: Keys = lambda one: one == key  # noqa: E731
        if key in self.state and chance.random() < 0.3:
            self._send(client, [Change(changes.leave(group_id, "i"), lambda state: state.pop(key), partial=is_mine)])
            return
        assignment = b"%d" % self.next_value()
        # Until the assignment is acknowledged, a restarted broker may have the members of before or the new one.
        whole = Change(changes.join(group_id, "i"), lambda state: None, partial=is_mine)
        self.pending.append(whole)
        client.send(whole.sent)
        joined = self._response(client, whole.sent)
        request, version = changes.sync(group_id, joined, "i", assignment)
        client.send((request, version))
        synced = self._response(client, (request, version))
        self.pending.clear()
        # A static member that joins a stable group again keeps its assignment (KIP-345).
        self.state[key] = {(joined.member_id, synced.assignment)}
        self.acknowledged_count += 2

    def _response(self, client: RawClient, sent: Sent) -> Any:
        response = read_response(client.read_frame(), type(sent[0]), sent[1])[1]
        if NOT_COORDINATOR in errors_of(response) and self.is_shutting_down:
            raise ConnectionError("the broker has ended the rebalance")
        if errors_of(response):
            raise Unexpected(f"{self.name}: {response}")
        return response

    def view(self, client: RawClient) -> State:
        return changes.view(
            client, [f"{self.name}-{number}" for number in range(self.groups)], is_mine=lambda name: False
        )


def created(topic: str, partition_count: int, **configs: str) -> Change:
    def apply(state: State) -> None:
        add_partitions(state, topic, partition_count)
        state.update({("config", topic, name.replace("_", ".")): value for name, value in configs.items()})

    return Change(changes.create_topic(topic, partition_count, **configs), apply)


def add_partitions(state: State, topic: str, count: int) -> None:
    state["partitions", topic] = count
    for number in range(count):
        key = topic, str(number)
        if ("end", *key) not in state:
            state.update({("start", *key): 0, ("end", *key): 0, ("records", *key): {}})


def produced(topic: str, partition: int, values: list[bytes], **fields: int) -> Change:
    key = topic, str(partition)

    def apply(state: State) -> None:
        end = state["end", *key]
        state["records", *key] = {**state["records", *key], **dict(enumerate(values, end))}
        state["end", *key] = end + len(values)

    return Change(changes.produce(topic, values, partition, **fields), apply)


def delete_before(state: State, key: tuple[str, str], offset: int) -> None:
    state["start", *key] = max(offset, state["start", *key])
    state["records", *key] = {one: value for one, value in state["records", *key].items() if one >= offset}


def clients(number: int) -> Iterator[CrashClient]:
    """Yield the clients of one directory."""
    producer_ids: set[int] = set()
    for count in range(2):
        yield Committer(f"c{number}-{count}")
        yield Recorder(f"r{number}-{count}", producer_ids)
    yield Administrator(f"a{number}")
    yield Configurer(f"b{number}")
    yield Member(f"m{number}")
