"""A client that logs in to a broker without sockets, whose clock stands still."""

from __future__ import annotations

from typing import Any

from kproto.client_connection import ClientConnection
from kproto.messages.k17_sasl_handshake import SaslHandshakeRequest
from kproto.messages.k36_sasl_authenticate import SaslAuthenticateRequest
from kproto_server.connection.authenticating_connection import AuthenticatingConnection
from kproto_server.requests.context import ConnectionInfo
from kproto_server.security.sasl import Authentication, SaslRules
from kproto_server.security.users import ScramCredentials, Users
from kproto_server.testing import InMemoryBroker


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
        """Return the response, which does not wait; None: there is none."""
        now_ms = self._broker.clock.now_ms()
        sent = self._connection.receive(self._client.send(request, version), now_ms)
        if not sent and self._connection.is_delay_complete:
            sent = self._connection.resume(now_ms)
        responses = [one.response for one in self._client.receive(sent)]
        return responses[0] if responses else None

    @property
    def close_reason(self) -> str | None:
        return self._connection.close_reason

    def shake_hands(self, mechanism: str = "PLAIN") -> int:
        """Return the error code of the response."""
        code: int = self.ask(SaslHandshakeRequest(mechanism=mechanism), 1).error_code
        return code

    def log_in(self) -> None:
        assert self.shake_hands() == 0
        assert self.ask(SaslAuthenticateRequest(auth_bytes=b"\0alice\0secret"), 1).error_code == 0
