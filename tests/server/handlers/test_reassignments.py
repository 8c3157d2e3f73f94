"""AlterPartitionReassignments: responses and placements are those that real brokers gave (fixtures/reassignments)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kproto.codes import ErrorCode
from kproto.messages.k34_alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)
from kproto.messages.k45_alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from kproto.messages.k46_list_partition_reassignments import ListPartitionReassignmentsRequest
from kproto_server.releases.kafka_version import KafkaVersion
from tests.coordinator.broker_state import ask, new_state
from tests.membership.in_memory_transport import InMemoryTransport
from tests.server.handlers.reassignments import RECORDED, Administrator

RELEASES = sorted(path.stem for path in RECORDED.glob("*.json"))


@pytest.mark.parametrize("release", RELEASES)
def test_partitions_move_as_on_a_real_broker(release: str) -> None:
    administrator = Administrator(InMemoryTransport(new_state(release, node_count=3)), release)
    administrator.run()
    theirs = json.loads((RECORDED / f"{release}.json").read_text())
    compared = _step if KafkaVersion.named(release).is_kraft else _step_of_zookeeper
    for ours, recorded in zip(json.loads(json.dumps(administrator.steps)), theirs, strict=True):
        assert compared(ours) == compared(recorded)


def _step(step: Any) -> Any:
    return step


def _step_of_zookeeper(step: Any) -> Any:
    """Leave out the order of the response, leaders and their epochs: the controller elects preferred leaders meanwhile,
    and raises the epoch with each step of a move. The broker that was asked for its directories was another one."""
    if "directories" in step:
        return None
    error, message, topics = step["response"]
    returned = error, message, sorted([name, sorted(partitions)] for name, partitions in topics)
    return step["moves"], returned, [[index, *replicas] for index, _, _, *replicas in step["after"]]


def test_a_replica_of_a_topic_with_a_long_name_cannot_change_its_directory() -> None:
    """The directory of a moving replica adds 42 characters to the name (PlaintextAdminIntegrationTest of Kafka)."""
    topics = (AlterReplicaLogDirTopic(name="x" * 213, partitions=(0, 10)),)
    request = AlterReplicaLogDirsRequest(dirs=(AlterReplicaLogDir(path="/no", topics=topics),))
    (returned,) = ask(new_state(), request, 1).results
    found = [one.error_code for one in returned.partitions]
    assert found == [ErrorCode.LOG_DIR_NOT_FOUND, ErrorCode.INVALID_TOPIC_EXCEPTION]


def move(version: str, replicas: tuple[int, ...], *, node_id: int = 1) -> tuple[int, list[tuple[int, str | None]]]:
    state = new_state(version, node_count=3)
    state.cluster.stop_node(3)
    partition = ReassignablePartition(partition_index=0, replicas=replicas)
    topic = ReassignableTopic(name="t", partitions=(partition,))
    response = ask(state, AlterPartitionReassignmentsRequest(topics=(topic,)), 0, node_id=node_id)
    found = [(one.error_code, one.error_message) for topic in response.responses for one in topic.partitions]
    return response.error_code, found


def test_a_broker_that_is_not_the_controller_refuses() -> None:
    assert move("2.8", (2,), node_id=2)[0] == 41
    assert move("4.4", (2,), node_id=2) == (0, [(0, None)])
    listed = ListPartitionReassignmentsRequest(topics=None, timeout_ms=1000)
    assert [ask(new_state(release, node_count=2), listed, 0, node_id=2).error_code for release in ("2.8", "4.4")] == [
        41,
        0,
    ]


def test_a_move_to_a_stopped_broker_is_refused() -> None:
    for version in ("2.8", "4.4"):
        [(error, message)] = move(version, (2, 3))[1]
        assert error == 39
        assert message is not None
        assert "not alive" in message


@pytest.mark.parametrize(
    ("release", "error"), [("2.8", ErrorCode.INVALID_REPLICA_ASSIGNMENT), ("4.4", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)]
)
def test_a_missing_partition_that_is_to_move_to_a_missing_broker(release: str, error: ErrorCode) -> None:
    """Measured on 2.8.2, 3.9.2 and 4.4.0: ZooKeeper's controller looks at the brokers first."""
    partitions = (ReassignablePartition(partition_index=0, replicas=(7,)),)
    request = AlterPartitionReassignmentsRequest(topics=(ReassignableTopic(name="no", partitions=partitions),))
    response: Any = ask(new_state(release), request, 0)
    assert response.responses[0].partitions[0].error_code == error
