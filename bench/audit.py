"""What `kproto audit` needs for large files: CPU time, and memory that does not grow with the file.

Method. The recorded requests of real clients and brokers in `fixtures` are repeated until a file has the size: each
copy comes from further hosts and, in the request logs, from further client ids. One process audits each file. Its
peak of memory is read at a quarter, at a half and at the end of the file.
"""

from __future__ import annotations

import gzip
import io
import os
import struct
import subprocess
import sys
import tempfile
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterator
from itertools import cycle
from pathlib import Path
from time import perf_counter, sleep

from bench.model import KPROTO, Bench, BenchError, Limit, Metric, Note, Row
from bench.options import count
from kproto_server.capture.packet_files import Packet, packets

FIXTURES = Path(__file__).parent.parent / "fixtures"
MEGABYTE = 1_000_000
POLL_S = 0.02
WRITE_BYTES = 1024 * 1024
ADDRESS, PORT = b"127.0.0.1", b"-127.0.0.1:"
CLIENT_IDS = (b"warehouse", b"billing")
CLIENT_ID_COUNT = 3000
"""More than are counted separately."""
PCAP_HEADER = struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 1 << 18, 101)
"""Nanoseconds, and packets that begin with IP."""
SECTION = struct.pack("<IIIHHqI", 0x0A0D0D0A, 28, 0x1A2B3C4D, 1, 0, -1, 28)
INTERFACE = struct.pack("<IIHHIHHB3xHHI", 1, 32, 101, 0, 0, 9, 1, 9, 0, 0, 32)
"""A pcapng file's first blocks: times have nanoseconds (if_tsresol 9)."""
SOURCE_AT, DESTINATION_AT = 12, 16
"""Addresses in the header of IPv4."""
SECOND_NS = 1_000_000_000

SPEED = Metric(key="mb_per_s", title="MB/s", more_is_better=True)
CPU = Metric(key="cpu_s_per_gb", title="CPU s/GB")
QUARTER = Metric(key="quarter_mb", title="MB at 1/4")
HALF = Metric(key="half_mb", title="MB at 1/2")
PEAK = Metric(key="peak_mb", title="MB at the end")
GROWTH = Metric(key="growth_mb", title="growth MB")
METRICS = (SPEED, CPU, QUARTER, HALF, PEAK, GROWTH)
CPU_MAX = 50.0
"""20 MB/s of one processor."""
GROWTH_MAX_MB = 8.0

Pieces = Iterator[bytes]


def log_pieces(release: str) -> Pieces:
    """Yield copies of a recorded request log without end."""
    content = (FIXTURES / f"request-logs/{release}.log").read_bytes()
    for copy in cycle(range(1 << 24)):
        piece = content.replace(PORT, b"-10.%d.%d.%d:" % (copy >> 16, copy >> 8 & 255, copy & 255))
        for client_id in CLIENT_IDS:
            piece = piece.replace(client_id, b"%s-%d" % (client_id, copy % CLIENT_ID_COUNT))
        yield piece


def _packets() -> Iterator[tuple[int, bytes]]:
    """Yield copies of the packets of all recorded captures without end, with the time of each."""
    captures: list[list[Packet]] = []
    for path in sorted(FIXTURES.glob("copies/*/*.pcap.gz")):
        captures.append(list(packets(io.BytesIO(gzip.decompress(path.read_bytes())))))
    start_ns = captures[0][0].time_ns
    for nth, capture in enumerate(cycle(captures)):
        start_ns += SECOND_NS
        host = nth.to_bytes(8, "big")[-3:]
        for packet in capture:
            data = bytearray(packet.data)
            for at in (SOURCE_AT, DESTINATION_AT):
                data[at + 1 : at + 4] = host
            yield start_ns + packet.time_ns - capture[0].time_ns, bytes(data)


def pcap_pieces() -> Pieces:
    """Yield a pcap file without end."""
    yield PCAP_HEADER
    for time_ns, data in _packets():
        yield struct.pack("<IIII", *divmod(time_ns, SECOND_NS), len(data), len(data)) + data


def pcapng_pieces() -> Pieces:
    """Yield a pcapng file without end."""
    yield SECTION + INTERFACE
    for time_ns, data in _packets():
        padding = b"\0" * (-len(data) % 4)
        size = 32 + len(data) + len(padding)
        head = struct.pack("<7I", 6, size, 0, time_ns >> 32, time_ns & 0xFFFF_FFFF, len(data), len(data))
        yield head + data + padding + struct.pack("<I", size)


CASES: dict[str, tuple[Callable[[], Pieces], tuple[str, ...]]] = {
    "request log 2.0 (text)": (lambda: log_pieces("2.0.1"), ("--kafka-version", "2.0")),
    "request log 4.4 (JSON)": (lambda: log_pieces("4.4.0"), ()),
    "pcap, small requests": (pcap_pieces, ()),
    "pcapng, small requests": (pcapng_pieces, ()),
}
"""What makes the content of the file, and options."""


def add_options(parser: ArgumentParser) -> None:
    parser.add_argument("--megabytes", type=count, default=256, metavar="N", help="of each file; 256 if not given")


def run(options: Namespace, note: Note) -> list[Row]:
    rows = []
    with tempfile.TemporaryDirectory(prefix="kproto-bench-") as folder:
        for case, (pieces, words) in CASES.items():
            path = Path(folder) / "content"
            _fill(path, pieces(), options.megabytes * MEGABYTE)
            figures = _audited(path, words)
            rows.append(Row(bench=BENCH.name, case=case, figures={KPROTO: figures}))
            note(f"{case}: {path.stat().st_size / MEGABYTE:,.0f} MB")
    return rows


def _fill(path: Path, pieces: Pieces, size: int) -> None:
    with open(path, "wb", buffering=WRITE_BYTES) as file:
        while size > 0:
            size -= file.write(next(pieces))


def _audited(path: Path, words: tuple[str, ...]) -> dict[str, float]:
    """Audit a file; return its figures."""
    size = path.stat().st_size
    left = {QUARTER.key: size / 4, HALF.key: size / 2}
    figures = {}
    command = [sys.executable, "-m", "kproto_server", "audit", "--quiet", *words, str(path)]
    began = perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    found = 0
    while not found:
        sleep(POLL_S)
        for key, position in list(left.items()):
            if _read_bytes(process.pid) >= position and (peak := _peak_mb(process.pid)) is not None:
                figures[key] = peak
                del left[key]
        found, status, usage = os.wait4(process.pid, os.WNOHANG)
    seconds = perf_counter() - began
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.stderr is not None
    with process.stderr:
        if process.returncode:
            raise BenchError(f"kproto audit: {process.stderr.read().decode()}")
    if left:
        raise BenchError(f"the audit of {size / MEGABYTE:g} MB was too short to be measured: use more --megabytes")
    peak = usage.ru_maxrss * 1024 / MEGABYTE
    return {
        SPEED.key: size / MEGABYTE / seconds,
        CPU.key: (usage.ru_utime + usage.ru_stime) / size * 1e9,
        **figures,
        PEAK.key: peak,
        GROWTH.key: peak - figures[QUARTER.key],
    }


def _read_bytes(pid: int) -> int:
    """Return how many bytes a process has read from files so far."""
    return int(Path(f"/proc/{pid}/io").read_text().partition("rchar:")[2].split()[0])


def _peak_mb(pid: int) -> float | None:
    """Return the peak of a process's memory; None: it has just ended."""
    _, found, peak = Path(f"/proc/{pid}/status").read_text().partition("VmHWM:")
    return int(peak.split()[0]) * 1024 / MEGABYTE if found else None


BENCH = Bench(
    name="audit",
    summary="CPU time and memory of kproto audit on large request logs and captures",
    metrics=METRICS,
    peers=[KPROTO],
    floors=[
        *(Limit(case=case, metric=CPU, at_most=CPU_MAX) for case in CASES if case.startswith("request log")),
        *(Limit(case=case, metric=GROWTH, at_most=GROWTH_MAX_MB) for case in CASES),
    ],
    add_options=add_options,
    run=run,
)
