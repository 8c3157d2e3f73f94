"""SASL in Kafka's server.properties: the mechanisms of the listeners, and the users of their JAAS configs.

A broker's users of PLAIN stand in ``listener.name.LISTENER.plain.sasl.jaas.config`` as ``user_NAME="PASSWORD"``. The
``username`` and ``password`` beside them are those of connections between brokers. Users of SCRAM are never there.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from kproto_server.configuration.listeners import parts
from kproto_server.configuration.setting_table import SettingError
from kproto_server.configuration.settings import OF_LISTENER

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

MECHANISMS, JAAS_CONFIG = "sasl.enabled.mechanisms", "sasl.jaas.config"
OF_USER = "user_"
WORD = r"""[^\s"'=;]+"""
VALUE = rf"""{WORD}|"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'"""
OPTION = rf"\s+({WORD})\s*=\s*({VALUE})"
LOGIN_MODULE = re.compile(rf"\s*{WORD}\s+(?i:required|requisite|sufficient|optional)((?:{OPTION})*)\s*;\s*", re.DOTALL)


class SaslProperties(NamedTuple):
    """What server.properties says about SASL."""

    mechanisms: tuple[str, ...]
    users: dict[str, str]
    """Passwords by name."""

    def __repr__(self) -> str:
        return f"SaslProperties(mechanisms={self.mechanisms!r}, users={list(self.users)})"


def of_sasl(properties: Iterable[str], listeners: Iterable[str]) -> set[str]:
    """Return the names that are about mechanisms and users of these listeners."""
    own = tuple(f"{OF_LISTENER}{listener.lower()}." for listener in listeners)
    return {
        name
        for name in properties
        if name == MECHANISMS or (name.startswith(own) and name.endswith((f".{MECHANISMS}", f".{JAAS_CONFIG}")))
    }


def sasl_properties(properties: Mapping[str, str], listeners: Iterable[str]) -> SaslProperties:
    """Return the mechanisms and users of the listeners with SASL; no mechanisms: the properties name none.

    Raises:
        SettingError: a JAAS config is invalid, or listeners differ; the text has a line for each fault.
    """
    faults: list[str] = []
    mechanisms: dict[str, tuple[str, ...]] = {}
    users: dict[str, dict[str, str]] = {}
    for listener in listeners:
        own = f"{OF_LISTENER}{listener.lower()}."
        name = f"{own}{MECHANISMS}" if f"{own}{MECHANISMS}" in properties else MECHANISMS
        mechanisms[name] = tuple(parts(properties.get(name, "")))
        jaas = f"{own}plain.{JAAS_CONFIG}"
        if jaas in properties:
            try:
                users[jaas] = _users(properties[jaas])
            except ValueError:
                faults.append(f'{jaas} is no login module: write CLASS required user_NAME="PASSWORD" ...;')
    faults += _different("mechanisms", mechanisms) + _different("users", users)
    if faults:
        raise SettingError("\n".join(faults))
    return SaslProperties(next(iter(mechanisms.values()), ()), next(iter(users.values()), {}))


def _different(kind: str, values: Mapping[str, object]) -> list[str]:
    """Return the fault of properties that differ."""
    names = list(values)
    different = [name for name in names if values[name] != values[names[0]]]
    return [f"{one} differs from {names[0]}: kproto has the same {kind} in all listeners" for one in different[:1]]


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
