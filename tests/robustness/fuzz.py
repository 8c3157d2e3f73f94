"""Send random and damaged requests to brokers of all Kafka versions: `python -m tests.robustness.fuzz --seconds 60`.

Method. Each round runs a broker of one Kafka version as a process. Every connection sends a few frames in one piece and
ends its direction of the connection; the broker then has to respond, or not, and to close. A control connection commits
and fetches all the time. A *finding* is: a traceback in the broker's log, the end of the process, a connection that is
not closed, a response that cannot be decoded, memory that grows beyond a limit, a control connection that fails or that
waits for more CPU time of the broker than is fair.

Each finding is printed with a command that sends its frames again. Frames depend on the seed and the round, apart from
topic and member ids that the broker has given. The exit code is 1 if something was found.
"""

from __future__ import annotations

import argparse
import random
import re
import socket
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from kproto.errors import ProtocolError
from kproto.framing import FrameReader
from kproto.headers import read_request_header, read_response
from kproto.messages.k03_metadata import MetadataRequest, MetadataRequestTopic
from kproto.messages.k11_join_group import JoinGroupResponse
from kproto.messages.k18_api_versions import ApiVersionsRequest
from kproto_server.releases.kafka_version import KafkaVersion, kafka_version_names
from tests.network.raw_client import RawClient
from tests.robustness import changes
from tests.robustness.broker_process import BrokerProcess, broker_process
from tests.robustness.control_connection import WAIT_MAX_CPU_S, ControlConnection, cpu_s
from tests.robustness.random_frames import MARKER, OFFSETS_TOPIC, RandomFrames

ERROR = re.compile(r"[\w.]+(Error|Exception|Malformed)\b")
CLOSE_LIMIT_S = 10.0
"""How long the broker may take to close a connection that the client has ended."""
MEMORY_GROWTH_MAX_KB = 500_000
ROUND_MIN_S = 6.0
VALID_SHARE = 0.3
"""Frames that are not damaged."""
FAST_CLOCK = "scaled:1000"
"""The clock of every third round: retention, compaction, expirations and timeouts come within seconds."""
FRAMES_OF_CONNECTION = (1, 1, 1, 2, 3, 8)
FRAMES_KEPT = 20
"""Valid frames of each API and version that are made once and damaged again and again in a round."""
TOPICS: dict[str, dict[str, str]] = {
    "t": {},
    "u": {"compression_type": "gzip"},
    "c": {"cleanup_policy": "compact", "segment_ms": "60000", "min_cleanable_dirty_ratio": "0.01"},
}
OFFSET_COMMIT, JOIN_GROUP, CREATE_TOPICS = 8, 11, 19
STATEFUL, STATEFUL_WEIGHT = frozenset((0, 1, 2, 8, 9, 11, 14, 19, 21)), 4
"""APIs that write or read records, offsets and groups are sent more often."""
TO_FILE = """
import logging, os
os.dup2(os.open({path!r}, os.O_WRONLY | os.O_CREAT | os.O_APPEND), 2)
logging.basicConfig(level=logging.INFO, format="%(message)s")
"""
"""What the broker's process runs first: its log goes to a file, which never blocks it. The log has the reason of each
connection that the broker closes."""
NOT_DECODED = " at byte "
"""In the reason if something could not be decoded."""


class Finding(NamedTuple):
    """Something that must not happen."""

    kafka_version: str
    kind: str
    detail: str
    frames: bytes
    """What the connection had sent."""

    def __str__(self) -> str:
        again = f"python -m tests.robustness.fuzz --kafka-version {self.kafka_version} --frames {self.frames.hex()}"
        return f"{self.kind} ({self.kafka_version}): {self.detail}\n  {again}"


class Target:
    """A broker under test."""

    def __init__(self, kafka_version: str, broker: BrokerProcess, log: Path, control: ControlConnection) -> None:
        self.kafka_version = kafka_version
        self.broker = broker
        self.control = control
        self.findings: list[Finding] = []
        self.counts: Counter[str] = Counter()
        self.has_ended = False
        """Whether the broker or the control connection has ended."""
        self._log = log
        self._log_size = 0
        self._logged = ""
        """What the broker has logged during the latest connection."""
        self._sent: list[bytes] = []
        """The frames of the latest two connections."""
        self._is_sending_again = False
        self._memory_kb = memory_kb(broker.pid)
        self._offsets_partitions = offsets_partitions(broker, kafka_version)
        """If frames have deleted the offsets topic, or added partitions, commits fail for a good reason."""
        host, _, port = broker.address.rpartition(":")
        self._address = host, int(port)

    def send(self, frames: bytes, frame_count: int = 1) -> list[bytes]:
        """Send frames on a connection of their own; return the responses. Findings are noted."""
        self.control.during = f"connection {self.counts['connections']}"
        self.counts["connections"] += 1
        self.counts["frames"] += frame_count
        self._sent = [*self._sent[-1:], frames]
        received, before_cpu_s = b"", cpu_s(self.broker.pid)
        try:
            with socket.create_connection(self._address, CLOSE_LIMIT_S) as client:
                client.settimeout(CLOSE_LIMIT_S)
                with suppress(ConnectionError):
                    client.sendall(frames)
                    client.shutdown(socket.SHUT_WR)
                    while data := client.recv(1 << 16):
                        received += data
        except TimeoutError:
            self._find("not closed", f"{CLOSE_LIMIT_S} s after the client's end", frames)
        except ConnectionError as error:
            self._find("refused", str(error), frames)
        self._check(frames, cpu_s(self.broker.pid) - before_cpu_s)
        reader = FrameReader()
        reader.feed(received)
        try:
            responses = list(reader.frames())
        except ProtocolError as error:
            self._find("wrong response", str(error), frames)
            return []
        self.counts["responses"] += len(responses)
        return responses

    def _check(self, frames: bytes, used_cpu_s: float) -> None:
        self._logged = ""
        size = self._log.stat().st_size
        if size > self._log_size:
            with self._log.open("rb") as log:
                log.seek(self._log_size)
                self._logged = log.read().decode(errors="replace")
            self._log_size = size
            if "Traceback" in self._logged:
                lines = self._logged.strip().splitlines()
                self._find("traceback", next((line for line in lines if ERROR.match(line)), lines[-1]), frames)
        memory = memory_kb(self.broker.pid)
        if memory > self._memory_kb + MEMORY_GROWTH_MAX_KB:
            self._find("memory", f"{memory} KB, {self._memory_kb} KB before", frames)
            self._memory_kb = memory
        worst = self.control.take_worst()
        if min(worst.cpu_s, used_cpu_s) > WAIT_MAX_CPU_S and self._is_sending_again:
            self._find("wait", str(worst), frames)
        elif worst.cpu_s > WAIT_MAX_CPU_S and not self._is_sending_again:
            self._send_again()
        if not memory:
            self.has_ended = True
            self._find("process ended", self._log.read_text(errors="replace")[-200:], frames)
        elif self.control.failure is not None:
            self.has_ended = True
            if self._offsets_partitions == offsets_partitions(self.broker, self.kafka_version):
                self._find("control connection", repr(self.control.failure), frames)

    def _send_again(self) -> None:
        """Send the latest frames again: a long wait is a finding if it repeats, and the frames are what takes so long.

        Some work is done only once in a process: a checkout generates codecs when they are first used. And on a busy
        machine the control connection may be the one that is late.
        """
        self._is_sending_again = True
        for frames in self._sent:
            self.send(frames)
            self.control.wait_for_requests(2)
            self.control.take_worst()
        self._is_sending_again = False

    def send_valid(self, frame: bytes) -> list[bytes]:
        """Send a valid frame alone. If it has a response, the response can be decoded; if not, the frame could be."""
        responses = self.send(frame)
        if responses:
            self.check_response(responses[0], frame)
        elif NOT_DECODED in self._logged:
            self._find("refused", self._logged.strip().splitlines()[-1], frame)
        return responses

    def check_response(self, response: bytes, sent: bytes) -> None:
        """Check that the response to a valid frame can be decoded."""
        header = read_request_header(sent[4:])
        try:
            read_response(response, header.api_key, header.api_version)
        except ProtocolError as error:
            self._find("wrong response", str(error), sent)

    def _find(self, kind: str, detail: str, frames: bytes) -> None:
        self.findings.append(Finding(self.kafka_version, kind, detail, frames))


def offsets_partitions(broker: BrokerProcess, kafka_version: str) -> int:
    """Return the number of partitions of the offsets topic; 0 if it does not exist."""
    version = 1 if KafkaVersion.named(kafka_version).serves(3, 1) else 0
    with RawClient(broker.address) as client:
        response = client.ask(MetadataRequest(topics=None if version else ()), version)
    return sum(len(topic.partitions) for topic in response.topics if topic.name == OFFSETS_TOPIC)


def memory_kb(pid: int) -> int:
    """Return the resident memory of a process; 0 if it has ended."""
    with suppress(OSError):
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1])
    return 0


@contextmanager
def target(kafka_version: str, *, on_disk: bool, is_fast: bool = False, planted: str = "") -> Iterator[Target]:
    """Run a broker with topics that frames name, and a control connection to it if its release has OffsetCommit."""
    with tempfile.TemporaryDirectory(prefix="fuzz-") as name:
        log = Path(name, "log")
        log.touch()
        words = ["--kafka-version", kafka_version, "--set", "num.partitions=3"]
        if is_fast:
            words += ["--clock", FAST_CLOCK]
        if on_disk:
            words += ["--data-dir", f"{name}/data", "--durability", "os"]
        with broker_process(*words, planted=TO_FILE.format(path=str(log)) + planted) as broker, ExitStack() as stack:
            control = ControlConnection(broker.address, broker.pid, release=kafka_version, pause_s=0.005)
            if OFFSET_COMMIT in KafkaVersion.named(kafka_version).api_versions:
                stack.enter_context(control)
            _create_topics(broker, KafkaVersion.named(kafka_version))
            yield Target(kafka_version, broker, log, control)


def _create_topics(broker: BrokerProcess, kafka_version: KafkaVersion) -> None:
    """Create the topics with their configs, in releases whose clients can send these."""
    with RawClient(broker.address) as client:
        if kafka_version.serves(CREATE_TOPICS, 2):
            for name, configs in TOPICS.items():
                client.ask(*changes.create_topic(name, 3, **configs))
        create = MetadataRequest(topics=tuple(MetadataRequestTopic(name=topic) for topic in TOPICS))
        client.ask(create, 1 if kafka_version.serves(3, 1) else 0)


def fuzz(under_test: Target, seed: object, seconds: float) -> None:
    """Send frames for some time."""
    source = RandomFrames((seed, under_test.kafka_version))
    chosen = source.random
    served = KafkaVersion.named(under_test.kafka_version).api_versions
    weights = [STATEFUL_WEIGHT if key in STATEFUL else 1 for key in served]
    kept: dict[tuple[int, int], list[bytes]] = {}
    _learn_topic_ids(under_test, source)
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline and not under_test.has_ended:
        frames, is_valid = [], False
        for _ in range(chosen.choice(FRAMES_OF_CONNECTION)):
            (api_key,) = chosen.choices(list(served), weights)
            version = chosen.randint(*served[api_key])
            valid = kept.setdefault((api_key, version), [])
            if len(valid) < FRAMES_KEPT:
                valid.append(source.valid(api_key, version))
            frame, is_valid = chosen.choice(valid), chosen.random() < VALID_SHARE
            frames.append(frame if is_valid else source.damaged(frame))
        if is_valid and len(frames) == 1:
            responses = under_test.send_valid(frames[0])
        else:
            responses = under_test.send(b"".join(frames) + MARKER, len(frames))
        _learn_member_id(responses, frames[0], source)
    for api_key, version in kept:
        under_test.counts[f"{api_key} v{version}"] = 1


def _learn_topic_ids(under_test: Target, source: RandomFrames) -> None:
    if KafkaVersion.named(under_test.kafka_version).serves(3, 10):
        with RawClient(under_test.broker.address) as client:
            response = client.ask(MetadataRequest(topics=None), 10)
        source.topic_ids += [topic.topic_id for topic in response.topics if topic.name in TOPICS]


def _learn_member_id(responses: list[bytes], first: bytes, source: RandomFrames) -> None:
    """Keep the member id of a JoinGroup response."""
    if responses and first[4:6] == JOIN_GROUP.to_bytes(2, "big") and len(source.member_ids) < 8:
        with suppress(ProtocolError):
            version = int.from_bytes(first[6:8], "big", signed=True)
            source.member_ids.append(read_response(responses[0], JoinGroupResponse, version)[1].member_id)


def rounds(seed: int, seconds: float, versions: list[str]) -> Iterator[tuple[int, str, float]]:
    """Yield number, Kafka version and length of each round: every version in turn, in an order of the seed."""
    length = max(ROUND_MIN_S, min(30.0, seconds / len(versions)))
    order = random.Random(seed).sample(versions, len(versions))  # noqa: S311 - not for secrets
    end = time.monotonic() + seconds
    number = 0
    while (left := end - time.monotonic()) > 0:
        yield number, order[number % len(order)], min(length, left)
        number += 1


def run(seed: int, seconds: float, versions: list[str]) -> list[Finding]:
    """Fuzz for some time; return the findings, each kind and detail once."""
    found: dict[tuple[str, str], Finding] = {}
    totals: dict[str, Counter[str]] = {}
    for number, kafka_version, length in rounds(seed, seconds, versions):
        with target(kafka_version, on_disk=number % 2 == 1, is_fast=number % 3 == 2) as under_test:
            fuzz(under_test, (seed, number), length)
        counts = totals.setdefault(kafka_version, Counter())
        counts.update(under_test.counts)
        counts["findings"] += len(under_test.findings)
        for finding in under_test.findings:
            detail = "" if finding.kind in ("wait", "memory", "not closed") else finding.detail
            if found.setdefault((finding.kind, detail), finding) is finding:
                print(finding, file=sys.stderr)
        done = sum(one["frames"] for one in totals.values())
        print(f"seed {seed} round {number}: {kafka_version}, {done:,} frames, {len(found)} findings", file=sys.stderr)
    for kafka_version in sorted(totals, key=kafka_version_names().index):
        counts = totals[kafka_version]
        layouts = sum(" v" in name for name in counts)
        print(
            f"{kafka_version:8} {counts['frames']:>9,} frames of {layouts:>4} layouts, {counts['connections']:>9,} "
            f"connections, {counts['responses']:>9,} responses, {counts['findings']} findings"
        )
    total = sum(counts["frames"] for counts in totals.values())
    print(f"{total:,} frames to {len(totals)} Kafka versions, {len(found)} kinds of findings (seed {seed})")
    return list(found.values())


def send_again(kafka_version: str, frames: bytes) -> list[Finding]:
    """Send the frames of a finding to a new broker."""
    with target(kafka_version, on_disk=False) as under_test:
        responses = under_test.send(frames)
        with RawClient(under_test.broker.address) as client:
            client.ask(ApiVersionsRequest(), 0) if KafkaVersion.named(kafka_version).has_api_versions else None
    print(f"{len(responses)} responses: {[response.hex() for response in responses]}")
    return under_test.findings


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.robustness.fuzz", description=__doc__)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--kafka-version", action="append", help="only this one; may be repeated")
    parser.add_argument("--frames", type=bytes.fromhex, help="send these bytes to a new broker, and nothing else")
    arguments = parser.parse_args()
    versions = arguments.kafka_version or kafka_version_names()
    if arguments.frames is not None:
        found = send_again(versions[-1], arguments.frames)
        print(*found, sep="\n")
    else:
        found = run(arguments.seed, arguments.seconds, versions)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
