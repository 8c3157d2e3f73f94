"""Strings of 32 KB that are hard to read, in every string of every API and every config: each is handled in a moment.

A value of min.cleanable.dirty.ratio with 32,000 digits before an "x" took 18 s once, blanks in a list 1 s, and a number
with as many zeros before it closed the connection.
"""

from __future__ import annotations

import logging
import re
from typing import Any

import pytest

from kproto.headers import read_response, request_frame
from kproto_server.configuration.config_type import ConfigType, split_list
from kproto_server.configuration.setting_table import whole_number
from kproto_server.coordinator.regular_expression import COMPLEXITY_MAX, InvalidRegex, Regex, complexity
from kproto_server.handlers import HANDLED
from kproto_server.releases.kafka_version import KafkaVersion
from kproto_server.testing import InMemoryBroker
from tests.coordinator.broker_state import NOW_MS
from tests.requests.connections import frames, new_connection, receive
from tests.robustness.hard_strings import (
    ALTER_CONFIGS,
    COUNT,
    CREATE_TOPICS,
    HARD_STRINGS,
    INCREMENTAL_ALTER_CONFIGS,
    hard_configs,
    hard_strings,
)
from tests.robustness.long_requests import existing_name

WITHOUT_RESPONSE = {11, 14, 17, 36, 71, 72}
"""JoinGroup and SyncGroup wait for others; SaslHandshake and SaslAuthenticate close a plain connection, and so does
telemetry."""


@pytest.fixture
def broker() -> InMemoryBroker:
    return InMemoryBroker(topics={existing_name(index): 1 for index in range(COUNT)})


@pytest.mark.parametrize("api_key", sorted(HANDLED - WITHOUT_RESPONSE))
def test_each_string_of_each_api(api_key: int, broker: InMemoryBroker, caplog: pytest.LogCaptureFixture) -> None:
    version = KafkaVersion.named().api_versions.get(api_key, (0, -1))[1]
    if version < 0:
        return
    for hard in hard_strings(api_key, version):
        for text in HARD_STRINGS.values():
            client = broker.connect()
            with caplog.at_level(logging.ERROR):
                client.send(hard.request(text, count=1), version)
            assert caplog.records == [], str(hard)


def test_each_config(broker: InMemoryBroker, caplog: pytest.LogCaptureFixture) -> None:
    client = broker.connect()
    for name, hard, given in hard_configs():
        if hard.api_key != INCREMENTAL_ALTER_CONFIGS:
            continue
        for kind in ("blanks", "digits", "zeros"):
            with caplog.at_level(logging.ERROR):
                client.send(hard.request(HARD_STRINGS[kind], given, 1), hard.version)
            assert caplog.records == [], name


@pytest.mark.parametrize("text", ["", "a", "a,b", "a ,\t b", ",", "a, ,b", "a b", "a\u00a0,b"])
def test_a_list_is_split_as_in_java(text: str) -> None:
    assert split_list(text) == (re.split(r"[ \t\n\x0b\f\r]*,[ \t\n\x0b\f\r]*", text) if text else [])


@pytest.mark.parametrize(
    ("text", "number"),
    [("0" * 5000 + "7", 7), ("-" + "0" * 5000 + "7", -7), ("0" * 5000, 0), ("+0", 0), ("-0", 0), ("9" * 5000, None)],
)
def test_a_number_may_have_thousands_of_zeros(text: str, number: int | None) -> None:
    assert whole_number(text, ConfigType.INT) == number


@pytest.mark.parametrize(
    ("text", "is_accepted"),
    [
        ("|".join(f"topic-{index}" for index in range(3000)), True),
        (r"\pL" * 5, True),
        (r"\pL" * 400, False),
        (r"\PL" * 400, False),
        ("a{9}" * 380, True),
        ("a{9}" * 400, False),
        ("[(?<]" * 6000, True),
    ],
)
def test_expressions_of_high_complexity_are_refused(text: str, is_accepted: bool) -> None:
    """Classes of Unicode in 32 KB took 900 ms, of which RE2 knows only at the end that they are too large."""
    assert (complexity(text) <= COMPLEXITY_MAX) is is_accepted
    if is_accepted:
        Regex(text)
    else:
        with pytest.raises(InvalidRegex, match="expression too large"):
            Regex(text)


@pytest.mark.parametrize("api_key", [CREATE_TOPICS, ALTER_CONFIGS, INCREMENTAL_ALTER_CONFIGS])
def test_other_clients_are_served_between_long_values(api_key: int) -> None:
    """30 values of 32,000 characters are a megabyte of lists."""
    hard, given = next((hard, given) for _, hard, given in hard_configs() if hard.api_key == api_key)
    request = hard.request(HARD_STRINGS["commas"], given)
    connection = new_connection(topics=1)
    responses = receive(connection, request_frame(request, hard.version, correlation_id=1))
    turns = 0
    while connection.delayed is not None:
        responses = frames(connection.resume(NOW_MS))
        turns += 1
    assert turns >= COUNT // 2 - 1
    response: Any = read_response(responses[0], api_key, hard.version)[1]
    results = response.topics if api_key == CREATE_TOPICS else response.responses
    assert len(results) == COUNT
    assert all(result.error_code for result in results)
