"""A client gets the class of error from kproto that it gets from a real broker with the same settings.

Method. `client_errors` has recorded what ten clients report by each case, from three releases and from kproto as each
of them. The cheap ones run here again, all cases of a client in one process. `revoked_rights` does the same with
clients whose rights are revoked while they run.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from tests.oracle.cluster import NEWEST
from tests.requirements import need_package
from tests.security import revoked_rights
from tests.security.client_errors import CLIENTS, OLDEST, RECORDED, RELEASES, Endpoints, kproto, kproto_as

RESULTS = json.loads(RECORDED.read_text())
RUN_HERE = ("confluent-kafka", "franz-go", "sarama", "kafkajs")
DIFFERENT = {(release, client) for release in RELEASES[1:] for client in ("franz-go", "sarama", "kafkajs")}
"""Clients that cannot read the alert of an old release to which they have shown no certificate."""


@pytest.fixture(scope="module")
def endpoints() -> Iterator[Endpoints]:
    with kproto() as found:
        yield found


@pytest.mark.parametrize("client", RUN_HERE)
def test_a_client_gets_the_error_that_a_real_broker_gives(client: str, endpoints: Endpoints) -> None:
    if client == "confluent-kafka":
        need_package("confluent_kafka")
    run, cases = CLIENTS[client]
    assert run(cases, endpoints) == RESULTS[client][NEWEST]


def test_a_client_of_today_gets_the_errors_of_an_old_release() -> None:
    need_package("confluent_kafka")
    run, cases = CLIENTS["confluent-kafka"]
    with kproto(OLDEST) as endpoints:
        assert run(cases, endpoints) == RESULTS["confluent-kafka"][OLDEST]


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("release", RELEASES)
def test_each_case_was_recorded_and_ends_alike(release: str, client: str) -> None:
    of_kproto, real = RESULTS[client][kproto_as(release)], RESULTS[client][release]
    assert real.keys() == CLIENTS[client][1].keys()
    different = {"no certificate of the client"} if (release, client) in DIFFERENT else set()
    assert {case for case in real if of_kproto[case] != real[case]} == different


def test_librdkafka_gets_the_errors_of_revoked_rights(endpoints: Endpoints) -> None:
    need_package("confluent_kafka")
    cases = {name: case for name, case in revoked_rights.REVOCATIONS.items() if not case.waits_for_the_session}
    recorded = json.loads(revoked_rights.RECORDED.read_text())["confluent-kafka"][NEWEST]
    assert revoked_rights.run("confluent-kafka", endpoints, cases) == {name: recorded[name] for name in cases}


@pytest.mark.parametrize("client", revoked_rights.CLIENTS)
def test_each_revocation_was_recorded_and_ends_alike(client: str) -> None:
    recorded = json.loads(revoked_rights.RECORDED.read_text())[client]
    assert recorded[NEWEST].keys() == revoked_rights.REVOCATIONS.keys()
    assert recorded[kproto_as(NEWEST)] == recorded[NEWEST]
