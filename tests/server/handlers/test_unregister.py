"""UnregisterBroker and UnregisterController, with the responses of real brokers to the same requests."""

from __future__ import annotations

from typing import Any

import pytest

from kproto.codes import ErrorCode
from kproto.messages.k60_describe_cluster import DescribeClusterRequest
from kproto.messages.k64_unregister_broker import UnregisterBrokerRequest
from kproto.messages.k94_unregister_controller import UnregisterControllerRequest
from tests.coordinator.broker_state import ask, new_state


def unregister(state: Any, broker_id: int) -> tuple[int, str]:
    response = ask(state, UnregisterBrokerRequest(broker_id=broker_id), 0)
    return response.error_code, response.error_message


def registered(state: Any) -> list[tuple[int, bool]]:
    request = DescribeClusterRequest(include_cluster_authorized_operations=False, include_fenced_brokers=True)
    return [(one.broker_id, one.is_fenced) for one in ask(state, request, 2).brokers]


@pytest.mark.parametrize("broker_id", [99, 0, -1])
@pytest.mark.parametrize("release", ["3.3", "3.9", "4.0", "4.1", "4.2", "4.4"])
def test_an_unknown_broker_is_not_registered(release: str, broker_id: int) -> None:
    message = f"Broker ID {broker_id} is not currently registered" if release >= "4.1" else ""
    assert unregister(new_state(release), broker_id) == (ErrorCode.BROKER_ID_NOT_REGISTERED, message)


def test_a_stopped_broker_is_forgotten_until_it_starts() -> None:
    """With the responses of 4.4.0."""
    state = new_state("4.4", node_count=2)
    state.cluster.stop_node(2)
    assert registered(state) == [(1, False), (2, True)]
    assert unregister(state, 2) == (ErrorCode.NONE, "")
    assert registered(state) == [(1, False)]
    assert unregister(state, 2) == (ErrorCode.BROKER_ID_NOT_REGISTERED, "Broker ID 2 is not currently registered")
    state.cluster.start_node(2)
    assert registered(state) == [(1, False), (2, False)]


def test_a_running_broker_stays_registered() -> None:
    state = new_state("4.4", node_count=2)
    assert unregister(state, 2) == (ErrorCode.INVALID_REQUEST, "Broker 2 is running: stop it first.")
    assert registered(state) == [(1, False), (2, False)]


def test_only_the_active_controller_is_registered() -> None:
    state = new_state("4.4", node_count=2)
    for controller_id in (99, -1, 0, 2):
        response = ask(state, UnregisterControllerRequest(controller_id=controller_id), 0)
        assert response.error_code == ErrorCode.CONTROLLER_ID_NOT_REGISTERED
        assert response.error_message == f"Controller ID {controller_id} is not currently registered."
    response = ask(state, UnregisterControllerRequest(controller_id=1), 0)
    assert response.error_code == ErrorCode.INVALID_REQUEST
    assert response.error_message == "Controller cannot unregister itself while it is active."
