"""Loads of many clients, or of large topics, whose single requests are all legitimate."""

from __future__ import annotations

import random
import socket
import threading
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial

from kproto.messages.k00_produce import PartitionProduceData, ProduceRequest, TopicProduceData
from kproto.messages.k01_fetch import FetchPartition, FetchRequest, FetchTopic
from kproto.messages.k03_metadata import MetadataRequest
from kproto.messages.k19_create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from kproto.messages.k20_delete_topics import DeleteTopicsRequest
from kproto.records.record import Record
from kproto.records.record_batch import build_record_batch
from tests.network.raw_client import RawClient
from tests.robustness.broker_process import BrokerProcess
from tests.robustness.group_loads import GROUP_LOADS
from tests.robustness.measured_broker import Cost, cost_of

FETCHING_CLIENTS = 60
FETCHED_BATCHES = 100
ASKING_CLIENTS = 60
REQUESTS = 4
BATCHES = 16
CONNECTIONS = 1500
LARGE_TOPICS = 12
PARTITIONS = 10_000


def fetch_by_many(broker: BrokerProcess) -> Cost:
    """60 clients fetch 100 MB each, at the same time."""
    batch = build_record_batch([Record(b"k", bytes(1_000_000))])
    with RawClient(broker.address) as client:
        partitions = (PartitionProduceData(index=0, records=batch),)
        topics = (TopicProduceData(name="fetched", partition_data=partitions),)
        produce = ProduceRequest(acks=1, timeout_ms=1000, topic_data=topics)
        client.ask(CreateTopicsRequest(topics=(_topic("fetched", 1),), timeout_ms=1000), 4)
        for _ in range(FETCHED_BATCHES):
            client.ask(produce, 7)
    size = FETCHED_BATCHES * len(batch)
    fetched = (FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=size),)
    fetch = FetchRequest(
        max_wait_ms=0, min_bytes=0, max_bytes=size, topics=(FetchTopic(topic="fetched", partitions=fetched),)
    )

    def fetch_all() -> int:
        with ExitStack() as stack:
            clients = [stack.enter_context(RawClient(broker.address)) for _ in range(FETCHING_CLIENTS)]
            sizes: list[int] = []
            threads = [threading.Thread(target=lambda c=c: sizes.append(_drain(c))) for c in clients]
            for client in clients:
                client.send((fetch, 4))
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        return sum(sizes)

    cost = cost_of(broker, fetch_all)
    with RawClient(broker.address) as client:
        client.ask(DeleteTopicsRequest(topic_names=("fetched",), timeout_ms=1000), 1)
    return cost


def _drain(client: RawClient) -> int:
    """Take a response without keeping it; return its size, or 0 if the connection ends before."""
    buffer = bytearray(1 << 20)
    size = left = int.from_bytes(client.socket.recv(4, socket.MSG_WAITALL), "big")
    while left > 0:
        received = client.socket.recv_into(buffer, min(left, len(buffer)))
        if not received:
            return 0
        left -= received
    return size


def ask_by_many(broker: BrokerProcess) -> Cost:
    """Hundreds of connections, each of which asks for all topics at the same time."""

    def ask_all() -> int:
        with ExitStack() as stack:
            clients = [stack.enter_context(RawClient(broker.address)) for _ in range(CONNECTIONS)]
            for client in clients:
                client.send((MetadataRequest(topics=()), 1))
            return sum(len(client.read_frame()) for client in clients)

    return cost_of(broker, ask_all)


def costly_by_many(broker: BrokerProcess, *, send_no_more: bool = False) -> Cost:
    """60 clients send requests of a few bytes that take 10 ms each, several at once, and close their side, or not."""
    request = MetadataRequest(topics=None), 1

    def ask_all() -> int:
        with ExitStack() as stack:
            clients = [stack.enter_context(RawClient(broker.address)) for _ in range(ASKING_CLIENTS)]
            sizes: list[int] = []
            threads = [
                threading.Thread(target=lambda c=c: sizes.extend(_drain(c) for _ in range(REQUESTS))) for c in clients
            ]
            for client in clients:
                client.send(*[request] * REQUESTS)
                if send_no_more:
                    client.socket.shutdown(socket.SHUT_WR)
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        return sum(sizes)

    return cost_of(broker, ask_all)


def large_topics(broker: BrokerProcess) -> Cost:
    """Topics of thousands of partitions are created, described and deleted."""
    names = [f"large{index}" for index in range(LARGE_TOPICS)]

    def use() -> int:
        with RawClient(broker.address) as client:
            for name in names:
                client.ask(CreateTopicsRequest(topics=(_topic(name, PARTITIONS),), timeout_ms=1000), 4)
            client.send((MetadataRequest(topics=None), 9))
            size = len(client.read_frame())
            client.ask(DeleteTopicsRequest(topic_names=tuple(names), timeout_ms=1000), 1)
        return size

    return cost_of(broker, use)


def compressed_again(broker: BrokerProcess) -> Cost:
    """Requests of many megabytes whose batches the broker compresses by gzip."""
    topic = _topic("gzip", BATCHES).replace(configs=(CreatableTopicConfig(name="compression.type", value="gzip"),))
    batch = build_record_batch([Record(b"k", random.Random(0).randbytes(900_000))])  # noqa: S311 - not for a key
    partitions = tuple(PartitionProduceData(index=index, records=batch) for index in range(BATCHES))
    topics = (TopicProduceData(name="gzip", partition_data=partitions),)
    with RawClient(broker.address) as client:
        client.ask(CreateTopicsRequest(topics=(topic,), timeout_ms=1000), 4)

        def produce() -> int:
            client.send(*[(ProduceRequest(acks=1, timeout_ms=1000, topic_data=topics), 7)] * REQUESTS)
            return sum(len(client.read_frame()) for _ in range(REQUESTS))

        cost = cost_of(broker, produce)
        client.ask(DeleteTopicsRequest(topic_names=("gzip",), timeout_ms=1000), 1)
    return cost


def _topic(name: str, count: int) -> CreatableTopic:
    return CreatableTopic(name=name, num_partitions=count, replication_factor=1, assignments=(), configs=())


LOADS: dict[str, Callable[[BrokerProcess], Cost]] = {
    "60 clients fetch 100 MB each": fetch_by_many,
    f"{CONNECTIONS} connections at once": ask_by_many,
    f"{ASKING_CLIENTS} clients with {REQUESTS} costly requests": costly_by_many,
    "the same, and they send no more": partial(costly_by_many, send_no_more=True),
    f"{REQUESTS} requests of {BATCHES} MB that are compressed again": compressed_again,
    f"{LARGE_TOPICS} topics of {PARTITIONS} partitions": large_topics,
    **GROUP_LOADS,
}
