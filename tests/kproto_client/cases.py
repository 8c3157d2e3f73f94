"""All cases that a real broker is asked."""

from __future__ import annotations

from tests.kproto_client.crash_cases import CASES as CRASH_CASES
from tests.kproto_client.kafka_side import Case
from tests.kproto_client.parallel_cases import CASES as PARALLEL_CASES
from tests.kproto_client.parallel_log_cases import CASES as PARALLEL_LOG_CASES
from tests.kproto_client.parallel_log_cases import OF_TRANSACTIONS
from tests.kproto_client.reset_cases import CASES as RESET_CASES

CASES: dict[str, Case] = {**RESET_CASES, **PARALLEL_CASES, **PARALLEL_LOG_CASES, **OF_TRANSACTIONS, **CRASH_CASES}
