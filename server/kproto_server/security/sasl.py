"""SASL as a broker speaks it: the mechanisms PLAIN and SCRAM, and what one connection has authenticated so far.

Theory of operation. A mechanism is a generator of its steps: it receives the client's tokens and yields the broker's,
and returns the name of the user. `Authentication` is the state of a connection: which mechanism was chosen by
SaslHandshake, in which way tokens arrive, and when the session ends (KIP-368). It knows no requests and no clock.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import re
from base64 import b64decode, b64encode
from binascii import Error as Base64Error
from enum import Enum, auto
from typing import TYPE_CHECKING, NamedTuple

from kproto.errors import KprotoError
from kproto_server.security.oauth import (
    ACKNOWLEDGED,
    InvalidMessage,
    InvalidToken,
    OtherScheme,
    read_client_message,
    subject_of_token,
    unsecured_bearer,
)
from kproto_server.security.users import SCRAM_HASHES

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from kproto_server.security.delegation_tokens import DelegationTokens
    from kproto_server.security.oauth import Validate
    from kproto_server.security.users import Users

    Steps = Generator[bytes, bytes, tuple[bytes, str]]
    """Receives the client's tokens, yields the broker's, and returns the last one with the name of the user."""

PLAIN = "PLAIN"
OAUTHBEARER = "OAUTHBEARER"
MECHANISMS = (PLAIN, *SCRAM_HASHES, OAUTHBEARER)
NONCE_BYTES = 18
BEGIN_AGAIN_MS = 1000
"""The time between the begins of two re-authentications of a connection, at least: fixed in Kafka."""
FIRST_TOKEN_MAX_BYTES = 1 << 14
"""The largest first token of SCRAM: it stays in memory until the client sends its proof. DEVIATION: Kafka has no
limit below that of all tokens."""
PLAIN_TOKENS = 3
CLIENT_FIRST = re.compile(r"n,(?:a=([^,]*))?,((?:m=[^,]*,)?n=([^,]*),r=([!-+\--~]+)((?:,[A-Za-z]+=[^,]*)*))")
"""Authorization id; all that the proof covers; user; nonce; extensions."""
CLIENT_FINAL = re.compile(r"(c=[A-Za-z0-9+/=]*,r=([!-+\--~]+)(?:,[A-Za-z]=[^,]*)*),p=([A-Za-z0-9+/=]+)")
"""All but the proof; nonce; proof."""


class AuthenticationFailed(KprotoError):
    """The credentials of a client are wrong, or its token has no form of its mechanism; the text is that of Kafka's
    response."""


class MalformedToken(KprotoError):
    """A real broker fails on the token, and closes the connection without a response."""


class SaslRules(NamedTuple):
    """What Kafka releases do differently."""

    names_faults_of_plain: bool = True
    """Whether a failure of PLAIN has a text of its own, and empty tokens at the end count."""
    checks_nonce: bool = True
    """Whether the nonce in a client's proof must be the broker's (CVE-2024-56128)."""
    ends_session_with_delegation_token: bool = True
    """Whether the session of a client that logs in with a delegation token ends with it."""
    failed_during: str = "Authentication failed during authentication"
    """The beginning of the error message that gives no reason."""

    def again(self) -> SaslRules:
        """Return the rules of a client that authenticates again."""
        text = self.failed_during.replace("during authentication", "during re-authentication")
        return self._replace(failed_during=text)

    def invalid_credentials(self, mechanism: str) -> AuthenticationFailed:
        """Return the error whose message gives no reason, as Kafka's for SCRAM."""
        return AuthenticationFailed(f"{self.failed_during} due to invalid credentials with SASL mechanism {mechanism}")


def plain(authentication: Authentication, users: Users, rules: SaslRules) -> Steps:
    """PLAIN (RFC 4616, BA-113): one token with user and password."""
    # As Kafka: bytes that are no UTF-8 are replaced, and nothing behind a fourth token is looked at.
    tokens = (yield b"").decode(errors="replace").split("\0")
    if rules.names_faults_of_plain:
        tokens = tokens[: PLAIN_TOKENS + 1]
    else:
        while tokens and not tokens[-1]:
            tokens.pop()

    def failure(text: str) -> AuthenticationFailed:
        return AuthenticationFailed(text) if rules.names_faults_of_plain else rules.invalid_credentials(PLAIN)

    if len(tokens) != PLAIN_TOKENS:
        raise failure(f"Invalid SASL/PLAIN response: expected {PLAIN_TOKENS} tokens, got {len(tokens)}")
    authorization_id, name, password = tokens
    for what, value in (("username", name), ("password", password)):
        if not value:
            raise failure(f"Authentication failed: {what} not specified")
    authentication.claimed_user = name  # not before: a client may have left out a token before its password
    if not users.accepts(name, password):
        raise AuthenticationFailed("Authentication failed: Invalid username or password")
    _check_authorization_id(authorization_id, name)
    return b"", name


def scram(
    authentication: Authentication, users: Users, rules: SaslRules, mechanism: str, nonce: Callable[[], str]
) -> Steps:
    """SCRAM (RFC 5802 and 7677, BA-114): a challenge, and the client's proof that it knows the password.

    As in Kafka, the proof covers the channel binding that the client names, but nothing is bound.
    """
    hash_name = SCRAM_HASHES[mechanism]
    invalid = rules.invalid_credentials(mechanism)
    first_token = yield b""
    first = CLIENT_FIRST.fullmatch(first_token.decode(errors="replace"))
    if first is None or len(first_token) > FIRST_TOKEN_MAX_BYTES:
        raise invalid
    authorization_id, first_bare, sasl_name, client_nonce, extension_text = first.groups()
    extensions = dict(one.split("=", 1) for one in extension_text.split(",") if one)
    name = user = authentication.claimed_user = _name(sasl_name)
    is_by_token = extensions.get("tokenauth", "").lower() == "true"  # KIP-48
    if is_by_token:
        tokens = authentication.tokens
        token = None if tokens is None else tokens.by_id(name)
        if tokens is None or token is None:
            raise invalid
        credential, user = tokens.scram_credential(mechanism, name), token.owner.name
        if rules.ends_session_with_delegation_token:
            authentication.token_expires_ms = token.expires_ms
    else:
        known = users.scram_credential(mechanism, name)
        if known is None:
            raise invalid
        credential = known
    _check_authorization_id(_name(authorization_id or ""), name)
    both_nonces = client_nonce + nonce()
    server_first = f"r={both_nonces},s={b64encode(credential.salt).decode()},i={credential.iterations}"
    final = CLIENT_FINAL.fullmatch((yield server_first.encode()).decode(errors="replace"))
    if final is None:
        raise invalid
    without_proof, repeated_nonce, encoded_proof = final.groups()
    try:
        proof = b64decode(encoded_proof, validate=True)
    except Base64Error:
        raise invalid from None
    if rules.checks_nonce and repeated_nonce != both_nonces:
        raise invalid
    if len(proof) != len(credential.stored_key):
        raise MalformedToken(f"a proof of {len(proof)} bytes")
    message = f"{first_bare},{server_first},{without_proof}".encode()
    signature = hmac.digest(credential.stored_key, message, hash_name)
    client_key = bytes(a ^ b for a, b in zip(proof, signature, strict=True))
    if not hmac.compare_digest(hashlib.new(hash_name, client_key).digest(), credential.stored_key):
        raise invalid
    authentication.is_by_token = is_by_token
    return b"v=" + b64encode(hmac.digest(credential.server_key, message, hash_name)), user


def oauth_bearer(authentication: Authentication, validate: Validate, rules: SaslRules) -> Steps:
    """OAUTHBEARER (RFC 7628, BA-115): a token that says who the client is, and until when."""
    refusal = ""
    response = b""
    while True:
        data = yield response
        if data == ACKNOWLEDGED and refusal:
            raise AuthenticationFailed(refusal)
        try:
            message = read_client_message(data)
        except InvalidMessage:
            raise rules.invalid_credentials(OAUTHBEARER) from None
        except OtherScheme as error:
            raise MalformedToken(str(error)) from None
        try:
            bearer = validate(message.token, authentication.now_ms)
            break
        except InvalidToken:
            refusal = json.dumps({"status": "invalid_token"}, separators=(",", ":"))
            response = refusal.encode()
            del data, message  # the client may stay for minutes, and its token may be large
    authentication.claimed_user = bearer.name
    if message.authorization_id not in ("", bearer.name):
        raise AuthenticationFailed(
            f"Authentication failed: Client requested an authorization id ({message.authorization_id}) that is "
            f"different from the token's principal name ({bearer.name})"
        )
    authentication.token_expires_ms = bearer.expires_ms
    return b"", bearer.name


def other_mechanism(mechanism: str, previous: str) -> Steps:
    """A client that authenticates again stays with its mechanism; it learns that when it has sent its first token."""
    yield b""
    raise AuthenticationFailed(
        f"SASL mechanism '{mechanism}' requested by client is not supported for re-authentication of mechanism "
        f"'{previous}'"
    )


def claimed_user(mechanism: str, token: bytes) -> str | None:
    """Return the user that a client's first token names, as `Authentication.claimed_user`, without checking anything.

    None: the token names none, or the mechanism is not one of `MECHANISMS`.
    """
    text = token.decode(errors="replace")
    if mechanism == PLAIN:
        tokens = text.split("\0")
        return tokens[1] or None if len(tokens) == PLAIN_TOKENS and tokens[2] else None
    if mechanism in SCRAM_HASHES:
        first = CLIENT_FIRST.fullmatch(text)
        return None if first is None else _name(first[3])
    if mechanism != OAUTHBEARER:
        return None
    try:
        return subject_of_token(read_client_message(token).token)
    except (InvalidMessage, InvalidToken, OtherScheme):
        return None


def _name(text: str) -> str:
    return text.replace("=2C", ",").replace("=3D", "=")


def _check_authorization_id(authorization_id: str, name: str) -> None:
    if authorization_id not in ("", name):
        text = "Authentication failed: Client requested an authorization id that is different from username"
        raise AuthenticationFailed(text)


class Phase(Enum):
    """How far a connection has come."""

    BEGUN = auto()
    """ApiVersions may come, or SaslHandshake."""
    NEGOTIATED = auto()
    """The client knows the versions; ApiVersions may not come again."""
    CHOSEN = auto()
    """The mechanism is chosen; tokens come in SaslAuthenticate."""
    CHOSEN_RAW = auto()
    """The mechanism is chosen; tokens come as they are, without headers (SaslHandshake v0)."""
    COMPLETE = auto()
    """The client is authenticated."""


class Authentication:
    """What one connection has authenticated."""

    __slots__ = (
        "_begun_again_ms", "_nonce", "_rules", "_steps", "_users", "_validate", "claimed_user", "close_reason",
        "has_failed", "is_by_token", "mechanism", "now_ms", "phase", "session_ends_ms", "token_expires_ms", "tokens",
        "user",
    )  # fmt: skip

    def __init__(
        self,
        users: Users,
        rules: SaslRules,
        nonce: Callable[[], str],
        validate: Validate = unsecured_bearer,
        tokens: DelegationTokens | None = None,
    ) -> None:
        """
        Args:
            nonce: returns printable text without commas that is new at each call.
            validate: validates tokens of OAUTHBEARER.
            tokens: the delegation tokens that log in; None: none.
        """
        self._users = users
        self._rules = rules
        self._nonce = nonce
        self._validate = validate
        self.tokens: DelegationTokens | None = tokens
        self.now_ms: int = 0
        """The time of the client's latest token."""
        self.token_expires_ms: int | None = None
        """When the token of OAUTHBEARER, or the delegation token, ends; None: the client has none."""
        self._steps: Steps | None = None
        self._begun_again_ms: tuple[float, float] | None = None
        """When the client began to authenticate again, as `may_begin_again`; None: it has not."""
        self.phase: Phase = Phase.BEGUN
        self.mechanism: str | None = None
        """The mechanism that was chosen last."""
        self.claimed_user: str | None = None
        """The user that the client named; None: it named none that the broker could read."""
        self.has_failed: bool = False
        """Whether an authentication failed and is not counted yet."""
        self.close_reason: str | None = None
        """Why the connection closes when the delay of a failed token without a header has passed; None: it does not."""
        self.user: str | None = None
        """None: the client is not authenticated."""
        self.is_by_token: bool = False
        """Whether the client has logged in with a delegation token."""
        self.session_ends_ms: int | None = None
        """The time after which requests are refused until the client authenticates again; None: never."""

    @property
    def is_complete(self) -> bool:
        """Whether the client is authenticated."""
        return self.phase is Phase.COMPLETE

    def note_negotiated(self) -> None:
        """Note that the client has got the versions of the broker."""
        if self.phase is Phase.BEGUN:
            self.phase = Phase.NEGOTIATED

    def may_begin_again(self, now_ms: int, real_ms: float) -> bool:
        """Return whether SaslHandshake begins a re-authentication now, and is no ordinary request (KIP-368).

        A second must have passed since the last one began: by the broker's clock or, as that may stand still, in real
        time.
        """
        if not self.is_complete or self.session_ends_ms is None:
            return False
        last = self._begun_again_ms
        return last is None or max(now_ms - last[0], real_ms - last[1]) >= BEGIN_AGAIN_MS

    def begin_again(self, now_ms: int, real_ms: float) -> None:
        """Note that a re-authentication begins."""
        self._begun_again_ms = now_ms, real_ms

    def choose(self, mechanism: str, *, raw: bool) -> None:
        """Begin a mechanism, one of `MECHANISMS`. ``raw``: its tokens come without headers."""
        previous = self.mechanism
        self.mechanism = mechanism
        self.claimed_user = None
        users, rules = self._users, self._rules
        self.token_expires_ms = None
        self.is_by_token = False
        if self.user is not None:
            rules = rules.again()
        if self.user is not None and previous is not None and mechanism != previous:
            steps, raw = other_mechanism(mechanism, previous), True  # without a response
        elif mechanism == PLAIN:
            steps = plain(self, users, rules)
        elif mechanism == OAUTHBEARER:
            steps = oauth_bearer(self, self._validate, rules)
        else:
            steps = scram(self, users, rules, mechanism, self._nonce)
        next(steps)
        self._steps = steps
        self.phase = Phase.CHOSEN_RAW if raw else Phase.CHOSEN

    def refuse(self, mechanism: str) -> None:
        """Note that the client has asked for a mechanism that is not enabled."""
        self.mechanism, self.claimed_user, self.has_failed = mechanism, None, True

    def step(self, token: bytes, now_ms: int) -> bytes:
        """Take a token of the client; return the broker's. The last step makes the phase COMPLETE.

        Raises:
            AuthenticationFailed, MalformedToken: the connection must be closed.
        """
        assert self._steps is not None, "a mechanism is chosen"
        self.now_ms = now_ms
        try:
            return self._steps.send(token)
        except (AuthenticationFailed, MalformedToken):
            self.has_failed = True
            raise
        except StopIteration as end:
            last_token, name = end.value
        if self.user not in (None, name):
            self.has_failed = True
            text = f"Cannot change principals during re-authentication from User.{self.user}: User.{name}"
            raise AuthenticationFailed(text)
        self.user = name
        self._steps = None
        self.phase = Phase.COMPLETE
        result: bytes = last_token
        return result

    def begin_session(self, now_ms: int, lifetime_max_ms: int) -> int:
        """Begin the session of a client that is authenticated; return its length in ms, 0: without an end (KIP-368).

        ``lifetime_max_ms``: `connections.max.reauth.ms`; the end of a token ends the session, too.
        """
        lifetimes = [lifetime_max_ms] if lifetime_max_ms else []
        if self.token_expires_ms is not None:
            lifetimes.append(max(self.token_expires_ms - now_ms, 0))
        self.session_ends_ms = now_ms + min(lifetimes) if lifetimes else None
        return min(lifetimes, default=0)

    def is_expired(self, now_ms: int) -> bool:
        """Return whether the session has ended."""
        return self.session_ends_ms is not None and now_ms > self.session_ends_ms
