"""Requests of users who lack rights: kproto responds as the releases of which responses were recorded."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kproto_server.testing import InMemoryBroker
from kproto_server.testing.in_memory import ConnectedPair
from tests.security.acl_scripts import USER, Script, read_recording

FOLDER = Path(__file__).parents[2] / "fixtures" / "acls"
CLASSES = {
    **dict.fromkeys(("2.0.1", "2.3.1"), "kafka.security.auth.SimpleAclAuthorizer"),
    **dict.fromkeys(("2.4.1", "2.5.1", "2.7.2", "2.8.2", "3.2.3"), "kafka.security.authorizer.AclAuthorizer"),
    **dict.fromkeys(("3.9.2", "4.1.2", "4.4.0"), "org.apache.kafka.metadata.authorizer.StandardAuthorizer"),
}
"""The releases of which responses were recorded, each with its authorizer."""


class Client:
    """A connection to a broker in memory."""

    def __init__(self, broker: InMemoryBroker, principal: str | None = None) -> None:
        self._pair: ConnectedPair = broker.connect()
        self._broker = broker
        if principal is not None:
            self._pair.connection.info.principal = principal

    def ask(self, request: Any, version: int) -> Any:
        pair = self._pair
        pair.send(request, version)
        if pair.close_reason is not None:
            return None
        while pair.client.in_flight:
            self._broker.advance(milliseconds=1000)
        return pair.responses.pop()


def responses(release: str, names: list[str] | None = None) -> dict[str, dict[str, Any]]:
    broker = InMemoryBroker(
        kafka_version=release,
        settings={
            "authorizer.class.name": CLASSES[release],
            "super.users": "User:ANONYMOUS;User:admin",
            "group.initial.rebalance.delay.ms": "0",
        },
    )
    return Script(Client(broker), Client(broker, USER), release, lambda: Client(broker, USER)).run(names)


@pytest.mark.parametrize("release", CLASSES)
def test_users_who_lack_rights_get_the_responses_of_a_real_broker(release: str) -> None:
    recorded = read_recording(FOLDER / f"{release}.json")
    found = responses(release)
    assert found.keys() == recorded.keys()
    differences = {
        f"{name}: {variant}": {"kproto": response, "Kafka": recorded[name].get(variant)}
        for name, variants in found.items()
        for variant, response in variants.items()
        if response != recorded[name].get(variant)
    }
    assert not differences, json.dumps(differences, indent=1)[:20_000]
