"""The nodes of a broker process: which of them run, where they listen, and the network in front of them."""

from __future__ import annotations

import socket
from collections import deque
from contextlib import suppress
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Protocol

from kproto.errors import UsageError
from kproto_server.network.listening import BACKLOG, reserve
from kproto_server.network.node_listener import NodeBehavior, NodeListener, bound_addresses, reserve_all

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import trio

    from kproto_server.clock import Timer
    from kproto_server.cluster.cluster import Node
    from kproto_server.network.accepting import Acceptor
    from kproto_server.network.event_loop import EventLoop
    from kproto_server.network.links import Conditions, Links
    from kproto_server.network.node_listener import NodeSockets
    from kproto_server.state import BrokerState

FORMER_PORTS_MAX = 64
"""Former ports that stay reserved, each by a file descriptor."""


class NodeDisks(Protocol):
    """The disks of nodes (`disks`)."""

    def check_start(self, node_id: int) -> None:
        """Refuse to start a node whose disk is bad."""
        ...

    def clear(self) -> None:
        """Make all disks good."""
        ...


class Nodes:
    """The nodes of a broker process, with their sockets, which `close` closes."""

    def __init__(self, loop: EventLoop, state: BrokerState, acceptor: Acceptor) -> None:
        self._loop = loop
        self._state = state
        self._acceptor = acceptor
        self._nursery: trio.Nursery | None = None
        self.listeners: dict[int, NodeListener] = {}
        self._reserved: dict[int, NodeSockets] = {}
        """The bound sockets of stopped nodes, by node id."""
        self._crashed: dict[int, Timer] = {}
        """When the cluster notices that nodes have crashed, by node id."""
        self._former: deque[socket.socket] = deque()
        """The bound sockets of the ports that nodes had before `reset`; clients that still use them are refused."""
        self.disks: NodeDisks | None = None
        """None: all disks of nodes were always good."""
        self.links: Links | None = None
        """None: the network between clients and nodes was always good."""
        self.initial_network: Sequence[tuple[int | None, Conditions]] = ()
        """Conditions of the network from the start on, by node; `reset` brings them back."""

    def take(self, sockets: dict[int, NodeSockets]) -> None:
        """Own the bound sockets of all nodes, by node id."""
        self._reserved.update(sockets)

    def open(self, nursery: trio.Nursery) -> None:
        """Listen, with tasks in a nursery, on the sockets of all nodes that are alive."""
        self._nursery = nursery
        for node in self._state.cluster.alive_nodes():
            self._open(node)
        self.begin_network()

    def close(self) -> None:
        """Close all sockets and connections at once."""
        for listener in self.listeners.values():
            listener.close()
        if self.links is not None:
            self.links.close()
        for sock in (*chain.from_iterable(one.values() for one in self._reserved.values()), *self._former):
            sock.close()

    def restart(self, *, new_ports: bool) -> None:
        """Start stopped nodes, close every connection, and make the network and all disks good.

        ``new_ports``: nodes listen on other ports afterwards.

        Raises:
            OSError: there are no free ports; nothing has happened.
        """
        nodes = self._state.cluster.nodes
        sockets = self._new_sockets(nodes) if new_ports else {}
        self.set_network(None)
        if self.disks is not None:
            self.disks.clear()
        for node_id in nodes:
            self.start(node_id)
            self.listeners[node_id].close_connections()
            if node_id in sockets:
                self._move(node_id, sockets[node_id])

    def _new_sockets(self, node_ids: Iterable[int]) -> dict[int, NodeSockets]:
        """Return sockets with free ports on the addresses of each node.

        Raises:
            OSError: there are too few free ports.
        """
        sockets: dict[int, NodeSockets] = {}
        try:
            for node_id in node_ids:
                listener = self.listeners.get(node_id)
                former = bound_addresses(self._reserved[node_id] if listener is None else listener.sockets)
                sockets[node_id] = reserve_all({name: (host, 0) for name, (host, _) in former.items()})
        except OSError:
            for sock in chain.from_iterable(one.values() for one in sockets.values()):
                sock.close()
            raise
        return sockets

    def _move(self, node_id: int, new: NodeSockets) -> None:
        """Have a running node listen on other sockets, and reserve its former ports, so that the kernel gives them
        to neither a listener nor a client."""
        node = self._state.cluster.nodes[node_id]
        listener = self.listeners.pop(node_id)
        former = bound_addresses(listener.sockets)
        listener.close()
        for address in former.values():
            with suppress(OSError):  # taken by another process meanwhile
                self._former.append(reserve(*address))
            if len(self._former) > FORMER_PORTS_MAX:
                self._former.popleft().close()
        for name, (_, port) in bound_addresses(new).items():
            if name:
                node.others[name] = node.others[name][0], port
            else:
                node.port = port
            new[name].listen(BACKLOG)
        self._reserved[node_id] = new
        self._open(node)
        self._state.cluster.changed()

    def stop(self, node_id: int) -> None:
        """Stop a node: close its listener and its connections; other nodes become the leaders of its partitions.

        Raises:
            UsageError: the node does not exist or is stopped.
        """
        self.disconnect(node_id)
        self._leave(node_id)

    def crash(self, node_id: int, *, resets: bool = True) -> None:
        """Reset a node's connections and refuse new ones; after the timeout of its session the cluster notices that,
        and other nodes become the leaders.

        ``resets``: False: its clients receive the responses that are made before their connections end.

        Raises:
            UsageError: the node does not exist or is stopped.
        """
        self.disconnect(node_id, resets=resets)
        self._state.cluster.silent.add(node_id)
        clock = self._loop.clock
        due_ms = clock.now_ms() + self._state.kafka_version.behavior(NodeBehavior).session_timeout_ms
        self._crashed[node_id] = clock.call_at(due_ms, partial(self._leave, node_id))

    def disconnect(self, node_id: int, *, resets: bool = False) -> None:
        """Close a node's listener and its connections. The cluster does not notice it: the node stays the leader.

        ``resets``: connections end by a reset (TCP RST).

        Raises:
            UsageError: the node does not exist or is stopped.
        """
        self._node(node_id)
        if node_id not in self.listeners:
            raise UsageError(f"node {node_id} is stopped already: {self._node_states()}")
        listener = self.listeners.pop(node_id)
        addresses = bound_addresses(listener.sockets)  # the node's own addresses are the advertised ones
        listener.close(resets=resets)
        self._reserved[node_id] = reserve_all(addresses)

    def _leave(self, node_id: int) -> None:
        """Have the cluster notice that a node has ended."""
        from kproto_server.coordinator.membership.unloading import unload  # not at the start

        self._crashed.pop(node_id, None)
        coordinator = self._state.coordinator
        unload(coordinator, coordinator.partitions_led_by(node_id))
        self._state.cluster.stop_node(node_id)

    def start(self, node_id: int) -> None:
        """Start a stopped node on its address; do nothing if it runs.

        Raises:
            UsageError: the node does not exist.
        """
        node = self._node(node_id)
        if node_id in self.listeners:
            return
        if self.disks is not None:
            self.disks.check_start(node_id)
        crashed = self._crashed.get(node_id)
        if crashed is not None:  # the cluster notices at the latest now
            crashed.cancel()
            self._leave(node_id)
        for sock in self._reserved[node_id].values():
            sock.listen(BACKLOG)
        self._open(node)
        self._update_listening(node_id)
        self._state.cluster.start_node(node_id)

    def network_of(self, node_id: int) -> Conditions | None:
        """Return the conditions of the network between clients and a node; None: it is good."""
        if self.links is None:
            return None
        found = self.links.conditions(node_id)
        return found if found.shapes or found.refuse else None

    def set_network(self, node_id: int | None, conditions: Conditions | None = None) -> None:
        """Replace the conditions of the network between clients and a node; None: all nodes, or a good network.

        Raises:
            UsageError: the node does not exist.
        """
        node_ids = [*self._state.cluster.nodes] if node_id is None else [self._node(node_id).node_id]
        if self.links is None and conditions is None:
            return
        from kproto_server.network.links import GOOD, Links

        if self.links is None:
            self.links = Links(self._loop)
            self._acceptor.on_connected = self.links.connected
        for one in node_ids:
            listener = self.listeners.get(one)
            self.links.set(one, conditions or GOOD, () if listener is None else listener.transports)
            self._update_listening(one)

    def begin_network(self) -> None:
        """Bring about the conditions of the network from the start on."""
        for node_id, conditions in self.initial_network:
            self.set_network(node_id, conditions)

    def _update_listening(self, node_id: int) -> None:
        """Have a running node refuse connections, or accept them again, as its network conditions are."""
        listener = self.listeners.get(node_id)
        refuses = self.links is not None and self.links.conditions(node_id).refuse
        if listener is None or listener.refuses == refuses:
            return
        if refuses:
            listener.refuse()
            return
        listener.listen()
        self._accept(listener)

    def _node(self, node_id: int) -> Node:
        node = self._state.cluster.nodes.get(node_id)
        if node is None:
            raise UsageError(f"node {node_id!r} does not exist: {self._node_states()}")
        return node

    def _node_states(self) -> str:
        """Return each node with its state, for errors: ``node 1 is running, node 2 is stopped``."""
        return ", ".join(
            f"node {node_id} is {'running' if node_id in self.listeners else 'stopped'}"
            for node_id in sorted(self._state.cluster.nodes)
        )

    def _open(self, node: Node) -> None:
        listener = self.listeners[node.node_id] = NodeListener(node, self._reserved[node.node_id])
        del self._reserved[node.node_id]
        self._accept(listener)

    def _accept(self, listener: NodeListener) -> None:
        assert self._nursery is not None, "main runs"
        self._acceptor.watch(listener, self._nursery)
