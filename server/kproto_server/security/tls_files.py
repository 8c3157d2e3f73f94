"""The files of a broker with TLS, for itself and for its clients: certificates, keys, and Java's key stores."""

from __future__ import annotations

import os
import socket
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from kproto.errors import UsageError
from kproto_server.security.certificates import PASSWORD, Authority, CertificateKind

if TYPE_CHECKING:
    from collections.abc import Sequence

PRIVATE, PUBLIC = 0o600, 0o644
LOCAL_NAMES = ("localhost", "127.0.0.1", "::1")
CLIENT_NAME = "client"
"""The common name of the certificate that clients may use."""


class TlsFiles:
    """A directory with a CA that signs the certificates of a broker and of its clients.

    The CA stays the same as long as the directory does; each start makes the other files again. Private keys can
    be read by this user only.
    """

    password: str = PASSWORD
    """The password of the PKCS12 files."""

    def __init__(self, directory: str, hosts: Sequence[str] = (), kind: CertificateKind = CertificateKind.AUTO) -> None:
        """Make or complete the directory. ``hosts``: names and addresses of the broker, beside those of this machine.

        Raises:
            UsageError: the directory has a CA that cannot be used.
            OSError: a file cannot be read or written.
        """
        self.directory: Path = Path(directory).absolute()
        self._hosts = tuple(dict.fromkeys((*hosts, *LOCAL_NAMES, socket.gethostname())))
        self.directory.mkdir(parents=True, exist_ok=True)
        self._authority = self._stored_authority()
        client = self._authority.client(CLIENT_NAME, datetime.now(UTC))
        self._write(self.trust_store_file, self._authority.trust_store())
        self._write(self.client_certificate_file, client.certificate_pem)
        self._write(self.client_key_file, client.key_pem, PRIVATE)
        self._write(self.client_key_store_file, client.pkcs12(self._authority), PRIVATE)
        self.use(kind)

    @property
    def ca_file(self) -> Path:
        """The certificate of the CA, in PEM."""
        return self.directory / "ca.pem"

    @property
    def client_ca_file(self) -> Path:
        """The CA that signs the certificates of clients, in PEM."""
        return self.ca_file

    @property
    def revocation_list_file(self) -> Path:
        """The certificates that the CA has revoked, in PEM."""
        return self.directory / "ca.crl"

    @property
    def trust_store_file(self) -> Path:
        """The certificate of the CA in a PKCS12 trust store for Java."""
        return self.directory / "truststore.p12"

    @property
    def certificate_file(self) -> Path:
        """The certificate of the broker, in PEM."""
        return self.directory / "server.pem"

    @property
    def key_file(self) -> Path:
        """The private key of the broker, in PEM."""
        return self.directory / "server-key.pem"

    @property
    def client_certificate_file(self) -> Path:
        """A certificate for clients, in PEM; brokers ask for it with `ssl.client.auth`."""
        return self.directory / "client.pem"

    @property
    def client_key_file(self) -> Path:
        """The private key of the clients' certificate, in PEM."""
        return self.directory / "client-key.pem"

    @property
    def client_key_store_file(self) -> Path:
        """The clients' certificate and key in a PKCS12 key store for Java."""
        return self.directory / "client.p12"

    def use(self, kind: CertificateKind) -> None:
        """Make a new certificate of the broker."""
        now = datetime.now(UTC)
        made = self._authority.server(kind, self._hosts, now)
        revoked = [made] if kind is CertificateKind.REVOKED else []
        self._write(self.revocation_list_file, self._authority.revocation_list(revoked, now))
        self._write(self.certificate_file, made.certificate_pem)
        self._write(self.key_file, made.key_pem, PRIVATE)
        self.kind: CertificateKind = kind
        self.has_weak_key: bool = kind is CertificateKind.WEAK_KEY

    def _stored_authority(self) -> Authority:
        """Return the CA of the directory; make it if there is none."""
        key_file = self.directory / "ca-key.pem"
        if self.ca_file.exists() and key_file.exists():
            try:
                return Authority.load(self.ca_file.read_bytes(), key_file.read_bytes())
            except ValueError:
                raise UsageError(
                    f"TLS: ca.pem and ca-key.pem in {str(self.directory)!r} are no CA: remove both, and one is made"
                ) from None
        authority = Authority.make(datetime.now(UTC))
        self._write(key_file, authority.pair.key_pem, PRIVATE)
        self._write(self.ca_file, authority.pair.certificate_pem)
        return authority

    def _write(self, path: Path, content: bytes, mode: int = PUBLIC) -> None:
        """Write a file in one rename; no other user can read a private one, not for an instant."""
        temporary = path.with_name(f".{path.name}.{os.getpid()}")
        with open(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode), "wb") as file:
            file.write(content)
        temporary.replace(path)
