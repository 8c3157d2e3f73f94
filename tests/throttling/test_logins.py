"""Clients are not throttled before they are authenticated: in Kafka, their authenticators know no quotas."""

from __future__ import annotations

from typing import Any

from kproto.client_connection import ClientConnection
from kproto.messages.k12_heartbeat import HeartbeatRequest
from kproto.messages.k17_sasl_handshake import SaslHandshakeRequest
from kproto.messages.k18_api_versions import ApiVersionsRequest
from kproto.messages.k36_sasl_authenticate import SaslAuthenticateRequest
from kproto_server.connection.authenticating_connection import AuthenticatingConnection
from kproto_server.requests.context import ConnectionInfo
from kproto_server.security.sasl import Authentication, SaslRules
from kproto_server.security.users import ScramCredentials, Users
from kproto_server.testing import InMemoryBroker
from tests.throttling.test_handler_time import SlowHandlers
from tests.throttling.test_throttling import set_quota


class Login:
    """A client that logs in as alice."""

    def __init__(self, broker: InMemoryBroker) -> None:
        self._broker = broker
        self._client = ClientConnection("app")
        info = ConnectionInfo("/127.0.0.1")
        self._connection = AuthenticatingConnection(broker.dispatcher, broker.state.cluster.nodes[1], info)
        users = Users({"alice": "secret"}, ScramCredentials(bytes))
        self._connection.require(Authentication(users, SaslRules(), lambda: "nonce"))

    def ask(self, request: Any, version: int) -> Any:
        """Return the response, which does not wait."""
        now_ms = self._broker.clock.now_ms()
        sent = self._connection.receive(self._client.send(request, version), now_ms)
        if not sent and self._connection.is_delay_complete:
            sent = self._connection.resume(now_ms)
        [received] = self._client.receive(sent)
        return received.response

    def log_in(self) -> None:
        assert self.ask(SaslHandshakeRequest(mechanism="PLAIN"), 1).error_code == 0
        assert self.ask(SaslAuthenticateRequest(auth_bytes=b"\0alice\0secret"), 1).error_code == 0


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
