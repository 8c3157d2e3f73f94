"""Operations on snapshots of the whole state, which the broker keeps for tests in other processes."""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING, NamedTuple

from kproto_server.control.problem import Problem, not_found
from kproto_server.control.results import Result
from kproto_server.control.schema import INTEGER, STRING, a_list, an_object

if TYPE_CHECKING:
    from kproto_server.broker.controls import BrokerControls
    from kproto_server.network.server import Server
    from kproto_server.snapshots.snapshot import BrokerSnapshot

SNAPSHOTS_MAX = 16


class KeptSnapshot(NamedTuple):
    """A snapshot that the broker keeps for a test in another process."""

    number: int
    snapshot: BrokerSnapshot


_SNAPSHOT = an_object({"number": INTEGER, "now_ms": INTEGER, "kafka_version": STRING, "text": STRING})


def _snapshot(kept: KeptSnapshot) -> object:
    found = kept.snapshot
    return {"number": kept.number, "now_ms": found.now_ms, "kafka_version": found.kafka_version, "text": repr(found)}


NEW_SNAPSHOT = Result("a snapshot of the whole state", _SNAPSHOT, _snapshot, status=201)
SNAPSHOTS = Result(
    "the snapshots that the broker keeps, oldest first",
    an_object({"snapshots": a_list(_SNAPSHOT)}),
    lambda snapshots: {"snapshots": [_snapshot(one) for one in snapshots]},
)


def snapshots(broker: BrokerControls) -> list[KeptSnapshot]:
    """Return the snapshots that the broker keeps, the oldest first."""
    return broker.run(lambda server: [KeptSnapshot(*item) for item in server.snapshots.items()])


def take_snapshot(broker: BrokerControls) -> KeptSnapshot:
    """Take a snapshot of the whole state, which the broker keeps until its end.

    Raises:
        Problem: the broker keeps as many as it may.
        UsageError: the data directory is still being loaded.
    """

    from kproto_server.network.snapshots import take_snapshot as taken

    def take(server: Server) -> KeptSnapshot:
        if len(server.snapshots) >= SNAPSHOTS_MAX:
            raise Problem(HTTPStatus.CONFLICT, f"the broker keeps {SNAPSHOTS_MAX} snapshots: DELETE one of them")
        number = max(server.snapshots, default=0) + 1
        server.snapshots[number] = taken(server)
        return KeptSnapshot(number, server.snapshots[number])

    return broker.run(take)


def restore_snapshot(broker: BrokerControls, number: int, *, new_ports: bool = False) -> None:
    """Reset the broker, then give it the state of a snapshot; members of groups have to join again.

    Raises:
        Problem: there is no such snapshot.
    """
    broker.restore(broker.run(lambda server: _kept(server, number)), new_ports=new_ports)


def remove_snapshot(broker: BrokerControls, number: int) -> None:
    """Forget a snapshot.

    Raises:
        Problem: there is no such snapshot.
    """

    def remove(server: Server) -> None:
        _kept(server, number)
        del server.snapshots[number]

    broker.run(remove)


def _kept(server: Server, number: int) -> BrokerSnapshot:
    found = server.snapshots.get(number)
    if found is None:
        raise not_found(f"there is no snapshot {number}")
    return found
