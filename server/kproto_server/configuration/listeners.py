"""Kafka's settings of listeners: their names, security protocols and addresses.

The listeners of controllers are left out. The first of the others is the main one of each node: its address is that of
`--host` and `--port`, of the port file, and of `Broker.bootstrap_servers`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from kproto_server.configuration.setting_table import SettingError
from kproto_server.configuration.settings import LISTENERS_OWN

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from kproto_server.configuration.settings import Settings

PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL = PROTOCOL_NAMES = "PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"
WITH_TLS, WITH_SASL = (SSL, SASL_SSL), (SASL_PLAINTEXT, SASL_SSL)
PORT_MAX = 65535
BROKERS_MAX = 1000
"""A larger cluster exhausts ports and file descriptors."""
ALL_ADDRESSES = ("", "0.0.0.0", "::")  # noqa: S104
"""Hosts that listen on every address of the machine, and that no client can connect to."""

LISTENERS, ADVERTISED = "listeners", "advertised.listeners"
CONTROLLERS, PROTOCOLS = "controller.listener.names", "listener.security.protocol.map"
SETTINGS_OF_LISTENERS = frozenset({LISTENERS, ADVERTISED, CONTROLLERS, PROTOCOLS, "inter.broker.listener.name"})
"""What `listeners_of` reads, and a setting that means nothing without connections between brokers."""


class Address(NamedTuple):
    """A host and a port; port 0 is a free port, or, if advertised, the one that was bound."""

    host: str
    port: int


class Listener(NamedTuple):
    """One listener of every node."""

    name: str
    protocol: str
    """One of `PROTOCOL_NAMES`."""
    bound: Address | None
    """Of the first broker; None: the settings name none."""
    advertised: Address | None
    """What clients receive; None: as ``bound``."""

    @property
    def is_open(self) -> bool:
        """Whether other machines reach it, and it has neither TLS nor SASL."""
        return self.protocol == PLAINTEXT and self.bound is not None and not is_loopback(self.bound.host)


class Listeners(NamedTuple):
    """The listeners that the settings name."""

    used: tuple[Listener, ...]
    unused: tuple[str, ...]
    """The names of those without an address, or whose protocol needs TLS or SASL that the broker does not have."""


def is_loopback(host: str) -> bool:
    """Return whether only this machine reaches a host."""
    return host in ("localhost", "::1") or host.startswith("127.")


def bracketed(host: str) -> str:
    """Return a host in the form that stands before a colon and a port."""
    return f"[{host}]" if ":" in host else host


def protocol_name(*, has_tls: bool, has_sasl: bool) -> str:
    """Return the security protocol of a listener with TLS, SASL, both or none."""
    return (SASL_SSL if has_sasl else SSL) if has_tls else SASL_PLAINTEXT if has_sasl else PLAINTEXT


def listeners_of(properties: Mapping[str, str], *, has_tls: bool = False, has_sasl: bool = False) -> Listeners:
    """Return the listeners in Kafka's settings. ``has_tls``, ``has_sasl``: whether the broker has what they need.

    Raises:
        SettingError: they are invalid; the text has a line for each fault.
    """
    faults: list[str] = []
    bound = _parsed(LISTENERS, properties, faults)
    advertised = _parsed(ADVERTISED, properties, faults)
    protocols, controllers = _protocols(properties), _controllers(properties)
    found: list[Listener] = []
    for name in [name for name in {**bound, **advertised} if name not in controllers]:
        protocol = protocols.get(name, name)
        if protocol not in PROTOCOL_NAMES:
            faults.append(f"{LISTENERS}: no security protocol of {name}: add {name}:PLAINTEXT to {PROTOCOLS}")
            continue
        address = advertised.get(name)
        if address is not None and address.host in ALL_ADDRESSES:
            faults.append(f"{ADVERTISED} can't be {address.host!r}: give a host that clients can connect to")
        found.append(Listener(name, protocol, bound.get(name), address))
    used = [one for one in found if _is_possible(one.protocol, has_tls=has_tls, has_sasl=has_sasl)]
    used = [one for one in used if one.bound is not None] if bound else used[:1]
    if not faults:
        faults += _missing(found, used, has_tls=has_tls, has_sasl=has_sasl)
    if faults:
        raise SettingError("\n".join(faults))
    names = {one.name for one in used}
    return Listeners(tuple(used), tuple(one.name for one in found if one.name not in names))


def names_with_sasl(properties: Mapping[str, str]) -> list[str]:
    """Return the names of the listeners with SASL, whether the broker has it or not."""
    protocols, controllers = _protocols(properties), _controllers(properties)
    names = [name for name in _parsed(LISTENERS, properties, []) if name not in controllers]
    return [name for name in names if protocols.get(name, name) in WITH_SASL]


def _protocols(properties: Mapping[str, str]) -> dict[str, str]:
    return dict(part.upper().partition(":")[::2] for part in parts(properties.get(PROTOCOLS, "")))


def _controllers(properties: Mapping[str, str]) -> list[str]:
    return [name.upper() for name in parts(properties.get(CONTROLLERS, ""))]


def _is_possible(protocol: str, *, has_tls: bool, has_sasl: bool) -> bool:
    return (has_tls or protocol not in WITH_TLS) and (has_sasl or protocol not in WITH_SASL)


def _missing(found: Iterable[Listener], used: Iterable[Listener], *, has_tls: bool, has_sasl: bool) -> list[str]:
    protocols = {one.protocol for one in used}
    named = {one.protocol for one in found}
    if not protocols:
        if not named:
            return []
        needs = "write --tls auto for SSL, --sasl PLAIN for SASL_PLAINTEXT, and both for SASL_SSL"
        return [f"{LISTENERS} has no listener that can be opened: {needs}"]
    lacks = []
    if has_tls and not protocols & {*WITH_TLS}:
        lacks.append(f"{LISTENERS} has no listener with TLS: add one with SSL or SASL_SSL, or leave out --tls")
    if has_sasl and not protocols & {*WITH_SASL}:
        lacks.append(f"{LISTENERS} has none with SASL: add one with SASL_PLAINTEXT or SASL_SSL, or leave out --sasl")
    return lacks


def _parsed(setting: str, properties: Mapping[str, str], faults: list[str]) -> dict[str, Address]:
    found: dict[str, Address] = {}
    for part in parts(properties.get(setting, "")):
        name, separator, address = part.partition("://")
        host, colon, port = address.rpartition(":")
        if not (name and separator and colon and port.isascii() and port.isdigit() and int(port) <= PORT_MAX):
            faults.append(f"{setting} can't be {part!r}: give NAME://HOST:PORT")
            continue
        if name.upper() in found:
            faults.append(f"{setting} has {name.upper()} twice: give each listener a name of its own")
        found[name.upper()] = Address(host.removeprefix("[").removesuffix("]"), int(port))
    return found


def check_names_of_listeners(settings: Settings, names: Collection[str], users_of: Iterable[str] = ()) -> None:
    """Check that all settings of single listeners are those of listeners with these names.

    Args:
        users_of: the listeners, in lower case, that have users for themselves.

    Raises:
        SettingError: one is not; the text has a line for each such listener.
    """
    known = {name.lower() for name in names}
    found = {listener: f"users of {listener}" for listener in users_of} | settings.listeners_with(LISTENERS_OWN)
    wrong = [name for listener, name in found.items() if listener not in known]
    if wrong:
        raise SettingError("\n".join(f"{name}: no such listener: there are {', '.join(names)}" for name in wrong))


def parts(text: str) -> list[str]:
    """Return the parts of a list with commas between, without blanks and empty parts."""
    return [part.strip() for part in text.split(",") if part.strip()]
