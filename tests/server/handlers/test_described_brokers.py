"""DescribeConfigs of a broker: all configs that brokers of 28 releases return, with types and defaults."""

from __future__ import annotations

import json
from functools import cache
from typing import TYPE_CHECKING, Any

import pytest

from kproto.codes import ErrorCode
from kproto.messages.k32_describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from kproto.messages.k44_incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from kproto_server.configuration.config_type import ConfigType
from kproto_server.configuration.recorded_configs import values_in
from kproto_server.configuration.settings import ConfigSource
from tests.configuration.record_configs import (
    BROKER_CONFIGS,
    NEWEST,
    OLD_RELEASES,
    OLD_VERSIONS,
    RELEASES,
    Described,
    default,
)
from tests.coordinator.broker_state import ask, new_state

if TYPE_CHECKING:
    from kproto_server.state import BrokerState

BROKER, SET = 4, 0
DEVIATING = {
    "group.share.max.size": "DEVIATION: a SHORT in 3.9",
    "group.initial.rebalance.delay.ms": "DEVIATION: kproto's default is 0",
    **dict.fromkeys(
        ("log.retention.hours", "log.retention.minutes", "log.roll.hours", "log.roll.jitter.hours"),
        "DEVIATION: 1.1 to 2.3 do not call them read-only, and do not change them",
    ),
}


@cache
def recorded() -> Any:
    return json.loads(BROKER_CONFIGS.read_text(encoding="utf-8"))


def of_release(line: str) -> dict[str, Described]:
    """Return what a broker of a release line returns of each config."""
    return {name: tuple(described) for name, described in values_in(recorded(), "broker", line).items()}


def described(state: BrokerState, version: int) -> dict[str, Any]:
    resource = DescribeConfigsResource(resource_type=BROKER, resource_name="1", configuration_keys=None)
    request = DescribeConfigsRequest(resources=(resource,), include_synonyms=version >= 1)
    return {one.name: one for one in ask(state, request, version).results[0].configs}


@pytest.mark.parametrize("line", OLD_RELEASES | RELEASES)
def test_a_broker_has_all_configs_of_the_release(line: str) -> None:
    version = OLD_VERSIONS.get(line, NEWEST)
    ours, theirs = described(new_state(line), version), of_release(line)
    assert sorted(ours) == sorted(theirs)
    differences = {}
    for name, (type_, default_value, read_only) in theirs.items():
        one = ours[name]
        found = (ConfigType(one.config_type).name if one.config_type else type_, default(one, version), one.read_only)
        is_unknown = not version and default_value is None  # a value of the recorded broker hides the default
        if is_unknown:
            found = (found[0], None, found[2])
        if found != (type_, default_value, read_only) and name not in DEVIATING:
            differences[name] = (found, (type_, default_value, read_only))
    assert differences == {}


@pytest.mark.parametrize("line", ["2.8", "3.9", "4.4"])
def test_some_settings_are_those_of_the_broker(line: str) -> None:
    found = described(new_state(line), NEWEST)
    static = {name: one.value for name, one in found.items() if one.config_source == ConfigSource.STATIC_BROKER}
    expected = {"listeners": "PLAINTEXT://127.0.0.1:9092", "log.dirs": "memory"}
    if line != "2.8":
        expected |= {"process.roles": "broker,controller", "controller.listener.names": "CONTROLLER"}
    assert {name: static[name] for name in expected} == expected
    assert found["log.dirs"].synonyms[0].value == "memory"


def alter(state: BrokerState, name: str, value: str) -> tuple[int, str | None]:
    configs = (AlterableConfig(name=name, config_operation=SET, value=value),)
    resource = AlterConfigsResource(resource_type=BROKER, resource_name="1", configs=configs)
    response: Any = ask(state, IncrementalAlterConfigsRequest(resources=(resource,), validate_only=False), 1)
    return response.responses[0].error_code, response.responses[0].error_message


def test_a_setting_that_kproto_does_not_have_is_described_as_it_was_altered() -> None:
    state = new_state("4.4")
    assert alter(state, "remote.log.reader.threads", "12")[0] == ErrorCode.NONE
    error, message = alter(state, "remote.log.reader.threads", "many")
    assert error == ErrorCode.INVALID_REQUEST
    assert "Not a number of type INT" in str(message)
    assert alter(state, "replica.fetch.wait.max.ms", "1")[0] == ErrorCode.INVALID_REQUEST
    one = described(state, NEWEST)["remote.log.reader.threads"]
    assert (one.value, one.config_source, one.read_only) == ("12", ConfigSource.DYNAMIC_BROKER, False)
    assert [synonym.value for synonym in one.synonyms] == ["12", "10"]


def test_a_password_that_kproto_does_not_use_is_not_shown() -> None:
    state = new_state("4.4")
    assert alter(state, "sasl.jaas.config", "secret")[0] == 0
    one = described(state, NEWEST)["sasl.jaas.config"]
    assert (one.value, one.is_sensitive, one.config_source) == (None, True, ConfigSource.DYNAMIC_BROKER)
    assert "secret" not in repr(one)
