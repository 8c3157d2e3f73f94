"""What a newer Java or OpenSSL would refuse of a handshake of TLS that this broker has accepted.

Source:
    Java 24 disables TLS_RSA_* (JDK-8245545, `jdk.tls.disabledAlgorithms`). OpenSSL 3.0 has SHA-1 signatures at security
    level 0 alone, and OpenSSL 3.2 raises the default level from 1 to 2, which needs RSA keys of 2048 bits and keys of
    elliptic curves of 224 bits.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cryptography import x509

RSA_KEY_BITS_MIN = 2048
CURVE_KEY_BITS_MIN = 224
FORWARD_SECRECY = ("TLS_", "ECDHE-", "DHE-")
"""What the names of ciphers with forward secrecy begin with: all of TLS 1.3, and some of TLS 1.2."""


@dataclass(frozen=True, slots=True)
class TlsParameters:
    """What a client and the broker have agreed on."""

    version: str
    cipher: str
    """As OpenSSL names it."""
    refusals: tuple[str, ...]
    """What a newer Java or OpenSSL would refuse of it, and why."""


def refusals(cipher: str, broker: x509.Certificate, client: x509.Certificate | None) -> tuple[str, ...]:
    """Return what would be refused of a cipher, and of the certificates of the broker and of a client (None: none)."""
    found = [] if cipher.startswith(FORWARD_SECRECY) else ["Java 24 and later: the cipher has no forward secrecy"]
    found += [f"{one} of the broker's certificate" for one in _weaknesses(broker)]
    if client is not None:
        found += [f"{one} of the client's certificate" for one in _weaknesses(client)]
    return tuple(found)


def _weaknesses(certificate: x509.Certificate) -> Iterator[str]:
    from cryptography.hazmat.primitives.asymmetric import ec, rsa
    from cryptography.hazmat.primitives.hashes import SHA1

    key = certificate.public_key()
    if isinstance(key, rsa.RSAPublicKey) and key.key_size < RSA_KEY_BITS_MIN:
        yield f"OpenSSL 3.2 and later: the RSA key of {key.key_size} bits"
    if isinstance(key, ec.EllipticCurvePublicKey) and key.key_size < CURVE_KEY_BITS_MIN:
        yield f"OpenSSL 3.2 and later: the EC key of {key.key_size} bits"
    is_root = certificate.issuer == certificate.subject  # its signature is not verified
    if not is_root and isinstance(certificate.signature_hash_algorithm, SHA1):
        yield "OpenSSL 3.0 and later: the SHA-1 signature"
