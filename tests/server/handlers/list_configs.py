"""APPEND to lists of brokers and topics, and SUBTRACT from them, on real brokers.

``python -m tests.server.handlers.list_configs`` writes ``fixtures/list-configs.json``.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from kproto.message import Request
from kproto.messages.k19_create_topics import CreatableTopic, CreateTopicsRequest
from kproto.messages.k32_describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from kproto.messages.k44_incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from tests.network.raw_client import RawClient
from tests.oracle.cluster import AS_DELIVERED, real_kafka

RECORDED = Path(__file__).parents[3] / "fixtures" / "list-configs.json"
RELEASES = ("2.8.2", "3.2.3", "3.9.2", "4.1.2", "4.2.2", "4.3.1", "4.4.0")
TOPIC, BROKER = 2, 4
SET, DELETE, APPEND, SUBTRACT = 0, 1, 2, 3
NAME = "s"
PROPAGATION_S = 0.6

Change = tuple[str, str, int, "str | None"]
"""The name of a resource (1: the broker, "": all brokers, s: the topic), a config, an operation and its value."""
Result = list[Any]
"""Error code, error message, and the config's value afterwards."""
Ask = Callable[[Request, int], Any]

POLICY, PROTOCOLS, CIPHERS = "log.cleanup.policy", "ssl.enabled.protocols", "ssl.cipher.suites"
MECHANISMS, REPORTERS = "sasl.enabled.mechanisms", "metric.reporters"
OF_BROKERS: tuple[tuple[str, int, str | None], ...] = (
    (POLICY, APPEND, "compact"), (POLICY, APPEND, "compact,compact"), (POLICY, SUBTRACT, "delete"),
    (POLICY, SUBTRACT, "compact"), (POLICY, SUBTRACT, "delete"), (POLICY, DELETE, None), (POLICY, APPEND, "bad"),
    (POLICY, APPEND, ""), (POLICY, SUBTRACT, "nothing"), (POLICY, SUBTRACT, ""),
    (POLICY, APPEND, " compact , delete"), (POLICY, DELETE, None), (PROTOCOLS, SUBTRACT, "TLSv1.2"),
    (PROTOCOLS, APPEND, "TLSv1.1, TLSv1.1"), (PROTOCOLS, APPEND, "TLSv1.2"), (PROTOCOLS, DELETE, None),
    (CIPHERS, APPEND, "x"), (CIPHERS, APPEND, "y,x"), (CIPHERS, SUBTRACT, "x,y"), (CIPHERS, DELETE, None),
    (MECHANISMS, APPEND, "PLAIN"), (MECHANISMS, SUBTRACT, "GSSAPI"), (MECHANISMS, DELETE, None),
    ("log.retention.ms", APPEND, "5"), ("log.retention.ms", SUBTRACT, "5"), ("my.own", APPEND, "5"),
    ("my.own", SUBTRACT, "5"), (REPORTERS, SUBTRACT, "5"), (REPORTERS, DELETE, None),
)  # fmt: skip
OF_TOPIC = (
    (APPEND, "compact, compact"), (SUBTRACT, "delete"), (SUBTRACT, "compact"), (APPEND, ""), (SUBTRACT, ""),
    (SET, "delete,delete"), (SUBTRACT, "delete"), (APPEND, " delete,compact"),
)  # fmt: skip
CHANGES: tuple[Change, ...] = (
    *((name, *change) for name in ("1", "") for change in OF_BROKERS),
    *((NAME, "cleanup.policy", *change) for change in OF_TOPIC),
)


def results(ask: Ask, pause: Callable[[], object] = lambda: None) -> Iterator[Result]:
    """Send the changes; yield the result of each. ``pause``: waits until a change is visible."""
    topic = CreatableTopic(name=NAME, num_partitions=1, replication_factor=1, assignments=(), configs=())
    ask(CreateTopicsRequest(topics=(topic,), timeout_ms=5000), 4)
    pause()
    for name, config, operation, value in CHANGES:
        kind = TOPIC if name == NAME else BROKER
        changed = AlterableConfig(name=config, config_operation=operation, value=value)
        resource = AlterConfigsResource(resource_type=kind, resource_name=name, configs=(changed,))
        (response,) = ask(IncrementalAlterConfigsRequest(resources=(resource,), validate_only=False), 0).responses
        pause()
        asked = DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=(config,))
        (described,) = ask(DescribeConfigsRequest(resources=(asked,)), 1).results
        yield [response.error_code, response.error_message, *(one.value for one in described.configs)]


def main() -> None:
    found: dict[str, list[Result]] = {}
    for release in RELEASES:
        with real_kafka(release, props=AS_DELIVERED) as broker:
            client = RawClient(broker.bootstrap)
            found[release] = list(results(client.ask, lambda: time.sleep(PROPAGATION_S)))
    lines = ",\n".join(
        f'"{release}": [\n' + ",\n".join(json.dumps(one) for one in of_release) + "\n]"
        for release, of_release in found.items()
    )
    RECORDED.write_text(f"{{\n{lines}\n}}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
