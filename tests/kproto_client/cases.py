"""All cases; pytest runs them against kproto, `python -m tests.kproto_client` against a real Kafka."""

from __future__ import annotations

from tests.kproto_client import (
    added_partition_cases,
    catch_up_broker_cases,
    catch_up_cases,
    catch_up_order_cases,
    crash_cases,
    reset_cases,
)
from tests.kproto_client.kafka_fixture import Case

CASES: dict[str, Case] = {
    **reset_cases.CASES,
    **added_partition_cases.CASES,
    **catch_up_cases.CASES,
    **catch_up_order_cases.CASES,
    **catch_up_broker_cases.CASES,
    **crash_cases.CASES,
}
