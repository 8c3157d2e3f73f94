"""The principals of clients: the subject of a certificate as Java writes it, and `ssl.principal.mapping.rules`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from kproto.errors import KprotoError, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable

    from cryptography import x509

USER = "User:"
"""The type of every principal that Kafka makes."""
KEYWORDS = {
    "2.5.4.3": "CN",
    "2.5.4.6": "C",
    "2.5.4.7": "L",
    "2.5.4.8": "ST",
    "2.5.4.9": "STREET",
    "2.5.4.10": "O",
    "2.5.4.11": "OU",
    "0.9.2342.19200300.100.1.1": "UID",
    "0.9.2342.19200300.100.1.25": "DC",
}
"""The attributes that RFC 2253 names; Java writes the number and the encoded value of all others."""
ESCAPED_SPACE = "\\ "
SPECIAL = re.compile(r'[,=+<>#;"\\]')
RULE = re.compile(r"DEFAULT|RULE:((?:\\.|[^\\/])*)/((?:\\.|[^\\/])*)/([LU]?)")
RULES = re.compile(r"\s*(DEFAULT|RULE:(?:\\.|[^\\/])*/(?:\\.|[^\\/])*/[LU]?.*?|.*?)\s*(?:,\s*|$)")
REFERENCE = re.compile(r"\\(.)|\$(\d)(\d*)", re.DOTALL)
LONG_FORM = 0x80
"""The bit of the first byte of a DER length which says that the length has more bytes."""


class NoMatchingRule(KprotoError):
    """No rule of `ssl.principal.mapping.rules` applies to a certificate."""


def subject_of(certificate: bytes) -> str:
    """Return the subject of a certificate in DER, as Java's `X500Principal.getName` writes it."""
    from cryptography.x509 import load_der_x509_certificate

    return distinguished_name(load_der_x509_certificate(certificate).subject)


def distinguished_name(name: x509.Name) -> str:
    """Return a name as in RFC 2253."""
    return ",".join("+".join(_attribute(attribute) for attribute in part) for part in reversed(list(name.rdns)))


def _attribute(attribute: x509.NameAttribute[str | bytes]) -> str:
    oid = attribute.oid.dotted_string
    keyword = KEYWORDS.get(oid)
    if keyword is None or not isinstance(attribute.value, str):
        return f"{oid}=#{_encoded_value(attribute).hex()}"
    value = SPECIAL.sub(r"\\\g<0>", attribute.value)
    core = value.strip(" ")
    before, _, after = value.partition(core) if core else (value, "", "")
    escaped = before.replace(" ", ESCAPED_SPACE), core, after.replace(" ", ESCAPED_SPACE)
    return f"{keyword}={''.join(escaped)}"


def _encoded_value(attribute: x509.NameAttribute[str | bytes]) -> bytes:
    """Return the value in DER, which stands behind the number of the attribute."""
    from cryptography import x509

    data = x509.Name([attribute]).public_bytes()
    for _ in range(3):  # the name, its only part, the only attribute in it
        data = data[_content_position(data) :]
    return data[_content_position(data) + data[1] :]


def _content_position(data: bytes) -> int:
    return 2 + (data[1] & ~LONG_FORM if data[1] & LONG_FORM else 0)


class PrincipalMapper:
    """`ssl.principal.mapping.rules` (KIP-371): makes the name of a user from the subject of its certificate."""

    def __init__(self, rules: str) -> None:
        """
        Raises:
            UsageError: a rule is not written as Kafka's rules are.
        """
        self._rules: list[Callable[[str], str | None]] = []
        for found in RULES.finditer(rules.strip()):
            text = found[1]
            rule = RULE.fullmatch(text)
            if text and rule is None:
                raise UsageError(
                    f"ssl.principal.mapping.rules can't be {text!r}: give DEFAULT or RULE:pattern/replacement/, with L "
                    "or U behind it for small or capital letters"
                )
            if rule is not None:
                self._rules.append(_rule(rule))

    def principal(self, subject: str) -> str:
        """Return the principal of a client with a certificate.

        Raises:
            NoMatchingRule: there is none.
        """
        for rule in self._rules:
            name = rule(subject)
            if name is not None:
                return USER + name
        raise NoMatchingRule(f"no rule of ssl.principal.mapping.rules applies to {subject!r}")


def _rule(rule: re.Match[str]) -> Callable[[str], str | None]:
    pattern_text, replacement, case = rule.groups()
    if pattern_text is None:
        return lambda subject: subject
    try:
        pattern = re.compile(pattern_text)
    except re.error as error:
        raise UsageError(f"ssl.principal.mapping.rules has the pattern {pattern_text!r}: {error}") from None

    def apply(subject: str) -> str | None:
        if pattern.fullmatch(subject) is None:
            return None
        name = pattern.sub(lambda match: _replaced(replacement, match), subject)
        return name.lower() if case == "L" else name.upper() if case == "U" else name

    return apply


def _replaced(replacement: str, match: re.Match[str]) -> str:
    r"""Return a replacement with its references: ``$1`` is a group if there is such a group, ``\x`` is x."""
    groups = match.re.groups

    def value(reference: re.Match[str]) -> str:
        if reference[1] is not None:
            return reference[1]
        number = int(reference[2])
        if number > groups:
            return reference[0]
        rest = reference[3]
        while rest and number * 10 + int(rest[0]) <= groups:  # as Java: as many digits as make a group
            number, rest = number * 10 + int(rest[0]), rest[1:]
        return (match[number] or "") + rest

    return REFERENCE.sub(value, replacement)
