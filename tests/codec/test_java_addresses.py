"""IP addresses as brokers in Java have them."""

from __future__ import annotations

import pytest

from kproto.jvm.addresses import host_address


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("::1", "0:0:0:0:0:0:0:1"),
        ("::", "0:0:0:0:0:0:0:0"),
        ("0:0:0:0:0:0:0:1", "0:0:0:0:0:0:0:1"),
        ("2001:DB8::00ff", "2001:db8:0:0:0:0:0:ff"),
        ("fe80::1%eth0", "fe80:0:0:0:0:0:0:1"),
        ("::ffff:127.0.0.1", "127.0.0.1"),
        ("::FFFF:7f00:1", "127.0.0.1"),
        ("::127.0.0.1", "0:0:0:0:0:0:7f00:1"),
        ("10.0.0.1", "10.0.0.1"),
        ("localhost", "localhost"),
        ("::x", "::x"),
    ],
)
def test_a_broker_has_the_address_so(host: str, expected: str) -> None:
    assert host_address(host) == expected
