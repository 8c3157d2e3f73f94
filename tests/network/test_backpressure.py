"""A client that never reads its responses costs a limited amount of memory and does not delay other clients.

Method: `kproto serve` runs as a separate process, whose memory /proc reports; the client requests far more than fits.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from kproto.messages.k09_offset_fetch import OffsetFetchRequest
from tests.commandline.commands import Process, kproto_started, line_of
from tests.coordinator.broker_state import Offsets, commit_request
from tests.network.raw_client import RawClient
from tests.network.requests import create_topic, find_coordinator, topic_names

PARTITIONS = 100
METADATA = "x" * 4000
REQUESTS = 200
"""Of 25 bytes each, so that they all fit into the kernel's buffers; their responses have 400 kB each, 80 MB in all."""
GROWTH_MAX_BYTES = 8 << 20
"""The requests of one read, 1 MiB of responses and one more response, twice while they are joined, and a reserve."""


def resident_bytes(process: Process) -> int:
    """Return the resident memory of the process."""
    for line in Path(f"/proc/{process.pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024
    raise AssertionError("no VmRSS")


ALL_OFFSETS = OffsetFetchRequest(group_id="g", topics=None)


def commit_much(client: RawClient) -> None:
    create_topic(client)
    find_coordinator(client, "g")
    partitions: Offsets = {"t": {number: (number, METADATA) for number in range(PARTITIONS)}}
    response = client.ask(commit_request("g", partitions), 2)
    assert {partition.error_code for partition in response.topics[0].partitions} == {0}


@pytest.mark.skipif(sys.platform != "linux", reason="needs Linux: /proc reports a process's memory")
def test_a_client_that_reads_nothing_delays_no_client_and_uses_limited_memory() -> None:
    with kproto_started("serve", "--port", "0", "--set", f"num.partitions={PARTITIONS}") as process:
        address = line_of(process).removeprefix("kproto: listening on ")
        with RawClient(address) as other, RawClient(address, receive_buffer_bytes=4096) as slow:
            commit_much(other)
            slow.ask(ALL_OFFSETS, 3)
            before = resident_bytes(process)

            sent = slow.send(*[(ALL_OFFSETS, 3)] * REQUESTS)
            for _ in range(100):
                assert topic_names(other) == {"t", "__consumer_offsets"}, "other clients get responses meanwhile"

            assert resident_bytes(process) - before < GROWTH_MAX_BYTES
            assert slow.read_ids(REQUESTS) == sent, "the client gets all responses when it reads"
            assert resident_bytes(process) - before < GROWTH_MAX_BYTES
