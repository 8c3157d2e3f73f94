"""Ports for servers of tests and measurements."""

from __future__ import annotations

import socket

import pytest

from tests.oracle import ports
from tests.oracle.ports import HOST, PORTS, free_port

EPHEMERAL_FROM = 32_768
"""Linux's default."""


def test_a_free_port_is_no_ephemeral_one_and_can_be_bound() -> None:
    port = free_port()
    assert port in PORTS
    assert 1024 <= PORTS.start < PORTS.stop <= EPHEMERAL_FROM
    with socket.socket() as listener:
        listener.bind((HOST, port))


def test_a_port_that_somebody_has_is_not_given(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as listener:
        listener.bind((HOST, free_port()))
        taken, free = listener.getsockname()[1], free_port()
        monkeypatch.setattr(ports, "PORTS", (taken, free))
        assert {free_port() for _ in range(50)} == {free}
