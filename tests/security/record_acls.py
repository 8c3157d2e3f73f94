"""Record what real brokers respond to `CASES`: `python -m tests.security.record_acls RELEASE ADMIN USER`.

ADMIN is host:port of a listener without authentication whose clients are super users (``User:ANONYMOUS``), USER one
with SASL_PLAINTEXT and PLAIN, where alice has the password "secret".
"""

from __future__ import annotations

import json
import socket
import sys
from pathlib import Path
from typing import Any

from kproto.client_connection import ClientConnection
from kproto.messages.k17_sasl_handshake import SaslHandshakeRequest
from kproto.messages.k36_sasl_authenticate import SaslAuthenticateRequest
from tests.security.acl_scripts import Script, write_recording
from tests.waiting import LIMIT_S

FOLDER = Path(__file__).parents[2] / "fixtures" / "acls"


class SocketClient:
    """A connection to a real broker."""

    def __init__(self, address: str, *, logs_in: bool = False) -> None:
        host, _, port = address.rpartition(":")
        self._socket = socket.create_connection((host, int(port)), LIMIT_S)
        self._client = ClientConnection("test")
        if logs_in:
            self.ask(SaslHandshakeRequest(mechanism="PLAIN"), 1)
            assert not self.ask(SaslAuthenticateRequest(auth_bytes=b"\0alice\0secret"), 0).error_code

    def ask(self, request: Any, version: int) -> Any:
        """Return the response; None: the broker has closed the connection."""
        self._socket.sendall(self._client.send(request, version))
        while True:
            data = self._socket.recv(1 << 16)
            if not data:
                return None
            for received in self._client.receive(data):
                return received.response


def main() -> None:
    release, admin, user = sys.argv[1:4]
    script = Script(SocketClient(admin), SocketClient(user, logs_in=True), release,
                    lambda: SocketClient(user, logs_in=True))  # fmt: skip
    found = script.run(sys.argv[4:] or None)
    if sys.argv[4:]:
        print(json.dumps(found, indent=1))
    else:
        write_recording(FOLDER / f"{release}.json", found)


if __name__ == "__main__":
    main()
