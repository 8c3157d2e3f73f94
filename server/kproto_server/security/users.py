"""The users of a broker and their secrets: passwords for PLAIN, salted keys for SCRAM (RFC 5802)."""

from __future__ import annotations

import hashlib
import hmac
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

ITERATIONS = 4096
"""Kafka's least and usual number."""
ITERATIONS_MAX = 16384
SALT_BYTES = 20
SCRAM_HASHES = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}
"""The SCRAM mechanisms, with the names of their hash functions."""
SCRAM_TYPES = {1: "SCRAM-SHA-256", 2: "SCRAM-SHA-512"}
"""The SCRAM mechanisms by their numbers in requests (KIP-554)."""


class ScramCredential(NamedTuple):
    """What a broker keeps of a password for one SCRAM mechanism: the password does not follow from it."""

    salt: bytes
    iterations: int
    stored_key: bytes
    server_key: bytes

    def __repr__(self) -> str:
        return f"ScramCredential({self.iterations} iterations)"


Changes = dict[tuple[str, str], ScramCredential | None]
"""By user and mechanism; None: removed."""


class ScramCredentials:
    """The SCRAM credentials of users: those that administrators set (KIP-554), and those of users with passwords."""

    def __init__(self, random_bytes: Callable[[int], bytes]) -> None:
        """``random_bytes``: the source of salts."""
        self._random_bytes = random_bytes
        self._passwords: Mapping[str, str] = {}
        self._mechanisms: frozenset[str] = frozenset()
        self._made: dict[tuple[str, str], ScramCredential] = {}
        """Of passwords; made when first needed, since it takes milliseconds."""
        self.changes: Changes = {}
        """What administrators have set and removed; it goes before the passwords."""

    def give(self, passwords: Mapping[str, str], mechanisms: Iterable[str]) -> None:
        """Have these users, with a password for each of these mechanisms that is a SCRAM mechanism."""
        self._passwords = passwords
        self._mechanisms = frozenset(mechanisms) & SCRAM_HASHES.keys()

    def find(self, name: str, mechanism: str) -> ScramCredential | None:
        """Return the credential of a user; None: there is none."""
        key = name, mechanism
        if key in self.changes:
            return self.changes[key]
        password = self._passwords.get(name)
        if password is None or mechanism not in self._mechanisms:
            return None
        found = self._made.get(key)
        if found is None:
            salt = self._random_bytes(SALT_BYTES)
            found = self._made[key] = scram_credential(mechanism, password, salt)
        return found

    def users(self) -> list[str]:
        """Return the users that have credentials."""
        named = dict.fromkeys([*(self._passwords if self._mechanisms else ()), *(name for name, _ in self.changes)])
        return [name for name in named if self.iterations(name)]

    def iterations(self, name: str) -> dict[str, int]:
        """Return the iterations of each mechanism for which a user has a credential."""
        found = {}
        for mechanism in SCRAM_TYPES.values():
            key = name, mechanism
            changed = self.changes.get(key)
            if changed is not None:
                found[mechanism] = changed.iterations
            elif key not in self.changes and name in self._passwords and mechanism in self._mechanisms:
                found[mechanism] = ITERATIONS
        return found

    def changed(self, changes: Changes) -> Changes:
        """Return all changes together with further ones; what has no effect is left out."""
        merged = self.changes | changes
        return {
            key: credential
            for key, credential in merged.items()
            if credential is not None or (key[0] in self._passwords and key[1] in self._mechanisms)
        }


class Users:
    """The users that may log in."""

    def __init__(self, passwords: Mapping[str, str], credentials: ScramCredentials) -> None:
        """``passwords``: those of PLAIN, by name."""
        self._passwords = passwords
        self._credentials = credentials

    def accepts(self, name: str, password: str) -> bool:
        """Return whether a password is that of a user. It takes as long for an unknown user."""
        known = self._passwords.get(name)
        is_equal = hmac.compare_digest((known or "").encode(), password.encode())
        return is_equal and known is not None

    def scram_credential(self, mechanism: str, name: str) -> ScramCredential | None:
        """Return the credential of a user for a SCRAM mechanism; None: the user is unknown."""
        return self._credentials.find(name, mechanism)


def scram_credential(mechanism: str, password: str, salt: bytes, iterations: int = ITERATIONS) -> ScramCredential:
    """Return the credential that a broker keeps of a password (RFC 5802, section 3)."""
    salted = hashlib.pbkdf2_hmac(SCRAM_HASHES[mechanism], password.encode(), salt, iterations)
    return credential_of_salted(mechanism, salted, salt, iterations)


def credential_of_salted(mechanism: str, salted_password: bytes, salt: bytes, iterations: int) -> ScramCredential:
    """Return the credential of a salted password."""
    hash_name = SCRAM_HASHES[mechanism]
    stored_key = hashlib.new(hash_name, hmac.digest(salted_password, b"Client Key", hash_name)).digest()
    return ScramCredential(salt, iterations, stored_key, hmac.digest(salted_password, b"Server Key", hash_name))
