"""Moves of partitions: the requests, and what a broker says and does; recorded with real clusters of three brokers.

    python -m tests.server.handlers.reassignments 2.8.2 3.9.2 4.4.0

Writes ``fixtures/reassignments/RELEASE.json``.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from kproto.messages.k03_metadata import MetadataRequest, MetadataRequestTopic
from kproto.messages.k19_create_topics import CreatableReplicaAssignment, CreatableTopic, CreateTopicsRequest
from kproto.messages.k34_alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)
from kproto.messages.k35_describe_log_dirs import DescribeLogDirsRequest
from kproto.messages.k45_alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from kproto.messages.k46_list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsTopics,
)
from kproto_server.releases.kafka_version import KafkaVersion
from tests.membership.members import Transport
from tests.membership.socket_transport import SocketTransport

RECORDED = Path(__file__).parents[3] / "fixtures" / "reassignments"
ASSIGNMENTS = ((1, 2), (2, 3))
"""The replicas of the partitions of the topic."""
TOPIC = "moved"
Move = tuple[str, int, "tuple[int, ...] | None"]
STEPS: tuple[tuple[Move, ...], ...] = (
    ((TOPIC, 0, None),),
    ((TOPIC, 0, (1, 3)),),
    ((TOPIC, 0, (1, 3)),),
    ((TOPIC, 1, (3, 1)),),
    ((TOPIC, 0, (3, 1)),),
    ((TOPIC, 0, ()),),
    ((TOPIC, 0, (1, 1)),),
    ((TOPIC, 0, (-1,)),),
    ((TOPIC, 0, (1, 9)),),
    ((TOPIC, 5, (1,)), (TOPIC, -1, None), ("nope", 0, (1,)), (TOPIC, 1, (2, 3))),
    ((TOPIC, 0, (1,)), (TOPIC, 0, (2,))),
    ((TOPIC, 0, (2, 1, 3)),),
    ((TOPIC, 0, (2, 3)), (TOPIC, 1, (1,))),
    ((TOPIC, 1, None), ("nope", 1, None)),
    (),
)
"""The moves of each request; null cancels one."""
FIXED_FACTOR = ((TOPIC, 0, (1,)),), ((TOPIC, 0, (3, 2)),)
"""The same, if the replication factor must not change (v1)."""
ATTEMPTS = 100
PAUSE_MS = 200


class Administrator:
    """Moves partitions, and notes what a broker says of it."""

    def __init__(self, transport: Transport, release: str) -> None:
        self._transport = transport
        self._versions = KafkaVersion.named(release).api_versions
        self.steps: list[Any] = []

    def _ask(self, request: Any, version: int) -> Any:
        self._transport.send("admin", request, version)
        for _ in range(ATTEMPTS):
            for _, response in self._transport.responses():
                return response
        raise TimeoutError(str(request))

    def run(self) -> None:
        assigned = tuple(
            CreatableReplicaAssignment(partition_index=index, broker_ids=replicas)
            for index, replicas in enumerate(ASSIGNMENTS)
        )
        topic = CreatableTopic(name=TOPIC, num_partitions=-1, replication_factor=-1, assignments=assigned, configs=())
        self._ask(CreateTopicsRequest(topics=(topic,), timeout_ms=10_000), 4)
        self._described()
        newest = self._versions[45][1]
        for moves in STEPS:
            self._step(list(moves), newest, allows_factor=True)
        for moves in FIXED_FACTOR if newest else ():
            self._step(list(moves), newest, allows_factor=False)
        self.steps.append({"directories": self._moved_to_directories()})

    def _moved_to_directories(self) -> Any:
        """Return the errors of AlterReplicaLogDirs with the directory of the broker, and with one that it has not."""
        own = self._ask(DescribeLogDirsRequest(topics=None), 1).results[0].log_dir
        asked: dict[str, dict[str, tuple[int, ...]]] = {
            own: {TOPIC: (0, 1, 7), "nope": (0,)},
            "/nowhere": {TOPIC: (2,)},
        }
        directories = tuple(
            AlterReplicaLogDir(
                path=path,
                topics=tuple(AlterReplicaLogDirTopic(name=name, partitions=one) for name, one in topics.items()),
            )
            for path, topics in asked.items()
        )
        response = self._ask(AlterReplicaLogDirsRequest(dirs=directories), 1)
        return sorted(
            [topic.topic_name, sorted([one.partition_index, one.error_code] for one in topic.partitions)]
            for topic in response.results
        )

    def _step(self, moves: list[Any], version: int, *, allows_factor: bool) -> None:
        topics: dict[str, list[ReassignablePartition]] = {}
        for name, index, replicas in moves:
            topics.setdefault(name, []).append(ReassignablePartition(partition_index=index, replicas=replicas))
        request = AlterPartitionReassignmentsRequest(
            timeout_ms=10_000,
            allow_replication_factor_change=allows_factor,
            topics=tuple(ReassignableTopic(name=name, partitions=tuple(one)) for name, one in topics.items()),
        )
        response = self._ask(request, version)
        returned = [
            [topic.name, [[one.partition_index, one.error_code, one.error_message] for one in topic.partitions]]
            for topic in response.responses
        ]
        self.steps.append(
            {
                "moves": moves,
                "allows_factor": allows_factor,
                "response": [response.error_code, response.error_message, returned],
                "after": self._described(),
            }
        )

    def _described(self) -> Any:
        """Return leader, leader epoch, replicas and in-sync replicas of each partition when nothing moves any more."""
        before = None
        for _ in range(ATTEMPTS):
            asked = (None, (ListPartitionReassignmentsTopics(name=TOPIC, partition_indexes=(0, 1)),))
            listed = [self._ask(ListPartitionReassignmentsRequest(topics=topics), 0) for topics in asked]
            metadata = self._ask(MetadataRequest(topics=(MetadataRequestTopic(name=TOPIC),)), 7)
            [topic] = metadata.topics
            found = sorted(
                [one.partition_index, one.leader_id, one.leader_epoch, list(one.replica_nodes), sorted(one.isr_nodes)]
                for one in topic.partitions
            )
            is_whole = len(found) == len(ASSIGNMENTS) and all(len(one[3]) == len(one[4]) for one in found)
            if is_whole and not any(one.topics for one in listed) and found == before:
                return found
            before = found
            self._transport.pass_time(PAUSE_MS)
        raise TimeoutError(str(before))


def _controller(address: str) -> str:
    """Return the address of the controller, or of a broker that forwards requests to it."""
    transport = SocketTransport(address)
    transport.send("admin", MetadataRequest(topics=()), 7)
    [(_, metadata)] = transport.responses()
    transport.close()
    return next(f"{one.host}:{one.port}" for one in metadata.brokers if one.node_id == metadata.controller_id)


def main() -> None:
    from tests.oracle.cluster import real_kafka

    RECORDED.mkdir(exist_ok=True)
    for release in sys.argv[1:]:
        with real_kafka(release, brokers=3) as cluster:
            transport = SocketTransport(_controller(cluster.addresses[0]))
            administrator = Administrator(transport, release)
            administrator.run()
            transport.close()
        lines = ",\n".join(json.dumps(step) for step in administrator.steps)
        (RECORDED / f"{release}.json").write_text(f"[\n{lines}\n]\n")


if __name__ == "__main__":
    main()
