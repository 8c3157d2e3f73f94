"""The settings of clients for a secured broker, ready to paste, in the words of each client library."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, NamedTuple

from kproto_server.security.sasl import PLAIN

if TYPE_CHECKING:
    from collections.abc import Callable

    from kproto_server.security.tls_files import TlsFiles


class Login(NamedTuple):
    """How a client authenticates by SASL."""

    mechanism: str
    user: str
    password: str

    def __repr__(self) -> str:
        return f"Login({self.mechanism!r}, {self.user!r})"

    @property
    def jaas(self) -> str:
        """The value of `sasl.jaas.config`."""
        package = "plain.Plain" if self.mechanism == PLAIN else "scram.Scram"
        user, password = json.dumps(self.user), json.dumps(self.password)
        return f"org.apache.kafka.common.security.{package}LoginModule required username={user} password={password};"


class Access(NamedTuple):
    """How a client reaches a broker."""

    servers: str
    files: TlsFiles | None
    """None: without TLS."""
    has_certificate: bool
    """Whether the broker wants a certificate of the client."""
    login: Login | None
    """None: without SASL."""

    @property
    def protocol(self) -> str:
        """The security protocol in Kafka's words."""
        transport = "PLAINTEXT" if self.files is None else "SSL"
        return transport if self.login is None else f"SASL_{transport}"


def java(access: Access) -> str:
    """Return properties for Kafka's Java clients and tools, of all releases from 0.10.2 on."""
    lines = [f"bootstrap.servers={access.servers}", f"security.protocol={access.protocol}"]
    files, login = access.files, access.login
    if files is not None:
        lines += [
            "ssl.truststore.type=PKCS12",
            f"ssl.truststore.location={files.trust_store_file}",
            f"ssl.truststore.password={files.password}",
        ]
    if files is not None and access.has_certificate:
        lines += [
            "ssl.keystore.type=PKCS12",
            f"ssl.keystore.location={files.client_key_store_file}",
            f"ssl.keystore.password={files.password}",
            f"ssl.key.password={files.password}",
        ]
    if login is not None:
        escaped = login.jaas.replace("\\", "\\\\")  # properties have escapes of their own
        lines += [f"sasl.mechanism={login.mechanism}", f"sasl.jaas.config={escaped}"]
    return _text(lines)


def librdkafka(access: Access) -> str:
    """Return properties for librdkafka's clients: confluent-kafka, kcat -F and others."""
    lines = [f"bootstrap.servers={access.servers}", f"security.protocol={access.protocol.lower()}"]
    files, login = access.files, access.login
    if files is not None:
        lines.append(f"ssl.ca.location={files.ca_file}")
    if files is not None and access.has_certificate:
        lines += [
            f"ssl.certificate.location={files.client_certificate_file}",
            f"ssl.key.location={files.client_key_file}",
        ]
    if login is not None:
        lines += [f"sasl.mechanism={login.mechanism}", f"sasl.username={login.user}", f"sasl.password={login.password}"]
    return _text(lines)


def kafka_python(access: Access) -> str:
    """Return the arguments of kafka-python's clients."""
    lines = [f'bootstrap_servers="{access.servers}",', f'security_protocol="{access.protocol}",']
    files = access.files
    if files is not None:
        lines.append(f'ssl_cafile="{files.ca_file}",')
    if files is not None and access.has_certificate:
        lines += [f'ssl_certfile="{files.client_certificate_file}",', f'ssl_keyfile="{files.client_key_file}",']
    return _text(lines + _python_login(access.login))


def aiokafka(access: Access) -> str:
    """Return the arguments of aiokafka's clients."""
    lines = [f'bootstrap_servers="{access.servers}",', f'security_protocol="{access.protocol}",']
    files = access.files
    if files is not None:
        lines += [
            "ssl_context=aiokafka.helpers.create_ssl_context(  # import aiokafka.helpers",
            f'    cafile="{files.ca_file}",',
        ]
        if access.has_certificate:
            lines += [f'    certfile="{files.client_certificate_file}",', f'    keyfile="{files.client_key_file}",']
        lines.append("),")
    return _text(lines + _python_login(access.login))


def _python_login(login: Login | None) -> list[str]:
    if login is None:
        return []
    return [
        f'sasl_mechanism="{login.mechanism}",',
        f"sasl_plain_username={json.dumps(login.user)},",
        f"sasl_plain_password={json.dumps(login.password)},",
    ]


def franz_go(access: Access) -> str:
    """Return the options of a kgo.Client."""
    lines: list[str] = []
    seeds = ", ".join(f'"{server}"' for server in access.servers.split(","))
    options = [f"\tkgo.SeedBrokers({seeds}),"]
    files, login = access.files, access.login
    if files is not None:
        lines += [
            f'pem, err := os.ReadFile("{files.ca_file}")',
            *_panic_if_failed(),
            "pool := x509.NewCertPool()",
            "pool.AppendCertsFromPEM(pem)",
        ]
        use = ""
        if access.has_certificate:
            certificate, key = files.client_certificate_file, files.client_key_file
            lines += [f'pair, err := tls.LoadX509KeyPair("{certificate}", "{key}")', *_panic_if_failed()]
            use = ", Certificates: []tls.Certificate{pair}"
        options.append(f"\tkgo.DialTLSConfig(&tls.Config{{RootCAs: pool{use}}}),")
    if login is not None:
        values = f"User: {json.dumps(login.user)}, Pass: {json.dumps(login.password)}"
        package = "plain" if login.mechanism == PLAIN else "scram"
        method = "AsMechanism" if login.mechanism == PLAIN else f"AsSha{login.mechanism.rpartition('-')[2]}Mechanism"
        options.append(
            f"\tkgo.SASL({package}.Auth{{{values}}}.{method}()), // import github.com/twmb/franz-go/pkg/sasl/{package}"
        )
    return _text([*lines, "options := []kgo.Opt{", *options, "}"])


def _panic_if_failed() -> list[str]:
    return ["if err != nil {", "\tpanic(err)", "}"]


def kafkajs(access: Access) -> str:
    """Return the options of KafkaJS."""
    brokers = ", ".join(f'"{server}"' for server in access.servers.split(","))
    lines = [f"brokers: [{brokers}],"]
    files, login = access.files, access.login
    if files is not None:
        lines += ["ssl: {", f'  ca: [fs.readFileSync("{files.ca_file}")],']
        if access.has_certificate:
            lines += [
                f'  cert: fs.readFileSync("{files.client_certificate_file}"),',
                f'  key: fs.readFileSync("{files.client_key_file}"),',
            ]
        lines.append("},")
    if login is not None:
        lines += [
            "sasl: {",
            f'  mechanism: "{login.mechanism.lower()}",',
            f"  username: {json.dumps(login.user)},",
            f"  password: {json.dumps(login.password)},",
            "},",
        ]
    return _text(lines)


def _text(lines: list[str]) -> str:
    return "".join(f"{line}\n" for line in lines)


CLIENTS: dict[str, Callable[[Access], str]] = {
    "java": java,
    "librdkafka": librdkafka,
    "kafka-python": kafka_python,
    "aiokafka": aiokafka,
    "franz-go": franz_go,
    "kafkajs": kafkajs,
}
"""By the name of the library."""


def variables(access: Access) -> dict[str, str]:
    """Return the environment variables that `kproto run` gives to its command."""
    found: dict[str, str] = {}
    if access.protocol != "PLAINTEXT":
        found["KAFKA_SECURITY_PROTOCOL"] = access.protocol
    files, login = access.files, access.login
    if files is not None:
        found |= {
            "KAFKA_SSL_CA_LOCATION": str(files.ca_file),
            "KAFKA_SSL_TRUSTSTORE_TYPE": "PKCS12",
            "KAFKA_SSL_TRUSTSTORE_LOCATION": str(files.trust_store_file),
            "KAFKA_SSL_TRUSTSTORE_PASSWORD": files.password,
        }
    if files is not None and access.has_certificate:
        found |= {
            "KAFKA_SSL_CERTIFICATE_LOCATION": str(files.client_certificate_file),
            "KAFKA_SSL_KEY_LOCATION": str(files.client_key_file),
            "KAFKA_SSL_KEYSTORE_TYPE": "PKCS12",
            "KAFKA_SSL_KEYSTORE_LOCATION": str(files.client_key_store_file),
            "KAFKA_SSL_KEYSTORE_PASSWORD": files.password,
        }
    if login is not None:
        found |= {
            "KAFKA_SASL_MECHANISM": login.mechanism,
            "KAFKA_SASL_USERNAME": login.user,
            "KAFKA_SASL_PASSWORD": login.password,
            "KAFKA_SASL_JAAS_CONFIG": login.jaas,
        }
    return found
