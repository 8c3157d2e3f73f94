"""Operations of the control API that are no methods of `Broker`: they list what Python has as objects."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Sequence  # read by `get_type_hints`
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypedDict, Unpack

from kproto_server.broker.request_filter import RequestFilter, request_filter  # read by `get_type_hints`
from kproto_server.control.overview import node_list
from kproto_server.control.problem import not_found
from kproto_server.control.results import RequestPage
from kproto_server.control.stream import EventStream
from kproto_server.control.timeline import TimelineEvent, events_of, is_of_group

if TYPE_CHECKING:
    from kproto_server.broker.controls import BrokerControls
    from kproto_server.broker.faults import BrokerFault
    from kproto_server.network.server import Server
    from kproto_server.observation.logged import LoggedRequest
    from kproto_server.report.model import Report

WAIT_MAX_S = 300
"""The longest wait."""
BODIES_MAX_BYTES = 4 << 20
"""Frames of the requests in one response, at least one request."""


def health(broker: BrokerControls) -> dict[str, str]:
    """Return at once, if the broker runs."""
    return broker.run(lambda _: {"status": "ok"})


def info(broker: BrokerControls) -> dict[str, Any]:
    """Return where the broker is, which Kafka version it has, and its nodes."""

    def look(server: Server) -> dict[str, Any]:
        return {
            "kproto_version": importlib.metadata.version("kproto"),
            "kafka_version": server.state.kafka_version.name,
            "now_ms": server.loop.clock.now_ms(),
            "nodes": node_list(server),
            "keeps_requests": server.request_log is not None and server.request_log.is_on,
        }

    return {"bootstrap_servers": broker.bootstrap_servers, **broker.run(look)}


def nodes(broker: BrokerControls) -> list[dict[str, Any]]:
    """Return the nodes, and which of them run."""
    return broker.run(node_list)


def client_variables(broker: BrokerControls) -> dict[str, str]:
    """Return the environment variables that `kproto run` gives to its command beside the addresses."""
    return broker.client_variables


def use_certificate(broker: BrokerControls, *, certificate: str) -> None:
    """Give the connections from now on another certificate: auto (a right one), expired, not-yet-valid, wrong-name,
    unknown-ca, revoked, or weak-key.

    Raises:
        UsageError: there is no TLS, or no such kind.
        OSError: a file cannot be written.
    """
    from kproto_server.broker.security import access_of

    broker.run(lambda server: access_of(server).use_certificate(certificate))


def remove_network(broker: BrokerControls, *, node_id: int | None = None) -> None:
    """Make the network between clients and a node, or all nodes, good again."""
    broker.run(lambda server: server.nodes.set_network(node_id))


def remove_disk(broker: BrokerControls, node_id: int) -> None:
    """Make the disk of a node good.

    Raises:
        UsageError: the node does not exist.
    """
    from kproto_server.network.disks import set_disk

    broker.run(lambda server: set_disk(server, node_id))


def faults(broker: BrokerControls) -> list[BrokerFault]:
    """Return the fault rules with their counts, the oldest first."""
    return list(broker.faults)


def fault(broker: BrokerControls, number: int) -> BrokerFault:
    """Return a fault rule with its counts.

    Raises:
        Problem: there is no such rule, or it has ended.
    """
    found = [one for one in broker.faults if one.number == number]
    if not found:
        raise not_found(f"there is no fault rule {number}")
    return found[0]


def remove_fault(broker: BrokerControls, number: int) -> None:
    """End a fault rule.

    Raises:
        Problem: there is no such rule, or it has ended.
    """
    fault(broker, number).remove()


def wait_fired(broker: BrokerControls, number: int, *, count: int = 1, timeout_s: float = 10.0) -> BrokerFault:
    """Wait until a fault rule has acted on this many requests, and return it.

    Raises:
        Problem: there is no such rule, or it has ended.
        TimeoutError: it has acted on fewer.
    """
    found = fault(broker, number)
    found.wait_fired(count, timeout_s=timeout_s)
    return found


def requests(
    broker: BrokerControls, *, after: int = 0, limit: int = 100, bodies: bool = True, **wanted: Unpack[RequestFilter]
) -> RequestPage:
    """Return the requests that meet the conditions and have a number above ``after``, the oldest ones first.

    ``bodies``: with the decoded request and response.
    """
    found = broker.requests.where(**wanted)
    return _page(found, after, limit, bodies)


def request(broker: BrokerControls, number: int) -> LoggedRequest:
    """Return a request with its response, both decoded.

    Raises:
        Problem: it is not kept, or has not come yet.
    """
    found = broker.requests.numbered(number)
    if found is None:
        raise not_found(f"request {number} is not kept")
    return found


def timeline(broker: BrokerControls, *, after: int = 0, limit: int = 1000) -> list[TimelineEvent]:
    """Return the rebalances and commits in the requests with a number above ``after``, of the newest ``limit`` such
    requests, the oldest ones first."""
    found = [one for one in broker.requests if one.number > after and is_of_group(one.frame)]
    return events_of(found[-limit:])


def events(broker: BrokerControls, *, timeout_s: float = WAIT_MAX_S, **wanted: Unpack[RequestFilter]) -> EventStream:
    """Return the stream of events that the page of the control port shows, of requests those that meet the conditions.

    It is made for that page: names and content of its events may change. The stream ends after ``timeout_s``.
    """
    request_filter(wanted, broker.requests.subjects())
    return EventStream(wanted, timeout_s)


def wait_requests(
    broker: BrokerControls,
    *,
    count: int = 1,
    timeout_s: float = 10.0,
    limit: int = 100,
    bodies: bool = True,
    **wanted: Unpack[RequestFilter],
) -> RequestPage:
    """Wait until ``count`` requests meet the conditions, and return them, the oldest ones first.

    Raises:
        TimeoutError: fewer requests meet them.
    """
    return _page(broker.requests.wait(count=count, timeout_s=timeout_s, **wanted), 0, limit, bodies)


def _page(found: tuple[Any, ...], after: int, limit: int, bodies: bool) -> RequestPage:
    chosen: list[Any] = []
    size_bytes = 0
    rest = [one for one in found if one.number > after]
    for one in rest[:limit]:
        size_bytes += len(one.frame) + len(one.response_frame or b"")
        if chosen and bodies and size_bytes > BODIES_MAX_BYTES:
            break
        chosen.append(one)
    more = len(chosen) < len(rest)
    return RequestPage(len(found), tuple(chosen), chosen[-1].number if more else None, bodies)


class RenderedReport(NamedTuple):
    """A report in one of its formats."""

    content: str
    content_type: str
    headers: tuple[tuple[str, str], ...] = ()


CONTENT_TYPES = {"json": "application/json", "md": "text/markdown; charset=utf-8", "html": "text/html; charset=utf-8"}


def report(
    broker: BrokerControls, *, target: str | None = None, format: Literal["json", "md", "html"] = "json"
) -> RenderedReport:
    """Return what clients have sent, and what would break on a target release, the newest one by default.

    Raises:
        UnknownKafkaVersion: no release has this name.
    """
    return rendered(report_on(broker, target), format)


def rendered(report: Report, format: Literal["json", "md", "html"]) -> RenderedReport:
    """Return a report in one of its formats."""
    from kproto_server.report import files

    return RenderedReport(files.render(report, f"report.{format}"), CONTENT_TYPES[format])


def report_on(broker: BrokerControls, target: str | None) -> Report:
    """Return the report up to now.

    Raises:
        UnknownKafkaVersion: no release has this name.
    """
    from kproto_server.report.model import build
    from kproto_server.report.verdict import target_named

    kafka_version, minutes = broker.run(
        lambda server: (server.state.kafka_version, server.state.settings.current.int("offsets.retention.minutes"))
    )
    return build(
        broker.run(lambda server: server.observations.snapshot()),
        kafka_version=kafka_version,
        target=target_named(target),
        offsets_retention_minutes=minutes,
    )


def metrics(broker: BrokerControls, *, target: str | None = None) -> str:
    """Return metrics in the text format of Prometheus; deprecated requests are those that a target release refuses.

    Raises:
        UnknownKafkaVersion: no release has this name.
    """
    from kproto_server.control.metrics import gauges, render

    return render(broker.run(gauges), report_on(broker, target))


class PartitionOffset(TypedDict):
    """An offset of a partition."""

    topic: str
    partition: int
    offset: int


def _by_partition(partitions: Sequence[PartitionOffset]) -> dict[tuple[str, int], int]:
    return {(one["topic"], one["partition"]): one["offset"] for one in partitions}


def commit(broker: BrokerControls, group_id: str, *, partitions: Sequence[PartitionOffset], metadata: str = "") -> None:
    """Commit offsets as an administrator does; the group is created if it does not exist.

    Raises:
        RequestRefused: the broker refuses one of them.
        UsageError: an offset is no number from 0 on.
    """
    broker.groups.commit(group_id, _by_partition(partitions), metadata=metadata)


def set_start_offsets(broker: BrokerControls, group_id: str, *, partitions: Sequence[PartitionOffset]) -> None:
    """Set start offsets of a share group as an administrator does; the group is created if it does not exist.

    Raises:
        RequestRefused: the broker refuses them.
        UsageError: an offset is no number from 0 on.
    """
    broker.groups.set_start_offsets(group_id, _by_partition(partitions))


def wait_committed(
    broker: BrokerControls, group_id: str, *, partitions: Sequence[PartitionOffset], timeout_s: float = 30.0
) -> dict[tuple[str, int], int]:
    """Wait until a group has committed these offsets, or later ones, and return all that it has committed.

    Raises:
        TimeoutError: it has not.
        UsageError: there are no offsets to wait for, or the group is a share group.
    """
    return broker.groups.wait_committed(group_id, _by_partition(partitions), timeout_s=timeout_s)
