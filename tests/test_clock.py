"""The broker's clock has four modes, and its timers fire in order of broker time; the tests pass real time in (D7)."""

from __future__ import annotations

from typing import Any

import pytest

from kproto.errors import UsageError
from kproto_server import Broker
from kproto_server.clock import AUTO_IDLE_MS, LATEST_MS, SLEEP_MAX_MS, Clock, ClockMode

DAY_MS = 86_400_000


def clock(mode: str) -> Clock:
    return Clock(wall_ms=1_000_000, real_ms=0, mode=ClockMode.parse(mode))


def test_a_real_clock_advances_with_real_time() -> None:
    real = clock("real")
    assert real.tick(2_500) == 1_002_500


def test_a_scaled_clock_advances_faster_than_real_time() -> None:
    scaled = clock("scaled:60")
    assert scaled.tick(1_000) == 1_060_000


def test_a_manual_clock_advances_only_by_advance() -> None:
    manual = clock("manual")
    assert manual.tick(5_000) == 1_000_000
    manual.advance(DAY_MS)
    assert manual.now_ms() == 1_000_000 + DAY_MS


def test_advance_fires_each_timer_at_its_own_time_in_order() -> None:
    manual = clock("manual")
    fired: list[tuple[str, int]] = []
    manual.call_at(1_000_300, lambda: fired.append(("late", manual.now_ms())))
    manual.call_at(1_000_100, lambda: fired.append(("early", manual.now_ms())))
    manual.call_at(1_000_900, lambda: fired.append(("never", manual.now_ms())))
    manual.advance(500)
    assert fired == [("early", 1_000_100), ("late", 1_000_300)]


def test_a_periodic_timer_fires_once_for_each_period() -> None:
    manual = clock("manual")
    runs: list[int] = []

    def expire_offsets() -> None:
        runs.append(manual.now_ms())
        manual.call_at(manual.now_ms() + 600_000, expire_offsets)

    manual.call_at(1_600_000, expire_offsets)
    manual.advance(8 * DAY_MS)
    assert len(runs) == 8 * 144


def test_a_clients_long_poll_ends_in_real_time_under_a_manual_clock() -> None:
    manual = clock("manual")
    fired: list[str] = []
    manual.call_at(1_000_500, lambda: fired.append("poll"), for_client=True)
    assert manual.delay_ms() == 500
    manual.tick(499)
    manual.run_due()
    assert fired == []
    manual.tick(500)
    manual.run_due()
    assert fired == ["poll"]
    manual.advance(DAY_MS)
    assert fired == ["poll"], "a timer fires once"


@pytest.mark.parametrize("mode", ["real", "manual"])
def test_run_due_can_leave_a_new_timer_to_the_next_iteration(mode: str) -> None:
    made = clock(mode)
    fired: list[str] = []
    made.call_at(1_000_000, lambda: fired.append("first"), for_client=True)
    before = made.timers_set
    made.call_at(1_000_000, lambda: fired.append("second"), for_client=True)
    made.run_due(before)
    assert fired == ["first"]
    assert made.delay_ms() == 0
    made.run_due(made.timers_set)
    assert fired == ["first", "second"]


def test_a_brokers_own_timer_fires_only_when_a_manual_clock_advances() -> None:
    manual = clock("manual")
    manual.call_at(1_000_500, lambda: None)
    assert manual.delay_ms() is None


def test_a_cancelled_timer_does_nothing() -> None:
    real = clock("real")
    fired: list[str] = []
    timer = real.call_at(1_000_010, lambda: fired.append("x"))
    timer.cancel()
    real.tick(20)
    real.run_due()
    assert fired == []
    assert real.delay_ms() is None


def test_the_delay_until_the_next_timer_is_in_real_time() -> None:
    scaled = clock("scaled:100")
    scaled.call_at(1_001_000, lambda: None)
    assert scaled.delay_ms() == 10


def test_an_auto_clock_jumps_to_its_next_timer_only_when_idle() -> None:
    auto = clock("auto")
    fired: list[int] = []
    auto.call_at(1_000_000 + DAY_MS, lambda: fired.append(auto.now_ms()))
    auto.tick(AUTO_IDLE_MS - 1)
    auto.active()
    auto.tick(AUTO_IDLE_MS + 1)
    auto.run_due()
    assert fired == [], "a request came in between"
    auto.tick(AUTO_IDLE_MS * 2)
    auto.run_due()
    assert fired == [1_000_000 + DAY_MS]


def test_an_auto_clock_does_not_jump_to_background_timers() -> None:
    """Otherwise all committed offsets would expire while no client sends requests."""
    auto = clock("auto")
    fired: list[str] = []
    auto.call_at(1_000_600, lambda: fired.append("expiration"), in_background=True)
    auto.tick(AUTO_IDLE_MS * 2)
    auto.run_due()
    assert fired == []
    assert auto.delay_ms() == 600 - AUTO_IDLE_MS * 2
    auto.call_at(1_000_900, lambda: fired.append("session"))
    auto.run_due()
    assert fired == ["expiration", "session"], "a jump to another timer passes the background timer"


def test_background_and_other_timers_fire_in_one_order() -> None:
    manual = clock("manual")
    fired: list[str] = []
    for due_ms, in_background in ((30, False), (10, True), (20, False), (40, True)):
        manual.call_at(1_000_000 + due_ms, lambda due=due_ms: fired.append(str(due)), in_background=in_background)  # type: ignore[misc]
    manual.advance(35)
    assert fired == ["10", "20", "30"]


def test_time_does_not_go_back() -> None:
    with pytest.raises(ValueError, match="can't go back"):
        clock("manual").advance(-1)


REFUSED = [
    "", "scaled", "scaled:0", "scaled:x", "slow", "scaled:-1", "scaled:nan", "scaled:inf", "scaled:-inf", "scaled:1e10",
    "scaled:", "scaled:1:2", None, 5, b"real",
]  # fmt: skip


@pytest.mark.parametrize("text", REFUSED)
def test_an_unknown_clock_is_refused_in_one_line(text: Any) -> None:
    with pytest.raises(ValueError, match="use real, manual, auto, or scaled:N"):
        ClockMode.parse(text)


@pytest.mark.parametrize(
    "rate", [-1, -0.5, float("nan"), float("inf"), float("-inf"), True, False, "1", None, 1e10, 10**400]
)
def test_a_rate_is_a_number(rate: Any) -> None:
    with pytest.raises(UsageError, match=r"^the rate of a clock is a number from 0 to 1e\+09, not "):
        ClockMode(rate=rate)


@pytest.mark.parametrize("auto", [1, "yes", None])
def test_automatic_is_a_truth_value(auto: Any) -> None:
    with pytest.raises(UsageError, match=f"^a clock is automatic or not: True or False, not {auto!r}$"):
        ClockMode(auto=auto)


NO_DURATIONS: list[tuple[Any, str]] = [
    (float("nan"), "advances by a finite number of milliseconds, not by nan$"),
    (float("inf"), "advances by a finite number of milliseconds, not by inf$"),
    (float("-inf"), "advances by a finite number"),
    (10**400, "advances by a finite number"),
    (True, "not by True$"),
    ("5", "not by '5'$"),
    (None, "not by None$"),
    (-1, "can't go back by 1 ms$"),
    (-0.5, "can't go back by 0.5 ms$"),
    (2**63, "can't advance by 9223372036854775808 ms: its time ends with the year 9999$"),
    (1e300, "its time ends with the year 9999$"),
    (LATEST_MS, "its time ends with the year 9999$"),
]


@pytest.mark.parametrize(("duration_ms", "text"), NO_DURATIONS)
def test_other_durations_are_refused_and_change_nothing(duration_ms: Any, text: str) -> None:
    manual = clock("manual")
    fired: list[int] = []
    manual.call_at(1_000_000, lambda: fired.append(1))
    with pytest.raises(UsageError, match=text):
        manual.advance(duration_ms)
    assert (manual.now_ms(), fired) == (1_000_000, [])


@pytest.mark.parametrize("part", ["days", "hours", "minutes", "seconds", "milliseconds"])
@pytest.mark.parametrize("value", [float("nan"), float("inf"), "8", None, True, 10**400])
def test_a_broker_names_the_part_of_a_duration_that_is_no_number(part: str, value: Any) -> None:
    broker = Broker()  # not started: the check comes first
    with pytest.raises(UsageError, match=f"^{part} is a finite number, not "):
        broker.clock.advance(**{part: value})


def test_a_broker_advances_to_its_last_day_and_no_further() -> None:
    with Broker.running(clock="manual") as broker:
        broker.clock.advance(milliseconds=LATEST_MS - broker.clock.now_ms() - 1000)
        with pytest.raises(UsageError, match="year 9999"):
            broker.clock.advance(days=1)
        broker.clock.advance(days=1, hours=-24, milliseconds=1)
        assert LATEST_MS - broker.clock.now_ms() < 1000


def test_real_time_does_not_pass_the_last_day() -> None:
    scaled = clock("scaled:1e9")
    scaled.call_at(LATEST_MS + 1, lambda: None)
    assert scaled.tick(1e9) == scaled.tick(1e9 + 1) == LATEST_MS
    assert scaled.delay_ms() is None, "a timer that never fires is no reason to look at the timers"


@pytest.mark.parametrize("mode", ["real", "scaled:0.0001", "scaled:1e-300", "auto"])
def test_the_delay_until_a_far_timer_is_one_that_a_poller_takes(mode: str) -> None:
    made = clock(mode)
    made.call_at(LATEST_MS, lambda: None)
    made.call_at(2**63 - 1, lambda: None, in_background=True)
    delay_ms = made.delay_ms()
    assert delay_ms is not None
    assert 0 < delay_ms <= SLEEP_MAX_MS


def test_a_periodic_timer_fires_only_when_it_has_an_effect() -> None:
    """At 1,005,000 and at 2,000,000; other timers fire between."""
    manual = clock("manual")
    runs: list[int] = []

    def set_timer(due_ms: int) -> None:
        manual.call_at(due_ms, run, in_background=True, next_run_ms=next_run_ms)

    def run() -> None:
        runs.append(manual.now_ms())
        set_timer(manual.now_ms() + 100)

    def next_run_ms(due_ms: int, quiet_until_ms: int) -> int:
        has_effect_ms = 1_005_000 if due_ms <= 1_005_000 else 2_000_000
        return max(due_ms, min(-(-has_effect_ms // 100), -(-quiet_until_ms // 100)) * 100)

    set_timer(1_000_100)
    manual.call_at(1_001_020, lambda: None)
    manual.call_at(1_007_000, lambda: None, in_background=True)
    manual.advance(9_950)
    assert runs == [1_005_000]
    manual.advance(100)
    assert runs == [1_005_000]
    manual.advance(990_000)
    assert runs == [1_005_000, 2_000_000]
