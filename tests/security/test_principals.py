"""Who a client is: the subject of its certificate as Java writes it, and `ssl.principal.mapping.rules` (KIP-371)."""

from __future__ import annotations

import ssl
from typing import Any

import pytest
from cryptography import x509
from cryptography.x509.oid import NameOID

from kproto.errors import UsageError
from kproto_server.broker.broker import Broker
from kproto_server.security.principals import NoMatchingRule, PrincipalMapper, distinguished_name
from tests.network.requests import topic_names
from tests.security.sasl_scripts import GOOD, PASSWORD, Client, authenticate, handshake
from tests.security.secured_client import SecuredClient


def attribute(oid: x509.ObjectIdentifier, value: str) -> x509.RelativeDistinguishedName:
    return x509.RelativeDistinguishedName([x509.NameAttribute(oid, value)])


# The expected names are those of Java 17's `X500Principal.getName` for the same bytes.
@pytest.mark.parametrize(
    ("parts", "name"),
    [
        ([attribute(NameOID.COUNTRY_NAME, "DE"), attribute(NameOID.COMMON_NAME, "client")], "CN=client,C=DE"),
        ([attribute(NameOID.ORGANIZATION_NAME, " x #y ")], "O=\\ x \\#y\\ "),
        ([attribute(NameOID.LOCALITY_NAME, 'q"z;<>\\')], 'L=q\\"z\\;\\<\\>\\\\'),
        ([attribute(NameOID.COMMON_NAME, "   ")], "CN=\\ \\ \\ "),
        ([attribute(NameOID.EMAIL_ADDRESS, "foo@bar")], "1.2.840.113549.1.9.1=#1607666f6f40626172"),
        ([attribute(NameOID.SERIAL_NUMBER, "12")], "2.5.4.5=#13023132"),
        ([attribute(NameOID.TITLE, "t" * 150)], f"2.5.4.12=#0c8196{'74' * 150}"),
        ([attribute(NameOID.USER_ID, "u"), attribute(NameOID.DOMAIN_COMPONENT, "com")], "DC=com,UID=u"),
        (
            [
                x509.RelativeDistinguishedName(
                    [
                        x509.NameAttribute(NameOID.COMMON_NAME, "a,b"),
                        x509.NameAttribute(NameOID.ORGANIZATIONAL_UNIT_NAME, "c=d"),
                    ]
                )
            ],
            "CN=a\\,b+OU=c\\=d",
        ),
    ],
)
def test_a_name_is_written_as_java_writes_it(parts: list[x509.RelativeDistinguishedName], name: str) -> None:
    assert distinguished_name(x509.Name(parts)) == name


SUBJECT = "CN=Duke,OU=Sun,O=Example,C=US"


@pytest.mark.parametrize(
    ("rules", "principal"),
    [
        ("DEFAULT", f"User:{SUBJECT}"),
        ("RULE:^CN=(.*?),.*$/$1/", "User:Duke"),
        ("RULE:^CN=(.*?),.*$/$1/L", "User:duke"),
        ("RULE:^CN=(.*?),.*$/$1@$2/U, DEFAULT", "User:DUKE@$2"),
        ("RULE:^CN=(.*?),OU=(.*?),.*$/$12/", "User:Duke2"),
        ("RULE:^UID=(.*)$/$1/, RULE:^.*,O=(.*?),.*$/a\\/b $1/", "User:a/b Example"),
    ],
)
def test_rules_make_the_principal(rules: str, principal: str) -> None:
    assert PrincipalMapper(rules).principal(SUBJECT) == principal


def test_a_subject_to_which_no_rule_applies_is_refused() -> None:
    with pytest.raises(NoMatchingRule, match=r"no rule of ssl\.principal\.mapping\.rules applies to 'CN=Duke"):
        PrincipalMapper("RULE:^UID=(.*)$/$1/").principal(SUBJECT)


@pytest.mark.parametrize("rules", ["RULE:a/b", "RULE:a/b/X", "DEFAULTS", "RULE:(/b/"])
def test_what_is_no_rule_is_refused(rules: str) -> None:
    with pytest.raises(UsageError, match=r"ssl\.principal\.mapping\.rules"):
        Broker(tls="auto", settings={"ssl.principal.mapping.rules": rules}).start()


def principals(broker: Broker) -> list[str]:
    """Return the principals of the connections that are open."""
    return broker.run(
        lambda server: [
            transport._connection.info.principal
            for listener in server.nodes.listeners.values()
            for transport in listener.transports
        ]
    )


def test_a_client_without_a_name_is_anonymous() -> None:
    with Broker.running(tls="auto", settings={"ssl.client.auth": "requested"}) as broker:
        context = ssl.create_default_context(cafile=str(broker.tls.files.ca_file))
        with SecuredClient(broker.bootstrap_servers, context) as client:
            topic_names(client)
            assert principals(broker) == ["User:ANONYMOUS"]


@pytest.mark.parametrize(
    ("rules", "principal"), [("DEFAULT", "User:CN=client,O=kproto"), ("RULE:.*CN=(\\w+).*/$1/", "User:client")]
)
def test_the_subject_of_a_certificate_is_the_principal(rules: str, principal: str) -> None:
    settings = {"ssl.client.auth": "required", "ssl.principal.mapping.rules": rules}
    with Broker.running(tls="auto", settings=settings) as broker:
        files = broker.tls.files
        context = ssl.create_default_context(cafile=str(files.ca_file))
        context.load_cert_chain(files.client_certificate_file, files.client_key_file)
        with SecuredClient(broker.bootstrap_servers, context) as client:
            topic_names(client)
            assert principals(broker) == [principal]


def test_a_connection_without_a_rule_ends() -> None:
    settings = {"ssl.client.auth": "required", "ssl.principal.mapping.rules": "RULE:other/x/"}
    with Broker.running(tls="auto", settings=settings) as broker:
        files = broker.tls.files
        context = ssl.create_default_context(cafile=str(files.ca_file))
        context.load_cert_chain(files.client_certificate_file, files.client_key_file)
        with (
            SecuredClient(broker.bootstrap_servers, context) as client,
            pytest.raises((ssl.SSLError, ConnectionError, AssertionError)),
        ):
            topic_names(client)


def test_the_user_of_sasl_is_the_principal() -> None:
    options: Any = {"sasl": "PLAIN", "users": {"alice": PASSWORD}}
    with Broker.running(**options) as broker:
        client = Client(broker.bootstrap_servers)
        for step in (handshake("PLAIN"), authenticate(GOOD)):
            step(client)
            client.read()
        assert principals(broker) == ["User:alice"]
        client.close()
