"""A rule with an error, for each API in each version: the response has this error and no other.

Method: the requests are made by the declarations of their messages, so a new API or version is tested without a line
here. The broker is in memory.
"""

from __future__ import annotations

import pytest

from kproto import registry
from kproto.codes import ErrorCode
from kproto.messages import APIS
from kproto_server.observation.error_codes import error_codes
from kproto_server.releases.kafka_version import KafkaVersion
from kproto_server.testing import InMemoryBroker
from tests.faults.requests import request_of

LATEST = KafkaVersion.named("latest")
SERVED = [
    (key, version)
    for key in sorted(LATEST.api_versions)
    for version in registry.versions(key)
    if LATEST.serves(key, version)
]
VERSIONS_OF = {key: [version for other, version in SERVED if other == key] for key, _ in SERVED}


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("api_key", VERSIONS_OF, ids=lambda key: APIS[key])
def test_the_response_has_the_error(api_key: int, when: str) -> None:
    broker = InMemoryBroker(topics={"orders": 1})
    rule = broker.faults.add({"api": APIS[api_key], "error": "REQUEST_TIMED_OUT", "when": when})
    for number, version in enumerate(VERSIONS_OF[api_key], 1):
        response = broker.connect().ask(request_of(api_key, version), version)
        assert set(error_codes(response)) == {ErrorCode.REQUEST_TIMED_OUT}, f"version {version}: {response}"
        assert rule.fired == number
