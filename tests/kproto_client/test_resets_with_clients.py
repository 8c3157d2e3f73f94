"""KIP-842 with real clients against kproto; the cases are those that a real Kafka is asked too."""

import pytest

from tests.kproto_client.kafka_side import KafkaSide
from tests.kproto_client.reset_cases import CASES


@pytest.mark.parametrize("case", CASES)
def test_case(kafka: KafkaSide, case: str) -> None:
    """CK-10 to CK-36."""
    run, arguments = CASES[case]
    run(kafka, *arguments)
