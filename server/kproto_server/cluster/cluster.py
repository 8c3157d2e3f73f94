"""The nodes of one cluster, and its topics. `shared_state` has what else all nodes know.

Theory of operation. All nodes run in this process and share one state, as the brokers of a real cluster share a
metadata log. Nodes differ only in being alive, and in the partitions that they lead. If a node stops, its replicas
leave the in-sync replicas (ISR) of their partitions, except for the last one of a partition, from which the partition
recovers without loss. The first live in-sync replica becomes the leader, with a new leader epoch. Real clusters of
2.8.2 and 4.4.0 do the same (recorded in fixtures/golden/topics).
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from kproto.codes import ErrorCode
from kproto.jvm.uuid_text import uuid_text
from kproto.records.partitioning import OFFSETS_TOPIC, SHARE_STATE_TOPIC, TRANSACTION_TOPIC, partition_for
from kproto_server.cluster.node import Node
from kproto_server.cluster.placement import stripe
from kproto_server.cluster.rules import BROKER_DEFAULT, NewTopic, given_configs
from kproto_server.cluster.shared_state import SharedState
from kproto_server.cluster.topics import (
    INTERNAL_TOPICS,
    NO_LEADER,
    Partition,
    Refusal,
    Topic,
    TopicDefaults,
    collision_key,
)
from kproto_server.cluster.version_behavior import TopicBehavior
from kproto_server.partition_log.partition_data import NO_DATA

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

    from kproto_server.clock import Timer
    from kproto_server.cluster.rules import TopicRules
    from kproto_server.configuration.settings import Settings
    from kproto_server.releases.kafka_version import KafkaVersion

__all__ = ["Cluster", "Node", "Partition", "Refusal", "Topic", "TopicDefaults"]

NO_CONTROLLER = -1
PARTITIONS_MAX = 1_000_000
"""Partitions of all topics. Clients that invent topic names would take all memory: a partition takes 500 bytes."""


TOO_MANY_PARTITIONS = Refusal(
    ErrorCode.POLICY_VIOLATION, f"kproto has at most {PARTITIONS_MAX} partitions in all topics."
)


class Cluster(SharedState):
    """The nodes, the topics, and the leaders of their partitions."""

    def __init__(
        self,
        nodes: Iterable[Node],
        kafka_version: KafkaVersion,
        defaults: TopicDefaults,
        random_bytes: Callable[[int], bytes],
    ) -> None:
        """``random_bytes``: the source of all random ids in a broker; a seeded function repeats a run."""
        super().__init__(kafka_version, random_bytes)
        self.nodes: dict[int, Node] = {node.node_id: node for node in nodes}
        self.topics: dict[str, Topic] = {}
        self.behavior: TopicBehavior = kafka_version.behavior(TopicBehavior)
        self._rules = _rules_for(kafka_version)
        self.defaults: TopicDefaults = defaults
        self.partition_count: int = 0
        """The number of partitions of all topics."""
        self.main_listener: str = "PLAINTEXT"
        """The name of the listener that is the main one of each node."""
        self.controller_id: int = NO_CONTROLLER
        self.controller_epoch: int = 0
        """Rises each time that a node becomes the controller."""
        self._behind: set[int] = set()
        """Nodes that do not replicate."""
        self.silent: set[int] = set()
        """Nodes that have ended, which the cluster has not noticed: they are in sync, and do not replicate."""
        self.loading: dict[tuple[str, int], Timer] = {}
        """The ends of the loading of moved coordinators, by the topic and the partition."""
        self.replica_waiters: dict[Callable[[], object], None] = {}
        """Called when in-sync replicas may have changed: produces that wait for them."""
        self._topics_by_id: dict[bytes, Topic] = {}
        self.on_topic_deleted: Callable[[bytes, str], object] = lambda topic_id, name: None
        """Called with the id and the name of each topic that is deleted. Default callback: does nothing."""
        self._names_by_key: dict[str, dict[str, None]] = {}
        """The names of topics by their `collision_key`, of names that have one of its characters."""
        self.cluster_id: str = uuid_text(random_bytes(16))
        self._elect_controller()

    @classmethod
    def of(
        cls,
        addresses: Sequence[tuple[str, int]],
        *,
        kafka_version: KafkaVersion,
        settings: Settings,
        random_bytes: Callable[[int], bytes],
    ) -> Cluster:
        """Return a cluster of one live node for each address, with ids from `Settings.first_node_id` in their order."""
        ids = enumerate(addresses, settings.first_node_id)
        nodes = [Node(node_id, host, port) for node_id, (host, port) in ids]
        return cls(nodes, kafka_version, TopicDefaults.of(settings, len(nodes)), random_bytes)

    def reset(self) -> None:
        """Delete all topics but the internal ones, which lose their records, and drop all producers. Nodes and the
        cluster id stay.

        So a client of the next test finds its coordinator at once, as with any broker that has run for a while.
        """
        for name in [name for name in self.topics if name not in INTERNAL_TOPICS]:
            self.delete_topic(name)
        for partition in self._partitions():
            partition.data = NO_DATA
        super().reset()
        for node_id in list(self._behind):
            self.start_replication(node_id)
        self.silent.clear()
        self.unsaved.clear()

    # Nodes.

    def alive_nodes(self) -> list[Node]:
        """Return the live nodes in the order of their ids."""
        return sorted((node for node in self.nodes.values() if node.alive), key=lambda node: node.node_id)

    def rack_of(self, node_id: int) -> str | None:
        """Return the rack of a node; None if it has none, or there is no such node."""
        node = self.nodes.get(node_id)
        return None if node is None else node.rack

    def is_alive(self, node_id: int) -> bool:
        return node_id in self.nodes and self.nodes[node_id].alive

    def counted_nodes(self) -> list[Node]:
        """Return the nodes that count for a replication factor: live ones, in KRaft also stopped ones (BA-52)."""
        return [n for _, n in sorted(self.nodes.items()) if n.alive or (self.kafka_version.is_kraft and n.registered)]

    def add_node(self, node: Node) -> None:
        """Add a node; new topics use it."""
        self.changed()
        self.nodes[node.node_id] = node
        self._elect_controller()

    def stop_node(self, node_id: int) -> None:
        """Stop a node: it leaves the in-sync replicas, and its partitions get other leaders or none."""
        self.changed()
        self.silent.discard(node_id)
        self.nodes[node_id].alive = False
        for partition in self._partitions():
            self._leave_in_sync(partition, node_id)
        self._elect_controller()
        self._wake_replica_waiters()

    def unregister(self, node_id: int) -> None:
        """Forget a stopped node until it starts again. It stays a replica of its partitions."""
        self.changed()
        self.nodes[node_id].registered = False

    def _wake_replica_waiters(self) -> None:
        for waiter in list(self.replica_waiters):
            waiter()

    def _leave_in_sync(self, partition: Partition, node_id: int) -> None:
        """Remove a node from the in-sync replicas, unless it is the last one; it leads no longer if it has stopped."""
        epoch = partition.leader_epoch
        shrinks = node_id in partition.isr and len(partition.isr) > 1
        if shrinks:
            partition.isr = [replica for replica in partition.isr if replica != node_id]
        if partition.leader == node_id:
            self._elect_leader(partition)
        if shrinks and self.behavior.isr_shrink_raises_leader_epoch:
            partition.leader_epoch = epoch + 1

    def stop_replication(self, node_id: int) -> None:
        """Have the replicas of a node that follow others leave the in-sync replicas, until `start_replication`."""
        self.changed()
        self._behind.add(node_id)
        for partition in self._partitions():
            if partition.leader != node_id:
                self._leave_in_sync(partition, node_id)
        self._wake_replica_waiters()

    def start_replication(self, node_id: int) -> None:
        """Have the replicas of a node catch up, and be in sync with the leaders."""
        self.changed()
        self._behind.discard(node_id)
        for partition in self._partitions():
            self._join_in_sync(partition)
        self._wake_replica_waiters()

    @property
    def behind(self) -> frozenset[int]:
        """The nodes that do not replicate."""
        return frozenset(self._behind)

    def restore_roles(self, controller_id: int, behind: Iterable[int]) -> None:
        """Note what nodes are and do, when partitions have leaders and in-sync replicas that fit it."""
        self.changed()
        self.controller_id = controller_id
        self._behind = set(behind)

    def start_node(self, node_id: int) -> None:
        """Start a node: it leads partitions without a leader if it may; all live replicas of a leader are in sync."""
        self.changed()
        node = self.nodes[node_id]
        node.alive = node.registered = True
        for partition in self._partitions():
            if partition.leader == NO_LEADER:
                self._elect_leader(partition)
            self._join_in_sync(partition)
        self._elect_controller()

    def _join_in_sync(self, partition: Partition) -> None:
        """Have all live replicas of a leader that replicate be in sync."""
        if partition.leader != NO_LEADER:
            followers = [r for r in partition.replicas if self.is_alive(r) and r not in self._behind]
            partition.isr = [r for r in partition.replicas if r in partition.isr or r in followers]

    def _partitions(self) -> Iterable[Partition]:
        return (partition for topic in self.topics.values() for partition in topic.partitions)

    def _elect_controller(self) -> None:
        if not self.is_alive(self.controller_id):
            self.controller_id = min((node.node_id for node in self.alive_nodes()), default=NO_CONTROLLER)
            self.controller_epoch += self.controller_id != NO_CONTROLLER

    def _elect_leader(self, partition: Partition) -> None:
        candidates = (r for r in partition.replicas if r in partition.isr and self.is_alive(r))
        leader = next(candidates, NO_LEADER)
        if leader != partition.leader:
            partition.leader = leader
            partition.leader_epoch += 1

    def lead(self, partition: Partition, node_id: int) -> None:
        """Make a live replica the leader. If it was not in sync, it becomes the only in-sync replica."""
        self.changed()
        partition.leader = node_id
        partition.leader_epoch += 1
        if node_id not in partition.isr:
            partition.isr = [node_id]

    def check_replicas(self, replicas: Sequence[int]) -> Refusal | None:
        """Return why no partition can move to these nodes."""
        return self._rules.check_move(self, replicas, replicas, allows_factor_change=True)

    def reassign(
        self, partition: Partition, replicas: Sequence[int], *, allows_factor_change: bool = True
    ) -> Refusal | None:
        """Move a partition to other nodes at once, or return why not."""
        refusal = self._rules.check_move(self, partition.replicas, replicas, allows_factor_change=allows_factor_change)
        if refusal is not None:
            return refusal
        self.changed()
        self.unsaved.append(partial(partition.restore, partition.placement))
        epoch = partition.leader_epoch
        is_reduced = not set(partition.replicas) <= set(replicas)
        partition.replicas = list(replicas)
        partition.isr = [replica for replica in replicas if replica not in self._behind] or list(replicas)
        if partition.leader not in partition.isr:
            self._elect_leader(partition)
        if is_reduced:
            partition.leader_epoch = epoch + 1
        self._wake_replica_waiters()
        return None

    # Topics.

    def topic(self, name: str) -> Topic | None:
        """Return a topic by its name, or None."""
        return self.topics.get(name)

    def topic_by_id(self, topic_id: bytes) -> Topic | None:
        """Return a topic by its id, or None."""
        return self._topics_by_id.get(topic_id)

    def create_topic(
        self,
        name: str,
        *,
        partition_count: int = BROKER_DEFAULT,
        replication_factor: int = BROKER_DEFAULT,
        assignments: Sequence[tuple[int, Sequence[int]]] = (),
        configs: Mapping[str, str | None] | None = None,
        now_ms: int = 0,
        validate_only: bool = False,
    ) -> Topic | Refusal:
        """Create a topic and return it, or why it cannot be created; with ``validate_only`` it is not kept.

        ``assignments``: partitions with their replicas, instead of the two counts.
        """
        asked = NewTopic(name, partition_count, replication_factor, assignments, configs or {})
        placed = self._rules.check_new(self, asked)
        if isinstance(placed, Refusal):
            return placed
        if self.partition_count + len(placed) > PARTITIONS_MAX:
            return TOO_MANY_PARTITIONS
        partitions = [self._new_partition(index, replicas) for index, replicas in enumerate(placed)]
        topic = Topic(name, self.random_bytes(16), partitions, given_configs(asked.configs), now_ms)
        if not validate_only:
            self._add_topic(topic)
            self.unsaved.append(partial(self.delete_topic, name))
        return topic

    def _add_topic(self, topic: Topic) -> None:
        self.created()
        self.partition_count += len(topic.partitions)
        self.topics[topic.name] = self._topics_by_id[topic.topic_id] = topic
        key = collision_key(topic.name)
        if key is not None:
            self._names_by_key.setdefault(key, {})[topic.name] = None

    def names_like(self, name: str) -> Collection[str]:
        """Return the topics whose names are this one, or differ from it only in ``.`` and ``_``."""
        key = collision_key(name)
        return () if key is None else self._names_by_key.get(key, ())

    def restore_topic(
        self,
        name: str,
        topic_id: bytes | None,
        partition_count: int,
        replicas: Sequence[Sequence[int]],
        configs: Mapping[str, str],
    ) -> Topic:
        """Add a topic from the data directory. Replicas on missing nodes are left out; a partition without any replica
        gets a live node."""
        nodes = [node.node_id for node in self.alive_nodes()]
        partitions = []
        for index in range(partition_count):
            known = [node for node in replicas[index] if node in self.nodes] if index < len(replicas) else []
            partitions.append(self._new_partition(index, known or [nodes[index % len(nodes)]]))
        topic = Topic(name, topic_id or self.random_bytes(16), partitions, dict(configs), 0)
        self._add_topic(topic)
        return topic

    def add_partitions(
        self,
        topic: Topic,
        count: int,
        assignments: Sequence[Sequence[int]] | None = None,
        *,
        validate_only: bool = False,
    ) -> Refusal | None:
        """Add partitions to a topic up to ``count``, or return why not; ``assignments``: the replicas of the new
        ones."""
        placed = self._rules.check_growth(self, topic, count, assignments)
        if isinstance(placed, Refusal):
            return placed
        if self.partition_count + len(placed) > PARTITIONS_MAX:
            return TOO_MANY_PARTITIONS
        if not validate_only:
            self.changed()
            self.partition_count += len(placed)
            first = len(topic.partitions)
            self.unsaved.append(partial(self._remove_partitions, topic, first))
            topic.partitions += [self._new_partition(index, replicas) for index, replicas in enumerate(placed, first)]
        return None

    def _remove_partitions(self, topic: Topic, count: int) -> None:
        self.partition_count -= len(topic.partitions) - count
        del topic.partitions[count:]

    def delete_topic(self, name: str) -> Topic | None:
        """Delete a topic and return it, or None."""
        topic = self.topics.pop(name, None)
        if topic is not None:
            self.changed()
            self.partition_count -= len(topic.partitions)
            del self._topics_by_id[topic.topic_id]
            key = collision_key(name)
            if key is not None:
                del self._names_by_key[key][name]
                if not self._names_by_key[key]:
                    del self._names_by_key[key]
            self.unsaved.append(partial(self._add_topic, topic))
            self.on_topic_deleted(topic.topic_id, name)
            for partition in topic.partitions:
                if partition.data.waiters:
                    partition.data.notify_waiters()  # fetches find that the topic is gone
        return topic

    def stripe(self, partition_count: int, replication_factor: int, *, first_partition: int = 0) -> list[list[int]]:
        """Return the replicas of new partitions, from a random node on; live nodes are the leaders."""
        alive = [node.node_id for node in self.alive_nodes()]
        others = [node.node_id for node in self.counted_nodes() if not node.alive]
        start = int.from_bytes(self.random_bytes(2), "big") % len(alive)
        enough = min(replication_factor, len(alive))
        placed = stripe(alive, partition_count, enough, start=start, first_partition=first_partition)
        return [replicas + others[: replication_factor - enough] for replicas in placed]

    def _new_partition(self, index: int, replicas: Sequence[int]) -> Partition:
        """Return a new partition: its first live replica is the leader, all live replicas are in sync."""
        alive = [replica for replica in replicas if self.is_alive(replica)]
        return Partition(index, list(replicas), alive or list(replicas), alive[0] if alive else NO_LEADER)

    # Internal topics and coordinators.

    def ensure_offsets_topic(self, now_ms: int) -> bool:
        """Create the offsets topic if it is missing and can be created; return whether it exists (KIP-115, BA-50)."""
        return self.ensure_internal_topic(OFFSETS_TOPIC, now_ms)

    def ensure_internal_topic(self, name: str, now_ms: int) -> bool:
        """Create one of `INTERNAL_TOPICS` if it is missing; return whether it exists (BA-51)."""
        if name in self.topics:
            return True
        count, factor = self.defaults.internal_topic(name)
        if not self.behavior.enforces_offsets_replication_factor:
            factor = max(1, min(factor, len(self.alive_nodes())))
        made = self.create_topic(name, partition_count=count, replication_factor=factor, now_ms=now_ms)
        if isinstance(made, Refusal):
            return False
        made.configs.update(self.defaults.internal_topic_configs(name, factor))
        return True

    def coordinator_of(self, group_id: str) -> Node | None:
        """Return the leader of a group's offsets partition (BA-44), or None."""
        return self.coordinator_for(OFFSETS_TOPIC, group_id)

    def transaction_coordinator_of(self, transactional_id: str) -> Node | None:
        """Return the leader of a transactional id's partition, or None."""
        return self.coordinator_for(TRANSACTION_TOPIC, transactional_id)

    def share_coordinator_of(self, key: str) -> Node | None:
        """Return the leader of a share partition's partition of `__share_group_state`, or None."""
        return self.coordinator_for(SHARE_STATE_TOPIC, key)

    def coordinator_for(self, topic_name: str, key: str) -> Node | None:
        """Return the leader of a key's partition of one of `INTERNAL_TOPICS`, or None."""
        topic = self.topics.get(topic_name)
        if topic is None:
            return None
        return self.nodes.get(topic.partitions[partition_for(key, len(topic.partitions))].leader)


def _rules_for(kafka_version: KafkaVersion) -> TopicRules:
    """Return the rules of the Kafka version's controller; the module of the other ones is not imported."""
    if kafka_version.is_kraft:
        from kproto_server.cluster.kraft_rules import KRaftRules

        return KRaftRules()
    from kproto_server.cluster.zookeeper_rules import ZooKeeperRules

    return ZooKeeperRules()
