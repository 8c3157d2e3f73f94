"""OAUTHBEARER (RFC 7628, BA-115): the client's message, and tokens, unsecured or signed, as Kafka validates them.

A validator takes a token and the time, and returns the owner and the end of the token. It reads no clock and no file:
`jwks_keys` makes the keys of signed tokens from the text of a JWKS.
"""

from __future__ import annotations

import json
import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from typing import TYPE_CHECKING, Any, NamedTuple

from kproto.errors import KprotoError, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePublicKey
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey

    PublicKey = EllipticCurvePublicKey | RSAPublicKey
    Validate = Callable[[str, int], "Bearer"]
    """Returns the owner of a token at a time in ms; raises `InvalidToken`."""

CLIENT_MESSAGE = re.compile(
    r"n,(?:a=((?:[\x01-+\--<>-\x7f]|=2C|=3D)+))?,\x01((?:[A-Za-z]+=[\x21-\x7e \t\r\n]+\x01)*)\x01"
)
"""Authorization id; pairs of keys and values."""
AUTH = re.compile(r"(\w+) +([-_~+/.a-zA-Z0-9]+=*)", re.ASCII)
ACKNOWLEDGED = b"\x01"
"""The message of a client that confirms the refusal of its token."""
JWKS_URL = "sasl.oauthbearer.jwks.endpoint.url"
"""The setting that says where the keys of signed tokens are."""
SIGNATURE_HASHES = {"RS256": "sha256", "ES256": "sha256"}
COORDINATE_BYTES = 32
"""Size of each half of an ES256 signature."""


class InvalidToken(KprotoError):
    """A token is refused; the text is for the log, the client gets `invalid_token`."""


class UnknownKey(InvalidToken):
    """A token names a key that is not there."""

    def __init__(self, key_id: str) -> None:
        super().__init__("a token of an unknown key")
        self.key_id: str = key_id


class InvalidMessage(KprotoError):
    """A client's message is not one of OAUTHBEARER."""


class OtherScheme(KprotoError):
    """A client's token is no bearer token: a real broker fails on it, and closes the connection."""


class Bearer(NamedTuple):
    """The owner of a token."""

    name: str
    expires_ms: int


class ClientMessage(NamedTuple):
    """What a client sends first."""

    authorization_id: str
    token: str

    def __repr__(self) -> str:
        return f"ClientMessage({self.authorization_id!r})"


def read_client_message(data: bytes) -> ClientMessage:
    """Return the parts of a client's message.

    Raises:
        InvalidMessage: it is none.
        OtherScheme: its token is no bearer token.
    """
    match = CLIENT_MESSAGE.fullmatch(data.decode(errors="replace"))
    if match is None:
        raise InvalidMessage("no message of OAUTHBEARER")
    pairs = dict(pair.split("=", 1) for pair in match[2].split("\x01") if pair)
    auth = AUTH.fullmatch(pairs.get("auth", ""))
    if auth is None:
        raise InvalidMessage("a message without a token")
    if auth[1].lower() != "bearer":
        raise OtherScheme(f"a token of the scheme {auth[1]}")
    return ClientMessage(match[1] or "", auth[2])


def unsecured_bearer(token: str, now_ms: int) -> Bearer:
    """Return the owner of a token without a signature, as Kafka's default handler does.

    Raises:
        InvalidToken: the token is refused.
    """
    header, claims, signature = _parts(token)
    if header.get("alg") != "none" or signature:
        raise InvalidToken("an unsecured token has the algorithm none and no signature")
    issued_s, expires_s = _number(claims, "iat"), _number(claims, "exp")
    if expires_s is None:
        raise InvalidToken("a token without exp")
    if issued_s is not None and issued_s * 1000 > now_ms:
        raise InvalidToken("a token of the future")
    if now_ms >= expires_s * 1000:
        raise InvalidToken("an expired token")
    if issued_s is not None and expires_s <= issued_s:
        raise InvalidToken("a token that expires before it was issued")
    return Bearer(_subject(claims, "sub"), int(expires_s * 1000))


def subject_of_token(token: str) -> str:
    """Return the owner that a token names, whether it is valid or not.

    Raises:
        InvalidToken: it names none.
    """
    return _subject(_parts(token)[1], "sub")


class SignedTokens(NamedTuple):
    """How signed tokens are validated: the settings of Kafka's `OAuthBearerValidatorCallbackHandler`."""

    keys: Mapping[str | None, PublicKey]
    """Keys by key id. A token without a key id may be signed with any of them."""
    audiences: Collection[str] = ()
    """`sasl.oauthbearer.expected.audience`; empty: not checked."""
    issuer: str | None = None
    """`sasl.oauthbearer.expected.issuer`; None: not checked."""
    subject_claim: str = "sub"
    scope_claim: str = "scope"
    skew_s: int = 30
    """`sasl.oauthbearer.clock.skew.seconds`."""

    def bearer(self, token: str, now_ms: int) -> Bearer:
        """Return the owner of a token.

        Raises:
            InvalidToken: the token is refused.
        """
        header, claims, signature = _parts(token)
        self._verify(token.rpartition(".")[0].encode(), header, signature)
        issued_s, expires_s = _number(claims, "iat"), _number(claims, "exp")
        if issued_s is None or expires_s is None:
            raise InvalidToken("a signed token without iat or exp")
        now_s = now_ms / 1000
        not_before_s = _number(claims, "nbf")
        if now_s - self.skew_s >= expires_s:
            raise InvalidToken("an expired token")
        if not_before_s is not None and now_s + self.skew_s < not_before_s:
            raise InvalidToken("a token that is not valid yet")
        if expires_s < issued_s:
            raise InvalidToken("a token that expires before it was issued")
        if self.issuer is not None and claims.get("iss") != self.issuer:
            raise InvalidToken("a token of another issuer")
        audiences = _strings(claims.get("aud"))
        if self.audiences and not set(self.audiences) & set(audiences):
            raise InvalidToken("a token for another audience")
        if not self.audiences and audiences:
            raise InvalidToken("a token for an audience, and none is expected")
        scopes = _strings(claims.get(self.scope_claim))
        if any(not scope.strip() for scope in scopes) or len(set(scopes)) < len(scopes):
            raise InvalidToken("a token with empty or repeated scopes")
        return Bearer(_subject(claims, self.subject_claim), int(expires_s * 1000))

    def _verify(self, signed: bytes, header: Mapping[str, Any], signature: bytes) -> None:
        from cryptography.exceptions import InvalidSignature

        algorithm, key_id = header.get("alg"), header.get("kid")
        if not isinstance(key_id, str | None):
            raise InvalidToken("a key id that is no text")
        if key_id is not None and key_id not in self.keys:
            raise UnknownKey(key_id)
        for key in self.keys.values() if key_id is None else [self.keys[key_id]]:
            try:
                _verify_with(key, algorithm, signature, signed)
            except InvalidSignature:
                continue
            return
        raise InvalidToken("a token without a signature of a known key")


def _verify_with(key: PublicKey, algorithm: Any, signature: bytes, signed: bytes) -> None:
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa, utils

    if isinstance(key, rsa.RSAPublicKey) and algorithm == "RS256":
        key.verify(signature, signed, padding.PKCS1v15(), hashes.SHA256())
    elif isinstance(key, ec.EllipticCurvePublicKey) and algorithm == "ES256" and len(signature) == 2 * COORDINATE_BYTES:
        halves = (int.from_bytes(half) for half in (signature[:COORDINATE_BYTES], signature[COORDINATE_BYTES:]))
        key.verify(utils.encode_dss_signature(*halves), signed, ec.ECDSA(hashes.SHA256()))
    else:
        raise InvalidSignature


def jwks_keys(text: str) -> dict[str | None, PublicKey]:
    """Return the RSA and P-256 keys of a JWKS (RFC 7517) by their ids.

    Raises:
        UsageError: the text is no JWKS, or has no such key.
    """
    from cryptography.hazmat.primitives.asymmetric import ec, rsa

    keys: dict[str | None, PublicKey] = {}
    try:
        for one in json.loads(text)["keys"]:
            if one["kty"] == "RSA":
                keys[one.get("kid")] = rsa.RSAPublicNumbers(_integer(one["e"]), _integer(one["n"])).public_key()
            elif one["kty"] == "EC" and one["crv"] == "P-256":
                numbers = ec.EllipticCurvePublicNumbers(_integer(one["x"]), _integer(one["y"]), ec.SECP256R1())
                keys[one.get("kid")] = numbers.public_key()
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise UsageError(f"the JWKS is no set of keys: {error!r:.200}") from None
    if not keys:
        raise UsageError("the JWKS has no RSA key and no P-256 key")
    return keys


def unsecured_token(name: str, *, issued_s: float, lifetime_s: float = 3600.0, **claims: object) -> str:
    """Return a token without a signature; ``claims``: further ones, or None to leave one out."""
    return f"{_signed_part({'alg': 'none'}, name, issued_s, lifetime_s, claims)}."


class TokenIssuer:
    """Issues signed tokens, for tests: a new key, its JWKS, and tokens that its owner has signed."""

    def __init__(self, algorithm: str = "RS256", key_id: str = "kproto") -> None:
        """``algorithm``: RS256 or ES256."""
        from cryptography.hazmat.primitives.asymmetric import ec, rsa

        if algorithm not in SIGNATURE_HASHES:
            raise UsageError(f"no algorithm {algorithm!r}: give one of {', '.join(SIGNATURE_HASHES)}")
        self._algorithm, self._key_id = algorithm, key_id
        self._key: rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey = (
            rsa.generate_private_key(65537, 2048) if algorithm == "RS256" else ec.generate_private_key(ec.SECP256R1())
        )

    @property
    def jwks(self) -> str:
        """The JWKS with the public key."""
        from cryptography.hazmat.primitives.asymmetric import rsa

        common = {"kid": self._key_id, "use": "sig", "alg": self._algorithm}
        if isinstance(self._key, rsa.RSAPrivateKey):
            public = self._key.public_key().public_numbers()
            key = {"kty": "RSA", "n": _base64(_bytes(public.n)), "e": _base64(_bytes(public.e))}
        else:
            point = self._key.public_key().public_numbers()
            x, y = (_base64(number.to_bytes(COORDINATE_BYTES)) for number in (point.x, point.y))
            key = {"kty": "EC", "crv": "P-256", "x": x, "y": y}
        return json.dumps({"keys": [common | key]})

    def token(self, name: str, *, issued_s: float, lifetime_s: float = 3600.0, **claims: object) -> str:
        """Return a token; ``claims``: further ones, or None to leave one out."""
        from cryptography.hazmat.primitives import hashes
        from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa, utils

        header = {"alg": self._algorithm, "kid": self._key_id}
        signed = _signed_part(header, name, issued_s, lifetime_s, claims)
        if isinstance(self._key, rsa.RSAPrivateKey):
            signature = self._key.sign(signed.encode(), padding.PKCS1v15(), hashes.SHA256())
        else:
            der = self._key.sign(signed.encode(), ec.ECDSA(hashes.SHA256()))
            signature = b"".join(half.to_bytes(COORDINATE_BYTES) for half in utils.decode_dss_signature(der))
        return f"{signed}.{_base64(signature)}"


def _signed_part(
    header: Mapping[str, str], name: str, issued_s: float, lifetime_s: float, claims: Mapping[str, object]
) -> str:
    all_claims: dict[str, object] = {"sub": name, "iat": issued_s, "exp": issued_s + lifetime_s, **claims}
    present = {key: value for key, value in all_claims.items() if value is not None}
    return f"{_base64(json.dumps(header).encode())}.{_base64(json.dumps(present).encode())}"


def _parts(token: str) -> tuple[dict[str, Any], dict[str, Any], bytes]:
    """Return the header, the claims and the signature of a token."""
    parts = token.split(".")
    if len(parts) != 3:
        raise InvalidToken("a token has three parts")
    try:
        header, claims = (json.loads(_decoded(part)) for part in parts[:2])
        signature = _decoded(parts[2])
    except (ValueError, RecursionError):
        raise InvalidToken("a part of the token is no JSON in base64") from None
    if not isinstance(header, dict) or not isinstance(claims, dict):
        raise InvalidToken("a part of the token is no object")
    return header, claims, signature


def _number(claims: Mapping[str, Any], name: str) -> float | None:
    value = claims.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < 1 << 53:
        raise InvalidToken(f"{name} is no time")
    return value


def _subject(claims: Mapping[str, Any], name: str) -> str:
    subject = claims.get(name)
    if not isinstance(subject, str) or not subject.strip():
        raise InvalidToken(f"a token without {name}")
    try:
        subject.encode()
    except UnicodeEncodeError:  # DEVIATION: JSON escapes half of a surrogate pair, which no response can have
        raise InvalidToken(f"a token whose {name} cannot be encoded") from None
    return subject


def _strings(value: Any) -> list[str]:
    values = value if isinstance(value, list) else [] if value is None else [value]
    return [one for one in values if isinstance(one, str)]


def _integer(text: str) -> int:
    return int.from_bytes(_decoded(text))


def _bytes(number: int) -> bytes:
    return number.to_bytes((number.bit_length() + 7) // 8)


def _base64(data: bytes) -> str:
    return urlsafe_b64encode(data).decode().rstrip("=")


def _decoded(text: str) -> bytes:
    return urlsafe_b64decode(text + "=" * (-len(text) % 4))
