"""KIP-333 with real clients against kproto; the cases are those that a real Kafka is asked too."""

import pytest

from tests.kproto_client.kafka_side import KafkaSide
from tests.kproto_client.parallel_cases import CASES as OF_CALLS
from tests.kproto_client.parallel_log_cases import CASES as OF_LOGS

CASES = {**OF_CALLS, **OF_LOGS}


@pytest.mark.parametrize("case", CASES)
def test_case(kafka: KafkaSide, case: str) -> None:
    """CK-50 to CK-91."""
    run, arguments = CASES[case]
    run(kafka, *arguments)
