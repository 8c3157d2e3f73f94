"""Makes the script of a seed: of everything, or of one group that migrates between its protocols.

Each seed leaves out some kinds of faults, so that the others come together more often.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from tests.simulator.broker import WITH_NEW_GROUPS
from tests.simulator.script import Line, Script
from tests.simulator.simulation import FAULTS_MS

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

KAFKA_VERSIONS = ("4.4", "4.4", "3.9", "2.8")
VERIFYING = ("4.4", "3.9")
"""Versions that verify the partitions of transactions (KIP-890). Before, late batches make transactions that hang."""
WITH_TRANSACTION_VERSION_2 = ("4.4",)
CALLS = 30
"""Faults of messages concern one of the first requests of a client."""
FAULTS_MAX = 12
EDGES = (1, 2, 3, 4, 6, 8, 12, 20)
OTHER_PROTOCOL = {"classic_member": "consumer_member", "consumer_member": "classic_member"}
FAILING_OPERATIONS = ("write", "write", "sync", "create", "rename", "sync_directory", "remove")


def script_of(seed: int) -> Script:
    """Return the script of a seed."""
    chance = random.Random(seed)  # noqa: S311 - reproducible
    kafka = chance.choice(KAFKA_VERSIONS)
    broker = _broker(chance, seed, kafka)
    clients = _clients(chance, kafka)
    names = [line.text("name") for line in clients]
    faults = _faults(chance, broker, names)
    if kafka in WITH_NEW_GROUPS and chance.random() < 0.3:
        clients = [_other_protocol(line) if chance.random() < 0.3 else line for line in clients]
        faults += _migrations(chance, clients)
    if chance.random() < 0.2:
        faults += [_disk_fault(chance, names) for _ in range(chance.choice((1, 1, 2)))]
    return Script(broker, (*clients, *faults))


def migrations_of(seed: int) -> Script:
    """Return a script in which members of one group change their protocol, while syncs are slow and the disk fails."""
    chance = random.Random(f"migrations {seed}")  # noqa: S311 - reproducible
    kafka = WITH_NEW_GROUPS[0]
    broker = _broker(chance, seed, kafka)
    slow = {"sync_ms": chance.choice((3, 10)), "turn_ms": chance.choice((10, 40))}
    broker = broker._replace(values=tuple((dict(broker.values) | slow).items()))
    clients = [_other_protocol(line) if chance.random() < 0.4 else line for line in _group(chance, kafka)]
    if chance.random() < 0.5:
        clients.append(Line.of("reader", name="r1", at_ms=chance.randrange(300)))
    names = [line.text("name") for line in clients]
    faults = _faults(chance, broker, names)[: chance.randrange(5)]
    for _ in range(2):
        faults += _migrations(chance, clients)
    faults += [_disk_fault(chance, names) for _ in range(chance.choice((0, 1, 2, 4)))]
    return Script(broker, (*clients, *faults))


def _broker(chance: random.Random, seed: int, kafka: str) -> Line:
    return Line.of(
        "broker",
        seed=seed,
        kafka=kafka,
        nodes=chance.choice((1, 1, 2, 3)),
        durability=chance.choice(("fsync", "os")),
        partitions=chance.choice((1, 2, 3, 4)),
        sync_ms=chance.choice((0, 1, 3, 10)),
        turn_ms=chance.choice((1, 10, 40)),
        skew_ms=chance.randrange(-5000, 5000),
        drift_percent=chance.choice((0, 0, 3, -3)),
        segment_bytes=chance.choice((1 << 20, 700)),
        idle=chance.choice((0, 0, 1)),
    )


def _clients(chance: random.Random, kafka: str) -> list[Line]:
    kinds: Sequence[Callable[[random.Random, str], list[Line]]] = [_group]
    if kafka in VERIFYING:
        kinds = (_group, _transactions, _transactions)
    if kafka in WITH_NEW_GROUPS:
        kinds = (*kinds, _consumer_group, _consumer_group, _share_group, _share_group, _streams_group)
    lines = chance.choice(kinds)(chance, kafka)
    for make in (_committer, _producer):
        if chance.random() < 0.25:
            lines += make(chance)
    if chance.random() < 0.5:
        lines.append(Line.of("reader", name="r1", at_ms=chance.randrange(300)))
    return lines


def _consumer_group(chance: random.Random, kafka: str) -> list[Line]:
    return _group(chance, kafka, "consumer_member")


def _streams_group(chance: random.Random, kafka: str) -> list[Line]:
    """Members of a streams group, whose topology has state or none."""
    stateful = chance.choice((0, 1))
    lines = _group(chance, kafka, "streams_member")
    return [
        line._replace(values=(*line.values, ("stateful", stateful))) if line.kind == "streams_member" else line
        for line in lines
    ]


def _group(chance: random.Random, kafka: str, kind: str = "classic_member") -> list[Line]:
    """Consumers of one group, some of them static; with transactions that commit its offsets, sometimes."""
    lines = []
    is_static = chance.random() < 0.3
    for number in range(1, chance.choice((2, 2, 3)) + 1):
        line = Line.of(kind, name=f"c{number}", at_ms=chance.randrange(600), group="g")
        if is_static and chance.random() < 0.8:
            line = Line(line.kind, (*line.values, ("instance", f"i{number}")))
        lines.append(line)
    if kafka in VERIFYING and chance.random() < 0.2:
        lines += _transactional(chance, kafka, "p1", "x", "g")
    return lines


def _share_group(chance: random.Random, kafka: str) -> list[Line]:
    """Members of a share group, and producers of records for them; some of the records are in transactions."""
    lines = [
        Line.of("share_member", name=f"s{number}", at_ms=chance.randrange(500), group="s")
        for number in range(1, chance.choice((2, 2, 3)) + 1)
    ]
    lines.append(Line.of("producer", name="q2", at_ms=chance.randrange(300)))
    if chance.random() < 0.3:
        lines += _transactional(chance, kafka, "p1", "x", "")
    return lines


def _transactions(chance: random.Random, kafka: str) -> list[Line]:
    """One or two transactional ids, the first of which may have two producers."""
    lines = _transactional(chance, kafka, "p1", "x", "h")
    if chance.random() < 0.5:
        # Beside an old client, a new one that repeats its EndTxn gets the epoch of the old one, in Kafka too.
        (second,) = _transactional(chance, kafka, "p2", "x", "h")
        version_2 = lines[0].number("version_2")
        values = {**dict(second.values), "version_2": version_2}
        lines.append(second._replace(values=tuple(values.items())))
    if chance.random() < 0.4:
        lines += _transactional(chance, kafka, "p3", "y", chance.choice(("h", "k")))
    return lines


def _transactional(chance: random.Random, kafka: str, name: str, transactional_id: str, group: str) -> list[Line]:
    version_2 = int(kafka in WITH_TRANSACTION_VERSION_2 and chance.random() < 0.6)
    return [
        Line.of(
            "transactional_producer",
            name=name,
            at_ms=chance.randrange(700),
            transactional_id=transactional_id,
            group=group,
            version_2=version_2,
            zombie=chance.choice((0, 1)),
        )
    ]


def _committer(chance: random.Random) -> list[Line]:
    return [Line.of("committer", name="o1", at_ms=chance.randrange(300), group="solo")]


def _producer(chance: random.Random) -> list[Line]:
    return [Line.of("producer", name="q1", at_ms=chance.randrange(300))]


def _faults(chance: random.Random, broker: Line, names: list[str]) -> list[Line]:
    makers: dict[str, Callable[[], Line]] = {
        "slow_request": lambda: _message(chance, "slow_request", names, ms=_delay_ms(chance)),
        "slow_response": lambda: _message(chance, "slow_response", names, ms=_delay_ms(chance)),
        "lose_request": lambda: _message(chance, "lose_request", names),
        "lose_response": lambda: _message(chance, "lose_response", names),
        "crash": lambda: _crash(chance, broker, names),
        "pause": lambda: _at(chance, "pause", client=chance.choice(names), ms=chance.randrange(50, 1500)),
        "restart": lambda: _at(chance, "restart", client=chance.choice(names)),
    }
    node_count = broker.number("nodes")
    if node_count > 1:
        makers["stop_node"] = lambda: _at(
            chance, "stop_node", node=chance.randint(1, node_count), down_ms=chance.randrange(20, 600)
        )
    enabled = [name for name in makers if chance.random() < 0.6] or ["crash"]
    return [makers[chance.choice(enabled)]() for _ in range(chance.randint(1, FAULTS_MAX))]


def _other_protocol(line: Line) -> Line:
    """Return a member of the same group with the other protocol; another client as it is."""
    return line._replace(kind=OTHER_PROTOCOL.get(line.kind, line.kind))


def _migrations(chance: random.Random, clients: list[Line]) -> list[Line]:
    """Return restarts of members with the other protocol, one after the other as in a rolling upgrade, or any."""
    return [
        _at(chance, "restart", client=line.text("name"), becomes=chance.choice(list(OTHER_PROTOCOL)))
        for line in clients
        if line.kind in OTHER_PROTOCOL and chance.random() < 0.6
    ]


def _disk_fault(chance: random.Random, names: list[str]) -> Line:
    """Return errors of the disk, or a full disk. They begin at a time, or with the arrival of a request."""
    values: dict[str, int | str] = {"ms": chance.choice((5, 50, 300))}
    if chance.random() < 0.3:
        kind = "disk_full"
        values["free_bytes"] = chance.choice((0, 30, 100, 400))
    else:
        kind = "disk_error"
        values["operation"] = chance.choice(FAILING_OPERATIONS)
        values["of"] = chance.choice(("wal", "others"))
        values["skips"] = chance.choice(EDGES) - 1
        values["count"] = chance.choice((1, 1, 2, 1000))
    if chance.random() < 0.6:
        return Line.of(kind, client=chance.choice(names), call=chance.randrange(CALLS), **values)
    return _at(chance, kind, **values)


def _message(chance: random.Random, kind: str, names: list[str], **values: int) -> Line:
    return Line.of(kind, client=chance.choice(names), call=chance.randrange(CALLS), **values)


def _delay_ms(chance: random.Random) -> int:
    """Return a delay; more than half of them are longer than clients wait."""
    return chance.choice((chance.randrange(5, 100), chance.randrange(260, 1200), chance.randrange(260, 600)))


def _at(chance: random.Random, kind: str, **values: int | str) -> Line:
    return Line.of(kind, at_ms=chance.randrange(50, FAULTS_MS), **values)


def _crash(chance: random.Random, broker: Line, names: list[str]) -> Line:
    """Return a crash, most often at an operation of the disk; power is lost only if the broker syncs.

    It begins at a time, or with the arrival of a request.
    """
    values: dict[str, int | str] = {"down_ms": chance.randrange(5, 250)}
    if chance.random() < 0.8:
        values["operations"] = chance.choice(EDGES) - 1
    if chance.random() < 0.2:
        values["again"] = chance.choice(EDGES)
    kind = "kill"
    if broker.text("durability") == "fsync" and chance.random() < 0.6:
        kind = "power"
        values["keeps"] = chance.choice(("none", "some"))
    if chance.random() < 0.6:
        return Line.of(kind, client=chance.choice(names), call=chance.randrange(CALLS), **values)
    return _at(chance, kind, **values)
