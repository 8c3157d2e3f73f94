"""The poller reports the ready sockets, with epoll and with the replacement on other platforms.

Method: the test loads the module a second time without epoll.
"""

from __future__ import annotations

import importlib.util
import select
import socket
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest

from kproto_server.network import poller as module
from kproto_server.network.poller import READ, WRITE


def without_epoll(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.delattr(select, "epoll", raising=False)
    spec = importlib.util.spec_from_file_location("poller_without_epoll", module.__file__)
    assert spec is not None
    assert spec.loader is not None
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return loaded


@pytest.fixture(params=["as here", "without epoll"])
def poller(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    made = (module if request.param == "as here" else without_epoll(monkeypatch)).Poller()
    yield made
    made.close()


@pytest.fixture
def pair() -> Iterator[tuple[socket.socket, socket.socket]]:
    ends = socket.socketpair()
    yield ends
    for end in ends:
        end.close()


Pair = tuple[socket.socket, socket.socket]


def test_no_socket_is_ready_without_bytes(poller: Any, pair: Pair) -> None:
    poller.register(pair[0].fileno(), READ)
    assert poller.poll(0.0) == []


def test_a_socket_with_bytes_is_readable_until_they_are_read(poller: Any, pair: Pair) -> None:
    fd = pair[0].fileno()
    poller.register(fd, READ)
    pair[1].send(b"x")
    assert poller.poll(None) == [(fd, READ)]
    assert poller.poll(0.0) == [(fd, READ)], "level-triggered"
    pair[0].recv(1)
    assert poller.poll(0.0) == []


def test_the_watched_events_can_change_and_can_be_none(poller: Any, pair: Pair) -> None:
    fd = pair[0].fileno()
    poller.register(fd, READ)
    pair[1].send(b"x")
    poller.modify(fd, WRITE)
    assert poller.poll(0.0) == [(fd, WRITE)]
    poller.modify(fd, 0)
    assert poller.poll(0.0) == []
    poller.modify(fd, READ)
    assert poller.poll(0.0) == [(fd, READ)]


@pytest.mark.parametrize("mask", [READ, WRITE, 0])
def test_an_unregistered_socket_is_not_reported(poller: Any, pair: Pair, mask: int) -> None:
    fd = pair[0].fileno()
    poller.register(fd, READ)
    poller.modify(fd, mask)
    poller.unregister(fd)
    pair[1].send(b"x")
    assert poller.poll(0.0) == []


def test_the_other_sides_end_is_readable(poller: Any, pair: Pair) -> None:
    fd = pair[0].fileno()
    poller.register(fd, READ)
    pair[1].close()
    ((ready, mask),) = poller.poll(None)
    assert ready == fd
    assert mask & READ
