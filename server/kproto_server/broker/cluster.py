"""The nodes of a running broker, and what a test has happen to them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kproto_server.broker.block import EndsWithBlock

if TYPE_CHECKING:
    from kproto_server.broker.thread import RunInBrokerThread
    from kproto_server.network.server import Server


class BrokerNetwork(EndsWithBlock):
    """Conditions of the network between clients and nodes. As a context manager, ``with`` or ``async with``, they end
    with the block."""

    def __init__(self, run: RunInBrokerThread, node_id: int | None) -> None:
        self._run = run
        self._node_id = node_id

    def remove(self) -> None:
        """Make the network of these nodes good; what is under way arrives."""
        self._run(lambda server: server.nodes.set_network(self._node_id))

    _end = remove


class BrokerDisk(EndsWithBlock):
    """The conditions of a node's disk. As a context manager, ``with`` or ``async with``, they end with the block."""

    def __init__(self, run: RunInBrokerThread, node_id: int) -> None:
        self._run = run
        self._node_id = node_id

    def remove(self) -> None:
        """Make the disk of the node good. A node that has ended stays so until `Broker.start_node`."""
        from kproto_server.network.disks import set_disk

        self._run(lambda server: set_disk(server, self._node_id))

    _end = remove


class BrokerCluster:
    """The nodes, leaders and coordinators of a running broker. Each call runs between two requests."""

    def __init__(self, run: RunInBrokerThread) -> None:
        self._run = run

    def leader(self, topic: str, partition: int) -> int | None:
        """Return the node that leads a partition; None: it does not exist, or no node leads it."""

        def look(server: Server) -> int | None:
            cluster = server.state.cluster
            found = cluster.topic(topic)
            one = None if found is None else found.partition(partition)
            return None if one is None or one.leader not in cluster.nodes else one.leader

        return self._run(look)

    def coordinator(self, *, group: str | None = None, transactional_id: str | None = None) -> int | None:
        """Return the node that coordinates a group or a transactional id; None: there is none yet."""

        def look(server: Server) -> int | None:
            cluster = server.state.cluster
            node = None
            if group is not None:
                node = cluster.coordinator_of(group)
            elif transactional_id is not None:
                node = cluster.transaction_coordinator_of(transactional_id)
            return None if node is None else node.node_id

        return self._run(look)

    def move_leader(self, topic: str, partition: int, node_id: int | None = None) -> int:
        """Make another running replica the leader of a partition, and return its node id.

        Clients receive NOT_LEADER_OR_FOLLOWER from the former leader; the leader epoch is one higher. ``node_id``:
        None: the next replica.

        Raises:
            UsageError: the partition does not exist, or the node can't lead it; the text says which ones can.
        """
        from kproto_server.network.moves import move_leader  # few tests need it

        return self._run(lambda server: move_leader(server.state, topic, partition, node_id))

    def move_coordinator(
        self,
        *,
        group: str | None = None,
        transactional_id: str | None = None,
        node_id: int | None = None,
        loading_ms: int = 0,
    ) -> int:
        """Make another running node the coordinator of a group or of a transactional id, and return its node id.

        Clients receive NOT_COORDINATOR from the former coordinator, and COORDINATOR_LOAD_IN_PROGRESS from the new one
        for ``loading_ms`` of the broker's time. Everything that shares its partition of ``__consumer_offsets`` or
        ``__transaction_state`` moves with it.

        Raises:
            UsageError: none or both are given, no client has asked for the coordinator yet, ``loading_ms`` is no
                number from 0 on, or the node can't be it.
        """
        from kproto_server.network.moves import move_coordinator

        return self._run(
            lambda server: move_coordinator(
                server.state, group=group, transactional_id=transactional_id, node_id=node_id, loading_ms=loading_ms
            )
        )

    def crash(self, node_id: int) -> None:
        """Have a node end as if its process was killed: its connections are reset, and it refuses new ones.

        The cluster notices it when the node's session times out, after 9 seconds of the broker's time (with ZooKeeper
        18, before Kafka 2.5 6). Until then the node is the leader and coordinator that it was, and clients are refused.
        `Broker.start_node` starts it again.

        Raises:
            UsageError: the node does not exist or is stopped.
        """
        self._run(lambda server: server.nodes.crash(node_id))

    def disconnect(self, node_id: int) -> None:
        """Close a node's connections and refuse new ones; the cluster does not notice it.

        `Broker.start_node` connects it again.

        Raises:
            UsageError: the node does not exist or is stopped.
        """
        self._run(lambda server: server.nodes.disconnect(node_id))

    def stop_replication(self, node_id: int) -> None:
        """Have a node's replicas follow their leaders no longer: they leave the in-sync replicas.

        That is what a cluster notices after `replica.lag.time.max.ms`. Where fewer than `min.insync.replicas` are left,
        Produce with acks=all gets NOT_ENOUGH_REPLICAS, and coordinators are not available for what they would write.

        Raises:
            UsageError: the node does not exist.
        """
        self._set_replication(node_id, runs=False)

    def start_replication(self, node_id: int) -> None:
        """Have a node's replicas catch up with their leaders, and be in sync.

        Raises:
            UsageError: the node does not exist.
        """
        self._set_replication(node_id, runs=True)

    def _set_replication(self, node_id: int, *, runs: bool) -> None:
        from kproto_server.network.moves import set_replication

        self._run(lambda server: set_replication(server.state, node_id, runs=runs))

    def network(
        self,
        node_id: int | None = None,
        *,
        latency_ms: int = 0,
        bytes_per_second: int | None = None,
        black_hole: bool = False,
        refuse: bool = False,
    ) -> BrokerNetwork:
        """Give the network between clients and a node other conditions, until `BrokerNetwork.remove` or `Broker.reset`.

        They replace earlier conditions of the node, are about its connections and further ones, and stay while the node
        is stopped and started. The cluster does not notice them.

        Args:
            node_id: None: all nodes.
            latency_ms: the time that bytes take in each direction, on the broker's clock.
            bytes_per_second: the bandwidth of each direction of each connection, on the broker's clock.
            black_hole: connections stay, and no byte passes in either direction; new ones are accepted and are silent.
                Afterwards bytes pass that were sent meanwhile.
            refuse: new connections are refused, those that exist go on.

        Raises:
            UsageError: the node does not exist, there are no conditions, or a value is wrong.
        """
        from kproto_server.network.links import checked  # few tests need it

        conditions = checked(latency_ms, bytes_per_second, black_hole=black_hole, refuse=refuse)
        self._run(lambda server: server.nodes.set_network(node_id, conditions))
        return BrokerNetwork(self._run, node_id)

    def disk(self, node_id: int, *, full: bool = False, read_only: bool = False, latency_ms: int = 0) -> BrokerDisk:
        """Give the disk of a node other conditions, until `BrokerDisk.remove` or `Broker.reset`.

        They replace earlier conditions of the node. A node whose disk takes no writes responds KAFKA_STORAGE_ERROR to
        the first one and ends, as a broker with one log directory does; the cluster notices it as after `crash`. Such a
        follower ends when its leader writes; until the cluster notices that, Produce with acks=all gets
        REQUEST_TIMED_OUT. The node can't start while its disk is bad.

        Args:
            full: the disk is full.
            read_only: the disk has become read-only.
            latency_ms: how long requests wait for each write, on the broker's clock.

        Raises:
            UsageError: the node does not exist, there are no conditions, or a value is wrong.
        """
        from kproto_server.network.disks import checked, set_disk  # few tests need it

        error, latency_ms = checked(full=full, read_only=read_only, latency_ms=latency_ms)
        self._run(lambda server: set_disk(server, node_id, error, latency_ms))
        return BrokerDisk(self._run, node_id)
