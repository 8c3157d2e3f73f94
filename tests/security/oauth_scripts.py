"""What clients send to a listener with OAUTHBEARER, right and wrong (BA-115), as in `sasl_scripts`.

`python -m tests.security.oauth_scripts RELEASE HOST:PORT` records the transcripts of a listener with SASL_PLAINTEXT and
Kafka's default handler, which takes unsecured tokens.
"""

from __future__ import annotations

import json
import sys
import time
from base64 import urlsafe_b64encode
from pathlib import Path
from typing import Any

from kproto_server.security.oauth import TokenIssuer, unsecured_token
from tests.security.sasl_scripts import Step, authenticate, handshake, list_groups, raw, transcript

FOLDER = Path(__file__).parents[2] / "fixtures" / "oauth"
BEARER = "OAUTHBEARER"
HOUR_S = 3600.0


def now_s() -> float:
    return int(time.time())


def message(token: str, header: str = "n,,", auth: str = "auth=Bearer ", more: str = "") -> bytes:
    return f"{header}\x01{auth}{token}\x01{more}\x01".encode()


def good(**claims: Any) -> str:
    return unsecured_token("alice", issued_s=now_s() - 10, **claims)


def of_parts(header: object, claims: object, signature: str = "") -> str:
    parts = (urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=") for part in (header, claims))
    return ".".join([*parts, signature])


def logs_in(data: bytes) -> list[Step]:
    return [handshake(BEARER), authenticate(data), list_groups]


def refused(data: bytes) -> list[Step]:
    """The client reads the error, acknowledges it, and gets the failure."""
    return [handshake(BEARER), authenticate(data), authenticate(b"\x01"), list_groups]


def scripts() -> dict[str, list[Step]]:
    claims = {"sub": "alice", "exp": now_s() + HOUR_S}
    return {
        "a token": logs_in(message(good())),
        "a token, v2": [handshake(BEARER), authenticate(message(good()), 0), list_groups],
        "a token without iat": logs_in(message(good(iat=None))),
        "times with fractions": logs_in(message(good(iat=now_s() - 10.5, exp=now_s() + HOUR_S + 0.25))),
        "other claims": logs_in(message(good(iss="x", aud=["y"], scope=["a", "b"], nbf=now_s() + HOUR_S))),
        "the own authorization id": logs_in(message(good(), "n,a=alice,")),
        "another authorization id": logs_in(message(good(), "n,a=bob,")),
        "extensions": logs_in(message(good(), more="traceId=123\x01logicalCluster=abc\x01")),
        "a small scheme": logs_in(message(good(), auth="auth=bearer ")),
        "another scheme": logs_in(message(good(), auth="auth=Basic ")),
        "no auth": logs_in(message(good(), auth="other=Bearer ")),
        "no token": logs_in(message("")),
        "no message": logs_in(b"junk"),
        "nothing": logs_in(b""),
        "channel binding": logs_in(message(good(), "y,,")),
        "an expired token": refused(message(good(exp=now_s() - 1))),
        "a token of the future": refused(message(good(iat=now_s() + 60))),
        "exp before iat": refused(message(good(iat=now_s() - 10, exp=now_s() - 20))),
        "no exp": refused(message(good(exp=None))),
        "exp is a text": refused(message(good(exp=str(now_s() + HOUR_S)))),
        "no sub": refused(message(good(sub=None))),
        "an empty sub": refused(message(good(sub=""))),
        "sub is a number": refused(message(good(sub=7))),
        "an algorithm": refused(message(of_parts({"alg": "HS256"}, claims))),
        "a signature": refused(message(of_parts({"alg": "none"}, claims, "AAAA"))),
        "a signed token": refused(message(TokenIssuer("ES256").token("alice", issued_s=now_s()))),
        "two parts": refused(message("e30.e30")),
        "no JSON": refused(message("AAAA.AAAA.")),
        "a list": refused(message(of_parts({"alg": "none"}, ["sub"]))),
        "another token after the error": [
            handshake(BEARER),
            authenticate(message(good(exp=now_s() - 1))),
            authenticate(message(good())),
            list_groups,
        ],
        "an acknowledgment first": logs_in(b"\x01"),
        "without headers": [handshake(BEARER, 0), raw(message(good())), list_groups],
        "without headers, expired": [handshake(BEARER, 0), raw(message(good(exp=now_s() - 1))), raw(b"\x01")],
    }


def main() -> None:
    release, address = sys.argv[1:]
    FOLDER.mkdir(exist_ok=True)
    found = {name: transcript(address, steps) for name, steps in scripts().items()}
    (FOLDER / f"{release}.json").write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
