"""TLS of a broker: its certificates, and other certificates while it runs."""

from __future__ import annotations

import tempfile
from typing import TYPE_CHECKING

from kproto.errors import UsageError
from kproto_server.configuration.key_stores import has_own_stores
from kproto_server.security.certificates import CertificateKind
from kproto_server.security.principals import PrincipalMapper, subject_of
from kproto_server.security.tls_files import TlsFiles

if TYPE_CHECKING:
    import ssl
    from collections.abc import Iterable

    from kproto_server.broker.thread import RunInBrokerThread
    from kproto_server.configuration.settings import Settings
    from kproto_server.security.refusals import TlsParameters


class Tls:
    """The files and the settings of a broker's TLS. Owns a temporary directory if it makes one; `close` removes it."""

    def __init__(self, kind: CertificateKind, hosts: Iterable[str], settings: Settings, directory: str | None) -> None:
        """``hosts``: the names and addresses by which clients know the broker, beside those of this machine.

        Raises:
            UsageError: the directory has files that cannot be used, or cannot be written, or a rule for principals is
                wrong.
        """
        self._principal_mapper = PrincipalMapper(settings.str("ssl.principal.mapping.rules"))
        self._temporary = tempfile.TemporaryDirectory(prefix="kproto-tls-") if directory is None else None
        self._settings = settings
        self._contexts: dict[tuple[str, str], ssl.SSLContext] = {}
        """By client authentication and versions of TLS, with the certificate of now."""
        self._parameters: dict[tuple[str, str], TlsParameters] = {}
        """Of clients without a certificate, by version and cipher, with the certificate of now."""
        path = self._temporary.name if self._temporary is not None else directory
        assert path is not None
        try:
            self.files: TlsFiles = _files(path, hosts, kind, settings)
            self.context(settings)
        except OSError as error:
            self.close()
            raise UsageError(f"TLS: can't write {error.filename or path!r}: {error.strerror}") from None
        except UsageError:
            self.close()
            raise

    @property
    def wants_client_certificate(self) -> bool:
        """Whether clients need a certificate (`ssl.client.auth`)."""
        return self._settings.str("ssl.client.auth") == "required" and self.files.client_certificate_file.exists()

    def context(self, settings: Settings) -> ssl.SSLContext:
        """Return the context of the connections to a node with these settings, which may change.

        Raises:
            UsageError: kproto has no version of TLS that is enabled, or a file cannot be read.
        """
        key = settings.str("ssl.client.auth"), settings.str("ssl.enabled.protocols")
        found = self._contexts.get(key)
        if found is None:
            from kproto_server.network.tls import server_context

            client_auth, protocols = key
            found = self._contexts[key] = server_context(
                str(self.files.certificate_file),
                str(self.files.key_file),
                has_weak_key=self.files.has_weak_key,
                client_ca_file=str(self.files.client_ca_file),
                client_auth=client_auth,
                protocols=[name.strip() for name in protocols.split(",")],
            )
        return found

    def parameters(self, version: str, cipher: str, certificate: bytes | None) -> TlsParameters:
        """Return what a report says of a handshake. ``certificate``: of the client, in DER; None: it has none."""
        found = self._parameters.get((version, cipher)) if certificate is None else None
        if found is None:
            from cryptography.x509 import load_der_x509_certificate, load_pem_x509_certificate

            from kproto_server.security.refusals import TlsParameters, refusals

            broker = load_pem_x509_certificate(self.files.certificate_file.read_bytes())
            client = None if certificate is None else load_der_x509_certificate(certificate)
            found = TlsParameters(version, cipher, refusals(cipher, broker, client))
            if certificate is None:
                self._parameters[version, cipher] = found
        return found

    def principal(self, certificate: bytes) -> str:
        """Return the principal of a client with a certificate in DER.

        Raises:
            NoMatchingRule: there is none.
        """
        return self._principal_mapper.principal(subject_of(certificate))

    def use(self, kind: CertificateKind) -> None:
        """Make a new certificate; connections from now on have it.

        Raises:
            OSError: a file cannot be written.
        """
        self.files.use(kind)
        self._contexts.clear()
        self._parameters.clear()

    def close(self) -> None:
        """Remove the files, if they are temporary."""
        if self._temporary is not None:
            self._temporary.cleanup()


def _files(path: str, hosts: Iterable[str], kind: CertificateKind, settings: Settings) -> TlsFiles:
    """Return the files of certificates that kproto makes, or of the key store in the settings."""
    if not has_own_stores(settings):
        return TlsFiles(path, tuple(hosts), kind)
    from kproto_server.broker.own_stores import OwnStores, OwnTlsFiles  # most brokers have none

    stores = OwnStores.of(settings)
    assert stores is not None, "the settings have some"
    if kind is not CertificateKind.AUTO:
        raise UsageError(f"tls={kind.value}: a broker with a key store of its own has no such certificate: give auto")
    return OwnTlsFiles(path, stores)


class BrokerTls:
    """TLS of a running `Broker`: the files that clients need, and its certificate."""

    def __init__(self, run: RunInBrokerThread, tls: Tls) -> None:
        self._run = run
        self._tls = tls

    @property
    def files(self) -> TlsFiles:
        """The paths of the certificates, keys and key stores."""
        return self._tls.files

    def use(self, certificate: str) -> None:
        """Give the connections from now on another certificate: auto (a right one, or the own key store, which is read
        again), expired, not-yet-valid, wrong-name,
        unknown-ca, revoked, or weak-key.

        Raises:
            UsageError: there is no such kind, or the own key store cannot be read: the certificate stays.
            OSError: a file cannot be written.
        """
        self._run(lambda _: self._tls.use(certificate_kind(certificate)))


def certificate_kind(name: str) -> CertificateKind:
    """Return the kind of certificate of a name.

    Raises:
        UsageError: there is no such kind.
    """
    try:
        return CertificateKind(name)
    except ValueError:
        names = ", ".join(kind.value for kind in CertificateKind)
        raise UsageError(f"no kind of certificate {name!r}: give one of {names}") from None
