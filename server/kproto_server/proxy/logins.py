"""Who logs in by SASL on a proxied connection, as its frames show it.

The broker decides, and the proxy has no passwords: a login counts when the broker's last response of its mechanism has
passed. Of the mechanisms that kproto knows, the first token of a client names the user.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kproto_server.security.principals import USER
from kproto_server.security.sasl import claimed_user
from kproto_server.security.users import SCRAM_HASHES

if TYPE_CHECKING:
    from kproto_server.observation.observe import Observations
    from kproto_server.requests.context import ConnectionInfo

SCRAM_FINAL = b"v="
"""The beginning of the broker's last token of SCRAM."""


class SeenLogin:
    """The authentication of one connection."""

    def __init__(self, observations: Observations, info: ConnectionInfo, mechanism: str) -> None:
        self._observations = observations
        self._info = info
        self.mechanism: str | None = mechanism
        self.is_complete: bool = False
        self._user: str | None = None
        """None: the client has named none that the proxy can read."""

    def sent(self, token: bytes) -> None:
        """Take a token of the client."""
        mechanism = self.mechanism or ""
        if mechanism not in SCRAM_HASHES or self._user is None:
            self._user = claimed_user(mechanism, token)

    def received(self, token: bytes) -> None:
        """Take a token of the broker, or its first bytes: the last one completes the login of a user."""
        is_last = token.startswith(SCRAM_FINAL) if self.mechanism in SCRAM_HASHES else not token
        if is_last and self._user is not None:
            self.is_complete = True
            self._info.principal = USER + self._user

    def failed(self, client_id: str) -> None:
        """Count an authentication that the broker has refused."""
        self._observations.failed_authentication(self._info, client_id, self.mechanism or "", self._user or "")
