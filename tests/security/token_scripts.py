"""What clients do with delegation tokens (KIP-48, KIP-373), right and wrong, and the responses.

`python -m tests.security.token_scripts RELEASE=HOST:PORT,HOST:PORT ...` records them from brokers that have no tokens;
the first address is that of a listener with SASL_PLAINTEXT, the second one that of a listener with PLAINTEXT.
fixtures/delegation-tokens/PROVENANCE.md has the settings of the brokers.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import sys
import time
from base64 import b64decode, b64encode
from collections.abc import Callable
from pathlib import Path
from typing import Any

from kproto.errors import EncodeError
from kproto.jvm.arithmetic import java_hash
from kproto.jvm.hash_map import in_hash_order
from kproto.messages import k38_create_delegation_token as k38
from kproto.messages import k39_renew_delegation_token as k39
from kproto.messages import k40_expire_delegation_token as k40
from kproto.messages import k41_describe_delegation_token as k41
from kproto.messages.k17_sasl_handshake import SaslHandshakeRequest
from kproto.messages.k30_create_acls import AclCreation, CreateAclsRequest
from kproto.messages.k36_sasl_authenticate import SaslAuthenticateRequest
from kproto_server.releases.kafka_version import KafkaVersion
from tests.network.raw_client import RawClient

FOLDER = Path(__file__).parents[2] / "fixtures" / "delegation-tokens"
SECRET_KEY = "the-secret-key"  # noqa: S105 - of a test
USERS = {name: f"{name}-secret" for name in ("admin", "alice", "bob", "carol")}
ANONYMOUS = "anonymous"
NOTHING = "nothing"
OWN = "the-id-of-the-token"
HOUR_MS = 3_600_000
SHORT_MS = 100
ROUNDED_MS = 600_000
"""Times that depend on the duration of the script are rounded to this."""
PROPAGATION_S = 0.5
"""A broker of KRaft knows a change some milliseconds after its controller."""
CLOSED = "closed"
NOT_SENT = "not sent"
DELEGATION_TOKEN, USER = 6, 7
CREATE_TOKENS, DESCRIBE_TOKENS, DESCRIBE = 13, 14, 8
SCRAM = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}
SASL_AUTHENTICATE = 36
Step = Callable[["Script"], Any]


def user(name: str) -> tuple[str, str]:
    return "User", name


class Script:
    """The clients of one script, and the tokens that they got."""

    def __init__(self, secured: str, plain: str, release: str, pause: Callable[[int], object]) -> None:
        """``pause``: lets so many milliseconds pass on the broker's clock."""
        self.secured, self.plain = secured, plain
        self.versions = KafkaVersion.named(release).api_versions
        self.login_version = min(self.versions[SASL_AUTHENTICATE][1], 1)
        self.pause = pause
        self.tokens: dict[str, tuple[str, bytes, int]] = {}
        """Id, HMAC and time of issue by the names of the script."""
        self._clients: dict[str, RawClient] = {}

    def client(self, name: str) -> RawClient:
        if name not in self._clients:
            self._clients[name] = RawClient(self.plain if name == ANONYMOUS else self.secured)
            if name != ANONYMOUS:
                found = login(self._clients[name], "PLAIN", f"\0{name}\0{USERS[name]}".encode(), self.login_version)
                assert found.error_code == 0, found
        return self._clients[name]

    def adopt(self, name: str, client: RawClient) -> None:
        self._clients[name] = client

    def ask(self, name: str, request: Any, version: int | None = None) -> Any:
        """Return the response; None: the connection was closed instead, now or before."""
        if name not in (*self._clients, *USERS, ANONYMOUS):
            return None
        low, high = self.versions[type(request)._api_key]
        try:
            return self.client(name).ask(request, high if version is None else max(version, low))
        except ConnectionError:
            del self._clients[name]
            return None

    def close(self) -> None:
        for client in self._clients.values():
            client.socket.close()

    def name(self, token_id: str) -> str:
        known = {found[0]: name for name, found in self.tokens.items()}
        return known.get(token_id, token_id and "unknown")

    def time(self, value: int, issued: int) -> Any:
        """Return a time after the issue of a token, rounded."""
        return (
            "beyond 64 bits"
            if value < -1
            else value
            if value <= 0
            else f"issue + {round((value - issued) / ROUNDED_MS) * ROUNDED_MS}"
        )


def login(client: RawClient, mechanism: str, token: bytes, version: int = 1) -> Any:
    client.ask(SaslHandshakeRequest(mechanism=mechanism), 1)
    return client.ask(SaslAuthenticateRequest(auth_bytes=token), version)


def create(
    who: str,
    name: str | None = None,
    *,
    renewers: tuple[tuple[str, str], ...] = (),
    lifetime_ms: int = -1,
    owner: tuple[str | None, str | None] = ("", ""),
    version: int | None = None,
) -> Step:
    """Return a step: the response to CreateDelegationToken; ``name``: that of the token from now on."""

    def step(script: Script) -> Any:
        found = script.ask(
            who,
            k38.CreateDelegationTokenRequest(
                owner_principal_type=owner[0],
                owner_principal_name=owner[1],
                renewers=tuple(k38.CreatableRenewers(principal_type=one, principal_name=two) for one, two in renewers),
                max_lifetime_ms=lifetime_ms,
            ),
            version,
        )
        if found is None:
            return CLOSED
        issued = found.issue_timestamp_ms
        if name is not None and not found.error_code:
            script.tokens[name] = found.token_id, found.hmac, issued
        after = [
            value if found.error_code else value - issued
            for value in (found.expiry_timestamp_ms, found.max_timestamp_ms)
        ]
        expected = hmac.digest(SECRET_KEY.encode(), found.token_id.encode(), "sha512")
        return [
            found.error_code, f"{found.principal_type}:{found.principal_name}",
            f"{found.token_requester_principal_type}:{found.token_requester_principal_name}",
            issued if found.error_code else "now", *after, len(found.token_id),
            "right" if found.hmac == expected else found.hmac.hex(), found.throttle_time_ms,
        ]  # fmt: skip

    return step


def hmac_of(script: Script, token: str) -> bytes:
    return script.tokens[token][1] if token in script.tokens else token.encode()


def renew(who: str, token: str, period_ms: int, version: int | None = None) -> Step:
    def step(script: Script) -> Any:
        request = k39.RenewDelegationTokenRequest(hmac=hmac_of(script, token), renew_period_ms=period_ms)
        return changed(script, token, script.ask(who, request, version))

    return step


def expire(who: str, token: str, period_ms: int, version: int | None = None) -> Step:
    def step(script: Script) -> Any:
        request = k40.ExpireDelegationTokenRequest(hmac=hmac_of(script, token), expiry_time_period_ms=period_ms)
        return changed(script, token, script.ask(who, request, version))

    return step


def changed(script: Script, token: str, found: Any) -> Any:
    if found is None:
        return CLOSED
    issued = script.tokens[token][2] if token in script.tokens else 0
    return [found.error_code, script.time(found.expiry_timestamp_ms, issued), found.throttle_time_ms]


def describe(who: str, *owners: tuple[str, str], asks_all: bool = False, version: int | None = None) -> Step:
    """Return a step: the tokens of these owners; none of them, but for ``asks_all``: those of no owner."""

    def step(script: Script) -> Any:
        asked = tuple(k41.DescribeDelegationTokenOwner(principal_type=one, principal_name=two) for one, two in owners)
        found = script.ask(who, k41.DescribeDelegationTokenRequest(owners=None if asks_all else asked), version)
        if found is None:
            return CLOSED
        ids = [one.token_id for one in found.tokens]
        described = [
            [
                script.name(one.token_id), f"{one.principal_type}:{one.principal_name}",
                f"{one.token_requester_principal_type}:{one.token_requester_principal_name}",
                *(script.time(value, one.issue_timestamp) for value in (one.expiry_timestamp, one.max_timestamp)),
                "right" if one.hmac == hmac.digest(SECRET_KEY.encode(), one.token_id.encode(), "sha512") else "wrong",
                [f"{renewer.principal_type}:{renewer.principal_name}" for renewer in one.renewers],
            ]
            for one in found.tokens
        ]  # fmt: skip
        is_hashed = any(ids == in_hash_order(ids, java_hash, capacity) for capacity in (16, 32))
        order = "in the order of hashes" if is_hashed else "in another order"
        return [found.error_code, found.throttle_time_ms, order, *sorted(described)]

    return step


def allow(name: str, operation: int, resource_type: int, resource: str) -> Step:
    """Return a step: the administrator allows a user an operation; a resource may be the name of a token."""

    def step(script: Script) -> Any:
        acl = AclCreation(
            resource_type=resource_type,
            resource_name=script.tokens[resource][0] if resource in script.tokens else resource,
            resource_pattern_type=3,
            principal=f"User:{name}",
            host="*",
            operation=operation,
            permission_type=3,
        )
        found = script.ask("admin", CreateAclsRequest(creations=(acl,)))
        return CLOSED if found is None else [[one.error_code, one.error_message] for one in found.results]

    return step


def authenticate(
    token: str,
    *,
    extensions: str = ",tokenauth=true",
    authorization_id: str = "",
    mechanism: str = "SCRAM-SHA-256",
    proves: str | None = None,
    stays: str | None = None,
) -> Step:
    """Return a step: log in by SCRAM with a token; ``proves``: another password than its
    HMAC; ``stays``: the name of this client in later steps."""

    def step(script: Script) -> Any:
        client = RawClient(script.secured)
        name = script.tokens[token][0] if token in script.tokens else token
        password = proves or b64encode(hmac_of(script, token)).decode()
        header = f"n,{authorization_id and f'a={authorization_id}'},".replace(OWN, name)
        bare = f"n={name},r=abc{extensions}"
        try:
            found = login(client, mechanism, (header + bare).encode(), script.login_version)
        except ConnectionError:
            return CLOSED
        if not found.error_code:
            server_first = found.auth_bytes.decode()
            parts = dict(part.split("=", 1) for part in server_first.split(","))
            algorithm = SCRAM[mechanism]
            salted = hashlib.pbkdf2_hmac(algorithm, password.encode(), b64decode(parts["s"]), int(parts["i"]))
            key = hmac.digest(salted, b"Client Key", algorithm)
            without_proof = f"c={b64encode(header.encode()).decode()},r={parts['r']}"
            message = f"{bare},{server_first},{without_proof}".encode()
            signature = hmac.digest(hashlib.new(algorithm, key).digest(), message, algorithm)
            proof = bytes(a ^ b for a, b in zip(key, signature, strict=True))
            final = f"{without_proof},p={b64encode(proof).decode()}"
            try:
                found = client.ask(SaslAuthenticateRequest(auth_bytes=final.encode()), script.login_version)
            except ConnectionError:
                return CLOSED
            lifetime = round(found.session_lifetime_ms / ROUNDED_MS) * ROUNDED_MS
            result = [found.error_code, found.error_message, parts["i"], lifetime]
        else:
            result = [found.error_code, found.error_message]
        if stays is not None:
            script.adopt(stays, client)
        else:
            client.socket.close()
        return result

    return step


def pause(script: Script) -> Any:
    """A step: tokens with a lifetime of `SHORT_MS` expire."""
    script.pause(2 * SHORT_MS)


BOBS = (user("bob"),)

STEPS: tuple[Step, ...] = (
    # A listener without security.
    create(ANONYMOUS), renew(ANONYMOUS, NOTHING, -1), expire(ANONYMOUS, NOTHING, -1),
    describe(ANONYMOUS), describe(ANONYMOUS, asks_all=True),
    create(ANONYMOUS, version=0), renew(ANONYMOUS, NOTHING, -1, 0), expire(ANONYMOUS, NOTHING, -1, 0),
    describe(ANONYMOUS, version=0),
    create(ANONYMOUS, renewers=(("Group", "g"),), owner=user("bob")),
    # Tokens that are created, and that are not.
    describe("alice"), describe("alice", asks_all=True),
    create("alice", "one", renewers=BOBS),
    create("alice", "zero", lifetime_ms=0),
    create("alice", "hour", lifetime_ms=HOUR_MS, version=0),
    create("alice", "long", lifetime_ms=1 << 62, version=1),
    create("alice", "most", lifetime_ms=(1 << 63) - 1),
    create("alice", "least", lifetime_ms=-(1 << 63)),
    create("alice", renewers=(("Group", "g"),)),
    create("alice", renewers=(user("bob"), ("user", "carol"))),
    create("alice", "twice", renewers=(user("bob"), user("bob"), user("alice"), user(""))),
    create("carol", "carols"),
    # Tokens for others.
    create("alice", owner=user("bob")),
    create("alice", owner=("Group", "bob"), renewers=(("Group", "g"),)),
    create("alice", "own", owner=user("alice")),
    create("alice", owner=("Group", "alice")),
    create("alice", "typed", owner=("Group", "")),
    create("alice", "null", owner=(None, None)),
    create("admin", owner=(None, "bob")),
    create("admin", "for-alice", owner=user("alice")),
    create("admin", "group", owner=("Group", "alice")),
    create("admin", "empty-type", owner=("", "alice")),
    create("admin", owner=user("bob"), renewers=(("Group", "g"),)),
    create("admin", "colon", owner=user("a:b, c=d")),
    allow("alice", CREATE_TOKENS, USER, "bob"),
    create("alice", owner=user("bob")),
    allow("alice", CREATE_TOKENS, USER, "User:bob"),
    create("alice", "for-bob", owner=user("bob"), renewers=(user("carol"),)),
    # Who sees which tokens.
    describe("alice"), describe("alice", asks_all=True), describe("alice", user("alice")),
    describe("alice", asks_all=True, version=0), describe("alice", asks_all=True, version=2),
    describe("alice", user("bob")), describe("alice", user("carol")), describe("alice", user("unknown")),
    describe("alice", user("bob"), user("carol")), describe("alice", ("Group", "alice")), describe("alice", ("", "")),
    describe("bob", asks_all=True), describe("bob", user("alice")), describe("carol", asks_all=True),
    describe("carol", user("alice")), describe("admin", asks_all=True), describe("admin", user("alice")),
    describe("admin", user("admin")),
    allow("carol", DESCRIBE, DELEGATION_TOKEN, "one"),
    describe("carol", asks_all=True), describe("carol", user("alice")),
    allow("carol", DESCRIBE_TOKENS, USER, "User:bob"),
    describe("carol", asks_all=True), describe("carol", user("bob")), describe("carol", user("alice")),
    # Renewals.
    renew("alice", NOTHING, -1), renew("alice", "", -1), renew("alice", NOTHING, -1, 0),
    renew("carol", "one", -1), renew("admin", "one", -1), renew("admin", "for-alice", -1),
    renew("alice", "for-alice", -1),
    renew("alice", "one", HOUR_MS), renew("bob", "one", 2 * HOUR_MS),
    renew("alice", "own", 0), pause, renew("alice", "own", -1), renew("bob", "one", -1),
    renew("alice", "one", -2), renew("alice", "one", 1 << 40), renew("alice", "least", (1 << 63) - 1),
    renew("alice", "one", 3 * HOUR_MS), describe("bob", user("bob")),
    renew("alice", "hour", 2 * HOUR_MS), renew("carol", "for-bob", HOUR_MS),
    # Login.
    authenticate("one"), authenticate("one", mechanism="SCRAM-SHA-512"), authenticate("hour"),
    authenticate("one", extensions=""), authenticate("one", extensions=",tokenauth=false"),
    authenticate("one", extensions=",tokenauth=TRUE"),
    authenticate("one", extensions=",tokenauth=true,tokenauth=false"), authenticate("one", extensions=",tokenauth="),
    authenticate("one", extensions=",TOKENAUTH=true"),
    authenticate("one", proves="wrong"), authenticate("unknown"), authenticate("alice", proves="alice-secret"),
    authenticate("one", authorization_id=OWN), authenticate("one", authorization_id="alice"),
    authenticate("one", authorization_id="bob"), authenticate("group"), authenticate("colon"),
    # With a token, there are no requests for tokens.
    authenticate("one", stays="by-token"),
    create("by-token"), create("by-token", owner=user("bob")), renew("by-token", "one", HOUR_MS),
    expire("by-token", "one", -1),
    describe("by-token"), describe("by-token", asks_all=True),
    # The ends of tokens.
    expire("alice", NOTHING, -1), expire("alice", "", -1), expire("alice", NOTHING, 1, 0), expire("carol", "one", -1),
    expire("admin", "one", HOUR_MS),
    expire("alice", "one", 2 * HOUR_MS), expire("bob", "one", HOUR_MS), expire("alice", "one", 1 << 40),
    expire("alice", "most", (1 << 63) - 1), describe("bob", user("bob")),
    authenticate("one", stays="by-token"),
    expire("bob", "one", -1), renew("bob", "one", -1), expire("bob", "one", -1), authenticate("one"),
    describe("bob", asks_all=True), create("by-token"),
    expire("alice", "zero", 0), pause, renew("alice", "zero", HOUR_MS), expire("alice", "zero", HOUR_MS),
    create("alice", "short", lifetime_ms=SHORT_MS, renewers=BOBS), pause,
    describe("bob", asks_all=True), renew("alice", "short", -1), renew("carol", "short", -1),
    expire("carol", "short", -1), expire("alice", "short", HOUR_MS), authenticate("short"),
    expire("alice", "short", -1), renew("alice", "short", -1),
    expire("alice", "own", -(1 << 63)), renew("alice", "own", -1),
)  # fmt: skip

WITHOUT_KEY: tuple[Step, ...] = (
    create(ANONYMOUS), renew(ANONYMOUS, NOTHING, -1), expire(ANONYMOUS, NOTHING, -1), describe(ANONYMOUS),
    create("alice"), create("alice", version=0), create("alice", owner=user("bob")),
    create("alice", renewers=(("Group", "g"),)),
    renew("alice", NOTHING, -1), expire("alice", NOTHING, -1), describe("alice"), describe("alice", asks_all=True),
    renew("alice", NOTHING, -1, 0), expire("alice", NOTHING, -1, 0), describe("alice", version=0),
    authenticate("unknown", proves="x"),
)  # fmt: skip
"""For a broker without a secret key."""

VARIANTS = {"with-key": STEPS, "without-key": WITHOUT_KEY}


def real_pause(duration_ms: int) -> None:
    time.sleep(duration_ms / 1000)


def transcript(
    variant: str, secured: str, plain: str, release: str, pause: Callable[[int], object] = real_pause
) -> list[Any]:
    """Return the responses to all steps of a variant."""
    script = Script(secured, plain, release, pause)
    try:
        found = []
        for step in VARIANTS[variant]:
            try:
                found.append(step(script))
            except EncodeError:  # the release has no version with this field
                found.append(NOT_SENT)
            if pause is real_pause:
                time.sleep(PROPAGATION_S)
        return found
    finally:
        script.close()


def version_name(release_and_mode: str) -> str:
    """Return the name of the Kafka version of ``RELEASE-MODE``."""
    release, mode = release_and_mode.split("-")
    line = release.rpartition(".")[0]
    has_two_modes = mode == "zookeeper" and KafkaVersion.named(line).is_kraft
    return f"{line}-zookeeper" if has_two_modes else line


def main() -> None:
    """Write ``VARIANT/RELEASE.json`` for each ``VARIANT:RELEASE=SECURED,PLAIN``."""
    for argument in sys.argv[1:]:
        target, addresses = argument.split("=")
        variant, release = target.split(":")
        secured, plain = addresses.split(",")
        found = transcript(variant, secured, plain, version_name(release))
        lines = ",\n".join(json.dumps(one) for one in found)
        (FOLDER / f"{variant}-{release}.json").write_text(f"[\n{lines}\n]\n")


if __name__ == "__main__":
    main()
