"""Snapshots of a running broker."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kproto.errors import LogError
from kproto_server.cluster.topics import TopicsNotStored
from kproto_server.snapshots.snapshot import take

if TYPE_CHECKING:
    from kproto_server.network.server import Server
    from kproto_server.snapshots.snapshot import BrokerSnapshot


def take_snapshot(server: Server) -> BrokerSnapshot:
    """Return the state of a broker, once the log has everything.

    Raises:
        UsageError: the data directory is still being loaded.
    """
    server.drain()
    return take(server.state, server.nodes.listeners)


def restore(server: Server, snapshot: BrokerSnapshot, *, new_ports: bool = False) -> None:
    """Reset a broker, and give it the state of a snapshot.

    Raises:
        UsageError: the snapshot is one of another Kafka version, or of other nodes; nothing has happened.
        LogError: the data directory does not take the state; the broker has a part of it.
        OSError: there are no free ports; nothing has happened.
    """
    snapshot.check(server.state)
    server.reset(new_ports=new_ports, now_ms=snapshot.now_ms)
    try:
        snapshot.restore(server.state, server.drain)
    except TopicsNotStored as error:
        raise LogError(str(error)) from None
    for node_id in list(server.nodes.listeners):
        if node_id not in snapshot.running:
            server.nodes.stop(node_id)
    snapshot.finish(server.state)
