"""What goes wrong from a broker's start on: fault rules, conditions of the network and other ways to handle commits,
read from a YAML file and checked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from kproto.errors import UsageError
from kproto_server.broker.yaml_file import read_yaml
from kproto_server.faults.rule import checked
from kproto_server.observation.conditions import check_node, check_type

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from kproto_server.faults.rule import FaultRule
    from kproto_server.network.links import Conditions
    from kproto_server.network.server import Server
    from kproto_server.releases.kafka_version import KafkaVersion

NETWORK = "network"
FORWARD = "forward_commits"
EXTENSIONS = (FORWARD, "conditional_commits")
CONDITIONS = ("node_id", "latency_ms", "bytes_per_second", "black_hole", "refuse")


class Faults(NamedTuple):
    """What goes wrong from a broker's start on, checked."""

    rules: Sequence[FaultRule] = ()
    network: tuple[tuple[int | None, Conditions], ...] = ()
    """Conditions by node, in the order in which they replace each other; None: all nodes."""
    forward_commits: bool = False
    conditional_commits: bool = False

    def begin(self, server: Server) -> None:
        """Apply all to a broker that does not serve yet."""
        if self.forward_commits or self.conditional_commits:
            from kproto_server.connection.commit_extensions import extend

            extend(server.dispatcher, forwards=self.forward_commits, compares=self.conditional_commits)
        if self.rules:
            server.faults.add_initial(self.rules)
        server.nodes.initial_network = self.network


def checked_faults(
    given: Sequence[FaultRule] | str | Faults, kafka_version: KafkaVersion, node_ids: Collection[int]
) -> Faults:
    """Return faults that a broker of this Kafka version with these nodes can have; a string is the path of a file.

    Raises:
        UsageError: the file can't be read, or a rule is wrong; the text has its number.
    """
    if isinstance(given, Faults):
        return given
    source, items = ("", list(given)) if not isinstance(given, str) else (f"{given}: ", read_items(given))
    rules: list[FaultRule] = []
    found = Faults()
    for number, item in enumerate(items, 1):
        try:
            if isinstance(given, str) and item.keys() and item.keys() <= {NETWORK, *EXTENSIONS}:
                found = _with(found, item, node_ids)
            else:
                checked(item, kafka_version, node_ids)
                rules.append(item)
        except UsageError as error:
            raise UsageError(f"{source}fault rule {number}: {error}") from None
    return found._replace(rules=rules)


def _with(faults: Faults, item: Mapping[str, Any], node_ids: Collection[int]) -> Faults:
    """Return faults with an item of a file that is no rule."""
    for name, value in item.items():
        if name == NETWORK:
            faults = faults._replace(network=(*faults.network, checked_network(value, node_ids)))
        elif not isinstance(value, bool):
            raise UsageError(f"{name} is true or false, not {value!r}")
        elif name == FORWARD:
            faults = faults._replace(forward_commits=value)
        else:
            faults = faults._replace(conditional_commits=value)
    return faults


def checked_network(given: object, node_ids: Collection[int]) -> tuple[int | None, Conditions]:
    """Return conditions of the network, with the node that they are about.

    Raises:
        UsageError: a name or a value is wrong, or there are no conditions.
    """
    from kproto_server.network.links import checked as checked_conditions

    if not isinstance(given, dict):
        raise UsageError(f"network has lines NAME: VALUE, not {given!r}")
    for name in given:
        if name not in CONDITIONS:
            raise UsageError(f"network has no {name!r}: it has {', '.join(CONDITIONS)}")
    node_id = given.get("node_id")
    if node_id is not None:
        check_type("node_id", node_id)
        check_node(node_id, node_ids)
    values = (given.get("latency_ms", 0), given.get("bytes_per_second"))
    flags = {name: given.get(name, False) for name in ("black_hole", "refuse")}
    return node_id, checked_conditions(*values, **flags)


def read_items(path: str) -> list[Any]:
    """Return the items of a YAML file: a list, of which each one has names and values.

    Raises:
        UsageError: the file can't be read, or is not such a list.
    """
    content = read_yaml(path)
    if content is None:
        return []
    if not isinstance(content, list):
        raise UsageError(f"{path}: a file of fault rules is a list: each rule begins with '- '")
    for number, rule in enumerate(content, 1):
        if not isinstance(rule, dict) or not all(isinstance(name, str) for name in rule):
            raise UsageError(f"{path}: fault rule {number}: a rule has lines NAME: VALUE, not {rule!r}")
    return content
