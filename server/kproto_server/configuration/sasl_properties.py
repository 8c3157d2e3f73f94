"""SASL in Kafka's server.properties: the mechanisms of the listeners, and the users of their JAAS configs.

A broker's users of PLAIN stand in ``listener.name.LISTENER.plain.sasl.jaas.config`` as ``user_NAME="PASSWORD"``. The
``username`` and ``password`` beside them are those of connections between brokers. Users of SCRAM are never there.
Listeners may have different ones.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from kproto_server.configuration.listeners import parts
from kproto_server.configuration.setting_table import SettingError
from kproto_server.configuration.settings import MECHANISMS_SETTING, OF_LISTENER

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

JAAS_CONFIG = "sasl.jaas.config"
OF_PLAIN = f".plain.{JAAS_CONFIG}"
OF_USER = "user_"
WORD = r"""[^\s"'=;]+"""
VALUE = rf"""{WORD}|"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'"""
OPTION = rf"\s+({WORD})\s*=\s*({VALUE})"
LOGIN_MODULE = re.compile(rf"\s*{WORD}\s+(?i:required|requisite|sufficient|optional)((?:{OPTION})*)\s*;\s*", re.DOTALL)


class SaslProperties(NamedTuple):
    """What server.properties says about SASL."""

    mechanisms: tuple[str, ...]
    """Of the first listener with SASL."""
    users: dict[str, str]
    """Passwords by name, of all listeners without users of their own."""
    mechanisms_of: dict[str, str]
    """The settings of listeners with other mechanisms."""
    users_of: dict[str, dict[str, str]]
    """The users of listeners that have others, by the name of the listener in lower case."""

    def __repr__(self) -> str:
        return f"SaslProperties(mechanisms={self.mechanisms!r}, users={list(self.users)})"


def of_sasl(properties: Iterable[str], listeners: Iterable[str]) -> set[str]:
    """Return the names that are about mechanisms and users of these listeners."""
    own = tuple(f"{OF_LISTENER}{listener.lower()}." for listener in listeners)
    ends = f".{MECHANISMS_SETTING}", f".{JAAS_CONFIG}"
    return {name for name in properties if name == MECHANISMS_SETTING or (name.startswith(own) and name.endswith(ends))}


def users_of_listeners(properties: Mapping[str, str]) -> tuple[dict[str, dict[str, str]], dict[str, str]]:
    """Return the users of PLAIN in JAAS configs, by listener in lower case, and all other properties.

    Raises:
        SettingError: a JAAS config is invalid; the text has a line for each.
    """
    found: dict[str, dict[str, str]] = {}
    faults: list[str] = []
    for name, jaas_config in properties.items():
        if name.startswith(OF_LISTENER) and name.endswith(OF_PLAIN):
            try:
                found[name.removeprefix(OF_LISTENER).removesuffix(OF_PLAIN)] = _users(jaas_config)
            except ValueError:
                faults.append(f'{name} is no login module: write CLASS required user_NAME="PASSWORD" ...;')
    if faults:
        raise SettingError("\n".join(faults))
    return found, {name: value for name, value in properties.items() if not name.endswith(OF_PLAIN)}


def sasl_properties(properties: Mapping[str, str], listeners: Sequence[str]) -> SaslProperties:
    """Return the mechanisms and users of the listeners with SASL; no mechanisms: the properties name none.

    Raises:
        SettingError: a JAAS config is invalid, or only some listeners have mechanisms; the text has a line for each
            fault.
    """
    names = [listener.lower() for listener in listeners]
    jaas = [f"{OF_LISTENER}{name}{OF_PLAIN}" for name in names]
    users_of, _ = users_of_listeners({name: properties[name] for name in jaas if name in properties})
    users = next(iter(users_of.values()), {})
    mechanisms = [_mechanisms(properties, listener) for listener in names] or [()]
    own = {f"{OF_LISTENER}{name}.{MECHANISMS_SETTING}": one for name, one in zip(names, mechanisms, strict=True)}
    other = {name: one for name, one in own.items() if one != mechanisms[0]}
    missing = [name for name, one in own.items() if not one]
    if missing and any(mechanisms):
        raise SettingError(f"{missing[0]} is missing: without it a listener has GSSAPI, which kproto does not have")
    return SaslProperties(
        mechanisms[0],
        users,
        {name: ",".join(one) for name, one in other.items()},
        {listener: one for listener, one in users_of.items() if one != users},
    )


def _mechanisms(properties: Mapping[str, str], listener: str) -> tuple[str, ...]:
    own = f"{OF_LISTENER}{listener}.{MECHANISMS_SETTING}"
    return tuple(parts(properties.get(own, properties.get(MECHANISMS_SETTING, ""))))


def _users(jaas_config: str) -> dict[str, str]:
    """Return the passwords of the users in a JAAS config: ``CLASS FLAG NAME="VALUE" ...;``.

    Raises:
        ValueError: the text is something else.
    """
    login_module = LOGIN_MODULE.fullmatch(jaas_config)
    if login_module is None:
        raise ValueError
    options = re.findall(OPTION, login_module[1], re.DOTALL)
    return {name.removeprefix(OF_USER): _unquoted(value) for name, value in options if name.startswith(OF_USER)}


def _unquoted(value: str) -> str:
    return re.sub(r"\\(.)", r"\1", value[1:-1], flags=re.DOTALL) if value[0] in "\"'" else value
