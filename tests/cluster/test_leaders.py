"""Leader, in-sync replicas and leader epoch when brokers stop and start."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kproto_server.cluster.cluster import Node
from kproto_server.cluster.topics import NO_LEADER, Partition
from tests.cluster.clusters import made, new_cluster, placed


def state_of(partition: Partition) -> tuple[int, list[int], int]:
    return partition.leader, partition.isr, partition.leader_epoch


def test_the_first_replica_leads_a_new_partition_and_all_are_in_sync() -> None:
    partition = placed(new_cluster(), "t", [[2, 3, 1]]).partitions[0]
    assert state_of(partition) == (2, [2, 3, 1], 0)


def test_when_the_leader_stops_the_next_replica_leads_in_a_new_epoch() -> None:
    cluster = new_cluster()
    partition = placed(cluster, "t", [[2, 3, 1]]).partitions[0]
    cluster.stop_node(2)
    assert state_of(partition) == (3, [3, 1], 1)


def test_a_move_that_is_not_saved_is_undone() -> None:
    cluster = new_cluster()
    partition = placed(cluster, "t", [[2, 3]]).partitions[0]
    cluster.unsaved.clear()
    assert cluster.reassign(partition, [1]) is None
    assert state_of(partition) == (1, [1], 1)
    cluster.undo()
    assert (*state_of(partition), partition.replicas) == (2, [2, 3], 0, [2, 3])


def test_a_follower_that_stops_only_leaves_the_isr() -> None:
    cluster = new_cluster()
    partition = placed(cluster, "t", [[2, 3, 1]]).partitions[0]
    cluster.stop_node(1)
    assert state_of(partition) == (2, [2, 3], 0)


def test_without_a_live_replica_the_isr_keeps_its_last_member() -> None:
    cluster = new_cluster()
    partition = placed(cluster, "t", [[2, 3]]).partitions[0]
    cluster.stop_node(2)
    cluster.stop_node(3)
    assert state_of(partition) == (NO_LEADER, [3], 2)


def test_only_the_last_in_sync_replica_can_lead_again() -> None:
    """The other replica may miss records that were committed while it was down."""
    cluster = new_cluster()
    partition = placed(cluster, "t", [[2, 3]]).partitions[0]
    cluster.stop_node(2)
    cluster.stop_node(3)
    cluster.start_node(2)
    assert state_of(partition) == (NO_LEADER, [3], 2)
    cluster.start_node(3)
    assert state_of(partition) == (3, [2, 3], 3)


def test_a_replica_out_of_sync_leads_by_election_alone() -> None:
    """A real broker has it lead if `unclean.leader.election.enable` is true."""
    cluster = new_cluster()
    topic = placed(cluster, "t", [[1, 2]])
    topic.configs["unclean.leader.election.enable"] = "true"
    (partition,) = topic.partitions
    cluster.stop_replication(2)
    cluster.stop_node(1)
    assert state_of(partition) == (NO_LEADER, [1], 1)
    cluster.lead(partition, 2)
    assert state_of(partition) == (2, [2], 2)


def test_a_started_broker_is_in_sync_and_leads_only_partitions_without_a_leader() -> None:
    cluster = new_cluster()
    partition = placed(cluster, "t", [[2, 3, 1]]).partitions[0]
    cluster.stop_node(2)
    cluster.start_node(2)
    assert state_of(partition) == (3, [2, 3, 1], 1)


def test_the_controller_moves_when_its_broker_stops_and_does_not_move_back() -> None:
    cluster = new_cluster()
    assert cluster.controller_id == 1
    cluster.stop_node(1)
    assert cluster.controller_id == 2
    cluster.start_node(1)
    assert cluster.controller_id == 2
    for node_id in (1, 2, 3):
        cluster.stop_node(node_id)
    assert cluster.controller_id == -1


def test_an_added_broker_gets_partitions_of_later_topics() -> None:
    cluster = new_cluster(1)
    before = made(cluster, "before", 3)
    cluster.add_node(Node(2, "127.0.0.1", 9999))
    after = made(cluster, "after", 2, 2)
    assert {replica for partition in before.partitions for replica in partition.replicas} == {1}
    assert {partition.leader for partition in after.partitions} == {1, 2}


def test_every_change_is_a_new_version() -> None:
    """The commit cache drops entries of an earlier version of the cluster."""
    cluster = new_cluster(2)
    topic = made(cluster, "t")
    seen = [cluster.version]
    for change in (
        lambda: cluster.stop_node(1),
        lambda: cluster.start_node(1),
        lambda: cluster.add_node(Node(3, "127.0.0.1", 9999)),
        lambda: cluster.create_topic("u"),
        lambda: cluster.add_partitions(topic, 2),
        lambda: cluster.delete_topic("u"),
        lambda: cluster.ensure_offsets_topic(0),
        lambda: cluster.reset(),
    ):
        change()
        seen.append(cluster.version)
    assert sorted(set(seen)) == seen
    cluster.create_topic("u", validate_only=True)
    cluster.delete_topic("nope")
    assert cluster.version == seen[-1]


@given(
    replicas=st.lists(st.permutations([1, 2, 3, 4]).map(lambda order: order[:3]), min_size=1, max_size=4),
    steps=st.lists(st.tuples(st.booleans(), st.integers(1, 4)), max_size=30),
)
def test_any_order_of_stops_and_starts_keeps_the_invariants(
    replicas: list[list[int]], steps: list[tuple[bool, int]]
) -> None:
    """A leader is alive and in sync; without a leader no in-sync replica is alive; epochs only grow."""
    cluster = new_cluster(4)
    topic = placed(cluster, "t", replicas)
    epochs = [0] * len(replicas)
    for stops, node_id in steps:
        (cluster.stop_node if stops else cluster.start_node)(node_id)
        for partition in topic.partitions:
            assert partition.isr
            assert set(partition.isr) <= set(partition.replicas)
            alive = [replica for replica in partition.isr if cluster.is_alive(replica)]
            if partition.leader == NO_LEADER:
                assert not alive
            else:
                assert partition.leader in alive == partition.isr
            assert partition.leader_epoch >= epochs[partition.index]
            epochs[partition.index] = partition.leader_epoch
