"""Move leaders and coordinators from one running node to another, have replicas fall behind and catch up, and
truncate logs."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from kproto.codes import ErrorCode
from kproto.errors import UsageError
from kproto.records.partitioning import OFFSETS_TOPIC, TRANSACTION_TOPIC, partition_for
from kproto_server.coordinator.membership.unloading import unload
from kproto_server.observation.conditions import check_number

if TYPE_CHECKING:
    from kproto_server.cluster.topics import Partition
    from kproto_server.state import BrokerState


def move_leader(state: BrokerState, topic: str, index: int, node_id: int | None = None, loading_ms: int = 0) -> int:
    """Make another live replica of a partition its leader; return its node id. None: the next one after the leader.

    If the partition has the groups or the transactional ids of a coordinator, its members get NOT_COORDINATOR from the
    former leader, and COORDINATOR_LOAD_IN_PROGRESS from the new one for ``loading_ms`` of broker time.

    Raises:
        UsageError: the partition does not exist, or the node can't lead it; the text says which ones can.
    """
    found = state.cluster.topic(topic)
    partition = None if found is None else found.partition(index)
    if partition is None:
        raise UsageError(f"there is no partition {index} of topic {topic!r}")
    new = _new_leader(state, topic, partition, node_id)
    if new == partition.leader:
        return new
    if topic == OFFSETS_TOPIC:
        unload(state.coordinator, {index})
    state.cluster.lead(partition, new)
    former = state.cluster.loading.pop((topic, index), None)
    if former is not None and former.action is not None:  # the node that was loading it is no coordinator any more
        former.action()
        former.cancel()
    if loading_ms and topic in (OFFSETS_TOPIC, TRANSACTION_TOPIC):
        unavailable = (state.coordinator if topic == OFFSETS_TOPIC else state.transactions.log).unavailable
        if index not in unavailable:  # otherwise it is being loaded from disk, or can't be served
            unavailable[index] = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
            due_ms = state.clock.now_ms() + loading_ms
            state.cluster.loading[topic, index] = state.clock.call_at(due_ms, partial(_loaded, unavailable, index))
    return new


def truncate(state: BrokerState, topic: str, index: int, end_offset: int) -> None:
    """Truncate a partition's log under a new leader epoch, as an unclean leader election does.

    ``end_offset``: where a batch begins.
    """
    of_topic = state.cluster.topics[topic]
    partition = of_topic.partitions[index]
    partition.leader_epoch += 1
    state.log_manager.data_of(of_topic, partition).truncate(end_offset)
    state.cluster.changed()


def _loaded(unavailable: dict[int, int], index: int) -> None:
    unavailable.pop(index, None)


def move_coordinator(
    state: BrokerState, *, group: str | None, transactional_id: str | None, node_id: int | None, loading_ms: int
) -> int:
    """Make another node the coordinator of a group or of a transactional id; return its node id.

    Raises:
        UsageError: none or both are given, no client has asked for the coordinator yet, ``loading_ms`` is no number
            from 0 on, or as for `move_leader`.
    """
    check_number("loading_ms", loading_ms)
    if (group is None) == (transactional_id is None):
        raise UsageError("a group or a transactional id has a coordinator: give one of them")
    name = OFFSETS_TOPIC if group is not None else TRANSACTION_TOPIC
    key = group if group is not None else transactional_id
    topic = state.cluster.topic(name)
    if topic is None or key is None:
        raise UsageError(f"{key!r} has no coordinator yet: no client has asked for one")
    return move_leader(state, name, partition_for(key, len(topic.partitions)), node_id, loading_ms)


def _new_leader(state: BrokerState, topic: str, partition: Partition, node_id: int | None) -> int:
    able = [replica for replica in partition.replicas if state.cluster.is_alive(replica)]
    if node_id is None:
        position = able.index(partition.leader) if partition.leader in able else -1
        others = [*able[position + 1 :], *able[: max(position, 0)]]
        if not others:
            raise UsageError(
                f"no other running node has a replica of {topic}-{partition.index}: {_replicas(partition)}"
            )
        return others[0]
    if node_id not in able:
        raise UsageError(
            f"node {node_id} has no replica of {topic}-{partition.index}, or is stopped: {_replicas(partition)}"
        )
    return node_id


def set_replication(state: BrokerState, node_id: int, *, runs: bool) -> None:
    """Have a node's replicas follow their leaders again, or no longer: they leave the in-sync replicas then.

    Raises:
        UsageError: the node does not exist.
    """
    cluster = state.cluster
    if node_id not in cluster.nodes:
        raise UsageError(f"node {node_id!r} does not exist: the nodes are {', '.join(map(str, cluster.nodes))}")
    (cluster.start_replication if runs else cluster.stop_replication)(node_id)


def _replicas(partition: Partition) -> str:
    return f"its replicas are on {', '.join(map(str, partition.replicas))}"
