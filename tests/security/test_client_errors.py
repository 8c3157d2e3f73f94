"""A client gets the class of error from kproto that it gets from a real broker with the same settings.

Method. `client_errors` has recorded what ten clients report by each case, from three releases and from kproto as each
of them. The cheap ones run here again, all cases of a client in one process.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from tests.oracle.cluster import NEWEST
from tests.requirements import need_package
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
