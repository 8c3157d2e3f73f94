"""The scenarios of README.md in this folder, each with the expected results."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from kproto.codes import ErrorCode


@dataclass(frozen=True, slots=True)
class Matching:
    """An expected result with more than one correct value."""

    text: str
    matches: Callable[[Any, Mapping[str, Any]], bool]
    """Gets the value and all results of the scenario."""

    def __repr__(self) -> str:
        return self.text


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """A scenario and its expected results."""

    name: str
    partitions: int | None
    """Partition count of the topic, which the harness creates; None: no topic."""
    results: Mapping[str, object]
    """The driver's results: values, or `Matching`."""
    broker_results: Mapping[str, object] = field(default_factory=dict)
    """The results of the harness's queries to the broker afterwards (`harness.BROKER_QUERIES`)."""


def records(numbers: range) -> list[str]:
    return [f"{n}=value {n}" for n in numbers]


def _is_divided(both: Any, _: Mapping[str, Any]) -> bool:
    return [len(part) for part in both] == [2, 2] and sorted(both[0] + both[1]) == ALL


ALL = [0, 1, 2, 3]
FENCED = Matching(
    "INVALID_PRODUCER_EPOCH or PRODUCER_FENCED",
    lambda error, _: error in (ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.PRODUCER_FENCED),
)
LAST = Matching("6, or 5 as long as the broker ends the last transaction", lambda offset, _: offset in (5, 6))
TIMED_OUT = Matching(
    "INVALID_PRODUCER_EPOCH, PRODUCER_FENCED or INVALID_TXN_STATE",
    lambda error, results: FENCED.matches(error, results) or error == ErrorCode.INVALID_TXN_STATE,
)
DIVIDED = Matching("two partitions each", _is_divided)
NOTE = [7, '"zweite" Notiz - ü']

SCENARIOS = (
    Scenario(name="create-topic", partitions=None, results={"partitions": 3, "again": ErrorCode.TOPIC_ALREADY_EXISTS}),
    Scenario(
        name="produce-100",
        partitions=2,
        results={"acknowledged": 100, "last": [49, 49], "read": [records(range(0, 100, 2)), records(range(1, 100, 2))]},
    ),
    Scenario(name="consume-and-commit", partitions=1, results={"read": records(range(10)), "committed": [5, 10]}),
    Scenario(
        name="restart-and-continue", partitions=1, results={"first": records(range(4)), "second": records(range(4, 10))}
    ),
    Scenario(name="two-members", partitions=4, results={"both": DIVIDED, "alone": ALL}),
    Scenario(
        name="static-member",
        partitions=4,
        results={
            "both": DIVIDED,
            "again": Matching("the first member's partitions", lambda again, results: again == results["both"][0]),
            "rebalances": 0,
        },
    ),
    Scenario(
        name="cooperative",
        partitions=4,
        results={
            "both": DIVIDED,
            "revoked": Matching(
                "the second member's partitions", lambda revoked, results: revoked == results["both"][1]
            ),
            "alone": ALL,
        },
    ),
    Scenario(
        name="rewind", partitions=1, results={"after_seek": "3=value 3", "committed": 2, "after_commit": "2=value 2"}
    ),
    Scenario(
        name="commit-with-metadata",
        partitions=2,
        results={
            "before": {},
            "committed": {"0": [42, "first: note"], "1": NOTE},
            "replaced": {"0": [2, "new"], "1": NOTE},
        },
    ),
    Scenario(
        name="metadata-too-large",
        partitions=1,
        results={"error": ErrorCode.OFFSET_METADATA_TOO_LARGE, "committed": 1, "length": 4096},
    ),
    Scenario(
        name="unknown-topic",
        partitions=None,
        results={"error": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION},
        broker_results={"exists": False},
    ),
    Scenario(name="lag", partitions=1, results={"beginning": 0, "end": 10, "committed": 4, "lag": 6}),
    Scenario(name="list-groups", partitions=1, results={"listed": True}),
    Scenario(
        name="describe-group",
        partitions=2,
        results={"state": "Stable", "members": 1, "assigned": [0, 1], "then": "Empty"},
    ),
    Scenario(
        name="delete-group",
        partitions=1,
        results={
            "busy": ErrorCode.NON_EMPTY_GROUP,
            "deleted": 0,
            "listed": False,
            "again": ErrorCode.GROUP_ID_NOT_FOUND,
        },
    ),
    Scenario(name="list-group-offsets", partitions=2, results={"offsets": {"0": 3, "1": 7}}),
    Scenario(
        name="delete-offsets",
        partitions=2,
        results={"busy": ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC, "deleted": 0, "left": {"1": 7}},
    ),
    Scenario(
        name="idempotent-produce",
        partitions=1,
        results={"acknowledged": 100, "last": 99, "read": records(range(100))},
        broker_results={"producers": 1},
    ),
    Scenario(name="exactly-once", partitions=2, results={"committed": LAST, "copied": records(range(6))}),
    Scenario(name="fenced-producer", partitions=1, results={"error": FENCED, "read": records(range(1, 2))}),
    Scenario(name="transaction-timeout", partitions=1, results={"read": records(range(1, 2)), "error": TIMED_OUT}),
)
