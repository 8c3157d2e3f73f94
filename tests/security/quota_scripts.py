"""What administrators do with client quotas (KIP-546, KIP-612), right and wrong, and the responses.

`python -m tests.security.quota_scripts RELEASE=HOST:PORT ...` records them from brokers that have no quotas.
"""

from __future__ import annotations

import json
import math
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from kproto.messages import k48_describe_client_quotas as k48
from kproto.messages import k49_alter_client_quotas as k49
from kproto_server.releases.kafka_version import KafkaVersion
from tests.network.raw_client import RawClient

FILE = Path(__file__).parents[2] / "fixtures" / "client-quotas" / "responses.json"
ALTER = 49
Step = Callable[[RawClient, int], Any]
Entity = Mapping[str, str | None] | tuple[tuple[str, str | None], ...]
EXACT, DEFAULT, ANY = range(3)
PRODUCER, CONSUMER, REQUEST, MUTATIONS, CONNECTIONS = (
    "producer_byte_rate", "consumer_byte_rate", "request_percentage", "controller_mutation_rate",
    "connection_creation_rate",
)  # fmt: skip
PROPAGATION_S = 0.15
"""A broker of KRaft knows a change some milliseconds after its controller."""


def describe(*components: tuple[str, int, str | None], strict: bool = False) -> Step:
    """Return a step: the quotas that match."""

    def step(client: RawClient, version: int) -> Any:
        asked = tuple(k48.ComponentData(entity_type=kind, match_type=how, match=name) for kind, how, name in components)
        found = client.ask(k48.DescribeClientQuotasRequest(components=asked, strict=strict), version)
        entries = found.entries if found.entries is None else [
            [[[one.entity_type, one.entity_name] for one in entry.entity],
             [[one.key, one.value] for one in entry.values]]
            for entry in found.entries
        ]  # fmt: skip
        return [found.error_code, found.error_message, entries]

    return step


def entry(entity: Entity, *ops: tuple[str, float | None]) -> k49.EntryData:
    """Return what a request changes of one entity; a value None: removed."""
    pairs = entity if isinstance(entity, tuple) else entity.items()
    return k49.EntryData(
        entity=tuple(k49.EntityData(entity_type=kind, entity_name=name) for kind, name in pairs),
        ops=tuple(k49.OpData(key=key, value=value or 0.0, remove=value is None) for key, value in ops),
    )


def alter(*entries: k49.EntryData, validate_only: bool = False) -> Step:
    """Return a step: a request with these changes."""

    def step(client: RawClient, version: int) -> Any:
        found = client.ask(k49.AlterClientQuotasRequest(entries=entries, validate_only=validate_only), version)
        return [
            [one.error_code, one.error_message, [[e.entity_type, e.entity_name] for e in one.entity]]
            for one in found.entries
        ]

    return step


def change(entity: Entity, *ops: tuple[str, float | None], validate_only: bool = False) -> Step:
    """Return a step: a request that changes one entity."""
    return alter(entry(entity, *ops), validate_only=validate_only)


def user(name: str | None) -> Entity:
    return {"user": name}


def both(name: str | None, client_id: str | None) -> Entity:
    return {"user": name, "client-id": client_id}


ODD_NAME = "a b*c+d/e%f~g_h-i.jäk\n<default>"
"""A name with characters that ZooKeeper's paths do not have as they are."""
ALL = describe()

STEPS: tuple[Step, ...] = (
    ALL,
    # Errors of entities.
    change({}, (PRODUCER, 1.0)),
    change({"": "a"}, (PRODUCER, 1.0)),
    change({"group": "a"}, (PRODUCER, 1.0)),
    change({"user": "a", "group": "b"}, (PRODUCER, 1.0)),
    change({"user": ""}, (PRODUCER, 1.0)),
    change({"client-id": ""}, (PRODUCER, 1.0)),
    change({"user": "a", "client-id": ""}, (PRODUCER, 1.0)),
    change((("user", "a"), ("user", "b")), (PRODUCER, 5.0), validate_only=True),
    change({"ip": ""}, (CONNECTIONS, 1.0)),
    change({"ip": "not an address"}, (CONNECTIONS, 1.0)),
    change({"ip": "no-such-host.invalid"}, (CONNECTIONS, 1.0)),
    change({"ip": "127.0.0.1", "user": "a"}, (CONNECTIONS, 1.0)),
    change({"ip": None, "client-id": "a"}, (PRODUCER, 1.0)),
    change({"USER": "a"}, (PRODUCER, 1.0)),
    change({"user": "<default>"}, (PRODUCER, 77.0)),
    ALL,
    change({"user": "<default>"}, (PRODUCER, None)),
    ALL,
    # Errors of keys and values.
    change(user("a"), ("unknown", 1.0)),
    change(user("a"), ("", 1.0)),
    change(user("a"), ("unknown", None)),
    change(user("a"), (CONNECTIONS, 1.0)),
    change(user("a"), ("SCRAM-SHA-256", 1.0)),
    change({"client-id": "a"}, (CONNECTIONS, 1.0)),
    change({"ip": "10.0.0.1"}, (PRODUCER, 1.0)),
    change(user("a"), (PRODUCER, 1.5)),
    change(user("a"), (PRODUCER, 1.0000001)),
    change(user("a"), (PRODUCER, 0.9999999)),
    change(user("a"), (PRODUCER, 0.0)),
    change(user("a"), (PRODUCER, -1.0)),
    change(user("a"), (PRODUCER, 1e30)),
    change(user("a"), (PRODUCER, 9.223372036854776e18)),
    change(user("a"), (PRODUCER, float("inf"))),
    change(user("a"), (PRODUCER, float("nan"))),
    change(user("a"), (REQUEST, 0.0)),
    change(user("a"), (REQUEST, -0.5)),
    change(user("a"), (REQUEST, 0.5)),
    change(user("a"), (REQUEST, float("inf"))),
    change(user("a"), (REQUEST, float("nan"))),
    change(user("a"), (MUTATIONS, -2.0)),
    change(user("a"), (MUTATIONS, 0.25)),
    change({"ip": "10.0.0.1"}, (CONNECTIONS, 1.5)),
    change({"ip": "10.0.0.1"}, (CONNECTIONS, -1.0)),
    change({"ip": "10.0.0.1"}, (CONNECTIONS, 3e9)),
    change({"ip": "10.0.0.1"}, (CONNECTIONS, 2147483647.0)),
    change({"ip": "10.0.0.1"}, (CONNECTIONS, 2147483648.0)),
    ALL,
    change(user("a"), (PRODUCER, None), (REQUEST, None), (MUTATIONS, None)),
    change({"ip": "10.0.0.1"}, (CONNECTIONS, None)),
    ALL,
    change(user("a"), (PRODUCER, 5.0), ("unknown", 1.0)),
    change(user("a"), (PRODUCER, 5.0), (CONSUMER, 1.5)),
    change(user("a"), ("unknown", 1.0), (CONSUMER, -1.0)),
    ALL,
    # What works.
    change(user("alice"), (PRODUCER, 1024.0), validate_only=True),
    ALL,
    change(user("alice")),
    ALL,
    change(user("alice"), (PRODUCER, None)),
    change(user("alice"), (PRODUCER, 1024.0), (CONSUMER, 2048.0), (REQUEST, 12.5), (MUTATIONS, 3.5)),
    change(user("bob"), (PRODUCER, 1.0)),
    change(user(None), (PRODUCER, 2.0)),
    change({"client-id": "app"}, (PRODUCER, 3.0)),
    change({"client-id": None}, (PRODUCER, 4.0), (MUTATIONS, 4.5)),
    change(both("alice", "app"), (PRODUCER, 5.0)),
    change((("client-id", None), ("user", "alice")), (PRODUCER, 6.0)),
    change(both(None, "app"), (PRODUCER, 7.0)),
    change(both(None, None), (PRODUCER, 8.0)),
    change({"ip": "127.0.0.1"}, (CONNECTIONS, 10.0)),
    change({"ip": "::1"}, (CONNECTIONS, 11.0)),
    change({"ip": "localhost"}, (CONNECTIONS, 12.0)),
    change({"ip": None}, (CONNECTIONS, 13.0)),
    change(user(ODD_NAME), (PRODUCER, 14.0)),
    change(both(ODD_NAME, ODD_NAME), (PRODUCER, 15.0)),
    ALL,
    describe(strict=True),
    # Filters.
    *(
        describe(*components, strict=strict)
        for strict in (False, True)
        for components in (
            [("user", EXACT, "alice")],
            [("user", EXACT, "unknown")],
            [("user", EXACT, ODD_NAME)],
            [("user", DEFAULT, None)],
            [("user", ANY, None)],
            [("client-id", EXACT, "app")],
            [("client-id", DEFAULT, None)],
            [("client-id", ANY, None)],
            [("user", EXACT, "alice"), ("client-id", EXACT, "app")],
            [("client-id", DEFAULT, None), ("user", EXACT, "alice")],
            [("user", DEFAULT, None), ("client-id", EXACT, "app")],
            [("user", DEFAULT, None), ("client-id", DEFAULT, None)],
            [("user", ANY, None), ("client-id", ANY, None)],
            [("user", EXACT, "alice"), ("client-id", ANY, None)],
            [("user", ANY, None), ("client-id", DEFAULT, None)],
            [("ip", EXACT, "127.0.0.1")],
            [("ip", EXACT, "10.9.9.9")],
            [("ip", DEFAULT, None)],
            [("ip", ANY, None)],
        )
    ),
    describe(("user", EXACT, "<default>")),
    describe(("user", EXACT, "")),
    describe(("user", EXACT, None)),
    describe(("user", DEFAULT, "alice")),
    describe(("user", ANY, "alice")),
    describe(("user", 3, None)),
    describe(("user", -1, "alice")),
    describe(("", EXACT, "a")),
    describe(("group", EXACT, "a")),
    describe(("group", 3, None)),
    describe(("group", ANY, None), strict=True),
    describe(("user", EXACT, "alice"), ("group", EXACT, "a")),
    describe(("user", EXACT, "alice"), ("user", EXACT, "bob")),
    describe(("user", EXACT, "alice"), ("user", ANY, None)),
    describe(("client-id", ANY, None), ("client-id", DEFAULT, None)),
    describe(("ip", ANY, None), ("ip", DEFAULT, None)),
    describe(("ip", EXACT, "127.0.0.1"), ("user", EXACT, "alice")),
    describe(("client-id", ANY, None), ("ip", ANY, None)),
    # Changes of several entities at once.
    alter(entry(user("alice"), (PRODUCER, None), (CONSUMER, 1.0)), entry(user("carol"), (PRODUCER, 9.0))),
    alter(entry(user("carol"), (PRODUCER, 1.0)), entry(user("dora"), ("unknown", 1.0)), entry({}, (PRODUCER, 1.0))),
    alter(entry(user("carol"), (PRODUCER, 1.0)), entry(user("carol"), (PRODUCER, 2.0), (CONSUMER, 3.0))),
    alter(entry(user("carol"), (PRODUCER, 1.0), (PRODUCER, 4.0), (PRODUCER, None)),
          entry(user("erin"), (PRODUCER, None), (PRODUCER, 4.0))),
    alter(),
    alter(*(entry(user(f"user-{n}"), (PRODUCER, float(n + 1))) for n in range(20))),
    ALL,
    alter(*(entry(user(f"user-{n}"), (PRODUCER, None)) for n in range(20))),
    ALL,
    change(user("alice"), (CONSUMER, None), (REQUEST, None), (MUTATIONS, None)),
    change(user("x" * 300), (PRODUCER, 1.0)),
    ALL,
    # Nothing stays, so that the script can run twice.
    *(
        change(entity, (PRODUCER, None), (CONSUMER, None), (MUTATIONS, None))
        for entity in (
            user("bob"), user(None), user("carol"), user("erin"), user(ODD_NAME), user("x" * 300), {"client-id": "app"},
            {"client-id": None}, both("alice", "app"), both("alice", None), both(None, "app"), both(None, None),
            both(ODD_NAME, ODD_NAME),
        )
    ),
    *(change({"ip": ip}, (CONNECTIONS, None)) for ip in ("127.0.0.1", "::1", "localhost", None)),
    ALL,
)  # fmt: skip


def transcript(address: str, newest: int, pause_s: float = 0.0) -> list[Any]:
    """Return the responses to all steps, arrays sorted: their order is that of a Java HashMap."""
    found = []
    with RawClient(address) as client:
        for step in STEPS:
            found.append(_sorted(step(client, newest)))
            time.sleep(pause_s)
    return found


def _sorted(value: Any) -> Any:
    if not isinstance(value, list):
        return "NaN" if isinstance(value, float) and math.isnan(value) else value
    items = [_sorted(one) for one in value]
    is_struct = not all(isinstance(one, list) for one in items)
    return items if is_struct else sorted(items, key=json.dumps)


def newest_version(release: str) -> int:
    """Return the newest version of both APIs that a release serves."""
    return KafkaVersion.named(release).api_versions[ALTER][1]


def main() -> None:
    """Add the responses of releases to the file: each step has an object of responses by the releases that have it."""
    steps: list[dict[str, Any]] = json.loads(FILE.read_text()) if FILE.exists() else [{} for _ in STEPS]
    for argument in sys.argv[1:]:
        release, address = argument.split("=")
        found = transcript(address, newest_version(release), PROPAGATION_S)
        for step, response in zip(steps, found, strict=True):
            responses = {name: one for names, one in step.items() for name in names.split() if name != release}
            step.clear()
            for name, one in sorted({**responses, release: response}.items()):
                same = next((names for names, other in step.items() if other == one), "")
                step.pop(same, None)
                step[f"{same} {name}".strip()] = one
    FILE.parent.mkdir(exist_ok=True)
    FILE.write_text("[\n" + ",\n".join(json.dumps(step) for step in steps) + "\n]\n")


if __name__ == "__main__":
    main()
