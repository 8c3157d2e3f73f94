"""Metrics in Prometheus' text format: those that Kafka has have the names of its JMX exporter."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from kproto_server.report.model import api_name, error_name
from kproto_server.report.verdict import Verdict

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from kproto_server.network.server import Server
    from kproto_server.report.model import Report

Labels = tuple[tuple[str, str], ...]


class Metric(NamedTuple):
    """One metric with its values."""

    name: str
    kind: str
    text: str
    values: Mapping[Labels, float]
    """By labels."""


def render(gauges: Iterable[Metric], report: Report) -> str:
    """Return gauges, and the counters of a report, which says which requests a target release refuses."""
    return "".join(_lines(metric) for metric in (*gauges, *_counters(report)))


def gauges(server: Server) -> list[Metric]:
    """Return what a broker has at this moment; runs in its thread."""
    cluster, coordinator = server.state.cluster, server.state.coordinator
    group_ids = {group.group_id for group in coordinator.groups} | set(coordinator.offsets.group_ids())
    partitions = [partition for topic in cluster.topics.values() for partition in topic.partitions]
    offline = sum(1 for one in partitions if one.leader not in cluster.nodes)
    found = [
        gauge("kafka_controller_kafkacontroller_activebrokercount", "Nodes that run.", len(cluster.alive_nodes())),
        gauge("kafka_controller_kafkacontroller_globaltopiccount", "Topics.", len(cluster.topics)),
        gauge("kafka_controller_kafkacontroller_globalpartitioncount", "Partitions.", len(partitions)),
        gauge("kafka_controller_kafkacontroller_offlinepartitionscount", "Partitions without a leader.", offline),
        gauge("kafka_coordinator_group_groupmetadatamanager_numgroups", "Groups.", len(group_ids)),
        gauge(
            "kafka_coordinator_group_groupmetadatamanager_numoffsets", "Committed offsets.", len(coordinator.offsets)
        ),
        gauge("kproto_clock_seconds", "The broker's time since the epoch.", server.loop.clock.now_ms() / 1000),
    ]
    connections: dict[Labels, float] = {
        (("broker", str(node_id)),): float(len(listener.transports))
        for node_id, listener in server.nodes.listeners.items()
    }
    name = "kafka_server_socket_server_metrics_connection_count"
    return [*found, Metric(name, "gauge", "Open connections of clients.", connections)]


def gauge(name: str, text: str, value: float) -> Metric:
    """Return a gauge without labels."""
    return Metric(name, "gauge", text, {(): float(value)})


def _counters(report: Report) -> Iterator[Metric]:
    requests: dict[Labels, float] = {}
    errors: dict[Labels, float] = {}
    deprecated: dict[Labels, float] = {}
    for client in report.clients:
        for sent in client.sent:
            labels = (("request", api_name(sent.api_key)), ("version", str(sent.api_version)))
            requests[labels] = requests.get(labels, 0) + sent.count
            if sent.verdict is Verdict.BREAKS:
                who = (
                    ("client", client.client_id),
                    ("software", client.software),
                    ("api", api_name(sent.api_key)),
                    ("version", str(sent.api_version)),
                    ("target", report.target.name),
                )
                deprecated[who] = deprecated.get(who, 0) + sent.count
        for row in client.errors:
            labels = (("request", api_name(row.api_key)), ("error", error_name(row.error_code)))
            errors[labels] = errors.get(labels, 0) + row.count
    yield Metric("kafka_network_requestmetrics_requests_total", "counter", "Requests.", requests)
    yield Metric("kafka_network_requestmetrics_errors_total", "counter", "Error codes in responses.", errors)
    text = "Requests that the target release would refuse."
    yield Metric("deprecated_requests_total", "counter", text, deprecated)
    text = "Connections that the broker has closed because of what a client sent."
    yield Metric("kproto_protocol_errors_total", "counter", text, {(): float(report.protocol_errors)})


def _lines(metric: Metric) -> str:
    lines = [f"# HELP {metric.name} {metric.text}", f"# TYPE {metric.name} {metric.kind}"]
    for labels, value in metric.values.items():
        shown = ",".join(f'{name}="{_escaped(text)}"' for name, text in labels)
        lines.append(f"{metric.name}{{{shown}}} {_number(value)}" if shown else f"{metric.name} {_number(value)}")
    return "\n".join(lines) + "\n"


def _number(value: float) -> str:
    return str(int(value)) if value == int(value) else repr(value)


def _escaped(text: str) -> str:
    clean = text.encode(errors="replace").decode()
    return clean.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
