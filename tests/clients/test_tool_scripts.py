"""Kafka's own tools, of the newest release, in scripts: each step runs against both brokers.

Method: tool_steps.py; all scripts in one JVM. Later steps show the changes of earlier ones.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.clients.conftest import newest_brokers
from tests.clients.tool_scripts import SCRIPTS, acls
from tests.clients.tool_steps import run_script
from tests.clients.tools import CONFIGS, Pair, Tools, running_tools
from tests.oracle.cluster import NEWEST

pytestmark = pytest.mark.oracle


AUTHORIZER = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
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


def test_acls_print_the_same_against_both(tools: Tools, tmp_path: Path) -> None:
    """Brokers of their own: those of the other scripts have no authorizer, which `kafka-acls.sh` says."""
    with newest_brokers(tmp_path, AUTHORIZER) as addresses:
        run_script(acls.STEPS, Pair(tools, *addresses), tmp_path)


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
