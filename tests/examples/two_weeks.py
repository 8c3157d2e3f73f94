"""Two weeks of a shop's consumers in some seconds; the result is the data directory of the broker.

    python tests/examples/two_weeks.py data
    python -m kproto.spark report data -o report.html

Most clients use kafka-python. Two clients are from 2018: one joins a group every night and leaves it; the other
requests its own retention (KIP-211).
"""

import math
import random
import socket
import sys
from contextlib import closing
from typing import Any

from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import NewTopic
from kafka.structs import OffsetAndMetadata

from kproto import registry
from kproto.headers import request_frame
from kproto.message import Request
from kproto.messages.k08_offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kproto.messages.k11_join_group import JoinGroupRequest, JoinGroupRequestProtocol
from kproto.messages.k13_leave_group import LeaveGroupRequest
from kproto.messages.k14_sync_group import SyncGroupRequest
from kproto.records.consumer_protocol import ConsumerProtocolSubscription, encode_member_data
from kproto_server import Broker

DAYS, STEP_HOURS = 14, 2
PARTITIONS = {"orders": 4, "payments": 2}
GROUPS = {"projector": "orders", "search": "orders", "mail": "orders", "billing": "payments", "fraud": "payments"}
SETTINGS = {"offsets.retention.override": "honour", "group.initial.rebalance.delay.ms": 0}
STAMPED = {"message.timestamp.type": "LogAppendTime"}  # by the broker's clock, which is two weeks ahead at the end
DAY_MS = 86_400_000

rng = random.Random(211)  # noqa: S311
ends = {TopicPartition(topic, index): 0 for topic, count in PARTITIONS.items() for index in range(count)}
committed: dict[tuple[str, TopicPartition], int] = {}


def produce_two_hours(producer: KafkaProducer, hour: int) -> None:
    """Produce the records of two hours: more by day than by night."""
    for partition in ends:
        count = int((1 + 0.8 * math.sin((hour - 8) / 12 * math.pi)) * rng.randrange(10, 20))
        for _ in range(count):
            producer.send(partition.topic, b"order", partition=partition.partition)
        ends[partition] += count
    producer.flush()


def lag(group: str, day: float) -> int | None:
    """Return the lag of a group, or None if its consumers are stopped."""
    if group == "search" and day > 9:
        return int((day - 9) * 150)  # too slow since the ninth day
    if group == "mail" and day > 12:
        return None  # stopped
    return rng.randrange(5)


def commit(group: str, consumer: KafkaConsumer, records_behind: int, *, is_reset: bool = False) -> None:
    """Commit offsets before the end; a smaller offset than before only for a manual reset."""
    for partition, end in ends.items():
        if partition.topic == GROUPS[group]:
            committed[group, partition] = max(
                0 if is_reset else committed.get((group, partition), 0), end - records_behind
            )
            consumer.commit({partition: OffsetAndMetadata(committed[group, partition], "", -1)})


class OldClient:
    """The requests of a client from 2018."""

    def __init__(self, bootstrap_servers: str, group: str) -> None:
        host, _, port = bootstrap_servers.rpartition(":")
        self.group = group
        self._connection = socket.create_connection((host, int(port)))
        self._responses = self._connection.makefile("rb")

    def __enter__(self) -> "OldClient":
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._responses.close()
        self._connection.close()

    def ask(self, request: Request, version: int) -> Any:
        self._connection.sendall(request_frame(request, version, correlation_id=1, client_id=self.group))
        response = self._responses.read(int.from_bytes(self._responses.read(4), "big"))
        return registry.codec(type(request)._api_key, version).decode_response(response, 4)[0]

    def commit(self, retention_ms: int = -1, **member: Any) -> None:
        """Commit the end of each partition of orders."""
        orders = [
            OffsetCommitRequestPartition(
                partition_index=partition.partition, committed_offset=end, committed_metadata=""
            )
            for partition, end in ends.items()
            if partition.topic == "orders"
        ]
        topics = (OffsetCommitRequestTopic(name="orders", partitions=tuple(orders)),)
        self.ask(OffsetCommitRequest(group_id=self.group, retention_time_ms=retention_ms, topics=topics, **member), 2)


def nightly_report(bootstrap_servers: str) -> None:
    """Join, commit and leave: the group is Empty until the next night."""
    with OldClient(bootstrap_servers, "nightly-report") as client:
        metadata = encode_member_data(ConsumerProtocolSubscription(topics=("orders",)), 0)
        joined = client.ask(
            JoinGroupRequest(
                group_id=client.group,
                session_timeout_ms=10_000,
                rebalance_timeout_ms=10_000,
                member_id="",
                protocol_type="consumer",
                protocols=(JoinGroupRequestProtocol(name="range", metadata=metadata),),
            ),
            2,
        )
        member = {"member_id": joined.member_id, "group_id": client.group}
        sync = SyncGroupRequest(generation_id=joined.generation_id, assignments=(), **member)
        client.ask(sync, 1)
        client.commit(member_id=joined.member_id, generation_id_or_member_epoch=joined.generation_id)
        client.ask(LeaveGroupRequest(**member), 1)


def main(directory: str) -> None:
    with Broker.running(data=directory, clock="manual", settings=SETTINGS) as broker:
        servers = broker.bootstrap_servers
        with closing(KafkaAdminClient(bootstrap_servers=servers)) as admin:
            for topic, count in PARTITIONS.items():
                admin.create_topics([NewTopic(topic, count, replication_factor=1, topic_configs=STAMPED)])
        producer = KafkaProducer(bootstrap_servers=servers)
        consumers = {}
        for group, topic in GROUPS.items():
            consumers[group] = KafkaConsumer(bootstrap_servers=servers, group_id=group, enable_auto_commit=False)
            consumers[group].assign([partition for partition in ends if partition.topic == topic])
        for hour in range(0, DAYS * 24, STEP_HOURS):
            if hour % 24 == 0:
                print(f"{directory}: day {hour // 24 + 1} of {DAYS}", flush=True)
            produce_two_hours(producer, hour % 24)
            for group in GROUPS:
                records_behind = lag(group, hour / 24)
                if records_behind is not None:
                    commit(group, consumers[group], records_behind)
            if hour % 24 == 4:
                nightly_report(servers)
            if hour == 5 * 24:
                with OldClient(servers, "archive") as archive:
                    archive.commit(retention_ms=28 * DAY_MS)
            if hour == 10 * 24 + 8:
                commit("billing", consumers["billing"], 400, is_reset=True)
            broker.clock.advance(hours=STEP_HOURS)
        for client in (producer, *consumers.values()):
            client.close()


if __name__ == "__main__":
    main(sys.argv[1])
