"""Kafka's settings of listeners, reduced to what a broker without TLS, SASL and controllers has: one address.

kproto has one PLAINTEXT listener for each broker. The listeners of controllers are left out; of several others the
first PLAINTEXT one is used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from kproto_server.configuration.setting_table import SettingError

if TYPE_CHECKING:
    from collections.abc import Mapping

PLAINTEXT = "PLAINTEXT"
PORT_MAX = 65535
ALL_ADDRESSES = ("", "0.0.0.0", "::")  # noqa: S104
"""Hosts that listen on every address of the machine, and that no client can connect to."""

LISTENERS, ADVERTISED = "listeners", "advertised.listeners"
CONTROLLERS, PROTOCOLS = "controller.listener.names", "listener.security.protocol.map"


class Address(NamedTuple):
    """A host and a port; port 0 is a free port, or, if advertised, the one that was bound."""

    host: str
    port: int


class Addresses(NamedTuple):
    """The addresses of the first broker."""

    bound: Address | None
    """None: the settings name none."""
    advertised: Address | None
    """What clients receive in Metadata; None: as ``bound``."""
    unused: tuple[str, ...]
    """The names of listeners that kproto does not have."""


def addresses(properties: Mapping[str, str]) -> Addresses:
    """Return the addresses in Kafka's settings of listeners.

    Raises:
        SettingError: they are invalid; the text has a line for each fault.
    """
    faults: list[str] = []
    bound = _parsed(LISTENERS, properties, faults)
    advertised = _parsed(ADVERTISED, properties, faults)
    protocols = dict(part.partition(":")[::2] for part in _parts(properties.get(PROTOCOLS, "")))
    controllers = _parts(properties.get(CONTROLLERS, ""))

    def is_plaintext(name: str) -> bool:
        return name not in controllers and protocols.get(name, name) == PLAINTEXT

    for setting, found in ((LISTENERS, bound), (ADVERTISED, advertised)):
        if found and not any(map(is_plaintext, found)):
            faults.append(f"{setting} has no PLAINTEXT listener: kproto serves neither TLS nor SASL")
    used = next(filter(is_plaintext, bound or advertised), None)
    address = advertised.get(used) if used is not None else None
    if address is not None and address.host in ALL_ADDRESSES:
        faults.append(f"{ADVERTISED} can't be {address.host!r}: give a host that clients can connect to")
    if faults:
        raise SettingError("\n".join(faults))
    unused = [name for name in {**bound, **advertised} if name != used and name not in controllers]
    return Addresses(bound.get(used) if used is not None else None, address, tuple(unused))


def _parsed(setting: str, properties: Mapping[str, str], faults: list[str]) -> dict[str, Address]:
    found: dict[str, Address] = {}
    for part in _parts(properties.get(setting, "")):
        name, separator, address = part.partition("://")
        host, colon, port = address.rpartition(":")
        if not (name and separator and colon and port.isascii() and port.isdigit() and int(port) <= PORT_MAX):
            faults.append(f"{setting} can't be {part!r}: give NAME://HOST:PORT")
            continue
        found[name.upper()] = Address(host.removeprefix("[").removesuffix("]"), int(port))
    return found


def _parts(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]
