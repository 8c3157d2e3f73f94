"""`kproto capture`: the connections of Kafka in captured traffic, in a capture of their own."""

from __future__ import annotations

import gzip
import os
import stat
import threading
from pathlib import Path

import pytest

from kproto.messages.k12_heartbeat import HeartbeatRequest, HeartbeatResponse
from kproto_server.capture.packet_files import packets
from kproto_server.capture.writer import CapturedConnection
from kproto_server.commandline import cli
from tests.capture.packets import captured, pcap
from tests.proxy.exchanged import asked, response

VERSION = 4
HEADERS_BYTES = 40
BEGUN_NS = 1_700_000_000 * 10**9


def beats(client_id: str, count: int = 3) -> list[tuple[bytes, bytes]]:
    """Return requests with their responses."""
    request = HeartbeatRequest(group_id="g", generation_id=1, member_id=client_id)
    exchange = (asked(request, VERSION, client_id=client_id), response(HeartbeatResponse(error_code=0), VERSION))
    return [exchange] * count


def write(folder: Path, name: str) -> Path:
    """Return a capture of two clients, of SSH and of TLS, with packets that come late or twice."""

    def send(client_id: str, connection: CapturedConnection) -> None:
        for number, (request, response_frame) in enumerate(beats(client_id), 1):
            connection.sent(request[:9], BEGUN_NS + number)
            connection.sent(request[9:], BEGUN_NS + number)
            connection.received(response_frame, BEGUN_NS + number)

    found = captured(
        folder,
        lambda connection: send("shop", connection),
        lambda connection: send("warehouse", connection),
        lambda connection: connection.sent(b"SSH-2.0"),
        lambda connection: connection.sent(b"\x16\x03\x01" + bytes(60)),
    )
    # The second half of each request comes before the first one.
    for first in [number for number, packet in enumerate(found) if len(packet.data) == HEADERS_BYTES + 9]:
        found[first], found[first + 1] = found[first + 1], found[first]
    path = folder / name
    path.write_bytes(pcap([*found[:9], *found[4:]], magic=0xA1B23C4D))
    return path


def test_the_copy_has_what_kafka_sent_and_nothing_else(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, copy = write(tmp_path, "all.pcap"), tmp_path / "kafka.pcap"
    assert cli.main(["capture", str(path), "--output", str(copy)]) == 0
    assert capsys.readouterr().out.splitlines() == [
        f"kproto: 2 connections with 6 requests and 6 responses in {copy}",
        "  1 connection with TLS, which cannot be read, left out",
    ]
    assert cli.main(["diff", str(path), str(copy)]) == 0
    assert capsys.readouterr().out == "kproto: 0 of 6 responses differ\n"
    assert stat.S_IMODE(copy.stat().st_mode) == 0o600
    with copy.open("rb") as stream:
        times = [packet.time_ns for packet in packets(stream) if len(packet.data) > HEADERS_BYTES]
    assert len(times) == 12
    assert set(times) <= {BEGUN_NS + number for number in (1, 2, 3)}
    assert sorted(tmp_path.iterdir()) == sorted([path, copy, tmp_path / "written.pcap"])


def test_connections_of_some_clients(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, copy = write(tmp_path, "all.pcap"), tmp_path / "kafka.pcap"
    assert cli.main(["capture", str(path), "--output", str(copy), "--client-id", "shop"]) == 0
    assert capsys.readouterr().out.splitlines()[:2] == [
        f"kproto: 1 connection with 3 requests and 3 responses in {copy}",
        "  1 connection of other clients left out",
    ]
    content = copy.read_bytes()
    assert b"shop" in content
    assert b"warehouse" not in content


def test_a_capture_in_several_files_is_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """tcpdump -C begins a new file in the middle of a connection."""
    path = write(tmp_path, "all.pcap")
    with path.open("rb") as stream:
        found = list(packets(stream))
    parts = [tmp_path / "a.pcap", tmp_path / "b.pcap"]
    for part, packets_of in zip(parts, (found[:7], found[7:]), strict=True):
        part.write_bytes(pcap(packets_of, magic=0xA1B23C4D))
    copy = tmp_path / "kafka.pcap"
    assert cli.main(["capture", *map(str, parts), "--output", str(copy)]) == 0
    assert capsys.readouterr().out.startswith("kproto: 2 connections with 6 requests and 6 responses in ")


def test_the_input_may_be_replaced(tmp_path: Path) -> None:
    path = write(tmp_path, "all.pcap")
    before = path.stat().st_size
    assert cli.main(["capture", str(path), "--output", str(path), "--client-id", "shop"]) == 0
    assert 0 < path.stat().st_size < before


def test_a_device_is_written_in_place_and_a_symbolic_link_stays_one(tmp_path: Path) -> None:
    path, link, real = write(tmp_path, "all.pcap"), tmp_path / "link.pcap", tmp_path / "real.pcap"
    link.symlink_to(real)
    assert cli.main(["capture", str(path), "--output", str(link)]) == 0
    assert link.is_symlink()
    assert real.stat().st_size > 0
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    read: list[bytes] = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_bytes()), daemon=True)
    reader.start()
    assert cli.main(["capture", str(path), "--output", str(pipe)]) == 0
    reader.join(30)
    assert pipe.is_fifo()
    assert read == [real.read_bytes()]


@pytest.mark.parametrize(
    ("words", "error"),
    [
        ((), "kproto capture: give captures and a file for the connections of Kafka in them: FILE --output FILE"),
        (("{good}",), "kproto capture: give captures and a file for the connections of Kafka in them"),
        (("{good}", "--output", "-"), "kproto capture: --output can't be '-': give a file"),
        (("{log}", "--output", "{out}"), "kproto capture: can't read '{log}': no pcap or pcapng file"),
        (("{cut}", "--output", "{out}"), "kproto capture: can't read '{cut}': not a whole gzip file"),
        (("missing", "--output", "{out}"), "kproto capture: can't read 'missing': No such file or directory"),
        (("{ssh}", "--output", "{out}"), "kproto capture: no connection of Kafka in '{ssh}'"),
        (("{tls}", "--output", "{out}"), "kproto capture: no connection of Kafka without TLS in '{tls}'"),
        (
            ("{good}", "--output", "{out}", "--client-id", "shopp"),
            "kproto capture: no connection of this client id: there are shop, warehouse",
        ),
        (
            ("{good}", "--output", "{folder}/missing/out.pcap"),
            "kproto capture: --output: can't write '{folder}/missing/out.pcap': No such file or directory",
        ),
        (("{good}", "--output", "{folder}"), "kproto capture: --output: can't write '{folder}': Is a directory"),
    ],
)
def test_mistakes_are_one_line_and_leave_no_file(
    words: tuple[str, ...], error: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    good = write(tmp_path, "all.pcap")
    names = {"good": good, "folder": tmp_path / "folder", "out": tmp_path / "folder" / "out.pcap"}
    names |= {name: tmp_path / name for name in ("log", "ssh", "tls")} | {"cut": tmp_path / "cut.pcap.gz"}
    names["folder"].mkdir()
    names["log"].write_text("[2026-11-23] INFO started")
    names["ssh"].write_bytes(pcap(captured(tmp_path, lambda each: each.sent(b"SSH-2.0"))))
    names["cut"].write_bytes(gzip.compress(good.read_bytes())[:-20])
    names["tls"].write_bytes(pcap(captured(tmp_path, lambda each: each.sent(b"\x16\x03\x01" + bytes(60)))))
    assert cli.main(["capture", *(word.format(**names) for word in words)]) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert err.startswith(error.format(**names))
    assert list(names["folder"].iterdir()) == []
    assert not list(tmp_path.glob("**/*.partial"))
