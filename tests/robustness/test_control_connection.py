"""The control connection finds what holds the broker, and what it does wrong.

Method. The broker is a process; a defect is planted in it before it starts.
"""

from __future__ import annotations

import pytest

from kproto.messages.k16_list_groups import ListGroupsRequest
from tests.network.raw_client import RawClient
from tests.robustness.broker_process import broker_process
from tests.robustness.control_connection import WAIT_MAX_CPU_S, ControlConnection
from tests.waiting import wait_until

SLOW_LIST_GROUPS = f"""
from time import process_time
from kproto_server.handlers import k16_list_groups
right = k16_list_groups.handle
def slow(request, context):
    end = process_time() + {3 * WAIT_MAX_CPU_S}
    while process_time() < end: pass
    return right(request, context)
k16_list_groups.handle = slow
"""


@pytest.mark.slow  # starts processes
def test_nothing_waits_while_nothing_else_happens() -> None:
    with broker_process() as broker, ControlConnection(broker.address, broker.pid) as control:
        wait_until(lambda: control.request_count >= 300 or control.failure is not None, "300 requests")
    control.check()
    assert control.worst.cpu_s > 0


@pytest.mark.slow  # starts processes
def test_a_request_that_holds_the_broker_is_found() -> None:
    with broker_process(planted=SLOW_LIST_GROUPS) as broker, RawClient(broker.address) as client:
        with ControlConnection(broker.address, broker.pid, pause_s=0) as control:
            control.take_worst()
            control.during = "ListGroups"
            for _ in range(3):
                client.ask(ListGroupsRequest(), 0)
        # On a busy machine the connection reads its response late, and the clock has gone on with the next ListGroups.
        with pytest.raises(AssertionError, match=r"waited [2-9]..\.. ms of CPU .* ListGroups"):
            control.check()


@pytest.mark.slow  # starts processes
def test_a_broker_that_dies_is_a_failure() -> None:
    with broker_process() as broker:
        control = ControlConnection(broker.address, broker.pid)
        control.__enter__()
    wait_until(lambda: control.failure is not None, "the failure")
    with pytest.raises(AssertionError, match="the control connection failed"):
        control.check()
