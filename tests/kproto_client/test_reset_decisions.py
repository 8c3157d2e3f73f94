"""Each cell of tables A3 and A4 of KIP-842, and the rules around them (CK-10 to CK-36)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kproto.client.decisions.group_start import group_starts, known_start_ms, start_metadata
from kproto.client.decisions.resets import (
    LogBounds,
    UncommittedPartition,
    position_after_error,
    position_out_of_range,
    position_without_offset,
    reason_without_offset,
)
from kproto.client.decisions.settings import Settings, parse
from tests.kproto_client.decision_tables import (
    ABOVE,
    BELOW,
    END,
    ERROR,
    NO_INITIAL,
    OUT_OF_RANGE,
    RESETS,
    START,
    WITHOUT_OFFSET,
)

BOUNDS = LogBounds(start=START, end=END)
EMPTY_BOUNDS = LogBounds(start=START, end=START)
T0 = 1_700_000_000_000


def settings(initial: str, reset: str, invalid: str = "none") -> Settings:
    names = ("auto.offset.reset.on.no.initial.offset", "auto.offset.reset", "auto.offset.reset.on.invalid.offset")
    return parse(dict(zip(names, (initial, reset, invalid), strict=True)))


@pytest.mark.parametrize("expanded", [False, True])
@pytest.mark.parametrize(("initial", "reset"), WITHOUT_OFFSET)
def test_without_an_offset(initial: str, reset: str, expanded: bool) -> None:
    """CK-20, CK-21: table A3."""
    partition = UncommittedPartition(bounds=BOUNDS, group_starts=not expanded, is_older_than_group=True)
    assert position_without_offset(settings(initial, reset), partition) == WITHOUT_OFFSET[initial, reset][expanded]


@pytest.mark.parametrize("expanded", [False, True])
@pytest.mark.parametrize(("initial", "reset"), WITHOUT_OFFSET)
def test_without_an_offset_in_an_empty_partition(initial: str, reset: str, expanded: bool) -> None:
    """CK-20, CK-10: any row without an error gives S."""
    partition = UncommittedPartition(bounds=EMPTY_BOUNDS, group_starts=not expanded)
    expected = ERROR if WITHOUT_OFFSET[initial, reset][expanded] is ERROR else START
    assert position_without_offset(settings(initial, reset), partition) == expected


@pytest.mark.parametrize("reset", RESETS)
@pytest.mark.parametrize(("is_older", "expected"), [(True, END), (False, START)])
def test_safe_latest_at_group_start(is_older: bool, expected: int, reset: str) -> None:
    """CK-22: with any auto.offset.reset."""
    partition = UncommittedPartition(bounds=BOUNDS, group_starts=True, is_older_than_group=is_older)
    assert position_without_offset(settings("safe_latest", reset), partition) == expected


@pytest.mark.parametrize("reset", RESETS)
@pytest.mark.parametrize("is_older", [True, False, None])
def test_safe_latest_in_an_expanded_partition(is_older: bool | None, reset: str) -> None:
    """CK-20: the first record, whatever its timestamp."""
    partition = UncommittedPartition(bounds=BOUNDS, group_starts=False, is_older_than_group=is_older)
    assert position_without_offset(settings("safe_latest", reset), partition) == START


@pytest.mark.parametrize("reset", RESETS)
def test_safe_latest_without_timestamps(reset: str) -> None:
    """CK-22: the latest offset at group start, the earliest one in an expanded partition; S = E if it is empty."""
    strategy = settings("safe_latest", reset)
    for log, starts, expected in [
        (BOUNDS, True, END),
        (BOUNDS, False, START),
        (EMPTY_BOUNDS, True, START),
        (EMPTY_BOUNDS, False, START),
    ]:
        assert position_without_offset(strategy, UncommittedPartition(bounds=log, group_starts=starts)) == expected


@pytest.mark.parametrize("starts", [False, True])
@pytest.mark.parametrize("reset", RESETS)
@pytest.mark.parametrize("initial", NO_INITIAL)
def test_nearest_has_no_effect_without_an_offset(initial: str, reset: str, starts: bool) -> None:
    """CK-23, CK-6."""
    partition = UncommittedPartition(bounds=BOUNDS, group_starts=starts, is_older_than_group=False)
    with_nearest = position_without_offset(settings(initial, reset, "nearest"), partition)
    assert with_nearest == position_without_offset(settings(initial, reset), partition)


@pytest.mark.parametrize("initial", NO_INITIAL)
@pytest.mark.parametrize(("position", "column"), [(BELOW, 0), (ABOVE, 1)])
@pytest.mark.parametrize(("invalid", "reset"), OUT_OF_RANGE)
def test_out_of_range(invalid: str, reset: str, position: int, column: int, initial: str) -> None:
    """CK-30, CK-6, CK-13: table A4, for each value of on.no.initial.offset."""
    expected = OUT_OF_RANGE[invalid, reset][column]
    assert position_out_of_range(settings(initial, reset, invalid), BOUNDS, position) == expected


@pytest.mark.parametrize("position", [BELOW, ABOVE])
@pytest.mark.parametrize(("invalid", "reset"), OUT_OF_RANGE)
def test_out_of_range_of_an_empty_partition(invalid: str, reset: str, position: int) -> None:
    """CK-32."""
    expected = ERROR if (invalid, reset) == ("none", "none") else START
    assert position_out_of_range(settings("none", reset, invalid), EMPTY_BOUNDS, position) == expected


@pytest.mark.parametrize("position", [START, START + 1, END - 1, END])
@pytest.mark.parametrize(("invalid", "reset"), OUT_OF_RANGE)
def test_a_position_that_is_in_range_by_now_is_fetched_again(invalid: str, reset: str, position: int) -> None:
    """CK-12."""
    assert position_out_of_range(settings("none", reset, invalid), BOUNDS, position) == position


@given(start=st.integers(0, 50), size=st.integers(0, 50), position=st.integers(0, 150))
def test_nearest_end_is_nearest_by_distance(start: int, size: int, position: int) -> None:
    """CK-31."""
    log = LogBounds(start=start, end=start + size)
    found = position_out_of_range(settings("none", "none", "nearest"), log, position)
    assert found == min(range(log.start, log.end + 1), key=lambda offset: abs(offset - position))


def test_reset_repeats_while_retention_passes_the_position() -> None:
    """CK-34: each reset uses new bounds, so it ends when retention stops."""
    strategy, position, visited = settings("none", "none", "nearest"), BELOW, []
    for start in (100, 180, 300, 300):
        reset_position = position_out_of_range(strategy, LogBounds(start=start, end=END), position)
        assert reset_position is not None
        position = reset_position
        visited.append(position)
    assert visited == [100, 180, 300, 300]


@pytest.mark.parametrize(("invalid", "reset"), OUT_OF_RANGE)
def test_a_truncated_log_is_read_from_the_divergence_offset(invalid: str, reset: str) -> None:
    """CK-35: table A4 applies only without an offset in the log at which it diverged."""
    strategy = settings("none", reset, invalid)
    truncated = "log truncation detected at offset 900: broker end offset is {} (offset leader epoch 3)"
    for position, expected in ((ABOVE, 300), (400, 300), (200, 200), (-1, 300)):
        assert position_after_error(strategy, BOUNDS, position, truncated.format(300)) == expected
    for error_text in ("Broker: Offset out of range", truncated.format(BELOW)):
        assert position_after_error(strategy, BOUNDS, ABOVE, error_text) == OUT_OF_RANGE[invalid, reset][1]


@pytest.mark.parametrize(
    ("committed", "starts"), [([], True), ([None, None], True), ([None, 0], False), ([7, 9], False)]
)
def test_a_group_starts_with_a_topic_without_committed_offsets(committed: list[int | None], starts: bool) -> None:
    """CK-14, CK-11: with one committed offset, the partitions without offset count as added later."""
    assert group_starts(committed) is starts


def test_group_start_time_is_the_earliest_known_one() -> None:
    """CK-16."""
    assert known_start_ms([]) is None
    assert known_start_ms([None, "", "x", "t0=soon"]) is None
    assert known_start_ms([f"host=a;t0={T0 - 5};n=1", None, start_metadata(T0 - 3)]) == T0 - 5


@pytest.mark.parametrize("starts", [False, True])
@pytest.mark.parametrize("is_older", [False, True, None])
@pytest.mark.parametrize("reset", RESETS)
@pytest.mark.parametrize("initial", NO_INITIAL)
def test_the_reason_names_what_decided(initial: str, reset: str, is_older: bool | None, starts: bool) -> None:
    """CK-20: the log says why a partition starts where it does."""
    partition = UncommittedPartition(bounds=BOUNDS, group_starts=starts, is_older_than_group=is_older)
    reason = reason_without_offset(settings(initial, reset), partition)
    if not initial.endswith(("_on_start", "safe_latest")):
        assert reason == f"the setting is {reset if initial == 'none' else initial}"
    else:
        assert reason.startswith("the group starts" if starts else "the group has committed offsets of other")
