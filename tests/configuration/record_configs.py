"""Record the documentation of configs from real brokers.

    python -m tests.configuration.record_documentation

Runs a broker of each release since 2.6, and writes ``server/kproto_server/configuration/documentation.json``: the texts
of the configs that kproto describes.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from kproto.messages.k19_create_topics import CreatableTopic, CreateTopicsRequest
from kproto.messages.k32_describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from kproto_server.configuration import documentation
from kproto_server.configuration.listeners import ADVERTISED
from kproto_server.configuration.settings import SETTINGS
from tests.membership.socket_transport import RESPONSE_LIMIT_S, SocketTransport
from tests.oracle.cluster import real_kafka

PATH = Path(documentation.__file__).with_name(documentation.FILE)
RELEASES = {
    "2.6": "2.6.3",
    "2.7": "2.7.2",
    "2.8": "2.8.2",
    "3.0": "3.0.2",
    "3.1": "3.1.2",
    "3.2": "3.2.3",
    "3.3": "3.3.2",
    "3.4": "3.4.1",
    "3.5": "3.5.2",
    "3.6": "3.6.2",
    "3.7": "3.7.2",
    "3.8": "3.8.1",
    "3.9": "3.9.2",
    "4.0.0": "4.0.0",
    "4.0": "4.0.2",
    "4.1": "4.1.2",
    "4.2": "4.2.2",
    "4.3": "4.3.1",
    "4.4": "4.4.0",
}
"""Release line -> the release that was recorded."""

RESOURCES = {"topic": (2, "t"), "broker": (4, "1"), "client_metrics": (16, "m"), "group": (32, "g")}
SOURCE = "The documentation of configs in Apache Kafka (Apache License 2.0), as running brokers return it"

Texts = dict[str, dict[str, str]]
"""Kind of resource -> config -> text."""


def recorded(address: str) -> Texts:
    """Return the documentation that a broker returns, of the configs that kproto describes."""
    transport = SocketTransport(address, RESPONSE_LIMIT_S)
    topic = CreatableTopic(name="t", num_partitions=1, replication_factor=1, assignments=(), configs=())
    _response(transport, CreateTopicsRequest(topics=(topic,), timeout_ms=10_000, validate_only=False), 2)
    found: Texts = {}
    for kind, (resource_type, name) in RESOURCES.items():
        resource = DescribeConfigsResource(resource_type=resource_type, resource_name=name, configuration_keys=None)
        response = _response(transport, DescribeConfigsRequest(resources=(resource,), include_documentation=True), 3)
        found[kind] = {
            one.name: one.documentation
            for one in response.results[0].configs
            if one.documentation and (kind != "broker" or one.name in SETTINGS or one.name == ADVERTISED)
        }
    transport.close()
    return found


def condensed(by_release: dict[str, Texts]) -> str:
    """Return the text of the file: of each config, the releases in which its documentation changed."""
    lines = [f'{{"source": {json.dumps(SOURCE)},\n"releases": {json.dumps(list(by_release))}']
    for kind in RESOURCES:
        histories: Texts = {}
        for release, texts in by_release.items():
            for name, text in texts[kind].items():
                history = histories.setdefault(name, {})
                if text not in list(history.values())[-1:]:
                    history[release] = text
        rows = ",\n".join(f"{json.dumps(name)}: {json.dumps(history)}" for name, history in sorted(histories.items()))
        lines.append(f"{json.dumps(kind)}: {{\n{rows}\n}}")
    return ",\n".join(lines) + "}\n"


def _response(transport: SocketTransport, request: Any, version: int) -> Any:
    transport.send("recorder", request, version)
    [(_, response)] = transport.responses()
    return response


def main() -> None:
    by_release = {}
    for line, release in RELEASES.items():
        with real_kafka(release) as cluster:
            by_release[line] = recorded(cluster.bootstrap)
    PATH.write_text(condensed(by_release), encoding="utf-8")


if __name__ == "__main__":
    main()
