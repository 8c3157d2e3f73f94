"""Random changes and descriptions of the configs of a few groups."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kproto.messages.k32_describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from kproto.messages.k33_alter_configs import AlterableConfig, AlterConfigsRequest, AlterConfigsResource
from kproto.messages.k44_incremental_alter_configs import AlterableConfig as Alteration
from kproto.messages.k44_incremental_alter_configs import AlterConfigsResource as AlteredResource
from kproto.messages.k44_incremental_alter_configs import IncrementalAlterConfigsRequest
from kproto.messages.k74_list_config_resources import ListConfigResourcesRequest

if TYPE_CHECKING:
    from random import Random

    from tests.differential.history import History

GROUP = 32
NUMBERS = (
    "0",
    "1",
    "3",
    "5",
    "100",
    "1000",
    "4999",
    "5000",
    "15000",
    "15001",
    "30000",
    "44999",
    "45000",
    "60000",
    "60001",
)
TEXTS = ("", "soon", "-1", "9999999999", "true", "latest", "earliest", "by_duration:PT1H", "read_committed", "x,y")
NAMES = (
    "consumer.assignment.interval.ms",
    "consumer.heartbeat.interval.ms",
    "consumer.session.timeout.ms",
    "share.assignment.interval.ms",
    "share.auto.offset.reset",
    "share.delivery.count.limit",
    "share.heartbeat.interval.ms",
    "share.isolation.level",
    "share.partition.max.record.locks",
    "share.record.lock.duration.ms",
    "share.renew.acknowledge.enable",
    "share.session.timeout.ms",
    "streams.assignment.interval.ms",
    "streams.heartbeat.interval.ms",
    "streams.initial.rebalance.delay.ms",
    "streams.num.standby.replicas",
    "streams.session.timeout.ms",
    "no.such",
)
VALID = {
    "consumer.session.timeout.ms": "46000",
    "consumer.heartbeat.interval.ms": "6000",
    "share.session.timeout.ms": "47000",
    "share.auto.offset.reset": "earliest",
    "share.isolation.level": "read_committed",
}


def _value(random: Random, name: str) -> str:
    if name in VALID and random.random() < 0.5:
        return VALID[name]
    return random.choice(NUMBERS if random.random() < 0.7 else TEXTS)


def _group(history: History) -> str:
    return str(history.mostly(f"g{history.seed}", f"h{history.seed}", "", percent=70))


def alter(history: History) -> None:
    """Replace the configs of a group by at most one."""
    names = history.random.sample(NAMES, history.mostly(1, 0, percent=80))
    configs = tuple(AlterableConfig(name=name, value=_value(history.random, name)) for name in names)
    resource = AlterConfigsResource(resource_type=GROUP, resource_name=_group(history), configs=configs)
    request = AlterConfigsRequest(resources=(resource,), validate_only=history.random.random() < 0.2)
    history.pair.send(0, lambda broker: request, history.version(33))


def alter_incrementally(history: History) -> None:
    """Change one config of a group, or two that are valid: of several faults, brokers report any."""
    random = history.random
    if random.random() < 0.2:
        chosen = [(name, 0, VALID[name]) for name in random.sample(sorted(VALID), 2)]
    else:
        name, operation = random.choice(NAMES), history.mostly(0, 1, 2, 3, 9, percent=70)
        chosen = [(name, operation, _value(random, name))]
    changes = tuple(
        Alteration(name=name, config_operation=operation, value=None if operation == 1 else value)
        for name, operation, value in chosen
    )
    resource = AlteredResource(resource_type=GROUP, resource_name=_group(history), configs=changes)
    request = IncrementalAlterConfigsRequest(resources=(resource,), validate_only=random.random() < 0.2)
    history.pair.send(0, lambda broker: request, history.version(44))


def describe(history: History) -> None:
    keys = history.mostly(None, ("share.session.timeout.ms", "no.such"), (), percent=70)
    resource = DescribeConfigsResource(resource_type=GROUP, resource_name=_group(history), configuration_keys=keys)
    request = DescribeConfigsRequest(resources=(resource,), include_synonyms=history.random.random() < 0.7)
    history.pair.send_until_equal(0, lambda broker: request, history.version(32))


def list_groups(history: History) -> None:
    """List the groups with configs."""
    if history.serves(74) and history.versions[74][1] >= 1:
        request = ListConfigResourcesRequest(resource_types=(GROUP,))
        history.pair.send_until_equal(0, lambda broker: request, 1)
