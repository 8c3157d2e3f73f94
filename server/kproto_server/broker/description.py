"""What a running broker holds, in a few words: for the representation of `Broker`."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kproto_server.network.server import Server


def description(server: Server) -> str:
    """Return the nodes of a broker, and how many topics, records, groups and requests it has."""
    cluster = server.state.cluster
    topics = [topic for topic in cluster.topics.values() if not topic.internal]
    partitions = [partition for topic in topics for partition in topic.partitions]
    records = sum(one.high_watermark - one.log_start_offset for one in partitions)
    stopped = [str(node_id) for node_id in cluster.nodes if node_id not in server.nodes.listeners]
    parts = [
        _counted(len(cluster.nodes), "node") + (f" ({', '.join(stopped)} stopped)" if stopped else ""),
        f"{_counted(len(topics), 'topic')} with {_counted(records, 'record')}",
        _counted(len(server.state.coordinator.group_list()), "group"),
    ]
    if server.request_log is not None:
        parts.append(_counted(len(server.request_log.entries()), "request"))
    return ", ".join(parts)


def _counted(count: int, name: str) -> str:
    return f"{count} {name}{'' if count == 1 else 's'}"
