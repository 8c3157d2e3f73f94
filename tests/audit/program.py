"""The program whose requests are compared: three clients, each with a client id of its own.

kafka-python and librdkafka produce, consume and commit. The third client asks for no versions, as old clients did. It
sends ListOffsets and OffsetCommits with a retention of two days in the versions that are the program's arguments
(``KEY:VERSION``). Its messages are written by kproto's codec.
"""

import os
import socket
import struct
import sys

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]
from kafka import KafkaConsumer, KafkaProducer

from kproto.messages.k02_list_offsets import ListOffsetsRequest
from kproto.messages.k08_offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kproto.messages.k10_find_coordinator import FindCoordinatorRequest

SERVERS = os.environ["KAFKA_BOOTSTRAP_SERVERS"]
TOPIC = "orders"
LIST_OFFSETS, OFFSET_COMMIT = 2, 8
RETENTION_MS = 2 * 24 * 60 * 60 * 1000
LIMIT_S = 30


def administrate() -> None:
    admin = AdminClient({"bootstrap.servers": SERVERS, "client.id": "administration"})
    for created in admin.create_topics([NewTopic(TOPIC, 1, 1)]).values():
        try:
            created.result(LIMIT_S)
        except KafkaException as error:  # before 0.10.2; the topic is created by the first Metadata request
            assert error.args[0].code() == KafkaError._UNSUPPORTED_FEATURE  # noqa: PT017


def kafka_python() -> None:
    producer = KafkaProducer(bootstrap_servers=SERVERS, client_id="shop")
    producer.send(TOPIC, b"first").get(LIMIT_S)
    producer.close()
    consumer = KafkaConsumer(
        TOPIC,
        bootstrap_servers=SERVERS,
        client_id="warehouse",
        group_id="warehouse",
        auto_offset_reset="earliest",
        enable_auto_commit=False,
    )
    assert next(consumer).value == b"first"
    consumer.commit()
    consumer.close()


def librdkafka() -> None:
    settings = {"bootstrap.servers": SERVERS, "client.id": "billing"}
    producer = Producer(settings)
    producer.produce(TOPIC, b"second")
    assert producer.flush(LIMIT_S) == 0
    groups = {"group.id": "billing", "auto.offset.reset": "earliest", "enable.auto.commit": False}
    consumer = Consumer({**settings, **groups})
    consumer.subscribe([TOPIC])
    message = consumer.poll(LIMIT_S)
    assert message is not None
    assert message.error() is None
    consumer.commit(message=message, asynchronous=False)
    consumer.close()


def old_client(versions: list[tuple[int, int]]) -> None:
    """Send FindCoordinator v0, then requests of these APIs and versions."""
    host, _, port = SERVERS.rpartition(":")
    partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=1, committed_metadata="")
    commit = OffsetCommitRequest(
        group_id="archive",
        retention_time_ms=RETENTION_MS,
        topics=(OffsetCommitRequestTopic(name=TOPIC, partitions=(partition,)),),
    )
    requests = [(10, 0, FindCoordinatorRequest(key="archive").encode(0))]
    bodies = {LIST_OFFSETS: ListOffsetsRequest(replica_id=-1, topics=()), OFFSET_COMMIT: commit}
    requests += [(api_key, api_version, bodies[api_key].encode(api_version)) for api_key, api_version in versions]
    with socket.create_connection((host, int(port)), LIMIT_S) as connection, connection.makefile("rb") as stream:
        for api_key, api_version, body in requests:
            frame = struct.pack(">hhih", api_key, api_version, 7, 7) + b"archive" + body
            connection.sendall(struct.pack(">i", len(frame)) + frame)
            size = int.from_bytes(stream.read(4), "big")
            assert len(stream.read(size)) == size > 0


administrate()
kafka_python()
librdkafka()
old_client([(int(key), int(version)) for key, version in (word.split(":") for word in sys.argv[1:])])
