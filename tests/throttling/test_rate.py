"""The rate of a client and its throttle time, against times that a broker of 4.4.0 has responded with.

The first throttle times of a group follow from the bytes alone: `N / quota - 10` seconds. Later ones depend on the time
between the requests, which the client of the recording has measured.
"""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kproto_server.quotas.rate import Rate, Window
from kproto_server.quotas.token_bucket import TokenBucket

WINDOW = Window(11, 1000)
QUOTA = 20_000.0


def throttled(rate: Rate, value: float, now_ms: int) -> int:
    rate.record(value, WINDOW, now_ms)
    return rate.throttle_ms(QUOTA, WINDOW, now_ms)


def test_throttle_times_are_those_of_a_real_broker() -> None:
    """4.4.0: a Produce of 230,115 bytes is throttled for 1506 ms, one of 1112 bytes 1.53 s later for 1031 ms, and one
    of 60,115 bytes 1.035 s later for 4001 ms."""
    rate = Rate(0)
    assert throttled(rate, 230_115, 0) == 1506
    assert throttled(rate, 1112, 1530) == 1031
    assert throttled(rate, 60_115, 2565) == 4002


def test_a_quota_is_for_ten_seconds_at_once() -> None:
    assert throttled(Rate(0), 200_000, 0) == 0
    assert throttled(Rate(0), 200_001, 0) == 0  # less than half a millisecond
    assert throttled(Rate(0), 200_020, 0) == 1


def test_what_was_recorded_expires() -> None:
    rate = Rate(0)
    assert throttled(rate, 400_000, 0) == 10_000
    assert rate.throttle_ms(QUOTA, WINDOW, 10_999) == 9001
    assert rate.throttle_ms(QUOTA, WINDOW, 11_000) == 0
    assert throttled(rate, 200_000, 11_000) == 0


def test_a_value_that_is_taken_back_leaves_nothing() -> None:
    rate = Rate(0)
    assert throttled(rate, 300_000, 500) == 4500
    rate.record(-300_000, WINDOW, 500)
    assert throttled(rate, 200_000, 500) == 0


@given(st.lists(st.tuples(st.integers(0, 30_000), st.integers(0, 500_000)), max_size=60))
def test_a_client_that_waits_for_its_throttle_time_may_go_on(steps: list[tuple[int, int]]) -> None:
    """Behind the throttle time and one window more, the rate is within the quota; there are never more samples than
    windows and one."""
    rate, now_ms = Rate(0), 0
    for pause_ms, value in steps:
        now_ms += pause_ms
        throttle_ms = throttled(rate, value, now_ms)
        assert throttle_ms >= 0
        now_ms += throttle_ms
        assert rate.throttle_ms(QUOTA, WINDOW, now_ms + WINDOW.samples * WINDOW.size_ms) == 0
        assert len(rate._samples) <= WINDOW.samples + 1


def test_a_quota_next_to_nothing_is_no_error() -> None:
    for quota in (0.0, 5e-324, 1e-300):
        rate = Rate(0)
        rate.record(1.0, WINDOW, 0)
        assert rate.throttle_ms(quota, WINDOW, 0) == 2**31 - 1
    for quota in (5e-324, 1e-300):
        bucket = TokenBucket(quota, WINDOW, 0)
        bucket.take(1, quota, WINDOW, 0)
        assert bucket.throttle_ms(quota, WINDOW, 0) == 2**31 - 1
