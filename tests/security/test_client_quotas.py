"""Client quotas that administrators set (KIP-546, KIP-612): kproto responds as the releases that were recorded."""

from __future__ import annotations

import json
import math
import time
from pathlib import Path
from typing import Any

import pytest

from kproto.codes import ErrorCode
from kproto.messages.k49_alter_client_quotas import AlterClientQuotasRequest, EntityData, EntryData, OpData
from kproto_server.broker.broker import Broker
from tests.coordinator.broker_state import ask, new_state
from tests.network.raw_client import RawClient
from tests.robustness.steps import count_steps
from tests.security.quota_scripts import (
    ALL,
    CONNECTIONS,
    CONSUMER,
    EXACT,
    FILE,
    MUTATIONS,
    PRODUCER,
    REQUEST,
    both,
    change,
    describe,
    newest_version,
    transcript,
    user,
)

STEPS = json.loads(FILE.read_text())
RELEASES = sorted({name for step in STEPS for names in step for name in names.split()})
KEYS = PRODUCER, CONSUMER, REQUEST, MUTATIONS
ORDERED_CHANGES: tuple[tuple[tuple[tuple[str, float | None], ...], list[str]], ...] = (
    (((PRODUCER, 1.0), (CONSUMER, 1.0), (REQUEST, 1.0)), [CONSUMER, REQUEST, PRODUCER]),
    (((CONSUMER, None),), [REQUEST, PRODUCER]),
    (((REQUEST, None),), [PRODUCER]),
    (((REQUEST, 2.0),), [PRODUCER, REQUEST]),
    (((MUTATIONS, 1.0),), [MUTATIONS, PRODUCER, REQUEST]),
    (((CONSUMER, 5.0),), [PRODUCER, CONSUMER, MUTATIONS, REQUEST]),
    (((MUTATIONS, None),), [CONSUMER, PRODUCER, REQUEST]),
    (((PRODUCER, None), (CONSUMER, 2.0)), [CONSUMER, REQUEST]),
    (((PRODUCER, 3.0), (MUTATIONS, 3.0)), [PRODUCER, CONSUMER, MUTATIONS, REQUEST]),
    (((REQUEST, None), (PRODUCER, None), (MUTATIONS, None), (CONSUMER, None)), []),
    (((MUTATIONS, 1.0), (REQUEST, 1.0), (CONSUMER, 1.0), (PRODUCER, 1.0)), [PRODUCER, CONSUMER, MUTATIONS, REQUEST]),
    (((PRODUCER, None),), [CONSUMER, MUTATIONS, REQUEST]),
    (((CONSUMER, None), (PRODUCER, 2.0)), [MUTATIONS, REQUEST, PRODUCER]),
)
"""Changes of one user, and the order of its values then (measured on 4.2.2)."""
ALICES = [0, "", [[[["user", "alice"]], [[PRODUCER, 1024.0]]]]]


@pytest.mark.parametrize("release", RELEASES)
def test_the_responses_are_those_of_the_release(release: str) -> None:
    recorded = [next(one for names, one in step.items() if release in names.split()) for step in STEPS]
    with Broker.running(kafka_version=release) as broker:
        found = transcript(broker.bootstrap_servers, newest_version(release))
    differences = {number: pair for number, pair in enumerate(zip(found, recorded, strict=True)) if pair[0] != pair[1]}
    assert not differences, json.dumps(differences, indent=1)[:20_000]


def orders(address: str, pause_s: float = 0.0) -> list[list[str]]:
    """Return the order of the values of a user after each of `ORDERED_CHANGES`, and remove them."""
    described, found = describe(("user", EXACT, "ordered")), []
    with RawClient(address) as client:
        for ops, _ in ORDERED_CHANGES:
            change(user("ordered"), *ops)(client, 1)
            time.sleep(pause_s)
            found.append([key for _, values in described(client, 1)[2] for key, _ in values])
        change(user("ordered"), *((key, None) for key in KEYS))(client, 1)
    return found


def test_values_have_the_order_of_a_quorum() -> None:
    with Broker.running(kafka_version="4.2") as broker:
        assert orders(broker.bootstrap_servers) == [order for _, order in ORDERED_CHANGES]


def test_quotas_survive_restarts(tmp_path: Path) -> None:
    directory = str(tmp_path / "data")
    with Broker.running(data=directory) as broker, RawClient(broker.bootstrap_servers) as client:
        change(user("alice"), (PRODUCER, 1024.0))(client, 1)
        change(both(None, "app"), (REQUEST, 0.5))(client, 1)
        change({"ip": "10.0.0.1"}, (CONNECTIONS, 5.0))(client, 1)
        change({"ip": "10.0.0.1"}, (CONNECTIONS, None))(client, 1)
        described = ALL(client, 1)
        assert len(described[2]) == 2
    with Broker.running(data=directory) as broker, RawClient(broker.bootstrap_servers) as client:
        assert ALL(client, 1) == described


@pytest.mark.parametrize("release", ["2.8", "3.3", "4.3"])
def test_quotas_that_are_no_finite_numbers_survive_restarts(release: str, tmp_path: Path) -> None:
    """These releases accept them; the file with one could not be read."""
    options: Any = {"kafka_version": release, "data": str(tmp_path / "data")}
    version = newest_version(release)
    with Broker.running(**options) as broker, RawClient(broker.bootstrap_servers) as client:
        assert change(user("alice"), (REQUEST, math.nan))(client, version)[0][0] == 0
        assert change(user("bob"), (REQUEST, math.inf))(client, version)[0][0] == 0
        change(user("carol"), (CONSUMER, math.nan))(client, version)
        described = repr(ALL(client, version))
        assert (described.count("nan"), described.count("inf")) == (1 if release == "2.8" else 2, 1)
    with Broker.running(**options) as broker, RawClient(broker.bootstrap_servers) as client:
        assert repr(ALL(client, version)) == described


def test_a_reset_removes_quotas_and_a_snapshot_brings_them_back() -> None:
    with Broker.running() as broker, RawClient(broker.bootstrap_servers) as client:
        change(user("alice"), (PRODUCER, 1024.0))(client, 1)
        snapshot = broker.snapshot()
        broker.reset()
        with RawClient(broker.bootstrap_servers) as other:
            assert ALL(other, 1) == [0, "", []]
            broker.restore(snapshot)
        with RawClient(broker.bootstrap_servers) as other:
            assert ALL(other, 1) == ALICES


def test_quotas_of_few_entities_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kproto_server.handlers.k49_alter_client_quotas.ENTITIES_MAX", 2)
    with Broker.running() as broker, RawClient(broker.bootstrap_servers) as client:
        codes = [change(user(name), (PRODUCER, 1.0))(client, 1)[0][0] for name in "abcb"]
        assert codes == [0, 0, ErrorCode.POLICY_VIOLATION, 0]
        assert change(user("a" * 20_000), (PRODUCER, 1.0))(client, 1)[0][0] == ErrorCode.POLICY_VIOLATION


def test_names_of_hosts_are_not_resolved() -> None:
    with Broker.running() as broker, RawClient(broker.bootstrap_servers) as client:
        found = change({"ip": "kafka.apache.org"}, (CONNECTIONS, 1.0))(client, 1)
        text = "kafka.apache.org is not a valid IP or resolvable host."
        assert found == [[ErrorCode.INVALID_REQUEST, text, [["ip", "kafka.apache.org"]]]]


def test_the_cost_of_a_change_does_not_multiply_with_the_quotas_that_exist() -> None:
    """All quotas were copied for each entity of a request: 2.7 s for 1500 entities beside 7500."""
    entries = tuple(
        EntryData(
            entity=(EntityData(entity_type="user", entity_name=f"u{index}"),),
            ops=(OpData(key=PRODUCER, value=1.0, remove=False),),
        )
        for index in range(10)
    )
    request = AlterClientQuotasRequest(entries=entries, validate_only=True)

    def steps(count: int) -> int:
        state = new_state()
        state.cluster.set_client_quotas({(("user", f"old{index}"),): {PRODUCER: 1.0} for index in range(count)})
        return count_steps(lambda: ask(state, request, 1))

    steps(1)
    assert steps(400) < 1.5 * steps(100)
