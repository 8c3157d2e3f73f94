"""Which clients a client metrics resource matches: its config ``match``, a list of ``attribute=expression``.

DEVIATION: the expressions are RE2's (`kproto_server.coordinator.regular_expression`); real brokers have Java's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from kproto.errors import KprotoError
from kproto_server.coordinator.regular_expression import COMPLEXITY_MAX, InvalidRegex, Regex, complexity, regex_of

if TYPE_CHECKING:
    from collections.abc import Iterable


class Client(NamedTuple):
    """The attributes of a client that patterns name."""

    client_instance_id: str
    client_id: str
    client_software_name: str
    client_software_version: str
    client_source_address: str
    client_source_port: str


class InvalidPattern(KprotoError, ValueError):
    """An item of the list is no ``attribute=expression``; the text has a broker's words."""

    def __init__(self, pattern: str) -> None:
        super().__init__(f"Illegal client matching pattern: {pattern}")


class Matching:
    """The expressions of one resource; a client matches if each of them matches the whole attribute."""

    def __init__(self, patterns: Iterable[str]) -> None:
        """Read the items of the list; of several ones for an attribute the last counts.

        Raises:
            InvalidPattern: an item names no attribute, or has no expression; or all together are more complex than one
                expression may be.
        """
        self._by_attribute: dict[str, Regex] = {}
        left = COMPLEXITY_MAX
        for pattern in patterns:
            left -= complexity(pattern)
            if left < 0:
                raise InvalidPattern(pattern)
            attribute, expression = _parsed(pattern)
            self._by_attribute[attribute] = expression

    def matches(self, client: Client) -> bool:
        return all(regex.matches(getattr(client, attribute)) for attribute, regex in self._by_attribute.items())


def _parsed(pattern: str) -> tuple[str, Regex]:
    parts = pattern.split("=")
    while parts and not parts[-1]:  # as Java splits
        parts.pop()
    if len(parts) != 2 or parts[0].strip() not in Client._fields:
        raise InvalidPattern(pattern)
    try:
        return parts[0].strip(), regex_of(parts[1].strip())
    except InvalidRegex:
        raise InvalidPattern(pattern) from None
