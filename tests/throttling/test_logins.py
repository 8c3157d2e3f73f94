"""Clients are not throttled before they are authenticated: in Kafka, their authenticators know no quotas."""

from __future__ import annotations

from kproto.messages.k12_heartbeat import HeartbeatRequest
from kproto.messages.k18_api_versions import ApiVersionsRequest
from kproto_server.testing import InMemoryBroker
from tests.security.in_memory_login import Login
from tests.throttling.test_handler_time import SlowHandlers
from tests.throttling.test_throttling import set_quota


def test_a_login_is_not_throttled() -> None:
    broker = InMemoryBroker(settings={"sasl.enabled.mechanisms": "PLAIN", "connections.max.reauth.ms": "60000"})
    SlowHandlers(broker, 0.05)
    set_quota(broker, "request_percentage", 0.0001)
    client = Login(broker)
    assert (
        client.ask(ApiVersionsRequest(client_software_name="a", client_software_version="1"), 3).throttle_time_ms == 0
    )
    for _ in range(2):  # a client that authenticates again is not throttled either
        client.log_in()
    assert client.ask(HeartbeatRequest(group_id="g", generation_id=1, member_id="m"), 3).throttle_time_ms == 1000
