"""What a page shows of a broker at once; its size is limited, whatever clients do."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any

from kproto_server.broker.controls import bootstrap_servers
from kproto_server.control.group_queries import group_page

if TYPE_CHECKING:
    from kproto_server.cluster.topics import Topic
    from kproto_server.network.server import Server

TOPICS_MAX = 200
PARTITIONS_MAX = 2000
"""Partitions of all topics together that one look reads."""


def overview(server: Server) -> dict[str, Any]:
    """Return what a page shows; runs in the broker's thread."""
    mode = server.loop.clock.mode
    page = group_page(server)
    cluster, log = server.state.cluster, server.request_log
    return {
        "now_ms": server.loop.clock.now_ms(),
        "clock_rate": mode.rate,
        "clock_is_automatic": mode.auto,
        "kafka_version": server.state.kafka_version.name,
        "bootstrap_servers": bootstrap_servers(cluster.nodes.values()),
        "nodes": [one | _of_node(server, one["node_id"]) for one in node_list(server)],
        "groups": page.groups,
        "has_more_groups": page.has_more,
        "topics": _topics(list(islice(cluster.topics.values(), TOPICS_MAX))),
        "topic_count": len(cluster.topics),
        "faults": [
            {"number": one.number, "text": str(one), "fired": one.fired, "matched": one.matched}
            for one in server.fault_rules
        ],
        "requests": None
        if log is None
        else {"taken": log.taken, "oldest": log.taken - len(log) + 1, "dropped": log.dropped},
    }


def node_list(server: Server) -> list[dict[str, Any]]:
    """Return the nodes, and which of them run; runs in the broker's thread."""
    return [
        {
            "node_id": node.node_id,
            "host": node.host,
            "port": node.port,
            "is_running": node.node_id in server.nodes.listeners,
        }
        for node in server.state.cluster.nodes.values()
    ]


def _of_node(server: Server, node_id: int) -> dict[str, Any]:
    listener, network = server.nodes.listeners.get(node_id), server.nodes.network_of(node_id)
    return {
        "is_alive": server.state.cluster.nodes[node_id].alive,
        "connection_count": 0 if listener is None else len(listener.transports),
        "network": None if network is None else network._asdict(),
    }


def _topics(topics: list[Topic]) -> list[dict[str, Any]]:
    found = []
    left = PARTITIONS_MAX
    for topic in topics:
        left -= len(topic.partitions)
        records = None
        if left >= 0:
            records = sum(one.high_watermark - one.log_start_offset for one in topic.partitions)
        found.append(
            {
                "topic": topic.name,
                "partition_count": len(topic.partitions),
                "is_internal": topic.internal,
                "record_count": records,
            }
        )
    return found
