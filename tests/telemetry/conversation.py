"""Requests about the metrics of clients (KIP-714), and what a broker responds; recorded with real brokers.

    python -m tests.telemetry.conversation 3.7.2 3.9.2 4.4.0

Writes ``fixtures/telemetry/RELEASE.json``.
"""

from __future__ import annotations

import json
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from kproto.messages.k18_api_versions import ApiVersionsRequest
from kproto.messages.k32_describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from kproto.messages.k33_alter_configs import AlterableConfig as ReplacedConfig
from kproto.messages.k33_alter_configs import AlterConfigsRequest
from kproto.messages.k33_alter_configs import AlterConfigsResource as ReplacedResource
from kproto.messages.k44_incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from kproto.messages.k71_get_telemetry_subscriptions import GetTelemetrySubscriptionsRequest
from kproto.messages.k72_push_telemetry import PushTelemetryRequest
from kproto.messages.k74_list_config_resources import ListConfigResourcesRequest
from kproto_server.releases.kafka_version import KafkaVersion
from tests.membership.members import Transport
from tests.membership.socket_transport import SocketTransport

RECORDED = Path(__file__).parents[2] / "fixtures" / "telemetry"
CLIENT_METRICS = 16
SET, DELETE, APPEND, SUBTRACT = range(4)
SETTLED_MS = 60
"""How long a broker takes until it describes a change of the controller."""
INTERVAL_MS = 1500
LARGEST_BYTES = 1000
SETTINGS = {"telemetry.max.bytes": str(LARGEST_BYTES)}
UUIDS = [bytes([number] * 16) for number in range(1, 40)]
ZERO, ONE = bytes(16), bytes(15) + b"\x01"
GZIP, ZSTD = 1, 4

PUSHES: tuple[dict[str, Any], ...] = (
    {"compression": 9},
    {"compression": -1},
    {"compression": GZIP},
    {"compression": ZSTD},
    {"size": LARGEST_BYTES},
    {"size": LARGEST_BYTES + 1},
    {"size": 0},
    {"compression": 9, "size": LARGEST_BYTES + 1},
    {"terminating": True},
    {"terminating": True, "size": 0},
    {"terminating": True, "size": LARGEST_BYTES + 1},
)
"""Of clients that have asked, each of one of its own."""

Change = tuple[str, int, "str | None"]
CHANGES: tuple[tuple[str, tuple[Change, ...]], ...] = (
    ("a", (("interval.ms", SET, "1000"), ("metrics", SET, "org.apache.kafka.,x"), ("match", SET, "client_id=abc"))),
    ("a", (("interval.ms", SET, "99"),)),
    ("a", (("interval.ms", SET, "100"),)),
    ("a", (("interval.ms", SET, "3600001"),)),
    ("a", (("interval.ms", SET, "3600000"),)),
    ("a", (("interval.ms", SET, "ten"),)),
    ("a", (("interval.ms", SET, ""),)),
    ("a", (("interval.ms", SET, " 200 "),)),
    ("a", (("interval.ms", SET, "99999999999"),)),
    ("a", (("interval.ms", SET, None),)),
    ("a", (("interval.ms", DELETE, None),)),
    ("a", (("interval.ms", APPEND, "5"),)),
    ("a", (("nope", SET, "1"),)),
    ("a", (("nope", DELETE, "1"),)),
    ("a", (("metrics", APPEND, "y,x,z"),)),
    ("a", (("metrics", SUBTRACT, "x,w"),)),
    ("a", (("match", APPEND, "client_software_name=a.*"),)),
    ("a", (("match", SET, "client_software_name"),)),
    ("a", (("match", SET, "a=b"),)),
    ("a", (("match", SET, "client_id=("),)),
    ("a", (("match", SET, "client_id=a=b"),)),
    ("a", (("match", SET, "client_id="),)),
    ("a", (("match", SET, ""),)),
    ("a", (("match", SET, " client_id = x , client_source_port=1"),)),
    ("a", (("match", SET, "client_id=a,client_id=b"),)),
    ("a", (("match", SET, "client_instance_id=x,client_software_version=1,client_source_address=.*"),)),
    ("a", (("match", SET, "CLIENT_ID=x"),)),
    ("a", (("metrics", SET, ""),)),
    ("a", (("metrics", SET, "x,,y"),)),
    ("a", (("metrics", SET, "x,x"),)),
    ("a", (("metrics", SET, "*"),)),
    ("a", (("metrics", SET, "1"), ("metrics", SET, "2"))),
    ("", (("metrics", SET, "x"),)),
    ("a/b c", (("metrics", SET, "x"),)),
    ("empty", ()),
    ("b", (("interval.ms", SET, "1"), ("match", SET, "a=b"), ("nope", SET, "1"))),
    ("b", (("match", SET, "a=b"), ("interval.ms", SET, "1"))),
    ("c", (("metrics", SET, "y"),)),
    ("gone", (("metrics", SET, "y"),)),
    ("gone", (("metrics", DELETE, None),)),
)


class Administrator:
    """Sends requests, and notes what the broker responds."""

    def __init__(self, transport: Transport, release: str) -> None:
        self._transport = transport
        self._versions = KafkaVersion.named(release).api_versions
        self.steps: list[Any] = []
        self._subscriptions: dict[bytes, int] = {}

    def _ask(self, request: Any, version: int, name: str = "admin") -> Any:
        self._transport.send(name, request, version)
        try:
            [(_, response)] = self._transport.responses()
        except (AssertionError, ConnectionError):
            return None
        return response

    def _note(self, action: Any, outcome: Any) -> None:
        self.steps.append([action, outcome])

    def advertised(self) -> None:
        """Note whether the broker advertises the two APIs."""
        request = ApiVersionsRequest(client_software_name="x", client_software_version="1")
        keys = {one.api_key for one in self._ask(request, 3).api_keys}
        self._note("advertised", sorted(keys & {71, 72}))

    def configure(self) -> None:
        """Change configs, and note the errors and what is described."""
        self._described("a", "", "none")
        for name, changes in CHANGES:
            for validate_only in (True, False):
                self._change(name, changes, validate_only=validate_only)
            self._transport.pass_time(SETTLED_MS)
            self._described(name)
        self._replace("a", {"metrics": "m", "interval.ms": "500"})
        self._replace("a", {"metrics": "m", "interval.ms": "50"})
        self._replace("d", {"match": "client_id=x", "nope": "1"})
        self._replace("d", {"match": None})
        self._replace("", {"metrics": "m"})
        self._replace("c", {})
        self._transport.pass_time(SETTLED_MS)
        self._described("a", "c", "d", "d", "a/b c")
        self._described("a", keys=("metrics", "nope"))
        for version in range(self._versions[32][0], 5):
            self._described("a", version=version)
        if 74 in self._versions:
            for version in range(self._versions[74][1] + 1):
                for kinds in ((), (CLIENT_METRICS,)) if version else ((),):
                    listed = self._ask(ListConfigResourcesRequest(resource_types=kinds), version)
                    found = sorted(
                        one.resource_name for one in listed.config_resources if one.resource_type in (CLIENT_METRICS, 0)
                    )
                    self._note(["list", version, kinds], [listed.error_code, found])
        for name in ("a", "c", "d", "a/b c"):
            self._replace(name, {})

    def _change(self, name: str, changes: tuple[Change, ...], *, validate_only: bool = False) -> None:
        configs = tuple(
            AlterableConfig(name=one, config_operation=operation, value=to) for one, operation, to in changes
        )
        resource = AlterConfigsResource(resource_type=CLIENT_METRICS, resource_name=name, configs=configs)
        response = self._ask(IncrementalAlterConfigsRequest(resources=(resource,), validate_only=validate_only), 1)
        (one,) = response.responses
        self._note(["change", name, changes, validate_only], [one.error_code, one.error_message])

    def _replace(self, name: str, configs: dict[str, str | None]) -> None:
        wanted = tuple(ReplacedConfig(name=one, value=value) for one, value in configs.items())
        resource = ReplacedResource(resource_type=CLIENT_METRICS, resource_name=name, configs=wanted)
        (one,) = self._ask(AlterConfigsRequest(resources=(resource,), validate_only=False), 2).responses
        self._note(["replace", name, configs], [one.error_code, one.error_message])

    def _described(self, *names: str, keys: tuple[str, ...] | None = None, version: int = 4) -> None:
        resources = tuple(
            DescribeConfigsResource(resource_type=CLIENT_METRICS, resource_name=name, configuration_keys=keys)
            for name in names
        )
        request = DescribeConfigsRequest(resources=resources, include_synonyms=version > 0)
        found = [
            [
                one.resource_name,
                one.error_code,
                one.error_message,
                [
                    [
                        config.name,
                        config.value,
                        config.read_only,
                        config.config_source,
                        config.config_type,
                        [[synonym.name, synonym.value, synonym.source] for synonym in config.synonyms],
                    ]
                    for config in one.configs
                ],
            ]
            for one in self._ask(request, version).results
        ]
        self._note(["describe", names, keys, version], found)

    def ask_unasked(self) -> None:
        """Ask a broker that does not advertise the APIs."""
        self._transport.pass_time(SETTLED_MS)
        self._get(UUIDS[0], "without")
        self._push(UUIDS[0], name="without-2")

    def collect(self) -> None:
        """Subscribe, push and wait, in and out of turn."""
        self._transport.pass_time(SETTLED_MS)
        self._get(UUIDS[0], "unmatched")
        self._push(UUIDS[0], name="unmatched")
        self._change("all", (("metrics", SET, "org.apache.kafka.,z"), ("interval.ms", SET, str(INTERVAL_MS))))
        self._change("one", (("metrics", SET, "extra"), ("interval.ms", SET, "100"), ("match", SET, "client_id=one.*")))
        self._change("port", (("metrics", SET, "nothing"), ("match", SET, "client_source_port=1")))
        self._change("software", (("metrics", SET, "*"), ("match", SET, "client_software_name=soft.*,client_id=s.*")))
        self._transport.pass_time(1000)  # until the broker has them
        assigned = self._get(ZERO, "zero")
        self._get(assigned, "zero")
        self._get(UUIDS[1], "one-client")
        self._get(UUIDS[2], "xone")
        self._get(UUIDS[2], "one")
        self._ask(ApiVersionsRequest(client_software_name="software", client_software_version="1"), 3, "soft")
        self._get(UUIDS[3], "soft")
        self._get(ONE, "reserved")
        # A push before, at once after, and again after the subscription is asked for.
        self._push(UUIDS[4])
        self._get(UUIDS[4])
        self._push(UUIDS[4])
        self._push(UUIDS[4], of=UUIDS[4])
        self._get(UUIDS[5])
        self._push(UUIDS[5], of=UUIDS[5])
        self._push(UUIDS[5], of=UUIDS[5])
        self._get(UUIDS[5])
        self._transport.pass_time(INTERVAL_MS + 100)
        self._push(UUIDS[5], of=UUIDS[5])
        self._get(UUIDS[5])
        self._transport.pass_time(INTERVAL_MS + 100)
        self._get(UUIDS[5])
        # Errors, each of a client of its own.
        for number, given in enumerate(PUSHES, 6):
            self._get(UUIDS[number])
            self._push(UUIDS[number], of=UUIDS[number], **given)
            self._push(UUIDS[number], of=UUIDS[number], terminating=True)
            self._push(UUIDS[number], of=UUIDS[number])
            self._get(UUIDS[number])
        self._push(ZERO)
        self._push(ONE)
        self._get(UUIDS[20])
        self._push(UUIDS[20], of=UUIDS[20], wrong_by=1)
        self._get(UUIDS[20])
        self._push(UUIDS[20], of=UUIDS[20], wrong_by=1, compression=9, size=LARGEST_BYTES + 1)
        self._push(UUIDS[20], of=UUIDS[20], compression=9)
        self._get(UUIDS[20])
        self._push(UUIDS[20], of=UUIDS[20], terminating=True)
        # The subscription changes.
        self._get(UUIDS[21])
        self._push(UUIDS[21], of=UUIDS[21])
        self._change("all", (("metrics", SET, "other"), ("interval.ms", SET, str(INTERVAL_MS))))
        self._transport.pass_time(INTERVAL_MS + 100)
        self._push(UUIDS[21], of=UUIDS[21])
        self._get(UUIDS[21])
        self._push(UUIDS[21], of=UUIDS[21])
        # An unrelated change.
        self._get(UUIDS[22])
        self._change("unrelated", (("metrics", SET, "u"), ("match", SET, "client_id=unmatched")))
        self._transport.pass_time(1000)
        self._get(UUIDS[22])
        self._push(UUIDS[22], of=UUIDS[22])
        self._push(UUIDS[22], of=UUIDS[22])
        # Without a subscription.
        for name in ("all", "one", "port", "software", "unrelated"):
            self._replace(name, {})
        self._transport.pass_time(1000)
        self._get(UUIDS[23])
        self._push(UUIDS[23], of=UUIDS[23])
        self._push(UUIDS[23], of=UUIDS[23])

    def _get(self, client_instance_id: bytes, name: str = "client") -> bytes:
        response = self._ask(GetTelemetrySubscriptionsRequest(client_instance_id=client_instance_id), 0, name)
        if response is None:
            self._note(["get", client_instance_id.hex(), name], "closed")
            return client_instance_id
        given = response.client_instance_id
        is_new = client_instance_id == ZERO and given != ZERO
        self._subscriptions[given] = response.subscription_id
        self._note(
            ["get", "assigned" if name == "zero" and client_instance_id != ZERO else client_instance_id.hex(), name],
            [
                response.throttle_time_ms,
                response.error_code,
                "assigned" if is_new or (name == "zero" and response.error_code == 0) else given.hex(),
                "any" if name == "zero" and response.subscription_id else response.subscription_id,
                list(response.accepted_compression_types),
                response.push_interval_ms,
                response.telemetry_max_bytes,
                response.delta_temporality,
                list(response.requested_metrics),
            ],
        )
        return bytes(given)

    def _push(
        self,
        client_instance_id: bytes,
        of: bytes | None = None,
        *,
        name: str = "client",
        wrong_by: int = 0,
        compression: int = 0,
        size: int = 1,
        terminating: bool = False,
    ) -> None:
        known = self._subscriptions.get(of, 0) if of else 0
        request = PushTelemetryRequest(
            client_instance_id=client_instance_id,
            subscription_id=known + wrong_by,
            terminating=terminating,
            compression_type=compression,
            metrics=b"x" * size,
        )
        response = self._ask(request, 0, name)
        outcome = "closed" if response is None else [response.throttle_time_ms, response.error_code]
        self._note(["push", client_instance_id.hex(), bool(of), wrong_by, compression, size, terminating], outcome)


@contextmanager
def with_receiver(release: str) -> Iterator[None]:
    """Give the release's brokers a class path with the plugin."""
    from tests.oracle import releases
    from tests.oracle.java import compiled

    _, jars = releases.fetch(release)
    classes = compiled(Path(__file__).parent / "java" / "TelemetryReceiver.java", releases.classpath(jars))
    theirs = releases.JARS
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / release
        folder.mkdir()
        for jar in jars.glob("*.jar"):
            (folder / jar.name).symlink_to(jar)
        with zipfile.ZipFile(folder / "receiver.jar", "w") as receiver:
            for path in classes.glob("*.class"):
                receiver.write(path, path.name)
        releases.JARS = Path(name)
        try:
            yield
        finally:
            releases.JARS = theirs


def run(transport: Transport, release: str) -> list[Any]:
    """Return all steps of the conversation with a broker that collects metrics."""
    administrator = Administrator(transport, release)
    administrator.advertised()
    administrator.configure()
    administrator.collect()
    return administrator.steps


def run_without_receiver(transport: Transport, release: str) -> list[Any]:
    """Return the steps of a conversation with a broker as it is delivered."""
    administrator = Administrator(transport, release)
    administrator.advertised()
    administrator.configure()
    administrator.ask_unasked()
    return administrator.steps


def main() -> None:
    from tests.oracle import launcher

    RECORDED.mkdir(exist_ok=True)
    for release in sys.argv[1:]:
        found = {}
        with with_receiver(release), tempfile.TemporaryDirectory() as folder:
            props = SETTINGS | {"metric.reporters": "TelemetryReceiver"}
            broker = launcher.start(release, folder=Path(folder), props=props)
            try:
                found["receiver"] = run(SocketTransport(broker.bootstrap), release)
            finally:
                launcher.stop(Path(folder))
        with tempfile.TemporaryDirectory() as folder:
            broker = launcher.start(release, folder=Path(folder), props=SETTINGS)
            try:
                found["none"] = run_without_receiver(SocketTransport(broker.bootstrap), release)
            finally:
                launcher.stop(Path(folder))
        parts = (
            f'"{name}": [\n' + ",\n".join(json.dumps(step) for step in steps) + "\n]" for name, steps in found.items()
        )
        (RECORDED / f"{release}.json").write_text("{" + ",\n".join(parts) + "}\n")


if __name__ == "__main__":
    main()
