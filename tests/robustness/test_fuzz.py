"""Random and damaged frames harm no broker; and what harms it is found.

`python -m tests.robustness.fuzz` runs the same for as long as one likes.
"""

from __future__ import annotations

import pytest

from kproto import registry
from kproto.headers import read_request_header
from kproto_server.releases.kafka_version import KafkaVersion
from tests.robustness.fuzz import MEMORY_GROWTH_MAX_KB, fuzz, target
from tests.robustness.random_frames import RandomFrames

SEED = 1

DEFECTS = {
    "traceback": "if len(kept) == 5: raise ZeroDivisionError",
    "process ended": "if len(kept) == 5: os._exit(1)",
    "wait": "while len(kept) >= 5 and time.process_time() < limit: pass",
    "refused": "if len(kept) == 5: raise DecodeError('records', 0, 'wrong')",
    "memory": f"if len(kept) == 5: kept.append(b'x' * {1024 * (MEMORY_GROWTH_MAX_KB + 100_000)})",
}


def planted(defect: str) -> str:
    """Return the source of a ListGroups with a defect."""
    return f"""
import os, time
from kproto.errors import DecodeError
from kproto_server.handlers import k16_list_groups
right = k16_list_groups.handle
kept = []
def wrong(request, context):
    limit = time.process_time() + 0.3
    kept.append(0)
    {defect}
    return right(request, context)
k16_list_groups.handle = wrong
"""


@pytest.mark.slow  # starts processes
@pytest.mark.parametrize(("kafka_version", "on_disk"), [("0.10.2", False), ("2.8", True), ("4.4", False)])
def test_random_frames_harm_no_broker(kafka_version: str, on_disk: bool) -> None:
    with target(kafka_version, on_disk=on_disk) as under_test:
        fuzz(under_test, SEED, 2)
    assert under_test.findings == []
    assert under_test.counts["frames"] > 0


@pytest.mark.slow  # starts processes
@pytest.mark.parametrize("kind", DEFECTS)
def test_a_defect_is_found(kind: str) -> None:
    with target("2.8", on_disk=False, planted=planted(DEFECTS[kind])) as under_test:
        source = RandomFrames(SEED)
        for _ in range(60):
            under_test.send_valid(source.valid(16, 0))
            if under_test.findings:
                break
    assert kind in {finding.kind for finding in under_test.findings}
    assert f"--kafka-version 2.8 --frames {under_test.findings[0].frames.hex()}" in str(under_test.findings[0])


@pytest.mark.slow  # starts processes
def test_a_connection_that_is_not_closed_and_a_wrong_response_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.robustness.fuzz.CLOSE_LIMIT_S", 0.5)
    open_for_ever = "from kproto_server.network.transport import Transport\nTransport.close = lambda self: None\n"
    with target("2.8", on_disk=False, planted=open_for_ever) as under_test:
        frame = RandomFrames(SEED).valid(16, 0)
        under_test.send(frame)
        under_test.check_response(b"\0\0\0\7\0", frame)
    assert {finding.kind for finding in under_test.findings} >= {"not closed", "wrong response"}


@pytest.mark.parametrize("kafka_version", ["0.8.0", "2.8", "4.4"])
def test_valid_frames_can_be_decoded(kafka_version: str) -> None:
    source = RandomFrames(SEED)
    for api_key, (low, high) in KafkaVersion.named(kafka_version).api_versions.items():
        for version in {low, high}:
            frame = source.valid(api_key, version)
            header = read_request_header(frame[4:])
            assert (header.api_key, header.api_version) == (api_key, version)
            _, end = registry.codec(api_key, version).decode_request(frame[4:], header.body_position)
            assert end == len(frame) - 4


def test_a_seed_gives_the_same_frames_again() -> None:
    def some(seed: int) -> list[bytes]:
        source = RandomFrames(seed)
        valid = [source.valid(api_key, 3) for api_key in (0, 1, 8, 11) for _ in range(20)]
        return [source.damaged(frame) for frame in valid]

    assert some(1) == some(1)
    assert some(1) != some(2)
