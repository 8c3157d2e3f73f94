"""The table of operations: each row is a route of the control API and the function behind it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kproto_server.broker.acls import BrokerAcls
from kproto_server.broker.client_metrics import BrokerClientMetrics
from kproto_server.broker.clock import BrokerClock
from kproto_server.broker.cluster import BrokerCluster
from kproto_server.broker.controls import BrokerControls
from kproto_server.broker.faults import BrokerFaults
from kproto_server.broker.groups import BrokerGroups
from kproto_server.broker.quotas import BrokerQuotas
from kproto_server.broker.requests import BrokerRequests
from kproto_server.broker.topics import BrokerTopics
from kproto_server.control import brokers, group_queries, queries, records, results, snapshots, timeline
from kproto_server.control.openapi import description
from kproto_server.control.operation import Operation
from kproto_server.control.results import Result
from kproto_server.control.schema import INTEGER, STRING, a_list, an_object

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_HEALTH = Result("the broker runs", an_object({"status": STRING}))
_NODE = an_object({"node_id": INTEGER, "host": STRING, "port": INTEGER, "is_running": {"type": "boolean"}})
_INFO = an_object(
    {
        "kproto_version": STRING,
        "kafka_version": STRING,
        "bootstrap_servers": STRING,
        "now_ms": INTEGER,
        "nodes": a_list(_NODE),
        "keeps_requests": {"type": "boolean"},
    }
)
Example = dict[str, Any]

NODE_1: Example = {"node_id": 1}
NODE_2: Example = {"node_id": 2}
FIRST: Example = {"number": 1}
BILLING: Example = {"group_id": "billing"}
ORDERS: Example = {"topic": "orders"}
ORDERS_0: Example = {"topic": "orders", "partition": 0}
ACL: Example = {"principal": "User:bob", "operation": "READ", "resource_type": "TOPIC", "name": "orders"}
RULE: Example = {"api": "OffsetCommit", "group": "billing", "error": "NOT_COORDINATOR", "times": 2}


def openapi(broker: BrokerControls) -> dict[str, Any]:
    """Return the description of this API, in OpenAPI 3.1."""
    return description(OPERATIONS)


OPERATIONS: tuple[Operation, ...] = (
    Operation(
        "GET", "/health", queries.health, Result("the broker runs", an_object({"status": STRING})), is_passive=True
    ),
    Operation("GET", "/info", queries.info, Result("what the broker is", _INFO), is_passive=True),
    Operation("GET", "/client-variables", queries.client_variables, results.CLIENT_VARIABLES),
    Operation(
        "GET",
        "/client-settings",
        BrokerControls.client_settings,
        Result("the settings, ready to paste", content_type="text/plain; charset=utf-8"),
        example={"client": "java"},
    ),
    Operation("POST", "/tls/certificate", queries.use_certificate, results.NOTHING, example={"certificate": "expired"}),
    Operation("POST", "/reset", BrokerControls.reset, results.NOTHING, example={"new_ports": False}),
    Operation("GET", "/brokers", brokers.running_brokers, brokers.BROKERS),
    Operation(
        "POST",
        "/brokers",
        brokers.start_broker,
        brokers.NEW_BROKER,
        example={"kafka_version": "2.0", "settings": {"num.partitions": 4}, "clock": "manual"},
    ),
    Operation("GET", "/brokers/{number}", brokers.running_broker, brokers.BROKER, example={"number": 1}),
    Operation("DELETE", "/brokers/{number}", brokers.stop_broker, results.NOTHING, example={"number": 1}),
    Operation("GET", "/snapshots", snapshots.snapshots, snapshots.SNAPSHOTS),
    Operation("POST", "/snapshots", snapshots.take_snapshot, snapshots.NEW_SNAPSHOT),
    Operation("DELETE", "/snapshots/{number}", snapshots.remove_snapshot, results.NOTHING, example=FIRST),
    Operation("POST", "/snapshots/{number}/restore", snapshots.restore_snapshot, results.NOTHING, example=FIRST),
    Operation("GET", "/acls", BrokerAcls.describe, results.ACLS, of="acls"),
    Operation("POST", "/acls", BrokerAcls.add, results.NOTHING, of="acls", example=ACL),
    Operation("DELETE", "/acls", BrokerAcls.remove, results.REMOVED_ACLS, of="acls", example={"principal": "User:bob"}),
    Operation("GET", "/quotas", BrokerQuotas.describe, results.QUOTAS, of="quotas"),
    Operation(
        "POST",
        "/quotas",
        BrokerQuotas.set,
        results.NOTHING,
        of="quotas",
        example={"client_id": "billing", "producer_byte_rate": 1024},
    ),
    Operation(
        "DELETE", "/quotas", BrokerQuotas.remove, results.REMOVED_QUOTAS, of="quotas", example={"client_id": "billing"}
    ),
    Operation("GET", "/client-metrics", BrokerClientMetrics.subscriptions, results.CLIENT_METRICS, of="client_metrics"),
    Operation(
        "POST",
        "/client-metrics",
        BrokerClientMetrics.subscribe,
        results.NOTHING,
        of="client_metrics",
        example={"name": "all", "metrics": ["*"], "interval_ms": 1000, "match": ["client_id=billing"]},
    ),
    Operation(
        "DELETE",
        "/client-metrics/{name}",
        BrokerClientMetrics.unsubscribe,
        results.NOTHING,
        of="client_metrics",
        example={"name": "all"},
    ),
    Operation(
        "GET",
        "/client-metrics-pushes",
        BrokerClientMetrics.pushes,
        results.CLIENT_METRICS_PUSHES,
        of="client_metrics",
        example={"client_id": "billing"},
    ),
    Operation("GET", "/clock", BrokerClock.now_ms, results.TIME, of="clock"),
    Operation("POST", "/clock/advance", BrokerClock.advance, results.NOTHING, of="clock", example={"seconds": 30}),
    Operation(
        "GET",
        "/nodes",
        queries.nodes,
        Result("the nodes", an_object({"nodes": a_list(_NODE)}), lambda found: {"nodes": found}),
    ),
    Operation("POST", "/nodes/{node_id}/stop", BrokerControls.stop_node, results.NOTHING, example=NODE_2),
    Operation("POST", "/nodes/{node_id}/start", BrokerControls.start_node, results.NOTHING, example=NODE_2),
    Operation("POST", "/nodes/{node_id}/crash", BrokerCluster.crash, results.NOTHING, of="cluster", example=NODE_2),
    Operation(
        "POST", "/nodes/{node_id}/disconnect", BrokerCluster.disconnect, results.NOTHING, of="cluster", example=NODE_1
    ),
    Operation(
        "POST",
        "/nodes/{node_id}/stop-replication",
        BrokerCluster.stop_replication,
        results.NOTHING,
        of="cluster",
        example=NODE_2,
    ),
    Operation(
        "POST",
        "/nodes/{node_id}/start-replication",
        BrokerCluster.start_replication,
        results.NOTHING,
        of="cluster",
        example=NODE_2,
    ),
    Operation(
        "GET",
        "/topics/{topic}/partitions/{partition}/leader",
        BrokerCluster.leader,
        results.NODE_ID,
        of="cluster",
        example=ORDERS_0,
    ),
    Operation(
        "POST",
        "/topics/{topic}/partitions/{partition}/leader",
        BrokerCluster.move_leader,
        results.NODE_ID,
        of="cluster",
        example=ORDERS_0,
    ),
    Operation(
        "GET", "/coordinator", BrokerCluster.coordinator, results.NODE_ID, of="cluster", example={"group": "billing"}
    ),
    Operation(
        "POST",
        "/coordinator",
        BrokerCluster.move_coordinator,
        results.NODE_ID,
        of="cluster",
        example={"group": "billing", "loading_ms": 200},
    ),
    Operation(
        "POST", "/network", BrokerCluster.network, results.NOTHING, of="cluster", example=NODE_1 | {"latency_ms": 5}
    ),
    Operation("DELETE", "/network", queries.remove_network, results.NOTHING, example=NODE_1),
    Operation(
        "POST",
        "/nodes/{node_id}/disk",
        BrokerCluster.disk,
        results.NOTHING,
        of="cluster",
        example=NODE_1 | {"full": True},
    ),
    Operation("DELETE", "/nodes/{node_id}/disk", queries.remove_disk, results.NOTHING, example=NODE_1),
    Operation("GET", "/faults", queries.faults, results.FAULTS),
    Operation("POST", "/faults", BrokerFaults.add, results.NEW_FAULT, of="faults", example=RULE),
    Operation("DELETE", "/faults", BrokerFaults.clear, results.NOTHING, of="faults"),
    Operation("GET", "/faults/{number}", queries.fault, results.FAULT, example=FIRST),
    Operation("DELETE", "/faults/{number}", queries.remove_fault, results.NOTHING, example=FIRST),
    Operation(
        "POST",
        "/faults/{number}/wait-fired",
        queries.wait_fired,
        results.FAULT,
        example=FIRST | {"count": 1, "timeout_s": 5},
    ),
    Operation("GET", "/groups/{group_id}", group_queries.group, group_queries.GROUP, example=BILLING),
    Operation("GET", "/topics", BrokerTopics.list, results.TOPICS, of="topics", example={"internal": False}),
    Operation("GET", "/topics/{topic}", BrokerTopics.describe, results.TOPIC, of="topics", example=ORDERS),
    Operation(
        "POST",
        "/topics/{topic}",
        BrokerTopics.create,
        results.NEW_TOPIC,
        of="topics",
        example={"topic": "invoices", "partitions": 4, "configs": {"retention.ms": 60000}},
    ),
    Operation("DELETE", "/topics/{topic}", BrokerTopics.delete, results.NOTHING, of="topics", example=ORDERS),
    Operation(
        "POST",
        "/topics/{topic}/records",
        records.produce,
        records.PRODUCED,
        example=ORDERS | {"records": [{"key": "1041", "value": "paid", "headers": [{"name": "to", "value": "alice"}]}]},
    ),
    Operation(
        "GET",
        "/topics/{topic}/records",
        records.records,
        records.RECORDS,
        example=ORDERS | {"limit": 5, "newest": True},
    ),
    Operation(
        "POST",
        "/topics/{topic}/wait-records",
        records.wait_records,
        records.RECORDS,
        example=ORDERS | {"count": 1, "timeout_s": 5},
    ),
    Operation(
        "POST",
        "/topics/{topic}/delete-records",
        BrokerTopics.delete_records,
        results.START_OFFSETS,
        of="topics",
        example=ORDERS_0 | {"before_offset": 0},
    ),
    Operation(
        "POST", "/topics/{topic}/expire", BrokerTopics.expire, results.START_OFFSETS, of="topics", example=ORDERS
    ),
    Operation("GET", "/groups", BrokerGroups.list, results.GROUPS, of="groups"),
    Operation("DELETE", "/groups/{group_id}", BrokerGroups.delete, results.NOTHING, of="groups", example=BILLING),
    Operation("GET", "/groups/{group_id}/state", BrokerGroups.state, results.STATE, of="groups", example=BILLING),
    Operation("GET", "/groups/{group_id}/members", BrokerGroups.members, results.MEMBERS, of="groups", example=BILLING),
    Operation(
        "GET", "/groups/{group_id}/offsets", BrokerGroups.committed, results.OFFSETS, of="groups", example=BILLING
    ),
    Operation(
        "POST",
        "/groups/{group_id}/offsets",
        queries.commit,
        results.NOTHING,
        example=BILLING | {"partitions": [ORDERS_0 | {"offset": 42}]},
    ),
    Operation(
        "POST",
        "/groups/{group_id}/start-offsets",
        queries.set_start_offsets,
        results.NOTHING,
        example={"group_id": "workers", "partitions": [ORDERS_0 | {"offset": 0}]},
    ),
    Operation(
        "GET",
        "/groups/{group_id}/start-offsets",
        BrokerGroups.start_offsets,
        results.OFFSETS,
        of="groups",
        example=BILLING,
    ),
    Operation("GET", "/groups/{group_id}/lag", BrokerGroups.lag, results.LAGS, of="groups", example=BILLING),
    Operation(
        "POST",
        "/groups/{group_id}/wait-stable",
        BrokerGroups.wait_stable,
        results.NOTHING,
        of="groups",
        example=BILLING | {"members": 1, "timeout_s": 5},
    ),
    Operation(
        "POST",
        "/groups/{group_id}/wait-committed",
        queries.wait_committed,
        results.OFFSETS,
        example=BILLING | {"partitions": [ORDERS_0 | {"offset": 42}], "timeout_s": 5},
    ),
    Operation(
        "POST",
        "/groups/{group_id}/wait-lag",
        BrokerGroups.wait_lag,
        results.LAGS,
        of="groups",
        example=BILLING | {"lag": 0, "timeout_s": 5},
    ),
    Operation(
        "POST",
        "/groups/{group_id}/wait-empty",
        BrokerGroups.wait_empty,
        results.NOTHING,
        of="groups",
        example=BILLING | {"timeout_s": 5},
    ),
    Operation(
        "POST",
        "/groups/{group_id}/wait-state",
        BrokerGroups.wait_state,
        results.NOTHING,
        of="groups",
        example=BILLING | {"state": "Empty", "timeout_s": 5},
    ),
    Operation(
        "POST",
        "/groups/{group_id}/hold-rebalance",
        BrokerGroups.hold_rebalance,
        results.NOTHING,
        of="groups",
        example=BILLING | {"at": "join"},
    ),
    Operation(
        "POST",
        "/groups/{group_id}/wait-held",
        BrokerGroups.wait_held,
        results.NOTHING,
        of="groups",
        example=BILLING | {"members": 1, "timeout_s": 5},
    ),
    Operation(
        "POST",
        "/groups/{group_id}/release-rebalance",
        BrokerGroups.release_rebalance,
        results.NOTHING,
        of="groups",
        example=BILLING,
    ),
    Operation(
        "POST",
        "/groups/{group_id}/force-rebalance",
        BrokerGroups.force_rebalance,
        results.NOTHING,
        of="groups",
        example=BILLING,
    ),
    Operation(
        "POST",
        "/groups/{group_id}/expire-member",
        BrokerGroups.expire_member,
        results.MEMBER_ID,
        of="groups",
        example=BILLING | {"client_id": "one"},
    ),
    Operation(
        "POST",
        "/groups/{group_id}/freeze-heartbeats",
        BrokerGroups.freeze_heartbeats,
        results.NEW_FAULT,
        of="groups",
        example=BILLING | {"client_id": "one"},
    ),
    Operation(
        "GET",
        "/requests",
        queries.requests,
        results.REQUESTS,
        example={"api": "OffsetCommit", "group": "billing", "limit": 10},
    ),
    Operation(
        "POST",
        "/requests/wait",
        queries.wait_requests,
        results.REQUESTS,
        example={"api": "OffsetCommit", "count": 1, "timeout_s": 5},
    ),
    Operation("GET", "/requests/{number}", queries.request, results.REQUEST, example={"number": 1}),
    Operation("GET", "/timeline", queries.timeline, timeline.TIMELINE, example={"limit": 100}),
    Operation(
        "GET",
        "/events",
        queries.events,
        Result("server-sent events", content_type="text/event-stream"),
        example={"timeout_s": 0},
    ),
    Operation(
        "GET",
        "/requests/summary",
        BrokerRequests.summary,
        Result("the newest requests, those with errors first", content_type="text/plain; charset=utf-8"),
        of="requests",
    ),
    Operation("DELETE", "/requests", BrokerRequests.clear, results.NOTHING, of="requests"),
    Operation("GET", "/report", queries.report, Result("the report"), is_passive=True, example={"target": "4.0"}),
    Operation(
        "GET",
        "/metrics",
        queries.metrics,
        Result("metrics", content_type="text/plain; version=0.0.4; charset=utf-8"),
        is_passive=True,
    ),
    Operation("GET", "/openapi.json", openapi, Result("the description", {"type": "object"}), is_passive=True),
)


def at(operations: Iterable[Operation], path: Iterable[str]) -> Mapping[str, tuple[Operation, dict[str, str]]]:
    """Return the operations of a path, by method, with the arguments that are in the path."""
    segments = tuple(path)
    found = ((one, one.path_arguments(segments)) for one in operations)
    return {one.method: (one, arguments) for one, arguments in found if arguments is not None}
