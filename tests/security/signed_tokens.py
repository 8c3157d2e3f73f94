"""Signed tokens, right and wrong, and whether a listener with their keys accepts them.

Expected is what 4.4.0 did on 2026-11-23 with the same tokens and keys, `OAuthBearerValidatorCallbackHandler`, and the
audiences and the issuer below.
"""

from __future__ import annotations

import json
from typing import Any

from kproto_server.security.oauth import TokenIssuer
from tests.security.oauth_scripts import HOUR_S, logs_in, message
from tests.security.sasl_scripts import transcript

Tokens = dict[str, tuple[str, bool]]
NO_ERROR = "00000002" + "00" * 8
"""SaslAuthenticate v0 with an empty message and an empty token."""
AUDIENCES, ISSUER = ("kafka", "other"), "me"


def jwks_of(*issuers: TokenIssuer) -> str:
    return json.dumps({"keys": [key for issuer in issuers for key in json.loads(issuer.jwks)["keys"]]})


def tokens(rsa: TokenIssuer, ec: TokenIssuer, at_s: float) -> Tokens:
    """Return tokens with the expected result: that of 4.4.0 with `OAuthBearerValidatorCallbackHandler`."""

    def made(issuer: TokenIssuer = rsa, **claims: Any) -> str:
        return issuer.token("alice", issued_s=at_s, **{"iss": ISSUER, "aud": "kafka"} | claims)

    good = made()
    stranger = TokenIssuer("ES256", "e1")
    unknown = TokenIssuer("ES256", "unknown")
    return {
        "RS256": (good, True),
        "ES256": (made(ec), True),
        "several audiences": (made(aud=["x", "other"]), True),
        "scopes": (made(scope=["a", "b"]), True),
        "nbf of now": (made(nbf=at_s), True),
        "iat of the future": (made(iat=at_s + HOUR_S / 2), True),
        "expired within the skew": (made(exp=at_s - 20, iat=at_s - 60), True),
        "another key of this id": (made(stranger), False),
        "another key": (made(unknown), False),
        "another audience": (made(aud="x"), False),
        "no audience": (made(aud=None), False),
        "another issuer": (made(iss="you"), False),
        "no issuer": (made(iss=None), False),
        "expired": (made(exp=at_s - 40, iat=at_s - 60), False),
        "no exp": (made(exp=None), False),
        "no iat": (made(iat=None), False),
        "no sub": (made(sub=None), False),
        "an empty sub": (made(sub=" "), False),
        "sub is a number": (made(sub=7), False),
        "not valid yet": (made(nbf=at_s + 60), False),
        "exp before iat": (made(iat=at_s + 100, exp=at_s + 50), False),
        "an empty scope": (made(scope=["a", " "]), False),
        "a scope twice": (made(scope=["a", "a"]), False),
        "a changed signature": (good[:-6] + "AAAAAA", False),
        "no signature": (good.rpartition(".")[0] + ".", False),
    }


def accepted(address: str, token: str) -> bool:
    """Return whether a listener accepts a token."""
    return transcript(address, logs_in(message(token)))[1] == NO_ERROR
