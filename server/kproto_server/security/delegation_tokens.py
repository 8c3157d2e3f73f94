"""Delegation tokens (KIP-48): their owners and validity, their HMACs, and their SCRAM credentials.

A token is an id and the HMAC of it by the broker's secret key. A client that has both logs in by SCRAM, with the id as
its name and the HMAC in base64 as its password. kproto stores only the ids, because the HMACs follow from them. This
module reads no clock.
"""

from __future__ import annotations

import hmac
from base64 import b64encode
from typing import TYPE_CHECKING, NamedTuple

from kproto.jvm.uuid_text import uuid_text
from kproto_server.security.users import SALT_BYTES, SCRAM_HASHES, scram_credential

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from kproto_server.security.users import ScramCredential

HMAC_HASH = "sha512"
ID_BYTES = 16
UUID_VERSION, UUID_VARIANT = (6, 0x0F, 0x40), (8, 0x3F, 0x80)
"""The bytes that mark a UUID as random: position, mask of the bits that stay random, and the fixed bits."""
USER_TYPE = "User"
"""The type of principals that own and renew tokens."""
RENEWER_SIZE = 100
"""For how many characters a renewer counts beside its own."""


class Principal(NamedTuple):
    """A principal of Kafka."""

    type: str
    name: str

    def __str__(self) -> str:
        return f"{self.type}:{self.name}"

    @classmethod
    def parse(cls, text: str) -> Principal:
        """Return the principal of ``Type:name``."""
        type_, _, name = text.partition(":")
        return cls(type_, name)


def size_of(owner: Principal, requester: Principal, renewers: Iterable[Principal]) -> int:
    """Return the characters of a token's principals; a renewer counts for more, since it takes memory without a name,
    too."""
    own = sum(len(str(one)) for one in {owner, requester})
    return own + sum(RENEWER_SIZE + len(one.type) + len(one.name) for one in renewers)


class Token(NamedTuple):
    """One delegation token, without its HMAC. Times are milliseconds since the epoch."""

    token_id: str
    owner: Principal
    requester: Principal
    """The principal that created it (KIP-373)."""
    renewers: tuple[Principal, ...]
    issued_ms: int
    expires_ms: int
    max_ms: int
    """The time after which it cannot be renewed."""

    def as_stored(self) -> tuple[object, ...]:
        """Return the fields as the data directory has them: principals are texts."""
        owner, requester, renewers = str(self.owner), str(self.requester), tuple(map(str, self.renewers))
        return self.token_id, owner, requester, renewers, self.issued_ms, self.expires_ms, self.max_ms

    @classmethod
    def of_stored(cls, token_id: str, owner: str, requester: str, renewers: Iterable[str], *times_ms: int) -> Token:
        """Return the token of fields that the data directory has."""
        parse = Principal.parse
        return cls(token_id, parse(owner), parse(requester), tuple(map(parse, renewers)), *times_ms)

    def is_of(self, principal: Principal) -> bool:
        """Return whether a principal owns the token, has created it, or may renew it."""
        return principal in (self.owner, self.requester, *self.renewers)

    def is_of_any(self, principals: set[Principal]) -> bool:
        """Return whether the token is of any of these principals."""
        return not principals.isdisjoint((self.owner, self.requester, *self.renewers))

    @property
    def size(self) -> int:
        """The size of its principals."""
        return size_of(self.owner, self.requester, self.renewers)

    def may_renew(self, principal: Principal) -> bool:
        """Return whether a principal may renew the token and change its end."""
        return principal in (self.owner, *self.renewers)

    def is_expired(self, now_ms: int) -> bool:
        """Return whether the token has ended. It still logs in until `DelegationTokens` drops it, as in Kafka."""
        return min(self.max_ms, self.expires_ms) < now_ms


class DelegationTokens:
    """The tokens of a cluster that has a secret key."""

    def __init__(self, secret_key: str, random_bytes: Callable[[int], bytes]) -> None:
        """``random_bytes``: the source of ids and salts."""
        self._secret_key = secret_key.encode()
        self._random_bytes = random_bytes
        self._tokens: dict[str, Token] = {}
        self.size: int = 0
        """The size of the principals of all tokens."""
        self._ids: dict[bytes, str] = {}
        """By HMAC."""
        self._credentials: dict[tuple[str, str], ScramCredential] = {}
        """By id and mechanism; made when first needed, since it takes milliseconds."""

    @property
    def tokens(self) -> tuple[Token, ...]:
        """All tokens, the oldest first."""
        return tuple(self._tokens.values())

    def replace(self, tokens: Iterable[Token]) -> None:
        """Have these tokens and no others; the principals of one that exists are what they were."""
        found = {token.token_id: token for token in tokens}
        for token_id in self._tokens.keys() - found.keys():
            del self._ids[self.hmac_of(token_id)]
            self.size -= self._tokens[token_id].size
            for mechanism in SCRAM_HASHES:
                self._credentials.pop((token_id, mechanism), None)
        for token_id in found.keys() - self._tokens.keys():
            self._ids[self.hmac_of(token_id)] = token_id
            self.size += found[token_id].size
        self._tokens = found

    def new_id(self) -> str:
        """Return the id of a new token: a random UUID in base64."""
        uuid = bytearray(self._random_bytes(ID_BYTES))
        for position, random_bits, fixed_bits in (UUID_VERSION, UUID_VARIANT):
            uuid[position] = uuid[position] & random_bits | fixed_bits
        return uuid_text(bytes(uuid))

    def hmac_of(self, token_id: str) -> bytes:
        """Return the HMAC of a token."""
        return hmac.digest(self._secret_key, token_id.encode(), HMAC_HASH)

    def by_hmac(self, found: bytes) -> Token | None:
        """Return the token with an HMAC; None: there is none."""
        token_id = self._ids.get(found)
        return None if token_id is None else self._tokens[token_id]

    def by_id(self, token_id: str) -> Token | None:
        """Return the token with an id; None: there is none."""
        return self._tokens.get(token_id)

    def scram_credential(self, mechanism: str, token_id: str) -> ScramCredential:
        """Return the credential of a token for a SCRAM mechanism."""
        found = self._credentials.get((token_id, mechanism))
        if found is None:
            password = b64encode(self.hmac_of(token_id)).decode()
            salt = self._random_bytes(SALT_BYTES)
            found = self._credentials[token_id, mechanism] = scram_credential(mechanism, password, salt)
        return found
