"""No bytes of a client or a broker make the proxy fail: it passes them on.

Method. Hypothesis makes streams of random bytes, of requests that are damaged, and divides them into reads.
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kproto import registry
from kproto.messages import APIS
from kproto_server.proxy.cutting import Cutter
from tests.proxy.exchanged import new_exchanges, raw

BODY = st.binary(max_size=60)
FRAMES = st.builds(
    lambda body: len(body).to_bytes(4, "big") + body,
    st.binary(max_size=60) | st.builds(lambda key, rest: bytes((0, key, 0)) + rest, st.sampled_from([*APIS]), BODY),
)
STREAMS = st.lists(FRAMES | st.binary(max_size=8), max_size=6).map(b"".join)
READS = st.lists(st.integers(1, 40), min_size=1, max_size=8)


def fed(cutter: Cutter[Any], data: bytes, sizes: list[int]) -> bytes:
    """Return what goes out for reads of these sizes, over and over."""
    out, position, number = b"", 0, 0
    while position < len(data):
        size = sizes[number % len(sizes)]
        out += b"".join(cutter.feed(data[position : position + size]))
        position, number = position + size, number + 1
    return out


@given(STREAMS, READS)
def test_requests_pass_byte_for_byte(stream: bytes, sizes: list[int]) -> None:
    exchanges = new_exchanges()
    out = fed(exchanges.requests, stream, sizes)
    assert stream.startswith(out)
    if len(out) < len(stream):  # a frame is not whole: its rest passes as soon as it comes
        left = stream[len(out) :]
        missing = max(0, 4 - len(left)) or int.from_bytes(left[:4], "big") + 4 - len(left)
        assert missing > 0
    exchanges.broker_closed()


@given(st.sampled_from([*APIS]), st.data(), READS)
def test_malformed_responses_pass_byte_for_byte(api_key: int, data: st.DataObject, sizes: list[int]) -> None:
    version = data.draw(st.sampled_from(registry.versions(api_key)))
    exchanges = new_exchanges()
    exchanges.requests.feed(raw(api_key, version, 1, b"\xff" * 9))
    body = b"\0\0\0\1" + data.draw(BODY) + b"\xff"
    frame = len(body).to_bytes(4, "big") + body
    out = fed(exchanges.responses, frame, sizes)
    # Random bytes may be a response with addresses, which are longer or shorter then.
    assert out == frame or b"proxy" in out


@pytest.mark.parametrize("version", [9, 13])
def test_a_transactional_id_of_an_endless_size_costs_nothing(version: int) -> None:
    exchanges = new_exchanges()
    request = raw(0, version, 1, b"\0" + b"\xff" * 120_000)
    assert exchanges.requests.feed(request) == [request]
    assert len(exchanges.pending) == 1
