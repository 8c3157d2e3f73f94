"""Requests to the share coordinator, script by script: right, wrong, fenced, unknown and repeated ones."""

from __future__ import annotations

from kproto_server.share_groups.in_flight import RecordState
from kproto_server.share_groups.share_partition import ACCEPT
from tests.share_groups.scripts import Scripts
from tests.share_groups.sharers import Sharers
from tests.share_groups.states import At, States

STATE_SCRIPTS = Scripts()
AVAILABLE, ACQUIRED, DONE, _, ARCHIVED = RecordState
NO_PARTITION = At(9)
NO_TOPIC = At(0, "?")
ZERO = At(0, "zero")
"""The topic id that stands for none."""


def _start(sharers: Sharers) -> States:
    sharers.create(partitions=3)
    sharers.create("u")
    sharers.topic_ids["zero"] = bytes(16)
    return States(sharers)


@STATE_SCRIPTS.add
def states_are_initialized(sharers: Sharers) -> None:
    states = _start(sharers)
    states.show()
    states.initialize(1, 5)
    states.show()
    states.initialize(1, 5)
    states.initialize(1, 7)
    states.show()
    states.initialize(0, 9)
    states.initialize(-1, 11)
    states.show()
    states.initialize(3, -1)
    states.show()
    states.initialize(2, 3)
    states.initialize(3, -5)
    states.show()
    for where in (NO_PARTITION, NO_TOPIC, ZERO, At(-1)):
        states.initialize(1, 0, where)
    states.initialize(-1, 0, At(1))
    states.show(At(1))
    states.initialize(-5, 0, At(2))
    states.show(At(2))
    states.initialize(0, 0, At(2), At(0, "u"), At(1), At(1))
    states.show(At(0), At(1), At(2), At(0, "u"))


@STATE_SCRIPTS.add
def states_are_written(sharers: Sharers) -> None:
    states = _start(sharers)
    states.write(0, 0, 0)
    states.show()
    states.initialize(2, 10)
    states.write(2, 3, 10, batches=[(10, 14, AVAILABLE, 1), (15, 19, DONE, 1)], done=5)
    states.show()
    states.write(2, 3, 10, batches=[(10, 14, AVAILABLE, 1), (15, 19, DONE, 1)], done=5)
    states.write(1, 3, 11, batches=[(10, 10, DONE, 1)])
    states.write(2, 2, 11, batches=[(10, 10, DONE, 1)])
    states.write(1, 2, 11, batches=[(10, 10, DONE, 1)])
    states.show()
    states.write(-1, -1, -1, batches=[(20, 24, ARCHIVED, 5)])
    states.show()
    states.write(4, 3, -1, batches=[(25, 29, ACQUIRED, 2)])
    states.show()
    states.write(3, 3, -1)
    states.write(4, 7, 12, batches=[(8, 11, DONE, 1), (12, 12, DONE, 2)], done=6)
    states.show()
    states.write(4, 6, 12)
    states.write(4, 7, 9, done=0)
    states.show()
    states.write(4, 7, -7, done=-7)
    states.show()
    states.write(4, 7, 13, batches=[(-3, -1, DONE, 1)])
    states.write(4, 7, 13, batches=[(13, 13, 9, -1)])
    states.show()
    states.write(4, 7, 30, batches=[(30, 30, AVAILABLE, 1)], done=0)
    states.show()
    states.initialize(5, 40)
    states.show()
    states.write(4, 8, 41)
    states.write(5, 1, 41)
    states.show()


@STATE_SCRIPTS.add
def batches_of_states_are_combined(sharers: Sharers) -> None:
    states = _start(sharers)
    states.initialize(0, 0)
    states.write(0, 0, 0, batches=[(0, 9, AVAILABLE, 1), (5, 14, DONE, 1), (3, 6, AVAILABLE, 2)])
    states.show()
    states.write(0, 0, 0, batches=[(15, 19, DONE, 1), (0, 1, ARCHIVED, 1), (2, 2, DONE, 1)])
    states.show()
    states.write(0, 0, 0, batches=[(0, 30, AVAILABLE, 1)])
    states.show()
    states.write(0, 0, 0, batches=[(0, 30, AVAILABLE, 3), (40, 41, DONE, 1)])
    states.show()
    states.write(0, 0, 4, batches=[(1, 8, DONE, 3), (9, 9, ARCHIVED, 3), (10, 10, ARCHIVED, 3)])
    states.show()
    states.write(0, 0, 100, batches=[])
    states.show()


@STATE_SCRIPTS.add
def states_are_not_found(sharers: Sharers) -> None:
    states = _start(sharers)
    states.initialize(1, 1)
    for where in (NO_PARTITION, NO_TOPIC, ZERO, At(-1), At(1)):
        states.read(-1, where)
        states.read(4, where)
        states.summarize(-1, where)
        states.summarize(4, where)
        states.write(1, 1, 1, where)
        states.delete(where)
    states.show(At(1))
    for places in ((At(None),), (At(None), At(0, "u")), (At(0), At(None, "u"))):
        states.initialize(1, 1, *places)
        states.read(-1, *places)
        states.summarize(-1, *places)
        states.write(1, 1, 1, *places)
        states.delete(*places)
    nameless = States(sharers, "")
    nameless.initialize(1, 1)
    nameless.show()
    nameless.write(1, 1, 1)
    nameless.delete()
    other = States(sharers, "other")
    other.show()
    other.write(0, 0, 0)
    other.delete()
    other.show()


@STATE_SCRIPTS.add
def leader_epochs_are_fenced(sharers: Sharers) -> None:
    states = _start(sharers)
    states.initialize(0, 3)
    states.read(5)
    states.summarize()
    states.read(5)
    states.read(4)
    states.write(0, 4, 3)
    states.write(0, 5, 4, batches=[(5, 5, DONE, 1)], done=1)
    states.read(6)
    states.summarize(3)
    states.summarize(9)
    states.write(0, 5, 4)
    states.write(0, 6, 4)
    states.initialize(1, 0)
    states.leader_epoch = 6
    states.show()
    states.write(1, 5, 0)
    states.read(2)
    states.read(7, At(0), At(1), NO_PARTITION)
    states.leader_epoch = 7
    states.show(At(0), At(1))


@STATE_SCRIPTS.add
def states_are_deleted(sharers: Sharers) -> None:
    states = _start(sharers)
    states.delete()
    states.initialize(3, 3, At(0), At(1), At(0, "u"))
    states.write(3, 4, 5, batches=[(6, 6, DONE, 1)])
    states.delete()
    states.show()
    states.delete()
    states.write(3, 4, 5)
    states.write(2, 3, 5)
    states.show()
    states.initialize(1, 2)
    states.show()
    states.delete(At(0), At(1), At(1), At(2), NO_PARTITION, At(0, "u"))
    states.show(At(0), At(1), At(0, "u"))


@STATE_SCRIPTS.add
def each_version_of_a_state_request(sharers: Sharers) -> None:
    states = _start(sharers)
    states.initialize(0, 0)
    for version in range(sharers.kafka_version.api_versions[85][1] + 1):
        states.write(0, 0, version, batches=[(3, 5, DONE, 1)], done=3, version=version)
        for read_version in range(sharers.kafka_version.api_versions[87][1] + 1):
            states.summarize(version=read_version)


@STATE_SCRIPTS.add
def a_state_changes_below_its_members(sharers: Sharers) -> None:
    """The leader of the share partition has an older state epoch."""
    states = _start(sharers)
    sharers.join("A")
    sharers.fetch("A", 0, wait_ms=100)
    sharers.produce(10)
    sharers.fetch("A")
    states.show()
    states.initialize(50, 4)
    sharers.acknowledge("A", {0: [(0, 1, [ACCEPT])]})
    states.show()
    sharers.fetch("A", wait_ms=100)
    sharers.acknowledge("A", {0: [(4, 5, [ACCEPT])]})
    states.show()
    states.write(50, 90, 7)
    sharers.acknowledge("A", {0: [(6, 6, [ACCEPT])]})
    sharers.fetch("A", wait_ms=100)
    states.show()
    states.delete()
    sharers.acknowledge("A", {0: [(7, 7, [ACCEPT])]})
    sharers.fetch("A", wait_ms=100)
    states.show()


@STATE_SCRIPTS.add
def records_are_fetched_without_a_state(sharers: Sharers) -> None:
    _start(sharers)
    sharers.produce(1)
    sharers.fetch("A", 0, wait_ms=300)
    sharers.fetch("A", wait_ms=300)
    sharers.acknowledge("A", {0: [(0, 0, [ACCEPT])]})
    sharers.join("A")
    sharers.fetch("A", wait_ms=300)
    sharers.produce(1)
    sharers.fetch("A", wait_ms=300)
