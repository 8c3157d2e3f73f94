"""The key store and the trust store of Kafka's settings, instead of certificates that kproto makes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.hazmat.primitives.serialization.pkcs12 import PKCS12Certificate, serialize_java_truststore

from kproto.errors import UsageError
from kproto_server.configuration.setting_table import STORE_SETTINGS
from kproto_server.security.certificates import CertificateKind, encryption
from kproto_server.security.key_stores import (
    PEM,
    SIZE_MAX_BYTES,
    TYPES,
    KeyStore,
    key_store,
    pem_certificates,
    pem_key,
    trusted_certificates,
)
from kproto_server.security.tls_files import PRIVATE, TlsFiles

if TYPE_CHECKING:
    from cryptography import x509

    from kproto_server.configuration.settings import Settings

LOCATION, CHAIN, KEY = "ssl.keystore.location", "ssl.keystore.certificate.chain", "ssl.keystore.key"
TYPE, PASSWORD, KEY_PASSWORD = "ssl.keystore.type", "ssl.keystore.password", "ssl.key.password"
TRUST_LOCATION, TRUSTED = "ssl.truststore.location", "ssl.truststore.certificates"
TRUST_TYPE, TRUST_PASSWORD = "ssl.truststore.type", "ssl.truststore.password"
SAFE_KEY_BITS = 2048


class OwnStores(NamedTuple):
    """The values of the settings; empty: not set."""

    values: dict[str, str]

    @classmethod
    def of(cls, settings: Settings) -> OwnStores | None:
        """Return the stores of a broker; None: it has no key store.

        Raises:
            UsageError: settings contradict each other, or are for something that is not there.
        """
        given = settings.own_stores
        if not given:
            return None
        values = {name: settings.str(name) for name in sorted(STORE_SETTINGS)}
        for name in (TYPE, TRUST_TYPE):
            if values[name] not in TYPES:
                raise UsageError(f"{name} can't be {values[name]!r}: give one of {', '.join(TYPES)}")
        inline = [name for name in (CHAIN, KEY) if values[name]]
        if values[LOCATION] and inline:
            raise UsageError(f"{LOCATION} and {inline[0]} are two key stores: give one of them")
        if len(inline) == 1:
            raise UsageError(f"{inline[0]} is set, and {KEY if inline == [CHAIN] else CHAIN} is not: give both")
        if inline and values[TYPE] != PEM:
            raise UsageError(f"{KEY} and {CHAIN} are PEM: give {TYPE}=PEM, too")
        if values[TRUST_LOCATION] and values[TRUSTED]:
            raise UsageError(f"{TRUST_LOCATION} and {TRUSTED} are two trust stores: give one of them")
        if values[TRUSTED] and values[TRUST_TYPE] != PEM:
            raise UsageError(f"{TRUSTED} is PEM: give {TRUST_TYPE}=PEM, too")
        if not values[LOCATION] and not inline:
            raise UsageError(f"{given[0]} is for a key store of your own: give {LOCATION}, or {CHAIN} and {KEY}")
        return cls(values)

    def __repr__(self) -> str:
        return f"OwnStores({self.values[LOCATION] or 'PEM'!r})"

    def read_key_store(self) -> KeyStore:
        """Read the key store.

        Raises:
            UsageError: it cannot be read; the message names its setting.
        """
        values = self.values
        key_password = values[KEY_PASSWORD] or None
        if not values[LOCATION]:
            try:
                key = pem_key(values[KEY].encode(), key_password)
                return KeyStore(key, pem_certificates(values[CHAIN].encode()))
            except UsageError as error:
                raise UsageError(f"{KEY}, {CHAIN}: {error}") from None
        data = _content(LOCATION, values[LOCATION])
        try:
            return key_store(data, values[TYPE], values[PASSWORD] or None, key_password)
        except UsageError as error:
            raise UsageError(f"{LOCATION}: {values[LOCATION]!r}: {error}") from None

    def read_trusted(self) -> tuple[x509.Certificate, ...]:
        """Return the certificates of the trust store; empty: there is none.

        Raises:
            UsageError: it cannot be read; the message names its setting.
        """
        values = self.values
        name = TRUST_LOCATION if values[TRUST_LOCATION] else TRUSTED
        if not values[name]:
            return ()
        data = _content(name, values[name]) if name == TRUST_LOCATION else values[name].encode()
        try:
            return trusted_certificates(data, values[TRUST_TYPE], values[TRUST_PASSWORD] or None)
        except UsageError as error:
            where = f" {values[name]!r}:" if name == TRUST_LOCATION else ""
            raise UsageError(f"{name}:{where} {error}") from None


class OwnTlsFiles(TlsFiles):
    """The files of a broker with a key store of its own: what Python's TLS reads, and what clients need.

    The certificate at the end of the chain stands for the CA. There is no certificate for clients.
    """

    def __init__(self, directory: str, stores: OwnStores) -> None:
        """
        Raises:
            UsageError: a store cannot be read.
            OSError: a file cannot be written.
        """
        self.directory: Path = Path(directory).absolute()
        self._stores = stores
        self.use(CertificateKind.AUTO)

    @property
    def client_ca_file(self) -> Path:
        """The certificates of the trust store, in PEM: the CAs of clients."""
        return self.directory / "trusted.pem"

    def use(self, kind: CertificateKind) -> None:
        """Read the stores again.

        Raises:
            UsageError: one cannot be read, or another certificate is asked for; the files stay as they are.
        """
        if kind is not CertificateKind.AUTO:
            raise UsageError(f"{LOCATION}: kproto makes no certificates then; auto reads the key store again")
        store = self._stores.read_key_store()
        trusted = self._stores.read_trusted() or store.chain[-1:]
        chain_end = store.chain[-1]
        self._write(
            self.trust_store_file, serialize_java_truststore([PKCS12Certificate(chain_end, b"ca")], encryption())
        )
        self._write(self.ca_file, chain_end.public_bytes(Encoding.PEM))
        self._write(self.client_ca_file, b"".join(one.public_bytes(Encoding.PEM) for one in trusted))
        self._write(self.certificate_file, store.chain_pem)
        self._write(self.key_file, store.key_pem, PRIVATE)
        self.kind: CertificateKind = kind
        self.has_weak_key: bool = isinstance(store.key, rsa.RSAPrivateKey) and store.key.key_size < SAFE_KEY_BITS


def _content(name: str, path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            data = file.read(SIZE_MAX_BYTES + 1)
    except OSError as error:
        raise UsageError(f"{name}: can't read {path!r}: {error.strerror}") from None
    if len(data) > SIZE_MAX_BYTES:
        raise UsageError(f"{name}: {path!r} has more than {SIZE_MAX_BYTES} bytes")
    return data
