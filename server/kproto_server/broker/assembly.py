"""Assemble a broker from all its parts: clock, cluster, state, observations, persistence, server."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

from kproto_server.clock import Clock, ClockMode
from kproto_server.cluster.cluster import Cluster, Node, TopicDefaults
from kproto_server.configuration.listeners import PLAINTEXT
from kproto_server.coordinator.expiration_task import ExpirationTask
from kproto_server.log_manager.memory_cleaner import MemoryCleaner
from kproto_server.log_manager.retention_task import ProducerExpirationTask, RetentionTask
from kproto_server.network.event_loop import EventLoop, real_ms
from kproto_server.network.server import PeriodicTask, Server
from kproto_server.observation.observe import Observations
from kproto_server.state import BrokerState
from kproto_server.transactions.tasks import transaction_tasks

if TYPE_CHECKING:
    import socket
    from collections.abc import Sequence

    from kproto_server.broker.open_listeners import OpenListener
    from kproto_server.configuration.data_directory import DataDirectory
    from kproto_server.configuration.listeners import Address
    from kproto_server.configuration.settings import Settings
    from kproto_server.releases.kafka_version import KafkaVersion


def assemble(
    sockets: Sequence[socket.socket],
    *,
    advertised: Address,
    main_listener: str = PLAINTEXT,
    others: Sequence[OpenListener] = (),
    kafka_version: KafkaVersion,
    settings: Settings,
    clock_mode: ClockMode,
    started: int | None = None,
    data: DataDirectory | None = None,
    requests_kept: int = 0,
    keeps_from_start: bool = True,
) -> tuple[EventLoop, Server]:
    """Return the event loop and the server for these sockets, each of which belongs to a node: its main listener.

    The first ``started`` nodes are up and their sockets listen; the other nodes have never been up (BA-52). The request
    log keeps the newest ``requests_kept`` requests, once it is on (``keeps_from_start``). The caller runs
    `Server.main` in the event loop and ends it with `Server.stop`.

    Raises:
        LogError: the data directory is in use, damaged, or can't be read.
    """
    clock = Clock(time.time() * 1000.0, real_ms(), clock_mode)
    clock.outlives_defects = True
    rack = settings.str("broker.rack") if settings.is_set("broker.rack") else None
    up = len(sockets) if started is None else started
    nodes = [
        Node(
            settings.first_node_id + index,
            advertised.host,
            _advertised_port(advertised, index, sock),
            rack,
            alive=index < up,
        )
        for index, sock in enumerate(sockets)
    ]
    for listener in others:
        for index, (node, sock) in enumerate(zip(nodes, listener.sockets, strict=True)):
            node.others[listener.name] = (listener.advertised.host, _advertised_port(listener.advertised, index, sock))
    cluster = Cluster(nodes, kafka_version, TopicDefaults.of(settings, len(nodes)), os.urandom)
    cluster.main_listener = main_listener
    state = BrokerState(kafka_version, settings, cluster, clock)
    expiration_task = ExpirationTask(state.coordinator, clock)
    expiration_task.start()
    loop = EventLoop(clock)
    persistence = None
    if data is not None:
        from kproto_server.persistence.persistence import Persistence

        try:
            persistence = Persistence(data, state, loop.post)
        except BaseException:
            loop.close()
            raise
    delete_stored = None if persistence is None else persistence.topic_logs.drop_expired
    retention_task = RetentionTask(state.settings, cluster.topics, clock, delete_stored)
    retention_task.start()
    request_log = None
    if requests_kept:
        from kproto_server.observation.request_log import RequestLog

        request_log = RequestLog(requests_kept, is_on=keeps_from_start)
        cluster.on_topic_deleted = request_log.topic_deleted
    memory_cleaner = MemoryCleaner(state.settings, cluster.topics, clock)
    memory_cleaner.start()
    producer_task = ProducerExpirationTask(state.settings, cluster.topics, clock)
    producer_task.start()
    transaction_aborts, transactional_ids = transaction_tasks(lambda: state.used_transactions, state.settings, clock)
    transaction_aborts.start()
    transactional_ids.start()
    tasks: list[PeriodicTask] = [
        expiration_task, retention_task, memory_cleaner, producer_task, transaction_aborts, transactional_ids
    ]  # fmt: skip
    if cluster.delegation_tokens is not None:
        from kproto_server.cluster.expired_tokens import ExpiredTokens  # few brokers have delegation tokens

        tasks.append(ExpiredTokens(state.settings, cluster, clock))
        tasks[-1].start()
    return loop, Server(loop, state, Observations(), tasks, persistence, request_log)


def _advertised_port(advertised: Address, index: int, sock: socket.socket) -> int:
    """Return the port of a node that clients receive: the bound one, or those from ``advertised`` on."""
    port: int = sock.getsockname()[1]
    return port if advertised.port == 0 else advertised.port + index
