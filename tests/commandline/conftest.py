"""Processes under test get the default signal handlers, even if the parent process of the tests ignores them."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def default_signal_handlers() -> Iterator[None]:
    """Have child processes receive SIGHUP and SIGINT, which `nohup` and jobs in the background ignore.

    kproto leaves an ignored signal ignored, as other programs do.
    """
    ignored = [number for number in (signal.SIGHUP, signal.SIGINT) if signal.getsignal(number) is signal.SIG_IGN]
    for number in ignored:
        signal.signal(number, signal.SIG_DFL)
    yield
    for number in ignored:
        signal.signal(number, signal.SIG_IGN)
