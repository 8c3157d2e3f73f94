"""What a test reads and changes in a running broker: the methods that Python and the control API have in common."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kproto_server.broker.acls import BrokerAcls
from kproto_server.broker.client_metrics import BrokerClientMetrics
from kproto_server.broker.clock import BrokerClock
from kproto_server.broker.cluster import BrokerCluster
from kproto_server.broker.faults import BrokerFaults
from kproto_server.broker.groups import BrokerGroups
from kproto_server.broker.quotas import BrokerQuotas
from kproto_server.broker.requests import BrokerRequests, subjects_of
from kproto_server.broker.topics import BrokerTopics
from kproto_server.configuration.listeners import bracketed

if TYPE_CHECKING:
    from collections.abc import Iterable

    from kproto_server.broker.thread import RunInBrokerThread
    from kproto_server.cluster.node import Node
    from kproto_server.snapshots.snapshot import BrokerSnapshot


class BrokerControls:
    """A running broker in a test's hand. Each call runs between two requests."""

    def __init__(self, run: RunInBrokerThread) -> None:
        self.run: RunInBrokerThread = run
        """Runs an action on the broker's state, in its thread."""
        self.acls: BrokerAcls = BrokerAcls(run)
        self.quotas: BrokerQuotas = BrokerQuotas(run)
        self.client_metrics: BrokerClientMetrics = BrokerClientMetrics(run)
        self.clock: BrokerClock = BrokerClock(run)
        self.cluster: BrokerCluster = BrokerCluster(run)
        self.faults: BrokerFaults = BrokerFaults(run)
        self.groups: BrokerGroups = BrokerGroups(run)
        self.requests: BrokerRequests = BrokerRequests(run, lambda: run(subjects_of))
        self.topics: BrokerTopics = BrokerTopics(run)

    @property
    def bootstrap_servers(self) -> str:
        """Return ``HOST:PORT`` of every node, running or stopped, comma-separated."""
        return bootstrap_servers(self.run(lambda server: server.state.cluster.nodes.values()))

    def client_settings(self, client: str, *, user: str | None = None, mechanism: str | None = None) -> str:
        """Return the settings of a client library for this broker, ready to paste.

        Args:
            client: java, librdkafka, kafka-python, aiokafka, franz-go or kafkajs.
            user: the user of SASL; by default the first one.
            mechanism: the mechanism of SASL; by default the first one.

        Raises:
            UsageError: there is no such library, user or mechanism.
        """
        from kproto_server.broker.security import access_of  # few tests need it

        servers = self.bootstrap_servers
        return self.run(lambda server: access_of(server).client_settings(client, servers, user, mechanism))

    @property
    def client_variables(self) -> dict[str, str]:
        """The environment variables that `kproto run` gives to its command beside the addresses."""
        from kproto_server.broker.security import access_of

        servers = self.bootstrap_servers
        return self.run(lambda server: access_of(server).variables(servers))

    def reset(self, *, new_ports: bool = False) -> None:
        """Make the broker as it was after its start.

        Topics, groups, offsets, observations, requests, changed configs and the fault rules added since the start are
        deleted, stopped nodes started, and the clock is set to the wall time. Every connection is closed. A member, a
        producer or a fetch session from before gets the error of an unknown one.

        A client from before that connects again and begins with a JoinGroup without a member id cannot be
        distinguished from a new client. With ``new_ports`` it finds no broker: the nodes listen on other ports, which
        `bootstrap_servers` has.

        Raises:
            LogError: the logs in the data directory can't be removed; connections, topics and groups are gone.
        """
        self.run(lambda server: server.reset(new_ports=new_ports))

    def snapshot(self) -> BrokerSnapshot:
        """Return the state of the broker at this moment, in memory, for `restore`.

        It has the time of the clock, which nodes run, topics with their records, groups and their offsets,
        transactions, idempotent producers, share partitions and changed configs. It has no fault rules, requests and
        observations, and groups have no members.

        Raises:
            UsageError: the data directory is still being loaded.
        """
        from kproto_server.network.snapshots import take_snapshot  # few tests need it

        return self.run(take_snapshot)

    def restore(self, snapshot: BrokerSnapshot, *, new_ports: bool = False) -> None:
        """Reset the broker, then give it the state of a snapshot, which may be one of another broker.

        As with `reset`, every connection is closed, and the fault rules added since the start and the requests are
        deleted. Groups are as if their members had left: a member from before gets UNKNOWN_MEMBER_ID and joins again.

        Raises:
            UsageError: the snapshot is one of another Kafka version, or of other nodes.
            LogError: the data directory does not take the state.
        """
        from kproto_server.network.snapshots import restore

        self.run(lambda server: restore(server, snapshot, new_ports=new_ports))

    def stop_node(self, node_id: int) -> None:
        """Stop one node: its connections are closed, and its partitions get other leaders.

        Raises:
            UsageError: the node does not exist or is stopped; the text has all nodes with their states.
        """
        self.run(lambda server: server.nodes.stop(node_id))

    def start_node(self, node_id: int) -> None:
        """Start a node on its address; nothing happens if it runs.

        Raises:
            UsageError: the node does not exist; the text has all nodes with their states.
        """
        self.run(lambda server: server.nodes.start(node_id))


def bootstrap_servers(nodes: Iterable[Node], listener: str = "") -> str:
    """Return ``HOST:PORT`` of a listener of nodes, comma-separated; by default of the main one."""
    addresses = (node.address(listener) for node in nodes)
    return ",".join(f"{bracketed(host)}:{port}" for host, port in addresses)
