"""The broker's clock has four modes, and its timers fire in order of broker time; the tests pass real time in (D7)."""

from __future__ import annotations

import pytest

from kproto_server.clock import AUTO_IDLE_MS, Clock, ClockMode

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


@pytest.mark.parametrize("text", ["", "scaled", "scaled:0", "scaled:x", "slow", "scaled:-1"])
def test_an_unknown_clock_is_refused_in_one_line(text: str) -> None:
    with pytest.raises(ValueError, match="use real, manual, auto, or scaled:N"):
        ClockMode.parse(text)
