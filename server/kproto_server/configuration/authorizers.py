"""The setting ``authorizer.class.name``: the authorizers of Kafka releases, and that of given settings."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from kproto_server.configuration.setting_table import SettingError
from kproto_server.releases.release import VersionBehavior
from kproto_server.security.acls import Authorizer, parse_super_users

if TYPE_CHECKING:
    from collections.abc import Callable

    from kproto_server.releases.kafka_version import KafkaVersion

CLASS_SETTING = "authorizer.class.name"
SUPER_USERS_SETTING = "super.users"
SIMPLE = "kafka.security.auth.SimpleAclAuthorizer"
ZOOKEEPER = "kafka.security.authorizer.AclAuthorizer"
STANDARD = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"


class AuthorizerBehavior(VersionBehavior):
    """The authorizers of Kafka releases."""

    @cached_property
    def classes(self) -> tuple[str, ...]:
        """The names of the authorizer classes, the one to recommend first."""
        if self.is_kraft:
            return (STANDARD,)
        return (*((ZOOKEEPER,) if self.at_least(2, 4) else ()), *(() if self.at_least(3, 0) else (SIMPLE,)))


def check_authorizer(value_of: Callable[[str], str], kafka_version: KafkaVersion) -> None:
    """Refuse settings of an authorizer that the release does not have. ``value_of``: returns the value of a setting.

    Raises:
        SettingError: there is no such authorizer, or a super user is no principal.
    """
    classes = kafka_version.behavior(AuthorizerBehavior).classes
    name = value_of(CLASS_SETTING)
    if name and name not in classes:
        release = kafka_version.name
        raise SettingError(f"{CLASS_SETTING} cannot be {name!r}: Kafka {release} has {' and '.join(classes)}")
    try:
        list(parse_super_users(value_of(SUPER_USERS_SETTING)))
    except ValueError as error:
        raise SettingError(f"{SUPER_USERS_SETTING}: {error}") from None


def authorizer_of(value_of: Callable[[str], str]) -> Authorizer | None:
    """Return the authorizer of a new cluster; None: every client may do everything."""
    if not value_of(CLASS_SETTING):
        return None
    super_users = parse_super_users(value_of(SUPER_USERS_SETTING))
    return Authorizer(
        super_users,
        allows_without_acls=value_of("allow.everyone.if.no.acl.found") == "true",
        is_standard=value_of(CLASS_SETTING) == STANDARD,
    )
