"""The control API of a proxy: those operations of a broker's that make sense without the state of a cluster.

Rules, requests and the report are the same; clock, nodes, topics and groups are the cluster's, and not here.
"""

from __future__ import annotations

import importlib.metadata
from typing import TYPE_CHECKING, Any, Literal, Protocol

import trio

from kproto_server.broker.faults import BrokerFaults
from kproto_server.broker.request_filter import Subjects
from kproto_server.broker.requests import BrokerRequests
from kproto_server.control import queries
from kproto_server.control.metrics import gauge, render
from kproto_server.control.openapi import description
from kproto_server.control.operation import Operation
from kproto_server.control.operations import OPERATIONS
from kproto_server.control.queries import RenderedReport, rendered
from kproto_server.control.results import Result
from kproto_server.control.schema import INTEGER, STRING, a_list, an_object
from kproto_server.proxy.upstream import shown_address
from kproto_server.report.verdict import target_named

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from kproto_server.control.controls import Run
    from kproto_server.control.message import HttpRequest
    from kproto_server.observation.request_log import RequestLog
    from kproto_server.proxy.faults import ProxyRules
    from kproto_server.proxy.proxy import Proxy
    from kproto_server.releases.kafka_version import KafkaVersion
    from kproto_server.report.model import Report

RELOAD_S = 5
"""How often a browser loads the page again."""


class MakeReport(Protocol):
    """Makes the report up to now; runs in the proxy's thread as far as it reads what changes."""

    def __call__(self, run: Run, target: KafkaVersion | None) -> Report: ...


class Controlled:
    """What the control port of a proxy controls; only the thread of the proxy reads it."""

    def __init__(
        self,
        proxy: Proxy,
        rules: ProxyRules,
        request_log: RequestLog,
        make_report: MakeReport,
        now_ms: Callable[[], int],
    ) -> None:
        """``make_report``: for a target; None: that of the command line. ``now_ms``: the time since the epoch."""
        self.proxy: Proxy = proxy
        self.faults: ProxyRules = rules
        self.request_log: RequestLog = request_log
        self.make_report: MakeReport = make_report
        self.now_ms: Callable[[], int] = now_ms


class ProxyControls:
    """A running proxy in a test's hand. Each call runs between two steps of its connections."""

    def __init__(self, run: Run) -> None:
        self.run: Run = run
        """Runs an action on what is controlled (`Controlled`), in its thread."""
        self.faults: BrokerFaults = BrokerFaults(run)
        self.requests: BrokerRequests = BrokerRequests(run, lambda: run(_subjects))


def _subjects(controlled: Controlled) -> Subjects:
    return Subjects((), dict(controlled.faults.topic_names))


def health(proxy: ProxyControls) -> dict[str, str]:
    """Return at once, if the proxy runs."""
    return proxy.run(lambda _: {"status": "ok"})


def info(proxy: ProxyControls) -> dict[str, Any]:
    """Return where the proxy is, the cluster behind it, and the ports that stand for its brokers."""

    def look(controlled: Controlled) -> dict[str, Any]:
        addresses = controlled.proxy.addresses
        return {
            "kproto_version": importlib.metadata.version("kproto"),
            "kafka_version": controlled.faults.kafka_version.name,
            "bootstrap_servers": shown_address(next(iter(addresses.values()))),
            "now_ms": controlled.now_ms(),
            "brokers": [
                {"broker": shown_address(broker), "address": shown_address(own)} for broker, own in addresses.items()
            ],
            "connections": controlled.proxy.connection_count,
            "keeps_requests": controlled.request_log.is_on,
        }

    return proxy.run(look)


def report(
    proxy: ProxyControls, *, target: str | None = None, format: Literal["json", "md", "html"] = "json"
) -> RenderedReport:
    """Return what clients have sent, and what would break on a target release, by default that of the command line.

    Raises:
        UnknownKafkaVersion: no release has this name.
    """
    return rendered(_report(proxy, target), format)


def page(proxy: ProxyControls) -> RenderedReport:
    """Return the report up to now as a page, which a browser loads again every few seconds."""
    return rendered(_report(proxy, None), "html")._replace(headers=(("Refresh", str(RELOAD_S)),))


def metrics(proxy: ProxyControls, *, target: str | None = None) -> str:
    """Return metrics in the text format of Prometheus; deprecated requests are those that a target release refuses.

    Raises:
        UnknownKafkaVersion: no release has this name.
    """
    count = proxy.run(lambda controlled: controlled.proxy.connection_count)
    name = "kafka_server_socket_server_metrics_connection_count"
    return render([gauge(name, "Open connections of clients.", count)], _report(proxy, target))


def _report(proxy: ProxyControls, target: str | None) -> Report:
    make = proxy.run(lambda controlled: controlled.make_report)
    found: Report = make(proxy.run, None if target is None else target_named(target))
    return found


def openapi(proxy: ProxyControls) -> dict[str, Any]:
    """Return the description of this API, in OpenAPI 3.1."""
    return description(PROXY_OPERATIONS)


SAME: set[Callable[..., Any]] = {
    BrokerFaults.add,
    BrokerFaults.clear,
    BrokerRequests.clear,
    BrokerRequests.summary,
    queries.fault,
    queries.faults,
    queries.remove_fault,
    queries.request,
    queries.requests,
    queries.timeline,
    queries.wait_fired,
    queries.wait_requests,
}
"""Functions of a broker's operations that do the same here."""
HTML = "text/html; charset=utf-8"
_BROKER = an_object({"broker": STRING, "address": STRING})
_INFO = an_object(
    {
        **dict.fromkeys(("kproto_version", "kafka_version", "bootstrap_servers"), STRING),
        "now_ms": INTEGER,
        "brokers": a_list(_BROKER),
        "connections": INTEGER,
        "keeps_requests": {"type": "boolean"},
    }
)

PROXY_OPERATIONS: tuple[Operation, ...] = (
    Operation("GET", "/", page, Result("the report as a page", content_type=HTML), is_passive=True),
    Operation(
        "GET", "/health", health, Result("the proxy runs", an_object({"status": STRING})), is_passive=True
    ),
    Operation("GET", "/info", info, Result("what the proxy is", _INFO), is_passive=True),
    *(one for one in OPERATIONS if one.function in SAME),
    Operation("GET", "/report", report, Result("the report"), is_passive=True, example={"target": "4.0"}),
    Operation(
        "GET",
        "/metrics",
        metrics,
        Result("metrics", content_type="text/plain; version=0.0.4; charset=utf-8"),
        is_passive=True,
    ),
    Operation("GET", "/openapi.json", openapi, Result("the description", {"type": "object"}), is_passive=True),
)  # fmt: skip


class ProxyService:
    """The control API of one proxy (`kproto_server.control.service.Service`)."""

    operations: Sequence[Operation] = PROXY_OPERATIONS
    has_page: bool = False

    def __init__(self, controlled: Controlled) -> None:
        self._controlled = controlled

    def split(self, request: HttpRequest) -> tuple[int | None, HttpRequest]:
        return None, request

    def access(self, number: int | None) -> Run:
        return lambda action: trio.from_thread.run_sync(action, self._controlled)

    def controls(self, run: Run) -> ProxyControls:
        return ProxyControls(run)
