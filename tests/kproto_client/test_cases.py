"""KIP-842 and KIP-333 with real clients and, for crashes, real processes, against kproto."""

import pytest

from tests.kproto_client.added_partition_cases import CASES_WITH_CONSUMER_PROTOCOL
from tests.kproto_client.cases import CASES
from tests.kproto_client.kafka_fixture import KafkaFixture

ALL_CASES = {**CASES, **CASES_WITH_CONSUMER_PROTOCOL}


@pytest.mark.parametrize("case", ALL_CASES)
def test_case(kafka: KafkaFixture, case: str) -> None:
    """The rules are cited in the cases."""
    run, arguments = ALL_CASES[case]
    run(kafka, *arguments)
