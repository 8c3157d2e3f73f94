"""A client without a library, over TLS."""

from __future__ import annotations

import ssl

from tests.network.raw_client import RawClient


class SecuredClient(RawClient):
    """One connection with TLS, after its handshake. A socket that ends without the end of TLS is an error."""

    def __init__(self, address: str, context: ssl.SSLContext, *, host: str = "localhost") -> None:
        """``host``: the name or address that the certificate must have.

        Raises:
            ssl.SSLError: client and broker do not agree.
        """
        super().__init__(address)
        try:
            self.socket: ssl.SSLSocket = context.wrap_socket(
                self.socket, server_hostname=host, suppress_ragged_eofs=False
            )
        except BaseException:
            self.socket.close()
            raise

    @property
    def version(self) -> str | None:
        """The version of TLS."""
        return self.socket.version()
