"""The cost driver finds a handler that takes too long, and nothing in the broker as it is.

Method. A few requests with a fixed seed; the defect is planted in the broker's process.
"""

from __future__ import annotations

import pytest

from kproto.messages.k16_list_groups import ListGroupsRequest
from tests.robustness.broker_process import broker_process
from tests.robustness.control_connection import ControlConnection
from tests.robustness.cost import CostDriver, prepare, run
from tests.robustness.costly_frames import CostlyFrame, frame

QUADRATIC_LIST_GROUPS = """
from kproto_server.handlers import k16_list_groups
right = k16_list_groups.handle
def quadratic(request, context):
    states = list(request.states_filter)
    assert sum(states.count(state) for state in states) >= len(states)
    return right(request, context)
k16_list_groups.handle = quadratic
"""
SEED = 3
STATES = 9_000


@pytest.mark.slow  # starts a process that works for seconds
def test_a_few_costly_requests_are_within_the_limits() -> None:
    driver = run(5.0, SEED, loads=False)
    assert driver.results
    assert driver.findings == []


@pytest.mark.slow  # starts a process that works for seconds
def test_a_planted_quadratic_handler_is_found() -> None:
    request = ListGroupsRequest(states_filter=tuple(f"state-{number}" for number in range(STATES)))
    costly = CostlyFrame("ListGroups", frame(request.encode(4), 16, 4))
    findings = {}
    for planted in ("", QUADRATIC_LIST_GROUPS):
        with broker_process(planted=planted) as broker:
            prepare(broker)
            with ControlConnection(broker.address, broker.pid) as control:
                driver = CostDriver(broker, control)
                driver.measure(costly)
                findings[planted] = driver.findings
    assert findings[""] == []
    assert [finding.split(" (")[0] for finding in findings[QUADRATIC_LIST_GROUPS]] == ["ListGroups"]
