"""Each cell of tables A3 and A4, and what they leave to their rules (CK-10 to CK-36)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kproto.client.core import group_start
from kproto.client.core.reset import Log, Missing, out_of_range, truncated, without_offset
from kproto.client.core.settings import Settings, parse
from tests.kproto_client.tables import (
    ABOVE,
    BELOW,
    END,
    ERROR,
    NO_INITIAL,
    OUT_OF_RANGE,
    RESETS,
    SAFE_LATEST,
    START,
    WITHOUT_OFFSET,
)

LOG = Log(start=START, end=END)
EMPTY = Log(start=START, end=START)
T0 = 1_700_000_000_000


def settings(initial: str, reset: str, invalid: str = "none") -> Settings:
    names = ("auto.offset.reset.on.no.initial.offset", "auto.offset.reset", "auto.offset.reset.on.invalid.offset")
    return parse(dict(zip(names, (initial, reset, invalid), strict=True)))


@pytest.mark.parametrize("expanded", [False, True])
@pytest.mark.parametrize(("initial", "reset"), WITHOUT_OFFSET)
def test_without_an_offset(initial: str, reset: str, expanded: bool) -> None:
    """CK-20, CK-21: table A3."""
    facts = Missing(log=LOG, group_starts=not expanded, first_timestamp_ms=T0, group_start_ms=T0)
    assert without_offset(settings(initial, reset), facts) == WITHOUT_OFFSET[initial, reset][expanded]


@pytest.mark.parametrize("expanded", [False, True])
@pytest.mark.parametrize(("initial", "reset"), WITHOUT_OFFSET)
def test_without_an_offset_in_an_empty_partition(initial: str, reset: str, expanded: bool) -> None:
    """CK-20, CK-10: any row without an error gives S."""
    facts = Missing(log=EMPTY, group_starts=not expanded, group_start_ms=T0)
    expected = ERROR if WITHOUT_OFFSET[initial, reset][expanded] is ERROR else START
    assert without_offset(settings(initial, reset), facts) == expected


@pytest.mark.parametrize("group_starts", [False, True])
@pytest.mark.parametrize("reset", RESETS)
@pytest.mark.parametrize(("times", "expected"), SAFE_LATEST.items())
def test_safe_latest_goes_by_the_first_record(times: str, expected: int, reset: str, group_starts: bool) -> None:
    """CK-22: both columns have the same test, and auto.offset.reset has no say; T1 = T0 counts as new."""
    first = {"T1 < T0": T0 - 1, "T1 = T0": T0, "T1 > T0": T0 + 1}[times]
    facts = Missing(log=LOG, group_starts=group_starts, first_timestamp_ms=first, group_start_ms=T0)
    assert without_offset(settings("safe_latest", reset), facts) == expected


@pytest.mark.parametrize("reset", RESETS)
def test_safe_latest_without_timestamps(reset: str) -> None:
    """CK-22: at group start to the latest, an expanded partition from its first; an empty one has but one place."""
    strategy = settings("safe_latest", reset)
    for log, starts, expected in [(LOG, True, END), (LOG, False, START), (EMPTY, True, START), (EMPTY, False, START)]:
        assert without_offset(strategy, Missing(log=log, group_starts=starts, group_start_ms=T0)) == expected


@pytest.mark.parametrize("starts", [False, True])
@pytest.mark.parametrize("reset", RESETS)
@pytest.mark.parametrize("initial", NO_INITIAL)
def test_nearest_has_no_meaning_without_an_offset(initial: str, reset: str, starts: bool) -> None:
    """CK-23, CK-6."""
    facts = Missing(log=LOG, group_starts=starts, first_timestamp_ms=T0 + 1, group_start_ms=T0)
    with_nearest = without_offset(settings(initial, reset, "nearest"), facts)
    assert with_nearest == without_offset(settings(initial, reset), facts)


@pytest.mark.parametrize("initial", NO_INITIAL)
@pytest.mark.parametrize(("position", "column"), [(BELOW, 0), (ABOVE, 1)])
@pytest.mark.parametrize(("invalid", "reset"), OUT_OF_RANGE)
def test_out_of_range(invalid: str, reset: str, position: int, column: int, initial: str) -> None:
    """CK-30, CK-6, CK-13: table A4, whatever the setting for missing offsets says."""
    expected = OUT_OF_RANGE[invalid, reset][column]
    assert out_of_range(settings(initial, reset, invalid), LOG, position) == expected


@pytest.mark.parametrize("position", [BELOW, ABOVE])
@pytest.mark.parametrize(("invalid", "reset"), OUT_OF_RANGE)
def test_out_of_range_of_an_empty_partition(invalid: str, reset: str, position: int) -> None:
    """CK-32."""
    expected = ERROR if (invalid, reset) == ("none", "none") else START
    assert out_of_range(settings("none", reset, invalid), EMPTY, position) == expected


@pytest.mark.parametrize("position", [START, START + 1, END - 1, END])
@pytest.mark.parametrize(("invalid", "reset"), OUT_OF_RANGE)
def test_what_is_in_range_by_now_is_tried_again(invalid: str, reset: str, position: int) -> None:
    """CK-12."""
    assert out_of_range(settings("none", reset, invalid), LOG, position) == position


@given(start=st.integers(0, 50), size=st.integers(0, 50), position=st.integers(0, 150))
def test_nearest_by_side_is_nearest_by_distance(start: int, size: int, position: int) -> None:
    """CK-31."""
    log = Log(start=start, end=start + size)
    found = out_of_range(settings("none", "none", "nearest"), log, position)
    assert found == min(range(log.start, log.end + 1), key=lambda offset: abs(offset - position))


def test_retention_that_passes_the_answer_leads_on_to_its_new_start() -> None:
    """CK-34: each round begins with the bounds of its time, so it ends with retention."""
    strategy, position, visited = settings("none", "none", "nearest"), BELOW, []
    for start in (100, 180, 300, 300):
        answer = out_of_range(strategy, Log(start=start, end=END), position)
        assert answer is not None
        position = answer
        visited.append(position)
    assert visited == [100, 180, 300, 300]


@pytest.mark.parametrize(("invalid", "reset"), OUT_OF_RANGE)
def test_a_truncated_log_is_read_from_where_it_parts(invalid: str, reset: str) -> None:
    """CK-35: only without such a place it is table A4's turn."""
    strategy = settings("none", reset, invalid)
    assert truncated(strategy, LOG, ABOVE, 300) == 300
    for nowhere in (None, BELOW):
        assert truncated(strategy, LOG, ABOVE, nowhere) == OUT_OF_RANGE[invalid, reset][1]


@pytest.mark.parametrize(
    ("committed", "starts"), [([], True), ([None, None], True), ([None, 0], False), ([7, 9], False)]
)
def test_a_group_starts_with_a_topic_of_which_it_has_no_offset(committed: list[int | None], starts: bool) -> None:
    """CK-14, CK-11: one offset of any partition of the topic, and those without were added later."""
    assert group_start.starts(committed) is starts


def test_group_start_time_is_the_earliest_that_anyone_knows() -> None:
    """CK-16."""
    assert group_start.earliest(T0, []) == T0
    assert group_start.earliest(T0, [None, "", "x", f"t0={T0 + 5}", "t0=soon"]) == T0
    assert group_start.earliest(T0, [f"host=a;t0={T0 - 5};n=1", group_start.metadata(T0 - 3)]) == T0 - 5
