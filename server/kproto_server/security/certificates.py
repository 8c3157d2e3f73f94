"""Make the certificates of a broker for tests: right ones, and those that a client has to refuse."""

from __future__ import annotations

import datetime
import enum
import ipaddress
from typing import TYPE_CHECKING, NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, load_pem_private_key
from cryptography.hazmat.primitives.serialization.pkcs12 import (
    PBES,
    PKCS12Certificate,
    serialize_java_truststore,
    serialize_key_and_certificates,
)
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from kproto.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cryptography.hazmat.primitives.serialization import KeySerializationEncryption

    PrivateKey = ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey

PASSWORD = "kproto"  # noqa: S105 - of files that lie beside the same keys in PEM
"""The password of all PKCS12 files: Java reads none without a password."""
WRONG_NAME = "wrong-name.invalid"
"""The only name of a certificate of the wrong name."""
WEAK_KEY_BITS = 1024
YEARS_VALID = 10
DAY = datetime.timedelta(days=1)
KEY_USAGES = (
    "digital_signature", "content_commitment", "key_encipherment", "data_encipherment", "key_agreement",
    "key_cert_sign", "crl_sign", "encipher_only", "decipher_only",
)  # fmt: skip
CA_USAGES = frozenset({"key_cert_sign", "crl_sign"})
LEAF_USAGES = frozenset({"digital_signature", "key_encipherment"})


class CertificateKind(enum.Enum):
    """What is wrong with the certificate of a broker, if anything."""

    AUTO = "auto"
    """Nothing: clients that trust the CA accept it."""
    EXPIRED = "expired"
    NOT_YET_VALID = "not-yet-valid"
    WRONG_NAME = "wrong-name"
    UNKNOWN_CA = "unknown-ca"
    REVOKED = "revoked"
    """Only a client that reads the revocation list of the CA can notice it."""
    WEAK_KEY = "weak-key"


class KeyPair(NamedTuple):
    """A certificate with its private key."""

    certificate: x509.Certificate
    key: PrivateKey

    @property
    def certificate_pem(self) -> bytes:
        """The certificate in PEM."""
        return self.certificate.public_bytes(Encoding.PEM)

    @property
    def key_pem(self) -> bytes:
        """The private key in PKCS8 and PEM, not encrypted."""
        return self.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())

    def pkcs12(self, authority: Authority) -> bytes:
        """Return a key store for Java, with the certificate of the CA behind this one."""
        return serialize_key_and_certificates(
            b"kproto", self.key, self.certificate, [authority.pair.certificate], encryption()
        )


class Authority(NamedTuple):
    """A certificate authority (CA)."""

    pair: KeyPair

    @classmethod
    def make(cls, now: datetime.datetime) -> Authority:
        """Make an authority with a new key. ``now``: an aware time."""
        key = ec.generate_private_key(ec.SECP256R1())
        name = _name("kproto test CA")
        builder = _builder(name, name, key, (now - DAY, now + 365 * YEARS_VALID * DAY))
        builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        builder = builder.add_extension(_usage(CA_USAGES), critical=True)
        return cls(KeyPair(builder.sign(key, hashes.SHA256()), key))

    @classmethod
    def load(cls, certificate_pem: bytes, key_pem: bytes) -> Authority:
        """Return the authority that was stored.

        Raises:
            ValueError: they are no certificate, or no key that kproto makes.
        """
        key = load_pem_private_key(key_pem, None)
        if not isinstance(key, ec.EllipticCurvePrivateKey):
            raise ValueError("the key of the CA is no key of an elliptic curve")
        return cls(KeyPair(x509.load_pem_x509_certificate(certificate_pem), key))

    def server(self, kind: CertificateKind, hosts: Sequence[str], now: datetime.datetime) -> KeyPair:
        """Make the certificate of a broker that clients know by these names and addresses.

        Raises:
            UsageError: one is no host name.
        """
        authority = Authority.make(now) if kind is CertificateKind.UNKNOWN_CA else self
        names = [WRONG_NAME] if kind is CertificateKind.WRONG_NAME else list(dict.fromkeys(hosts))
        valid = {
            CertificateKind.EXPIRED: (now - 30 * DAY, now - DAY),
            CertificateKind.NOT_YET_VALID: (now + DAY, now + 30 * DAY),
        }.get(kind, (now - DAY, now + 365 * YEARS_VALID * DAY))
        key: PrivateKey
        if kind is CertificateKind.WEAK_KEY:
            key = rsa.generate_private_key(65537, WEAK_KEY_BITS)
        else:
            key = ec.generate_private_key(ec.SECP256R1())
        return authority._issue(names[0], key, valid, names, ExtendedKeyUsageOID.SERVER_AUTH)

    def client(self, name: str, now: datetime.datetime) -> KeyPair:
        """Make the certificate of a client with this common name."""
        key = ec.generate_private_key(ec.SECP256R1())
        valid = now - DAY, now + 365 * YEARS_VALID * DAY
        return self._issue(name, key, valid, [], ExtendedKeyUsageOID.CLIENT_AUTH)

    def revocation_list(self, revoked: Sequence[KeyPair], now: datetime.datetime) -> bytes:
        """Return the list of the certificates that the authority has revoked, in PEM."""
        builder = x509.CertificateRevocationListBuilder().issuer_name(self.pair.certificate.subject)
        builder = builder.last_update(now - DAY).next_update(now + 365 * YEARS_VALID * DAY)
        for pair in revoked:
            entry = x509.RevokedCertificateBuilder().serial_number(pair.certificate.serial_number)
            builder = builder.add_revoked_certificate(entry.revocation_date(now - DAY).build())
        return builder.sign(self.pair.key, hashes.SHA256()).public_bytes(Encoding.PEM)

    def trust_store(self) -> bytes:
        """Return a PKCS12 trust store for Java."""
        return serialize_java_truststore([PKCS12Certificate(self.pair.certificate, b"kproto-ca")], encryption())

    def _issue(
        self,
        common_name: str,
        key: PrivateKey,
        valid: tuple[datetime.datetime, datetime.datetime],
        names: Sequence[str],
        usage: x509.ObjectIdentifier,
    ) -> KeyPair:
        builder = _builder(self.pair.certificate.subject, _name(common_name), key, valid)
        builder = builder.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        builder = builder.add_extension(_usage(LEAF_USAGES), critical=True)
        builder = builder.add_extension(x509.ExtendedKeyUsage([usage]), critical=False)
        authority_key = x509.AuthorityKeyIdentifier.from_issuer_public_key(self.pair.key.public_key())
        builder = builder.add_extension(authority_key, critical=False)
        if names:
            builder = builder.add_extension(
                x509.SubjectAlternativeName([_general_name(name) for name in names]), critical=False
            )
        return KeyPair(builder.sign(self.pair.key, hashes.SHA256()), key)


def _builder(
    issuer: x509.Name, subject: x509.Name, key: PrivateKey, valid: tuple[datetime.datetime, datetime.datetime]
) -> x509.CertificateBuilder:
    builder = x509.CertificateBuilder().issuer_name(issuer).subject_name(subject).public_key(key.public_key())
    builder = builder.serial_number(x509.random_serial_number()).not_valid_before(valid[0]).not_valid_after(valid[1])
    subject_key = x509.SubjectKeyIdentifier.from_public_key(key.public_key())
    return builder.add_extension(subject_key, critical=False)


def _usage(usages: frozenset[str]) -> x509.KeyUsage:
    return x509.KeyUsage(**{usage: usage in usages for usage in KEY_USAGES})


def _name(common_name: str) -> x509.Name:
    return x509.Name(
        [x509.NameAttribute(NameOID.ORGANIZATION_NAME, "kproto"), x509.NameAttribute(NameOID.COMMON_NAME, common_name)]
    )


def _general_name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        pass
    try:
        return x509.DNSName(host if host.isascii() else host.encode("idna").decode())
    except UnicodeError:
        raise UsageError(f"TLS: no certificate can have the host name {host!r}") from None


def encryption() -> KeySerializationEncryption:
    """Return the encryption of PKCS12 files: the one that Java 8 reads, too."""
    builder = PrivateFormat.PKCS12.encryption_builder().kdf_rounds(10_000).hmac_hash(hashes.SHA1())  # noqa: S303
    return builder.key_cert_algorithm(PBES.PBESv1SHA1And3KeyTripleDESCBC).build(PASSWORD.encode())


__all__ = ["PASSWORD", "Authority", "CertificateKind", "KeyPair", "encryption"]
