"""SCRAM credentials that administrators set (KIP-554), as two real brokers keep them, and what they are good for."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from kproto.codes import ErrorCode
from kproto.messages.k17_sasl_handshake import SaslHandshakeRequest
from kproto.messages.k36_sasl_authenticate import SaslAuthenticateRequest
from kproto_server.broker.broker import Broker
from kproto_server.security.users import SCRAM_HASHES, scram_credential
from tests.network.raw_client import RawClient
from tests.security.sasl_scripts import Client, client_final, client_first, handshake, list_groups
from tests.security.scram_users import FOLDER, alter, deleted, describe_all, transcript, upserted

RECORDED = sorted(FOLDER.glob("*.json"))
SCRAM = "SCRAM-SHA-256"
OPTIONS: Any = {"sasl": ["PLAIN", SCRAM], "users": {"admin": "admin-secret"}}


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.stem)
def test_the_responses_are_those_of_the_release(path: Path) -> None:
    with Broker.running(kafka_version=path.stem.rpartition(".")[0]) as broker:
        assert transcript(broker.bootstrap_servers) == json.loads(path.read_text())


def salted(password: str) -> bytes:
    return hashlib.pbkdf2_hmac(SCRAM_HASHES[SCRAM], password.encode(), b"salt", 4096)


def logs_in(broker: Broker, name: str, password: str) -> bool:
    client = Client(broker.bootstrap_servers)
    frames = []
    for step in (handshake(SCRAM), client_first(name), client_final(password), list_groups):
        step(client)
        frames.append(client.read())
        if frames[-1] is None:
            break
        if b"r=" in frames[-1] and b",s=" in frames[-1]:
            found = frames[-1]
            client.server_first = found[found.index(b"r=") : found.index(b",i=") + 7]
    client.close()
    return len(frames) == 4 and frames[-1] is not None


class Administrator(RawClient):
    """A client that is the user admin."""

    def __init__(self, broker: Broker) -> None:
        super().__init__(broker.bootstrap_servers)
        self.ask(SaslHandshakeRequest(mechanism="PLAIN"), 1)
        done = self.ask(SaslAuthenticateRequest(auth_bytes=b"\0admin\0admin-secret"), 1)
        assert done.error_code == ErrorCode.NONE


def test_users_log_in_with_what_an_administrator_set_also_after_a_restart(tmp_path: Path) -> None:
    directory = str(tmp_path / "data")
    with Broker.running(data=directory, **OPTIONS) as broker, Administrator(broker) as admin:
        assert not logs_in(broker, "carol", "carols")
        assert logs_in(broker, "admin", "admin-secret")
        alter(upserted("carol", password=salted("carols")), upserted("dora", password=salted("doras")))(admin)
        alter(deleted("dora"), deleted("admin"))(admin)
        assert logs_in(broker, "carol", "carols")
        assert not logs_in(broker, "carol", "wrong")
    with Broker.running(data=directory, **OPTIONS) as broker, Administrator(broker) as admin:
        assert logs_in(broker, "carol", "carols")
        assert [logs_in(broker, *user) for user in (("dora", "doras"), ("admin", "admin-secret"))] == [False, False]
        assert describe_all()(admin) == [0, "", ["carol", 0, "", [[1, 4096]]]]


def test_users_with_passwords_have_credentials_from_the_start() -> None:
    with Broker.running(**OPTIONS) as broker, Administrator(broker) as admin:
        assert describe_all()(admin) == [0, "", ["admin", 0, "", [[1, 4096]]]]


def test_a_reset_and_a_snapshot_bring_credentials_back() -> None:
    with Broker.running(**OPTIONS) as broker:
        with Administrator(broker) as admin:
            alter(upserted("carol", password=salted("carols")))(admin)
        snapshot = broker.snapshot()
        broker.reset()
        assert not logs_in(broker, "carol", "carols")
        broker.restore(snapshot)
        assert logs_in(broker, "carol", "carols")
        assert "stored" not in repr(snapshot)


def test_what_is_kept_of_a_password_is_no_password(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Neither the salted password nor the stored keys are in a log or in the list of requests."""
    directory = tmp_path / "data"
    password = salted("carols")
    with caplog.at_level("DEBUG"), Broker.running(data=str(directory), **OPTIONS) as broker:
        with Administrator(broker) as admin:
            alter(upserted("carol", password=password))(admin)
        (request,) = broker.requests.wait(api="AlterUserScramCredentials")
        seen = [repr(request), repr(request.frame), caplog.text, repr(broker), repr(broker.observations.snapshot())]
        assert not any(repr(password)[2:-1] in text for text in seen)
        assert password not in request.frame
    assert "carols" not in repr(scram_credential(SCRAM, "carols", b"salt"))
    files = [path.read_bytes() for path in directory.rglob("*") if path.is_file()]
    assert not any(password in content or b"carols" in content for content in files)


def test_few_users_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kproto_server.handlers.k51_alter_user_scram_credentials.CREDENTIALS_MAX", 2)
    with Broker.running() as broker, RawClient(broker.bootstrap_servers) as client:
        codes = [[one[1] for one in alter(upserted(name))(client)] for name in "abc"]
        assert codes == [[0], [0], [ErrorCode.POLICY_VIOLATION]]
        assert alter(upserted("a" * 20_000))(client)[0][1] == ErrorCode.POLICY_VIOLATION
