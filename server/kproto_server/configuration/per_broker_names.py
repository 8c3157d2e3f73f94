"""The names of Kafka's settings that can be altered for one broker only (KIP-226), each with its first release.

Source:
    IncrementalAlterConfigs responses of 11 releases, 2.3.1 to 4.4.0.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

_TEXT = """
advertised.listeners listener.security.protocol.map listeners principal.builder.class
sasl.enabled.mechanisms sasl.jaas.config sasl.kerberos.kinit.cmd sasl.kerberos.min.time.before.relogin
sasl.kerberos.principal.to.local.rules sasl.kerberos.service.name sasl.kerberos.ticket.renew.jitter
sasl.kerberos.ticket.renew.window.factor sasl.login.refresh.buffer.seconds sasl.login.refresh.min.period.seconds
sasl.login.refresh.window.factor sasl.login.refresh.window.jitter sasl.mechanism.inter.broker.protocol
ssl.cipher.suites ssl.client.auth ssl.enabled.protocols ssl.endpoint.identification.algorithm
ssl.keymanager.algorithm ssl.protocol ssl.provider ssl.secure.random.implementation ssl.trustmanager.algorithm
"""

PER_BROKER_NAMES: Mapping[str, tuple[int, int]] = MappingProxyType(
    dict.fromkeys(_TEXT.split(), (1, 1)) | {"ssl.engine.factory.class": (2, 6), "cordoned.log.dirs": (4, 3)}
)
"""By name, the first release. ``advertised.listeners`` is read-only from 4.0 on."""
