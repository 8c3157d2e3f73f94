"""A wait looks again and again, and leaves most of the time to the broker and its clients."""

from __future__ import annotations

import threading
import time

import pytest

from kproto_server.broker import waiting


def test_the_pause_after_a_look_is_longer_than_the_look(monkeypatch: pytest.MonkeyPatch) -> None:
    """Method. Looks take 0 and 50 ms of a clock that only they and pauses move."""
    now_s, pauses = 0.0, list[float]()

    class Pause:
        def wait(self, timeout_s: float) -> None:
            nonlocal now_s
            pauses.append(timeout_s)
            now_s += timeout_s

    monkeypatch.setattr(time, "monotonic", lambda: now_s)
    monkeypatch.setattr(threading, "Event", Pause)
    for look_s in (0.0, 0.05):
        pauses.clear()

        def look(look_s: float = look_s) -> waiting.NotYet:
            nonlocal now_s
            now_s += look_s
            return waiting.NotYet("nothing")

        with pytest.raises(TimeoutError, match="nothing"):
            waiting.wait(waiting.Wait(look, 2.0))
        assert pauses == pytest.approx([max(waiting.CHECK_S, waiting.SHARE * look_s)] * len(pauses))
        assert pauses
