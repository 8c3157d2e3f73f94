"""Which error a client gets from secured listeners: kproto's, and those of a real broker with the same settings.

`python -m tests.security.client_errors [--write] [--client NAME]... [--broker NAME]...` runs all clients, or the named
ones, against three releases, real ones and kproto as each of them, and prints what differs; with --write the results
are recorded in fixtures/client-errors/results.json. Each client writes one record by each case; its result is ok, or
the class of the error that its library reports.
"""

from __future__ import annotations

import argparse
import hashlib
import itertools
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import load_pem_private_key
from cryptography.hazmat.primitives.serialization.pkcs12 import serialize_key_and_certificates

from kproto.messages import k51_alter_user_scram_credentials as k51
from kproto_server.broker.broker import Broker
from kproto_server.configuration.authorizers import SIMPLE, STANDARD, ZOOKEEPER
from kproto_server.security.certificates import PASSWORD, CertificateKind, encryption
from kproto_server.security.client_settings import Access, Login, java
from kproto_server.security.oauth import unsecured_token
from kproto_server.security.tls_files import TlsFiles
from tests.clients.admin import wait_topic
from tests.clients.scenarios.built import DRIVERS, go_program, node_program
from tests.network.raw_client import RawClient
from tests.network.requests import create_topic
from tests.oracle.cluster import NEWEST, Cluster, kafka, real_kafka
from tests.oracle.java import compiled, java_command
from tests.oracle.ports import free_port

RECORDED = Path(__file__).parents[2] / "fixtures" / "client-errors" / "results.json"
OLDER, OLDEST = "2.8.2", "2.0.1"
RELEASES = (NEWEST, OLDER, OLDEST)
AUTHORIZERS = {NEWEST: STANDARD, OLDER: ZOOKEEPER, OLDEST: SIMPLE}
HOST = "127.0.0.1"
TOPIC = "orders"
USERS = {"alice": "alice-secret", "bob": "bob-secret"}
SUPER_USERS = "User:ANONYMOUS;User:alice;User:CN=client,O=kproto"
MECHANISMS = ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER"]
LOGIN, MTLS = "SASL_SSL", "MTLS"
ADMIN = "PLAINTEXT"
"""The listener for administrators, who need no login there."""
KINDS = {
    LOGIN: CertificateKind.AUTO, MTLS: CertificateKind.AUTO, "EXPIRED": CertificateKind.EXPIRED,
    "WRONGNAME": CertificateKind.WRONG_NAME, "UNKNOWNCA": CertificateKind.UNKNOWN_CA,
}  # fmt: skip
"""The certificate of each listener."""
TIMEOUT_S = 150


class Endpoint(NamedTuple):
    """A listener as a client sees it."""

    servers: str
    files: TlsFiles


class Case(NamedTuple):
    """What a client does with a listener."""

    listener: str
    mechanism: str = ""
    user: str = "alice"
    password: str = "alice-secret"  # noqa: S105 - of a test
    subject: str = "sub"
    """The claim of a token that has the user."""
    has_certificate: bool = False


def _with_secrets(mechanism: str) -> dict[str, Case]:
    return {
        mechanism: Case(LOGIN, mechanism),
        f"{mechanism}, a wrong password": Case(LOGIN, mechanism, password="wrong"),  # noqa: S106
        f"{mechanism}, an unknown user": Case(LOGIN, mechanism, "carol"),
    }


CASES: dict[str, Case] = {
    **_with_secrets("PLAIN"),
    **_with_secrets("SCRAM-SHA-256"),
    **_with_secrets("SCRAM-SHA-512"),
    "OAUTHBEARER": Case(LOGIN, "OAUTHBEARER"),
    "OAUTHBEARER, a wrong token": Case(LOGIN, "OAUTHBEARER", subject="other"),
    "a user without rights": Case(LOGIN, "PLAIN", "bob", "bob-secret"),
    "a certificate of the client": Case(MTLS, has_certificate=True),
    "no certificate of the client": Case(MTLS),
    "an expired certificate": Case("EXPIRED"),
    "a certificate of another name": Case("WRONGNAME"),
    "a certificate of an unknown CA": Case("UNKNOWNCA"),
}
Endpoints = dict[str, Endpoint]


def kproto_as(release: str) -> str:
    """Return the name of kproto that behaves as a release, among the brokers."""
    return "kproto" if release == NEWEST else f"kproto as {release}"


@contextmanager
def kproto(release: str = NEWEST) -> Iterator[Endpoints]:
    """Run the listeners of kproto."""
    with ExitStack() as stack:
        found = {}
        for name, kind in KINDS.items():
            options: dict[str, Any] = {"tls": kind.value, "settings": {}, "kafka_version": release}
            if name == LOGIN:
                listeners = [f"{LOGIN}://{HOST}:0", f"{ADMIN}://{HOST}:0"]
                options |= {"sasl": MECHANISMS, "users": USERS, "listeners": listeners}
                options["settings"] = {"authorizer.class.name": AUTHORIZERS[release], "super.users": SUPER_USERS}
            elif name == MTLS:
                options["settings"] = {"ssl.client.auth": "required"}
            broker = stack.enter_context(Broker.running(**options))
            found[name] = Endpoint(broker.bootstrap_servers, broker.tls.files)
            if name == LOGIN:
                found[ADMIN] = Endpoint(broker.servers_of(ADMIN), broker.tls.files)
                _create_topic(found[ADMIN].servers)
        yield found


@contextmanager
def real(release: str) -> Iterator[Endpoints]:
    """Run the listeners of a real broker."""
    with tempfile.TemporaryDirectory(prefix="client-errors-") as folder:
        found = {}
        module = "org.apache.kafka.common.security"
        of_login = f"listener.name.{LOGIN.lower()}"
        users = " ".join(f'user_{name}="{password}"' for name, password in USERS.items())
        settings = {
            "authorizer.class.name": AUTHORIZERS[release], "super.users": SUPER_USERS,
            "sasl.enabled.mechanisms": ",".join(MECHANISMS),
            f"{of_login}.plain.sasl.jaas.config": f"{module}.plain.PlainLoginModule required {users};",
            f"{of_login}.scram-sha-256.sasl.jaas.config": f"{module}.scram.ScramLoginModule required;",
            f"{of_login}.scram-sha-512.sasl.jaas.config": f"{module}.scram.ScramLoginModule required;",
            f"{of_login}.oauthbearer.sasl.jaas.config":
                f'{module}.oauthbearer.OAuthBearerLoginModule required unsecuredLoginStringClaim_sub="broker";',
        }  # fmt: skip
        for name, kind in KINDS.items():
            files = TlsFiles(f"{folder}/{name}", (HOST,), kind)
            found[name] = Endpoint(f"{HOST}:{free_port()}", files)
            settings |= _store_settings(name, "keystore", _key_store(files)) | {
                f"listener.name.{name.lower()}.ssl.key.password": PASSWORD
            }
        settings |= _store_settings(MTLS, "truststore", found[MTLS].files.trust_store_file)
        settings["listener.name.mtls.ssl.client.auth"] = "required"
        addresses = ",".join(f"{name}://{endpoint.servers}" for name, endpoint in found.items())
        protocols = ",".join(f"{name}:{LOGIN if name == LOGIN else 'SSL'}" for name in KINDS)
        settings |= {
            "listeners": f"+{addresses}",
            "advertised.listeners": f"+{addresses}",
            "listener.security.protocol.map": f"PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,{protocols}",
        }
        with real_kafka(release, props=settings) as cluster:
            _create_topic(cluster.bootstrap)
            _add_scram_credentials(cluster)
            found[ADMIN] = Endpoint(cluster.bootstrap, found[LOGIN].files)
            yield found


def _key_store(files: TlsFiles) -> Path:
    """Return the broker's key and certificate in the only format that each release of Kafka reads."""
    key = load_pem_private_key(files.key_file.read_bytes(), None)
    assert isinstance(key, ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey)
    certificate, *others = x509.load_pem_x509_certificates(files.certificate_file.read_bytes())
    store = files.directory / "key-store.p12"
    store.write_bytes(serialize_key_and_certificates(b"broker", key, certificate, others, encryption()))
    return store


def _store_settings(listener: str, kind: str, store: Path) -> dict[str, str]:
    of_store = f"listener.name.{listener.lower()}.ssl.{kind}"
    return {f"{of_store}.type": "PKCS12", f"{of_store}.location": str(store), f"{of_store}.password": PASSWORD}


def _create_topic(bootstrap: str) -> None:
    with RawClient(bootstrap) as client:
        create_topic(client, TOPIC)
    wait_topic(bootstrap, TOPIC, 1)


def _add_scram_credentials(cluster: Cluster) -> None:
    """Give alice her password by both mechanisms."""
    if cluster.version == OLDEST:  # clients cannot
        zookeeper = f"{HOST}:{json.loads((cluster.folder / 'cluster.json').read_text())['side_port']}"
        added = ",".join(f"{name}=[password={USERS['alice']}]" for name in MECHANISMS if name.startswith("SCRAM"))
        alter = ["--alter", "--add-config", added, "--entity-type", "users", "--entity-name", "alice"]
        kafka("tool", cluster.version, "kafka.admin.ConfigCommand", "--zookeeper", zookeeper, *alter)
        return
    with RawClient(cluster.bootstrap) as client:
        salt, iterations = b"a salt of the test", 4096
        for number, hash_name in ((1, "sha256"), (2, "sha512")):
            salted = hashlib.pbkdf2_hmac(hash_name, USERS["alice"].encode(), salt, iterations)
            new = k51.ScramCredentialUpsertion(
                name="alice", mechanism=number, iterations=iterations, salt=salt, salted_password=salted
            )
            altered = client.ask(k51.AlterUserScramCredentialsRequest(deletions=(), upsertions=(new,)), 0)
            assert not altered.results[0].error_code, altered


def described(cases: dict[str, Case], endpoints: Endpoints) -> list[dict[str, str]]:
    """Return the cases as the programs read them."""
    found = []
    for name, case in cases.items():
        servers, files = endpoints[case.listener]
        one = {
            "Name": name,
            "Servers": servers.replace(HOST, "localhost"),
            "CA": str(files.ca_file),
            "Cert": "",
            "Key": "",
        }
        if case.has_certificate:
            one |= {"Cert": str(files.client_certificate_file), "Key": str(files.client_key_file)}
        one |= {"Mechanism": case.mechanism, "User": case.user, "Password": case.password, "Token": ""}
        if case.mechanism == "OAUTHBEARER":
            claims: Any = {} if case.subject == "sub" else {"sub": None, case.subject: case.user}
            one["Token"] = unsecured_token(case.user, issued_s=int(time.time()) - 10, **claims)
        found.append(one)
    return found


Results = dict[str, str]
Run = Callable[[dict[str, Case], Endpoints], Results]


def _program(command: list[str], cases: dict[str, Case], endpoints: Endpoints) -> Results:
    done = subprocess.run(
        command,
        input=json.dumps(described(cases, endpoints)),
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    found: Results = json.loads(done.stdout)
    return found


def _go(library: str) -> Run:
    return lambda cases, endpoints: _program(
        [*go_program(DRIVERS / "go", "errors", "contract", "login"), library], cases, endpoints
    )


def _python(library: str) -> Run:
    return lambda cases, endpoints: _program(
        [sys.executable, "-m", "tests.security.python_errors", library], cases, endpoints
    )


def _node(cases: dict[str, Case], endpoints: Endpoints) -> Results:
    return _program(node_program(DRIVERS / "node", "errors.js"), cases, endpoints)


def _java(release: str) -> Run:
    def run(cases: dict[str, Case], endpoints: Endpoints) -> Results:
        jars = kafka("toolpath" if "OAUTHBEARER" in cases else "clientpath", release)  # tokens are read with Jackson
        classes = compiled(Path(__file__).parent / "java" / "ClientErrors.java", jars)
        with tempfile.TemporaryDirectory(prefix="client-errors-") as folder:
            numbers = {str(number): name for number, name in enumerate(cases)}
            for number, name in numbers.items():
                (Path(folder) / number).write_text(properties(cases[name], endpoints[cases[name].listener]))
            done = subprocess.run(
                [*java_command(classes, jars, "ClientErrors"), folder],
                capture_output=True,
                text=True,
                timeout=TIMEOUT_S,
                check=False,
            )
        assert done.returncode == 0, done.stdout + done.stderr
        lines = (json.loads(line) for line in done.stdout.splitlines() if line.startswith("["))
        return {numbers[number]: found for number, found in lines}

    return run


def properties(case: Case, endpoint: Endpoint) -> str:
    """Return the settings of a Java client."""
    has_login = case.mechanism not in ("", "OAUTHBEARER")
    login = Login(case.mechanism, case.user, case.password) if has_login else None
    servers = endpoint.servers.replace(HOST, "localhost")
    text = java(Access(servers, endpoint.files, case.has_certificate, login))
    if case.mechanism == "OAUTHBEARER":
        module = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"
        claims = f'unsecuredLoginPrincipalClaimName="{case.subject}" unsecuredLoginStringClaim_{case.subject}="alice"'
        text = text.replace("security.protocol=SSL", "security.protocol=SASL_SSL")
        text += f"sasl.mechanism=OAUTHBEARER\nsasl.jaas.config={module} required {claims};\n"
    return text


CERTIFICATES = {name: case for name, case in CASES.items() if not case.mechanism}
OF_0_11 = CERTIFICATES | {name: case for name, case in CASES.items() if case.mechanism == "PLAIN"}
"""SCRAM of 0.11 needs classes that Java has up to 10 only; OAUTHBEARER is newer."""
OF_KCAT = {name: case for name, case in CASES.items() if case.mechanism != "OAUTHBEARER"}
"""kcat has no tokens of its own."""
CLIENTS: dict[str, tuple[Run, dict[str, Case]]] = {
    f"java-{NEWEST}": (_java(NEWEST), CASES),
    "java-2.0.1": (_java("2.0.1"), CASES),
    "java-0.11.0.3": (_java("0.11.0.3"), OF_0_11),
    "confluent-kafka": (_python("confluent-kafka"), CASES),
    "kcat": (_python("kcat"), OF_KCAT),
    "kafka-python": (_python("kafka-python"), CASES),
    "aiokafka": (_python("aiokafka"), CASES),
    "franz-go": (_go("franz-go"), CASES),
    "sarama": (_go("sarama"), CASES),
    "kafkajs": (_node, CASES),
}
"""The program of each client, and the cases that it can have."""


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.security.client_errors", description=__doc__)
    parser.add_argument("--write", action="store_true", help="record the results")
    parser.add_argument("--client", action="append", choices=CLIENTS)
    brokers: dict[str, Callable[[], AbstractContextManager[Endpoints]]] = {}
    for release in RELEASES:
        brokers |= {release: partial(real, release), kproto_as(release): partial(kproto, release)}
    parser.add_argument("--broker", action="append", choices=brokers, help="the brokers; all if not given")
    options = parser.parse_args()
    recorded: dict[str, dict[str, Results]] = json.loads(RECORDED.read_text()) if RECORDED.exists() else {}
    for broker in options.broker or brokers:
        with brokers[broker]() as endpoints:
            for name in options.client or CLIENTS:
                run, cases = CLIENTS[name]
                results = run(cases, endpoints)
                recorded.setdefault(name, {})[broker] = found = {case: results[case] for case in cases}
                print(f"{name} with {broker}: {json.dumps(found, indent=1)}", flush=True)
    for name, by_broker in recorded.items():
        for release, case in itertools.product(RELEASES, CLIENTS[name][1]):
            found_by = {broker: by_broker.get(broker, {}).get(case) for broker in (release, kproto_as(release))}
            if len(set(found_by.values())) > 1:
                print(f"different: {name}, {case}: {found_by}")
    if options.write:
        ordered = {name: recorded[name] for name in CLIENTS if name in recorded}
        RECORDED.write_text(json.dumps(ordered, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
