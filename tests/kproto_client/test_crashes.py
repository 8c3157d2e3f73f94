"""KIP-333 with real processes that SIGKILL ends, against kproto."""

import pytest

from tests.kproto_client.crash_cases import CASES
from tests.kproto_client.kafka_side import KafkaSide


@pytest.mark.parametrize("case", CASES)
def test_case(kafka: KafkaSide, case: str) -> None:
    """CK-75, CK-80 to CK-82, CK-91."""
    run, arguments = CASES[case]
    run(kafka, *arguments)
