"""Changes of a group's configs, with Kafka's error messages: all configs (KIP-133), or some (KIP-339).

Source:
    AlterConfigs and IncrementalAlterConfigs responses of 4.0.2, 4.1.2, 4.2.2, 4.3.1 and 4.4.0.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kproto.codes import ErrorCode
from kproto_server.cluster.topic_config_changes import changed_values, with_values
from kproto_server.cluster.topics import Refusal
from kproto_server.configuration.group_configs import group_config_problem

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from kproto_server.cluster.topic_config_changes import ConfigChange
    from kproto_server.configuration.settings import Settings

NO_NAME = Refusal(ErrorCode.INVALID_REQUEST, "Default group resources are not allowed.")


def replaced_group(
    group_id: str, wanted: Iterable[tuple[str, str | None]], settings: Settings
) -> dict[str, str] | Refusal:
    """Return the configs of a group that AlterConfigs has set."""
    configs = with_values(wanted, settings.kafka_version)
    return configs if isinstance(configs, Refusal) else _checked(group_id, configs, settings)


def changed_group(
    group_id: str, configs: Mapping[str, str], changes: Sequence[ConfigChange], settings: Settings
) -> dict[str, str] | Refusal:
    """Return the configs of a group after the changes of IncrementalAlterConfigs."""
    after = changed_values(configs, changes, settings.kafka_version)
    return after if isinstance(after, Refusal) else _checked(group_id, after, settings)


def _checked(group_id: str, configs: dict[str, str], settings: Settings) -> dict[str, str] | Refusal:
    if not group_id:
        return NO_NAME
    problem = group_config_problem(settings, configs)
    return configs if problem is None else Refusal(ErrorCode.INVALID_CONFIG, problem)
