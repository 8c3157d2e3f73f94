"""TLS of a broker: its certificates, and other certificates while it runs."""

from __future__ import annotations

import tempfile
from typing import TYPE_CHECKING

from kproto.errors import UsageError
from kproto_server.security.certificates import CertificateKind
from kproto_server.security.principals import PrincipalMapper, subject_of
from kproto_server.security.tls_files import TlsFiles

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable, Iterable

    from kproto_server.broker.thread import RunInBrokerThread
    from kproto_server.configuration.settings import Settings
    from kproto_server.security.refusals import TlsParameters


TLS_OF_LISTENER = ("ssl.client.auth", "ssl.enabled.protocols", "ssl.principal.mapping.rules")
"""The settings, without those of stores, that a listener may have for itself."""


class Tls:
    """The files and the settings of a broker's TLS. Owns a temporary directory if it makes one; `close` removes it."""

    def __init__(self, kind: CertificateKind, hosts: Iterable[str], settings: Settings, directory: str | None) -> None:
        """``hosts``: the names and addresses by which clients know the broker, beside those of this machine.

        Raises:
            UsageError: the directory has files that cannot be used, or cannot be written, or a rule for principals is
                wrong.
        """
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
            self.check("", settings)
        except OSError as error:
            self.close()
            raise UsageError(f"TLS: can't write {error.filename or path!r}: {error.strerror}") from None
        except UsageError:
            self.close()
            raise

    def check(self, listener: str, settings: Settings) -> None:
        """Check the settings of a listener; empty: of all.

        Raises:
            UsageError: kproto has no version of TLS that is enabled, a file cannot be read, or a rule is wrong.
        """
        self.context(settings, listener)
        self.principal_of(listener)

    def wants_client_certificate(self, listener: str) -> bool:
        """Return whether clients of a listener need a certificate (`ssl.client.auth`)."""
        client_auth = self._settings.str_of_listener(listener, "ssl.client.auth")
        return client_auth == "required" and self.files.client_certificate_file.exists()

    def context(self, settings: Settings, listener: str = "") -> ssl.SSLContext:
        """Return the context of the connections to a listener of a node with these settings, which may change.

        Raises:
            UsageError: kproto has no version of TLS that is enabled, or a file cannot be read.
        """
        names = "ssl.client.auth", "ssl.enabled.protocols"
        key = settings.str_of_listener(listener, names[0]), settings.str_of_listener(listener, names[1])
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

    def principal_of(self, listener: str) -> Callable[[bytes], str]:
        """Return the function that returns the principal of a listener's client with a certificate in DER.

        The function raises NoMatchingRule if there is none.

        Raises:
            UsageError: a rule is wrong.
        """
        mapper = PrincipalMapper(self._settings.str_of_listener(listener, "ssl.principal.mapping.rules"))
        return lambda certificate: mapper.principal(subject_of(certificate))

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
    if not settings.own_stores:
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
