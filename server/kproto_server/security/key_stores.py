"""Read the key stores and trust stores of Kafka's settings: PKCS12, PEM, and Java's own format JKS.

Java reads JKS and PKCS12 by their content, whichever of the two is `ssl.keystore.type`; so does this module. A JKS file
has a checksum by the password of the store, and private keys that are encrypted by Sun's own algorithm: XOR with a
chain of SHA-1 digests. Error messages never contain a password.
"""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING, NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_der_private_key,
    load_pem_private_key,
    pkcs12,
)

from kproto.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes

PEM, PKCS12, JKS = TYPES = "PEM", "PKCS12", "JKS"
JKS_MAGIC, JCEKS_MAGIC = b"\xfe\xed\xfe\xed", b"\xce\xce\xce\xce"
JKS_WHITENER = b"Mighty Aphrodite"
"""What a JKS file's checksum covers behind the password."""
JKS_KEY, JKS_CERTIFICATE = 1, 2
JKS_VERSIONS = (1, 2)
SHA1_BYTES = 20
SIZE_MAX_BYTES = 1 << 20
"""The greatest store that is read."""
PKCS8_KEY = re.compile(rb"-----BEGIN (ENCRYPTED )?PRIVATE KEY-----.*?-----END \1?PRIVATE KEY-----", re.DOTALL)


class KeyStore(NamedTuple):
    """A private key, and the certificates from its own up to the CA."""

    key: PrivateKeyTypes
    chain: tuple[x509.Certificate, ...]

    @property
    def chain_pem(self) -> bytes:
        """The certificates in PEM, that of the key first."""
        return b"".join(one.public_bytes(Encoding.PEM) for one in self.chain)

    @property
    def key_pem(self) -> bytes:
        """The key in PKCS8 and PEM, not encrypted."""
        return self.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())

    def __repr__(self) -> str:
        return f"KeyStore({len(self.chain)} certificates)"


def key_store(data: bytes, type_: str, password: str | None, key_password: str | None) -> KeyStore:
    """Return the first private key of a store, with its certificates.

    Args:
        data: the content of the store.
        type_: one of `TYPES`.
        password: of the store; None: none, as PEM has none.
        key_password: of the key; None: that of the store.

    Raises:
        UsageError: the store cannot be read, or has no private key.
    """
    if type_ == PEM:
        found = PKCS8_KEY.search(data)
        if found is None:
            raise UsageError("no private key in PEM and PKCS8 (BEGIN PRIVATE KEY)")
        key = pem_key(found[0], key_password)
        return KeyStore(key, _chain(key, pem_certificates(data)))
    if data[:4] == JKS_MAGIC:
        entries = _jks_entries(data, password or "")
        for entry in entries:
            if entry.encrypted_key is not None:
                key = _jks_key(entry.encrypted_key, key_password or password or "")
                return KeyStore(key, entry.certificates)
        raise UsageError("it has no private key")
    key_of_store, certificate, others = _pkcs12(data, password)
    if key_of_store is None or certificate is None:
        raise UsageError("it has no private key with a certificate")
    return KeyStore(key_of_store, _chain(key_of_store, (certificate, *others)))


def trusted_certificates(data: bytes, type_: str, password: str | None) -> tuple[x509.Certificate, ...]:
    """Return the certificates of a trust store, as for `key_store`.

    Raises:
        UsageError: the store cannot be read, or has no certificate.
    """
    if type_ == PEM:
        return pem_certificates(data)
    if data[:4] == JKS_MAGIC:
        found = [one for entry in _jks_entries(data, password) for one in entry.certificates]
    else:
        _, certificate, others = _pkcs12(data, password)
        found = [*([certificate] if certificate else []), *others]
    if not found:
        raise UsageError("it has no certificate")
    return tuple(found)


def pem_key(data: bytes, password: str | None) -> PrivateKeyTypes:
    """Return a private key in PEM and PKCS8.

    Raises:
        UsageError: it cannot be read.
    """
    try:
        return load_pem_private_key(data, password.encode() if password and b"ENCRYPTED" in data else None)
    except (ValueError, TypeError):
        raise UsageError("the private key can't be read: is ssl.key.password right?") from None


def pem_certificates(data: bytes) -> tuple[x509.Certificate, ...]:
    """Return the certificates in a text of PEM.

    Raises:
        UsageError: there is none, or one that cannot be read.
    """
    try:
        return tuple(x509.load_pem_x509_certificates(data))
    except ValueError:
        raise UsageError("no certificate in PEM (BEGIN CERTIFICATE)") from None


def _chain(key: PrivateKeyTypes, certificates: Iterable[x509.Certificate]) -> tuple[x509.Certificate, ...]:
    """Return the certificate of a key, and those that issued it, in this order."""
    left = list(certificates)
    own = next((one for one in left if one.public_key() == key.public_key()), None)
    if own is None:
        raise UsageError("it has no certificate of its private key")
    chain = [own]
    left.remove(own)
    while (issuer := next((one for one in left if one.subject == chain[-1].issuer), None)) is not None:
        chain.append(issuer)
        left.remove(issuer)
    return tuple(chain)


def _pkcs12(
    data: bytes, password: str | None
) -> tuple[PrivateKeyTypes | None, x509.Certificate | None, Sequence[x509.Certificate]]:
    try:
        return pkcs12.load_key_and_certificates(data, None if password is None else password.encode())
    except ValueError:
        kind = "JCEKS, which kproto can't read" if data[:4] == JCEKS_MAGIC else "no PKCS12 file with this password"
        raise UsageError(f"it is {kind}") from None


class _Entry(NamedTuple):
    """An entry of a JKS file."""

    encrypted_key: bytes | None
    """None: only certificates."""
    certificates: tuple[x509.Certificate, ...]


class _Reader:
    """Reads the fields of Java's `DataOutputStream`."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._position = 4  # behind the magic

    def take(self, size: int) -> bytes:
        end = self._position + size
        if size < 0 or end > len(self._data):
            raise ValueError("truncated")
        found, self._position = self._data[self._position : end], end
        return found

    def number(self, size: int = 4) -> int:
        return int.from_bytes(self.take(size))

    def text(self) -> str:
        return self.take(self.number(2)).decode(errors="replace")


def _jks_entries(data: bytes, password: str | None) -> list[_Entry]:
    """Return the entries of a JKS file. ``password``: None: the checksum is not compared."""
    body, checksum = data[:-SHA1_BYTES], data[-SHA1_BYTES:]
    if password is not None and hashlib.sha1(_utf16(password) + JKS_WHITENER + body).digest() != checksum:  # noqa: S324
        raise UsageError("it is damaged, or has another password")
    reader = _Reader(body)
    try:
        version = reader.number()
        if version not in JKS_VERSIONS:
            raise ValueError(f"version {version}")
        return [_jks_entry(reader, version) for _ in range(reader.number())]
    except ValueError as error:
        raise UsageError(f"it is a damaged JKS file ({error})") from None


def _jks_entry(reader: _Reader, version: int) -> _Entry:
    kind = reader.number()
    reader.text()  # the alias
    reader.take(8)  # when it was made
    key = reader.take(reader.number()) if kind == JKS_KEY else None
    count = reader.number() if kind == JKS_KEY else 1
    if kind not in (JKS_KEY, JKS_CERTIFICATE):
        raise ValueError(f"an entry of kind {kind}")
    certificates = []
    for _ in range(count):
        if version > 1:
            reader.text()  # the type of the certificate
        certificates.append(x509.load_der_x509_certificate(reader.take(reader.number())))
    return _Entry(key, tuple(certificates))


def _jks_key(encrypted: bytes, password: str) -> PrivateKeyTypes:
    """Return a private key of a JKS file: DER with the algorithm, then salt, encrypted key and checksum."""
    secret = _utf16(password)
    try:
        content = _der_content(encrypted)  # of the outer sequence: the algorithm, and a string of bytes
        algorithm_end = len(content) - len(_behind(content))
        protected = _der_content(content[algorithm_end:])
        salt, data, checksum = protected[:SHA1_BYTES], protected[SHA1_BYTES:-SHA1_BYTES], protected[-SHA1_BYTES:]
        stream = b""
        digest = salt
        while len(stream) < len(data):
            digest = hashlib.sha1(secret + digest).digest()  # noqa: S324 - the algorithm of the format
            stream += digest
        key = bytes(a ^ b for a, b in zip(data, stream, strict=False))
        if hashlib.sha1(secret + key).digest() != checksum:  # noqa: S324
            raise ValueError("another checksum")
        return load_der_private_key(key, None)
    except (ValueError, IndexError, TypeError):
        raise UsageError("its private key can't be read: is ssl.key.password right?") from None


def _der_content(data: bytes) -> bytes:
    start, size = _der_size(data)
    return data[start : start + size]


def _behind(data: bytes) -> bytes:
    """Return what follows the first value of DER."""
    start, size = _der_size(data)
    return data[start + size :]


def _der_size(data: bytes) -> tuple[int, int]:
    """Return where the content of a DER value begins, and its size."""
    first = data[1]
    if first < 0x80:
        return 2, first
    end = 2 + (first & 0x7F)
    return end, int.from_bytes(data[2:end])


def _utf16(password: str) -> bytes:
    return password.encode("utf-16-be")
