"""A client gets the class of error from kproto that it gets from a real broker with the same settings.

Method. `client_errors` has recorded what ten clients report by each case, from kproto and from a real broker. The cheap
ones run here again, all cases of a client in one process.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from tests.oracle.cluster import NEWEST
from tests.requirements import need_package
from tests.security.client_errors import CLIENTS, KPROTO, RECORDED, Endpoints, kproto

RESULTS = json.loads(RECORDED.read_text())
RUN_HERE = ("confluent-kafka", "franz-go", "sarama", "kafkajs")


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


@pytest.mark.parametrize("client", CLIENTS)
def test_each_case_was_recorded_and_ends_alike(client: str) -> None:
    of_kproto, real = RESULTS[client][KPROTO], RESULTS[client][NEWEST]
    assert real.keys() == CLIENTS[client][1].keys()
    assert of_kproto == real
