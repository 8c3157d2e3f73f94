"""The scenarios of README.md in this folder, each with what its driver has to tell."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from kproto.codes import ErrorCode


@dataclass(frozen=True, slots=True)
class Such:
    """A value of which more than one is right."""

    text: str
    holds: Callable[[Any, Mapping[str, Any]], bool]
    """Of the value, and of all that the scenario told."""

    def __repr__(self) -> str:
        return self.text


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    name: str
    partitions: int | None
    """Of its topic, which the harness makes; None: there is no topic."""
    facts: Mapping[str, object]
    """What the driver tells: values, or what they are `Such`."""
    looked_up: Mapping[str, object] = field(default_factory=dict)
    """What the harness itself finds at the broker afterwards (`harness.LOOK_UPS`)."""


def records(numbers: range) -> list[str]:
    return [f"{n}=value {n}" for n in numbers]


def _is_divided(both: Any, _: Mapping[str, Any]) -> bool:
    return [len(part) for part in both] == [2, 2] and sorted(both[0] + both[1]) == ALL


ALL = [0, 1, 2, 3]
DIVIDED = Such("two partitions for each of both", _is_divided)
NOTE = [7, '"zweite" Notiz - ü']

SCENARIOS = (
    Scenario(
        name="create-topic",
        partitions=None,
        facts={"partitions": 3, "again": ErrorCode.TOPIC_ALREADY_EXISTS},
    ),
    Scenario(
        name="produce-100",
        partitions=2,
        facts={
            "acknowledged": 100,
            "last": [49, 49],
            "read": [records(range(0, 100, 2)), records(range(1, 100, 2))],
        },
    ),
    Scenario(name="consume-and-commit", partitions=1, facts={"read": records(range(10)), "committed": [5, 10]}),
    Scenario(
        name="restart-and-continue",
        partitions=1,
        facts={"first": records(range(4)), "second": records(range(4, 10))},
    ),
    Scenario(name="two-members", partitions=4, facts={"both": DIVIDED, "alone": ALL}),
    Scenario(
        name="static-member",
        partitions=4,
        facts={
            "both": DIVIDED,
            "again": Such("what the first had", lambda again, told: again == told["both"][0]),
            "rebalances": 0,
        },
    ),
    Scenario(
        name="cooperative",
        partitions=4,
        facts={
            "both": DIVIDED,
            "revoked": Such("what the second has", lambda revoked, told: revoked == told["both"][1]),
            "alone": ALL,
        },
    ),
    Scenario(
        name="rewind",
        partitions=1,
        facts={"after_seek": "3=value 3", "committed": 2, "after_commit": "2=value 2"},
    ),
    Scenario(
        name="commit-with-metadata",
        partitions=2,
        facts={
            "before": {},
            "committed": {"0": [42, "first: note"], "1": NOTE},
            "replaced": {"0": [2, "new"], "1": NOTE},
        },
    ),
    Scenario(
        name="metadata-too-large",
        partitions=1,
        facts={"error": ErrorCode.OFFSET_METADATA_TOO_LARGE, "committed": 1, "length": 4096},
    ),
    Scenario(
        name="unknown-topic",
        partitions=None,
        facts={"error": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION},
        looked_up={"exists": False},
    ),
    Scenario(name="lag", partitions=1, facts={"beginning": 0, "end": 10, "committed": 4, "lag": 6}),
    Scenario(name="list-groups", partitions=1, facts={"listed": True}),
    Scenario(
        name="describe-group",
        partitions=2,
        facts={"state": "Stable", "members": 1, "assigned": [0, 1], "then": "Empty"},
    ),
    Scenario(
        name="delete-group",
        partitions=1,
        facts={
            "busy": ErrorCode.NON_EMPTY_GROUP,
            "deleted": 0,
            "listed": False,
            "again": ErrorCode.GROUP_ID_NOT_FOUND,
        },
    ),
    Scenario(name="list-group-offsets", partitions=2, facts={"offsets": {"0": 3, "1": 7}}),
    Scenario(
        name="delete-offsets",
        partitions=2,
        facts={"busy": ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC, "deleted": 0, "left": {"1": 7}},
    ),
    Scenario(
        name="idempotent-produce",
        partitions=1,
        facts={"acknowledged": 100, "last": 99, "read": records(range(100))},
        looked_up={"producers": 1},
    ),
)
