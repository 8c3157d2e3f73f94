"""The tables of clients and brokers are what their commands write, and each failure in them has a reason."""

from __future__ import annotations

from kproto_server.conformance.broker_cases import BROKER_CASES
from kproto_server.conformance.cases import CASES
from kproto_server.conformance.verdict import Grade
from tests.conformance import broker_table, table
from tests.conformance.reasons import BROKER_REASONS, REASONS

BAD = (Grade.DEGRADED, Grade.FAIL)


def test_the_table_of_clients_is_what_its_command_writes() -> None:
    assert table.TABLE.read_text() == table.rendered(table.read_recorded())


def test_each_client_of_the_table_was_in_all_cases() -> None:
    recorded = table.read_recorded()
    assert {client: list(found["cases"]) for client, found in recorded.items()} == {
        client: list(CASES) for client in recorded
    }


def test_each_failure_of_a_client_has_a_reason() -> None:
    recorded = table.read_recorded()
    failed = {
        (client, case) for client in recorded for case, grade in table.grades(recorded, client).items() if grade in BAD
    }
    assert failed == REASONS.keys()


def test_the_table_of_brokers_is_what_its_command_writes() -> None:
    assert broker_table.TABLE.read_text() == broker_table.rendered(broker_table.read_recorded())


def test_each_broker_of_the_table_was_in_all_cases() -> None:
    recorded = broker_table.read_recorded()
    assert {frozenset(found["cases"]) for found in recorded.values()} == {frozenset(BROKER_CASES)}


def test_each_failure_of_a_broker_has_a_reason() -> None:
    recorded = broker_table.read_recorded()
    failed = {
        (broker.partition(" ")[0], case)
        for broker, found in recorded.items()
        for case, (grade, _) in found["cases"].items()
        if grade == Grade.FAIL
    }
    assert failed == BROKER_REASONS.keys()
