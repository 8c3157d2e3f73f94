"""What administrators do with SCRAM credentials (KIP-554), right and wrong, and the responses.

`python -m tests.security.scram_users RELEASE HOST:PORT` records them from a broker that has no such users.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from kproto.messages.k50_describe_user_scram_credentials import DescribeUserScramCredentialsRequest, UserName
from kproto.messages.k51_alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from tests.network.raw_client import RawClient

FOLDER = Path(__file__).parents[2] / "fixtures" / "scram-users"
Step = Callable[[RawClient], Any]


def describe(*names: str, users: tuple[UserName, ...] | None = ()) -> Step:
    def step(client: RawClient) -> Any:
        asked = tuple(UserName(name=name) for name in names) or users
        found = client.ask(DescribeUserScramCredentialsRequest(users=asked), 0)
        results = [
            [one.user, one.error_code, one.error_message, [[i.mechanism, i.iterations] for i in one.credential_infos]]
            for one in found.results
        ]
        return [found.error_code, found.error_message, *results]

    return step


def describe_all() -> Step:
    return describe(users=None)


def upserted(name: str, mechanism: int = 1, iterations: int = 4096, password: bytes = b"x" * 32) -> Any:
    return ScramCredentialUpsertion(
        name=name, mechanism=mechanism, iterations=iterations, salt=b"salt", salted_password=password
    )


def deleted(name: str, mechanism: int = 1) -> ScramCredentialDeletion:
    return ScramCredentialDeletion(name=name, mechanism=mechanism)


def alter(*changes: Any) -> Step:
    def step(client: RawClient) -> Any:
        found = client.ask(
            AlterUserScramCredentialsRequest(
                deletions=tuple(one for one in changes if isinstance(one, ScramCredentialDeletion)),
                upsertions=tuple(one for one in changes if isinstance(one, ScramCredentialUpsertion)),
            ),
            0,
        )
        return [[one.user, one.error_code, one.error_message] for one in found.results]

    return step


ODD_NAME = "a b*c+d/e%f~g_h-i.jäk\n"
"""A name with characters that ZooKeeper's paths do not have as they are."""

STEPS: tuple[Step, ...] = (
    describe_all(),
    describe(),
    describe("carol"),
    describe("carol", "carol"),
    describe("", "dora"),
    describe("", ""),
    alter(upserted("carol"), upserted("dora", 2, 8192)),
    describe_all(),
    describe(),
    describe("carol"),
    alter(upserted("carol", iterations=4095)),
    alter(upserted("carol", iterations=16385)),
    alter(upserted("carol", iterations=16384)),
    alter(upserted("carol", 0)),
    alter(upserted("carol", 3)),
    alter(upserted("carol", -1)),
    alter(upserted("")),
    alter(deleted("")),
    alter(deleted("unknown")),
    alter(deleted("carol", 3)),
    alter(deleted("carol", 2)),
    alter(upserted("e"), upserted("e")),
    alter(upserted("e"), upserted("e", 2)),
    alter(upserted("e"), upserted("e"), upserted("e")),
    alter(deleted("e"), deleted("e", 2)),
    alter(deleted("carol"), deleted("carol")),
    alter(deleted("carol"), upserted("carol")),
    alter(deleted("dora", 2), upserted("dora", 1)),
    describe_all(),
    alter(upserted("bad", 7), upserted("carol"), upserted(""), upserted("few", 1, 1), upserted("zoe"), upserted("y")),
    alter(deleted("unknown"), deleted("y"), deleted("zoe"), upserted("few", 1, 1), upserted("bad", 9)),
    alter(upserted("empty", password=b"")),
    alter(upserted("x" * 300)),
    describe_all(),
    describe("carol", "unknown", "few", "carol"),
    alter(),
    alter(deleted("carol"), deleted("empty"), deleted("x" * 300)),
    describe_all(),
    alter(upserted(ODD_NAME), upserted("a,b")),
    describe_all(),
    describe(ODD_NAME, "a%2Cb"),
    alter(deleted(ODD_NAME), deleted("a,b")),
    describe_all(),
    # Many users: the order is that of hash tables.
    alter(*(upserted(f"user-{n}") for n in range(40))),
    describe_all(),
    describe(*(f"user-{n}" for n in range(0, 60, 7))),
    alter(*(upserted(f"user-{n}") for n in (9, 7, 5, 3)), *(deleted(f"unknown-{n}") for n in range(3))),
    alter(*(upserted(f"user-{n}") for n in (9, 7, 5, 3, 1)), *(deleted(f"unknown-{n}") for n in range(9))),
    alter(*(upserted(f"few-{n}", 1, 1) for n in range(6)), *(deleted(f"bad-{n}", 9) for n in range(6))),
    alter(*(upserted(f"few-{n}", 1, 1) for n in range(2)), *(deleted(f"bad-{n}", 9) for n in range(2))),
    alter(*(upserted(f"user-{n}") for n in (*range(7), *range(7)))),
    alter(*(upserted(f"user-{n}", 2) for n in (1, 2, 3, 1, 2, 3))),
    alter(*(deleted(f"user-{n}") for n in (*range(20), *range(15, 30), *range(50, 60))), upserted("few", 1, 1)),
    alter(*(deleted(f"user-{n}") for n in range(40))),
    alter(*(deleted(f"user-{n}") for n in range(40))),
    describe_all(),
)


def transcript(address: str) -> list[Any]:
    with RawClient(address) as client:
        return [step(client) for step in STEPS]


def main() -> None:
    release, address = sys.argv[1:]
    FOLDER.mkdir(exist_ok=True)
    (FOLDER / f"{release}.json").write_text(json.dumps(transcript(address), indent=1) + "\n")


if __name__ == "__main__":
    main()
