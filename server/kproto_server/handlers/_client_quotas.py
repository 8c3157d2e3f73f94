"""What Kafka releases do differently with client quotas, and the rules of their values."""

from __future__ import annotations

import math
from functools import cached_property
from ipaddress import ip_address
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import quote

from kproto.codes import ErrorCode
from kproto.jvm.arithmetic import java_hash
from kproto.jvm.hash_map import in_hash_order
from kproto_server.quotas.entities import (
    CLIENT_ID,
    CONNECTION_CREATION_RATE,
    CONSUMER_BYTE_RATE,
    CONTROLLER_MUTATION_RATE,
    ENTITY_TYPES,
    IP,
    PRODUCER_BYTE_RATE,
    REQUEST_PERCENTAGE,
    USER,
)
from kproto_server.releases.release import VersionBehavior

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

INT_MAX = 2**31 - 1
LONG_MAX = 2**63 - 1
EPSILON = 1e-6
"""By how much a value may differ from a whole number."""
WHOLE_NUMBERS = {
    PRODUCER_BYTE_RATE: ("LONG", LONG_MAX), CONSUMER_BYTE_RATE: ("LONG", LONG_MAX),
    CONNECTION_CREATION_RATE: ("INT", INT_MAX),
}  # fmt: skip
"""Keys whose values have no fraction, with the Java type and its largest value."""
SCRAM_KEYS = ("SCRAM-SHA-256", "SCRAM-SHA-512")
"""Configs of users that are no quotas."""


class QuotaError(NamedTuple):
    """Why an entity's quotas are not altered, or none are described."""

    error: ErrorCode
    message: str | None


def invalid(message: str) -> QuotaError:
    """Return the error of a wrong request."""
    return QuotaError(ErrorCode.INVALID_REQUEST, message)


def in_map_order(keys: Iterable[str]) -> list[str]:
    """Return distinct keys in the order of a Java HashMap that was made for as many."""
    found = list(keys)
    return in_hash_order(found, java_hash, len(found))


class ClientQuotasBehavior(VersionBehavior):
    """What Kafka releases do differently with client quotas (measured on 2.6.3, 2.7.2, 2.8.2, 3.3.2, 3.4.1, 3.5.2,
    3.9.2 in both modes, 4.3.1 and 4.4.0; fixtures/client-quotas)."""

    @cached_property
    def entity_types(self) -> tuple[str, ...]:
        """The types of entities; ``ip`` since 2.8 (KIP-612)."""
        return ENTITY_TYPES if self.at_least(2, 8) else (CLIENT_ID, USER)

    @cached_property
    def _user_keys(self) -> tuple[str, ...]:
        """The keys of users and client ids; `CONTROLLER_MUTATION_RATE` since 2.7 (KIP-599)."""
        keys = PRODUCER_BYTE_RATE, CONSUMER_BYTE_RATE, REQUEST_PERCENTAGE
        return (*keys, CONTROLLER_MUTATION_RATE) if self.at_least(2, 7) else keys

    @cached_property
    def described_message(self) -> str | None:
        """The error message of DescribeClientQuotas without an error."""
        return "" if self.at_least(2, 8) else None

    @cached_property
    def checks_order_by_hash(self) -> bool:
        """Whether the ops of an entity are checked in the order of a map; with ZooKeeper in that of the request."""
        return self.is_kraft

    def ordered(self, had: list[str], new: list[str]) -> list[str]:
        """Return the keys of an entity in the order in which DescribeClientQuotas returns them.

        In KRaft it is that of a HashMap into which a broker puts the keys that stay, and behind them the new ones in
        the order of another HashMap (measured on 4.2.2).
        """
        if not self.is_kraft:
            return had + new
        return in_hash_order(had + in_hash_order(new, java_hash), java_hash, capacity=1)

    @cached_property
    def refuses_duplicates(self) -> bool:
        """Whether an entity, or a key of it, may be in a request only once; with ZooKeeper the last one counts."""
        return self.is_kraft

    @cached_property
    def checks_values(self) -> bool:
        """Whether values must be above 0, and have error messages of their own."""
        return self.is_kraft and self.at_least(3, 5)

    @cached_property
    def _needs_finite_values(self) -> bool:
        return self.at_least(4, 4)

    @cached_property
    def combination_message(self) -> str:
        """The error message of an address together with a user or a client id."""
        reason = (
            "shouldnot be combined with User or ClientId"
            if self.is_kraft
            else "should not be used with user/client ID entity."
        )
        return f"Invalid quota entity combination, IP entity {reason}"

    def address_fault(self, address: str) -> QuotaError | None:
        """Return why a name is no address; ZooKeeper's nodes have it quoted.

        DEVIATION: names of hosts but localhost are not resolved.
        """
        name = address if self.is_kraft else node_name(address)
        if name == "localhost":
            return None
        try:
            ip_address(name)
        except ValueError:
            return invalid(f"{name} is not a valid IP or resolvable host.")
        return None

    def kept_value(self, key: str, value: float) -> float:
        """Return the value that is kept; ZooKeeper's nodes have whole numbers."""
        if self.is_kraft or key not in WHOLE_NUMBERS:
            return value
        return float(_truncated(value + EPSILON, WHOLE_NUMBERS[key][1]))

    def value_fault(self, names: Mapping[str, str | None], key: str, value: float) -> QuotaError | None:
        """Return why an entity cannot have a value."""
        if key in SCRAM_KEYS and USER in names and CLIENT_ID not in names and not self.checks_values:
            text = "Unexpected config type STRING should be Long or Double" if self.is_kraft else None
            return QuotaError(ErrorCode.UNKNOWN_SERVER_ERROR, text)
        if key not in ((CONNECTION_CREATION_RATE,) if IP in names else self._user_keys):
            return invalid(f"Invalid configuration key {key}")
        text = self._text_of(key, value) if self.checks_values else self._text_of_conversion(key, value)
        return None if text is None else invalid(text)

    def _text_of(self, key: str, value: float) -> str | None:
        if self._needs_finite_values and not math.isfinite(value):
            return f"Quota {key} must be a finite number"
        if value <= 0:
            return f"Quota {key} must be greater than 0"
        if key not in WHOLE_NUMBERS:
            return None
        kind, largest = WHOLE_NUMBERS[key]
        if value > float(largest):
            return f"Proposed value for {key} is too large for {'an' if kind == 'INT' else 'a'} {kind}."
        return f"{key} cannot be a fractional value." if math.fmod(value, 1.0) > EPSILON else None

    def _text_of_conversion(self, key: str, value: float) -> str | None:
        if key not in WHOLE_NUMBERS:
            return None
        kind, largest = WHOLE_NUMBERS[key]
        if self.is_kraft:
            largest = LONG_MAX
        if not abs(float(_truncated(value + EPSILON, largest)) - value) > EPSILON:  # not so for NaN
            return None
        return f"Configuration {key} must be a {self._type_name(kind)} value"

    def _type_name(self, kind: str) -> str:
        return "Long" if self.is_kraft or not self.at_least(2, 8) else kind


def _truncated(value: float, largest: int) -> int:
    """Return what Java's conversion to a whole number makes of a value."""
    if math.isnan(value):
        return 0
    return max(-largest - 1, min(largest, int(value))) if math.isfinite(value) else int(math.copysign(largest, value))


def node_name(name: str) -> str:
    """Return the name of the node that ZooKeeper has for an entity."""
    return quote(name, safe="").replace("~", "%7E")
