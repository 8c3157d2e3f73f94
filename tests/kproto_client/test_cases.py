"""KIP-842 and KIP-333 with real clients and, for crashes, real processes, against kproto."""

import pytest

from tests.kproto_client.cases import CASES
from tests.kproto_client.kafka_fixture import KafkaFixture


@pytest.mark.parametrize("case", CASES)
def test_case(kafka: KafkaFixture, case: str) -> None:
    """The rules are cited in the cases."""
    run, arguments = CASES[case]
    run(kafka, *arguments)
