"""Changes of `listener.name.NAME.ssl.keystore.location` and its like: the broker reads its key store again (KIP-226).

DEVIATION: kproto reads the files of its settings, and no others: a client could name any file of the machine. Such
configs are not kept, so DescribeConfigs does not return them.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from kproto.codes import ErrorCode
from kproto_server.cluster.topics import Refusal
from kproto_server.handlers._config_changes import set_broker_configs

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kproto_server.requests.context import RequestContext

STORE = re.compile(r"listener\.name\.(.+)\.(ssl\.(?:key|trust)store\.location)")
ONLY_ITS_OWN = "kproto reads the {} of its settings again, and no other file"


def names_store(broker: str, config: str) -> bool:
    """Return whether a config of one broker is the location of a listener's key store or trust store."""
    return bool(broker) and STORE.fullmatch(config) is not None


def change_broker(
    name: str,
    configs: dict[str, str] | Refusal,
    stores: Mapping[str, str | None],
    context: RequestContext,
    *,
    validate_only: bool,
) -> Refusal | None:
    """Set the dynamic configs of a broker, and read its stores again; or return why not.

    Args:
        configs: the configs after the change, without stores, or why they are refused.
        stores: the changed locations of stores, as in `_read_again`.
    """
    if isinstance(configs, Refusal):
        return configs
    refusal = _read_again(stores, context, validate_only=validate_only)
    if refusal is None and not validate_only:
        set_broker_configs(name, configs, context)
    return refusal


def _read_again(locations: Mapping[str, str | None], context: RequestContext, *, validate_only: bool) -> Refusal | None:
    """Read the stores again, or return why not.

    ``locations``: by config; None: the config is removed, and the location in the settings counts.
    """
    settings = context.settings.of(context.node.node_id)
    for config, location in locations.items():
        found = STORE.fullmatch(config)
        assert found is not None, "the caller has asked `names_store`"
        listener, name = found.groups()
        if location is not None and (not location or location != settings.str_of_listener(listener, name)):
            return Refusal(ErrorCode.POLICY_VIOLATION, ONLY_ITS_OWN.format(name))
    read_again = context.cluster.read_stores_again
    problem = read_again() if locations and read_again is not None and not validate_only else ""
    return Refusal(ErrorCode.INVALID_REQUEST, problem) if problem else None
