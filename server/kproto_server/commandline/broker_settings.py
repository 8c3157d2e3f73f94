"""The settings of a command's broker: Kafka's own server.properties, and ``--set`` on top."""

from __future__ import annotations

import sys

from kproto.errors import CommandLineError
from kproto_server.commandline.arguments import last
from kproto_server.commandline.output import write

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeVar

    from kproto_server.commandline.arguments import Command
    from kproto_server.configuration.listeners import Listener
    from kproto_server.configuration.settings import Settings
    from kproto_server.releases.kafka_version import KafkaVersion

    Given = dict[str, list[str]]
    T = TypeVar("T")


class Configuration:
    """What the settings of a command say."""

    __slots__ = ("advertised", "bound", "listeners", "mechanisms", "settings", "users", "users_of")

    def __init__(self, settings: Settings) -> None:
        self.settings: Settings = settings
        self.bound: tuple[str, int] | None = None
        """Host and port of the first broker; None: not given."""
        self.advertised: tuple[str, int] | None = None
        """Host and port that clients receive; None: not given."""
        self.listeners: tuple[Listener, ...] = ()
        """The listeners of each node, the main one first; empty: not given."""
        self.mechanisms: tuple[str, ...] = ()
        """Of SASL; empty: the command line has them, or nothing has."""
        self.users: dict[str, str] = {}
        """Passwords by name: of SASL, too."""
        self.users_of: dict[str, dict[str, str]] = {}
        """The users of listeners that have others, by the name of the listener in lower case."""


def configuration(command: Command, given: Given, kafka_version: KafkaVersion, *, has_listeners: bool) -> Configuration:
    """Return the configuration by ``--config`` and ``--set``; warn of settings that mean nothing here.

    Args:
        has_listeners: whether the settings of listeners mean something.

    Raises:
        CommandLineError: the file can't be read, or settings are invalid; the text has a line for each fault.
    """
    from kproto_server.configuration.listeners import SETTINGS_OF_LISTENERS, check_names_of_listeners, protocol_name
    from kproto_server.configuration.settings import Settings

    path, assignments = last(given, "--config"), given.get("--set", [])
    result = Configuration(Settings(kafka_version))
    if path is None and not assignments:  # `kproto serve` starts fast
        return result
    properties = {} if path is None else _read_properties(command, path)
    listeners: dict[str, str] = {}
    if has_listeners:
        listeners = {name: properties.pop(name) for name in SETTINGS_OF_LISTENERS & properties.keys()}
        listeners |= {name.strip(): value for name, _, value in (one.partition("=") for one in assignments)}
        listeners = {name: value for name, value in listeners.items() if name in SETTINGS_OF_LISTENERS}
        assignments = [one for one in assignments if one.partition("=")[0].strip() not in listeners]
    faults, warnings = [], []
    mechanisms_of: dict[str, str] = {}
    if "--sasl" not in given:
        try:
            mechanisms_of = _set_sasl(result, listeners, properties)
        except ValueError as error:
            faults.append(error)
    has_tls, has_sasl = "--tls" in given, "--sasl" in given or bool(result.mechanisms)
    of_addresses: list[ValueError] = []
    try:
        if listeners:
            warnings += _set_addresses(result, listeners, has_tls=has_tls, has_sasl=has_sasl)
    except ValueError as error:
        of_addresses.append(error)
    names = [one.name for one in result.listeners] or [protocol_name(has_tls=has_tls, has_sasl=has_sasl)]
    try:
        unused = _unused(properties, names, has_tls=has_tls)
        used = {name: value for name, value in properties.items() if name not in unused}
        result.settings, ignored = result.settings.with_config_file(used | mechanisms_of)
        ignored += unused
        warnings = [f"these settings mean nothing here: {', '.join(ignored)}"] * bool(ignored) + warnings
    except ValueError as error:
        faults.append(error)
    source = "--set" if path is None else f"--config {path}"
    if faults or of_addresses:
        raise _errors(command, source, *faults, *of_addresses)
    if "--quiet" not in given:
        for warning in warnings:
            write(sys.stderr, f"kproto {command.name}: {source}: {warning}\n")
    result.settings = checked(command, "--set", lambda: result.settings.with_assignments(assignments))
    checked(command, "--set", lambda: check_names_of_listeners(result.settings, names))
    return result


def _unused(properties: dict[str, str], names: list[str], *, has_tls: bool) -> list[str]:
    """Return the names of properties that mean nothing without TLS, are of other listeners than these, or have the
    mechanisms of a listener, which are not asked for."""
    from kproto_server.configuration.setting_table import STORE_SETTINGS
    from kproto_server.configuration.settings import MECHANISMS_SETTING, listener_and_name

    known = {name.lower() for name in names} | {""}
    unused = []
    for name in properties:
        listener, rest = listener_and_name(name)
        is_ignored = (rest in STORE_SETTINGS and not has_tls) or (listener and rest == MECHANISMS_SETTING)
        if is_ignored or listener not in known:
            unused.append(name)
    return sorted(unused)


def _set_sasl(result: Configuration, listeners: dict[str, str], properties: dict[str, str]) -> dict[str, str]:
    """Set the mechanisms and users of a configuration, and remove their properties.

    Return the settings of listeners with other mechanisms.
    """
    from kproto_server.configuration.listeners import names_with_sasl

    with_sasl = names_with_sasl(listeners)
    if not with_sasl:
        return {}
    from kproto_server.configuration.sasl_properties import of_sasl, sasl_properties

    found = sasl_properties(properties, with_sasl)
    if found.mechanisms:
        result.mechanisms, result.users, result.users_of = found.mechanisms, found.users, found.users_of
        for name in of_sasl(properties, with_sasl):
            del properties[name]
    return found.mechanisms_of


def _set_addresses(result: Configuration, given: dict[str, str], *, has_tls: bool, has_sasl: bool) -> list[str]:
    """Set the addresses of a configuration; return warnings."""
    from kproto_server.configuration.listeners import listeners_of

    found = listeners_of(given, has_tls=has_tls, has_sasl=has_sasl)
    result.listeners = found.used
    if found.used:
        result.bound, result.advertised = found.used[0].bound, found.used[0].advertised
    return [f"these listeners are not opened: {', '.join(found.unused)}"] if found.unused else []


def _read_properties(command: Command, path: str) -> dict[str, str]:
    from kproto.properties import read_properties

    try:
        with open(path, encoding="utf-8") as file:
            text = file.read()
    except OSError as error:
        raise command.error(f"--config: can't read {path!r}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise command.error(f"--config: {path!r} is not a text file in UTF-8") from None
    return checked(command, f"--config {path}", lambda: read_properties(text))


def checked(command: Command, name: str, read: Callable[[], T]) -> T:
    """Return the result of ``read``; raise each line of its ValueError as a usage error of the option."""
    try:
        return read()
    except ValueError as error:
        raise _errors(command, name, error) from None


def _errors(command: Command, name: str, *faults: ValueError) -> CommandLineError:
    lines = [line for fault in faults for line in str(fault).splitlines()]
    return CommandLineError("\n".join(str(command.error(f"{name}: {line}")) for line in lines))
