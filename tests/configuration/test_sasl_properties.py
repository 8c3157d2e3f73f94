"""SASL in Kafka's server.properties becomes that of the broker."""

from __future__ import annotations

import pytest

from kproto_server.configuration.sasl_properties import of_sasl, sasl_properties
from kproto_server.configuration.setting_table import SettingError

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"
OF_CLIENT = "listener.name.client.plain.sasl.jaas.config"
OF_OTHER = "listener.name.other.plain.sasl.jaas.config"


@pytest.mark.parametrize(
    ("jaas_config", "users"),
    [
        (f'{PLAIN} username="admin" password="a" user_admin="a" user_alice="alice-secret";', ["admin", "alice"]),
        (f"{PLAIN} user_alice = 'alice-secret' ;", ["alice"]),
        (f"{PLAIN}\n  user_alice=alice-secret\n;", ["alice"]),
        (f'{PLAIN} password=";" user_=x;', [""]),
        (f"{PLAIN};", []),
    ],
)
def test_users_of_plain(jaas_config: str, users: list[str]) -> None:
    found = sasl_properties({"sasl.enabled.mechanisms": "PLAIN", OF_CLIENT: jaas_config}, ["CLIENT"])
    assert found.mechanisms == ("PLAIN",)
    assert list(found.users) == users
    assert "secret" not in repr(found)
    assert found.users.get("alice", "alice-secret") == "alice-secret"


def test_backslashes_and_semicolons_in_passwords() -> None:
    jaas_config = f"""{PLAIN} user_a="a;\\"b\\\\" user_b='=\\'';"""
    assert sasl_properties({OF_CLIENT: jaas_config}, ["CLIENT"]).users == {"a": 'a;"b\\', "b": "='"}


@pytest.mark.parametrize(
    "jaas_config",
    ["", PLAIN, f"{PLAIN} user_a;", f'{PLAIN} user_a="b', f"{PLAIN}; {PLAIN};", "PlainLoginModule user_a=b;"],
)
def test_what_is_no_login_module(jaas_config: str) -> None:
    with pytest.raises(SettingError, match="is no login module: write CLASS required"):
        sasl_properties({OF_CLIENT: jaas_config}, ["CLIENT"])


def test_jaas_configs_of_other_listeners_are_not_read() -> None:
    properties = {OF_CLIENT: f"{PLAIN} user_alice=a;", OF_OTHER: "${file:secrets:jaas}"}
    assert sasl_properties(properties, ["CLIENT"]).users == {"alice": "a"}


def test_the_mechanisms_of_a_listener_take_precedence() -> None:
    properties = {
        "sasl.enabled.mechanisms": "GSSAPI",
        "listener.name.client.sasl.enabled.mechanisms": "SCRAM-SHA-512, PLAIN",
    }
    assert sasl_properties(properties, ["CLIENT"]).mechanisms == ("SCRAM-SHA-512", "PLAIN")
    assert sasl_properties({}, ["CLIENT"]).mechanisms == ()


def test_listeners_may_differ() -> None:
    """The first listener's are those of all; a listener without users of its own has the first ones."""
    properties = {
        "sasl.enabled.mechanisms": "PLAIN",
        "listener.name.other.sasl.enabled.mechanisms": "SCRAM-SHA-256, PLAIN",
        OF_CLIENT: f"{PLAIN} user_alice=a;",
        OF_OTHER: f"{PLAIN} user_alice=b;",
    }
    found = sasl_properties(properties, ["CLIENT", "OTHER", "THIRD"])
    assert found.mechanisms == ("PLAIN",)
    assert found.users == {"alice": "a"}
    assert found.mechanisms_of == {"listener.name.other.sasl.enabled.mechanisms": "SCRAM-SHA-256,PLAIN"}
    assert found.users_of == {"other": {"alice": "b"}}
    same = properties | {"listener.name.other.sasl.enabled.mechanisms": "PLAIN", OF_OTHER: properties[OF_CLIENT]}
    assert sasl_properties(same, ["CLIENT", "OTHER"]) == (("PLAIN",), {"alice": "a"}, {}, {})


def test_a_further_listener_needs_mechanisms() -> None:
    properties = {"listener.name.client.sasl.enabled.mechanisms": "PLAIN"}
    with pytest.raises(SettingError, match=r"^listener\.name\.other\.sasl\.enabled\.mechanisms is missing: "):
        sasl_properties(properties, ["CLIENT", "OTHER"])


def test_the_names_of_sasl() -> None:
    others = ["listener.name.client.ssl.keystore.location", "sasl.kerberos.service.name", "sasl.jaas.config"]
    of_listener = "listener.name.client.sasl.enabled.mechanisms"
    assert of_sasl(["sasl.enabled.mechanisms", of_listener, OF_CLIENT, OF_OTHER, *others], ["CLIENT"]) == {
        "sasl.enabled.mechanisms",
        of_listener,
        OF_CLIENT,
    }
