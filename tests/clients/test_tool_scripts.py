"""Kafka's own tools, of the newest release, in scripts: each step runs against both brokers.

Method: tool_steps.py; all scripts in one JVM. Later steps show the changes of earlier ones.
"""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from tests.clients.conftest import broker_under_test
from tests.clients.tool_scripts import SCRIPTS, acls, delegation_tokens
from tests.clients.tool_steps import run_script
from tests.clients.tools import ACLS, CONFIGS, Pair, Tools, running_tools
from tests.oracle.cluster import AS_DELIVERED, NEWEST, real_kafka
from tests.oracle.ports import free_port
from tests.waiting import wait_until

pytestmark = pytest.mark.oracle


SASL = "SASL_PLAINTEXT"
SECURED = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
    "delegation.token.secret.key": "the-secret-key",
    "connection.failed.authentication.delay.ms": "0",
}
LOGIN_MODULE = "org.apache.kafka.common.security"
ONLY_REAL = {
    "listener.security.protocol.map": f"+{SASL}:{SASL}",
    "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256",
    "listener.name.sasl_plaintext.plain.sasl.jaas.config": f"{LOGIN_MODULE}.plain.PlainLoginModule required "
    + " ".join(f'user_{name}="{password}"' for name, password in delegation_tokens.USERS.items())
    + ";",
    "listener.name.sasl_plaintext.scram-sha-256.sasl.jaas.config": f"{LOGIN_MODULE}.scram.ScramLoginModule required;",
}


@pytest.fixture(scope="module")
def tools() -> Iterator[Tools]:
    with running_tools(NEWEST) as running:
        yield running


@pytest.fixture(scope="module")
def pair(tools: Tools, tested_and_real: tuple[str, str]) -> Pair:
    return Pair(tools, *tested_and_real)


@pytest.mark.parametrize("script", SCRIPTS)
def test_every_step_prints_the_same_against_both(pair: Pair, script: str, tmp_path: Path) -> None:
    run_script(SCRIPTS[script], pair, tmp_path)


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mapping[str, tuple[str, str]]]:
    """Return the addresses of two brokers with an authorizer and a secret key, by the name of the listener."""
    folder, port = tmp_path_factory.mktemp("secured"), free_port()
    more = f"+{SASL}://127.0.0.1:{port}"
    props = {**AS_DELIVERED, **SECURED, **ONLY_REAL, "listeners": more, "advertised.listeners": more}
    users = [word for user in delegation_tokens.USERS.items() for word in ("--user", ":".join(user))]
    listeners = {"listeners": f"PLAINTEXT://127.0.0.1:0,{SASL}://127.0.0.1:0"}
    flags = ["--kafka-version", ".".join(NEWEST.split(".")[:2]), "--sasl", ONLY_REAL["sasl.enabled.mechanisms"], *users]
    with (
        real_kafka(NEWEST, props=props) as real,
        broker_under_test(folder, *flags, settings=SECURED | listeners) as tested,
    ):
        log, line = folder / "kproto.log", re.compile(rf"listener {SASL} at (\S+)")
        wait_until(
            lambda: line.search(log.read_text()) is not None, f"the address of {SASL}"
        )  # it comes after that of the broker
        (own,) = line.findall(log.read_text())
        yield {"PLAINTEXT": (tested.bootstrap, real.bootstrap), SASL: (own, f"127.0.0.1:{port}")}


def test_acls_print_the_same_against_both(tools: Tools, secured: Mapping[str, tuple[str, str]], tmp_path: Path) -> None:
    """Brokers of their own: those of the other scripts have no authorizer, which `kafka-acls.sh` says."""
    run_script(acls.STEPS, Pair(tools, *secured["PLAINTEXT"]), tmp_path)


def test_delegation_tokens_print_the_same_against_both(
    tools: Tools, secured: Mapping[str, tuple[str, str]], tmp_path: Path
) -> None:
    plain = Pair(tools, *secured["PLAINTEXT"])
    plain.create_topic("seen-by-alice", 1)
    plain.wait_topic("seen-by-alice", 1)
    plain.same(
        ACLS, *["--add", "--allow-principal", "User:alice", "--operation", "Describe", "--topic", "seen-by-alice"]
    )
    problems = list(delegation_tokens.TokenScript(Pair(tools, *secured[SASL]), tmp_path).problems())
    assert not problems, "\n\n".join(problems)


def test_broker_configs_are_a_subset_of_kafkas(pair: Pair) -> None:
    """kproto has about forty of Kafka's settings. Only settings that this real broker sets have other values."""
    tested, real = (_settings(pair, address) for address in pair.addresses)

    assert set(tested) <= set(real)
    assert len(tested) > 30
    set_here = {name for name, line in real.items() if "STATIC_BROKER_CONFIG" in line}
    assert {name: tested[name] for name in tested if name not in set_here} == {
        name: real[name] for name in tested if name not in set_here
    }


def _settings(pair: Pair, address: str) -> dict[str, str]:
    printed = pair.run(address, CONFIGS, *["--describe", "--entity-type", "brokers", "--entity-name", "1", "--all"])
    return {line.strip().partition("=")[0]: line for line in printed.out.splitlines() if line.startswith("  ")}
