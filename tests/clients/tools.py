"""Kafka's own command line tools, run in one JVM, and the comparison of what they print against two brokers."""

import base64
import re
import subprocess
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from tests.clients import admin
from tests.oracle.cluster import kafka
from tests.oracle.java import compiled, java_command

JAVA_FOLDER = Path(__file__).parent / "java"

GROUPS = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
TOPICS = "org.apache.kafka.tools.TopicCommand"
OFFSETS = "org.apache.kafka.tools.GetOffsetShell"
VERSIONS = "org.apache.kafka.tools.BrokerApiVersionsCommand"
CONFIGS = "org.apache.kafka.tools.ConfigCommand"
ALL_GROUPS = "org.apache.kafka.tools.GroupsCommand"
CONSOLE_PRODUCER = "org.apache.kafka.tools.ConsoleProducer"
CONSOLE_CONSUMER = "org.apache.kafka.tools.consumer.ConsoleConsumer"
VERIFIABLE_PRODUCER = "org.apache.kafka.tools.VerifiableProducer"
VERIFIABLE_CONSUMER = "org.apache.kafka.tools.VerifiableConsumer"
PRODUCER_SPEED = "org.apache.kafka.tools.ProducerPerformance"
CONSUMER_SPEED = "org.apache.kafka.tools.ConsumerPerformance"
LATENCY = "org.apache.kafka.tools.EndToEndLatency"
DELETE_RECORDS = "org.apache.kafka.tools.DeleteRecordsCommand"
LOG_DIRS = "org.apache.kafka.tools.LogDirsCommand"
ELECTIONS = "org.apache.kafka.tools.LeaderElectionCommand"
TRANSACTIONS = "org.apache.kafka.tools.TransactionsCommand"
FEATURES = "org.apache.kafka.tools.FeatureCommand"
CLUSTER = "org.apache.kafka.tools.ClusterTool"
QUORUM = "org.apache.kafka.tools.MetadataQuorumCommand"
ACLS = "org.apache.kafka.tools.AclCommand"
REASSIGNMENTS = "org.apache.kafka.tools.reassign.ReassignPartitionsCommand"
STREAMS_RESETTER = "org.apache.kafka.tools.StreamsResetter"
STREAMS_GROUPS = "org.apache.kafka.tools.streams.StreamsGroupCommand"
SHARE_GROUPS = "org.apache.kafka.tools.consumer.group.ShareGroupCommand"
CONSOLE_SHARE_CONSUMER = "org.apache.kafka.tools.consumer.ConsoleShareConsumer"
CLIENT_METRICS = "org.apache.kafka.tools.ClientMetricsCommand"
OLD_GROUPS = "kafka.admin.ConsumerGroupCommand"
OLD_TOPICS = "kafka.admin.TopicCommand"
OLD_VERSIONS = "kafka.admin.BrokerApiVersionsCommand"
OLD_OFFSETS = "kafka.tools.GetOffsetShell"
OLD_CONFIGS = "kafka.admin.ConfigCommand"
OLD_ELECTIONS = "kafka.admin.LeaderElectionCommand"
OLD_LOG_DIRS = "kafka.admin.LogDirsCommand"
OLD_CONSOLE_PRODUCER = "kafka.tools.ConsoleProducer"

CLUSTER_FIELDS = (
    (re.compile(r"TopicId: [\w-]{22}"), "TopicId: ID"),
    (re.compile(r"\b(Leader|Replicas|Isr): \d+"), r"\1: NODE"),
    (re.compile(r"ADDRESS( +)\(\d+\)"), r"ADDRESS\1(NODE)"),
    (re.compile(r"ADDRESS \(id: \d+ "), "ADDRESS (id: NODE "),
    (re.compile(r"-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b"), "-UUID"),
    (re.compile(r"adminclient-\d+"), "adminclient-N"),
    (re.compile(r"correlation id \d+"), "correlation id N"),
    (re.compile(r"\b(Epoch: \d+|Cluster ID: .*)$", re.MULTILINE), "DIFFERENT"),
    (re.compile(r'"(\w*[tT]imestamp)":\d+'), r'"\1":TIME'),
    (re.compile(r'"(topicId|logDir)":"[^"]*"'), r'"\1":"DIFFERENT"'),
)
NUMBER = re.compile(r"\d+(\.\d+)? *")
"""With the space behind it: columns are padded by the number of digits."""
STACK_FRAME = re.compile(r"\tat |\t\.\.\. \d+ more")


@dataclass(frozen=True, slots=True)
class ToolOutput:
    """The exit code and output of one tool run."""

    exit_code: int
    out: str
    err: str

    def __str__(self) -> str:
        return f"exit code {self.exit_code}\n{self.out}\n{self.err}"

    def normalized(self, address: str) -> "ToolOutput":
        """Replace values that differ between clusters (address, node and topic ids); remove stack frames."""
        err = [line for line in self.err.splitlines() if not STACK_FRAME.match(line)]
        return ToolOutput(self.exit_code, _normalized(self.out, address), _normalized("\n".join(err), address))

    def without_numbers(self) -> "ToolOutput":
        """Replace numbers, for measurements."""
        return ToolOutput(self.exit_code, NUMBER.sub("N", self.out), NUMBER.sub("N", self.err))

    def without_columns(self, names: Iterable[str]) -> "ToolOutput":
        """Replace the values of columns of a table with these names; reduce the space between columns."""
        header, *lines = [line.split() for line in self.out.splitlines()] or [[]]
        ignored = {header.index(name) for name in names if name in header}
        table = [["..." if index in ignored else word for index, word in enumerate(line)] for line in lines]
        return ToolOutput(self.exit_code, "\n".join(" ".join(line) for line in [header, *table]), self.err)

    def unordered(self) -> "ToolOutput":
        """Sort the lines, for output in the order of a hash map; lines with a tab stay below the line before them."""
        return ToolOutput(self.exit_code, _sorted(self.out), _sorted(self.err))

    def with_errors_once(self) -> "ToolOutput":
        """List each error once: how often a client tries again before it gives up depends on its threads."""
        return ToolOutput(self.exit_code, self.out, "\n".join(dict.fromkeys(self.err.splitlines())))


def _sorted(text: str) -> str:
    header, lines = "", []
    for line in text.splitlines():
        header = header if line.startswith("\t") else line
        lines.append((header, line))
    return "\n".join(line for _, line in sorted(lines, key=lambda pair: (pair[0], pair[1].startswith("\t"), pair[1])))


def _normalized(text: str, address: str) -> str:
    text = text.replace(address, "ADDRESS")
    for pattern, replacement in CLUSTER_FIELDS:
        text = pattern.sub(replacement, text)
    return text


class Tools:
    """The tools of one release in one JVM (java/ToolRunner.java)."""

    def __init__(self, requests: IO[str], responses: IO[str]) -> None:
        self._requests, self._responses = requests, responses

    def run(self, tool: str, *args: str, stdin: str = "") -> ToolOutput:
        self._requests.write("\t".join((base64.b64encode(stdin.encode()).decode(), tool, *args)) + "\n")
        self._requests.flush()
        line = self._responses.readline()
        assert line, f"the JVM ended in {tool} {args}"
        code, out, err = line.rstrip("\n").split("\t")
        return ToolOutput(int(code), base64.b64decode(out).decode(), base64.b64decode(err).decode())


@contextmanager
def running_tools(version: str) -> Iterator[Tools]:
    classpath = kafka("toolpath", version)
    flags = (
        "--add-opens=java.base/java.lang=ALL-UNNAMED",  # for the shutdown hooks
        f"-Dlog4j2.configurationFile={JAVA_FOLDER / 'log4j2.properties'}",
        f"-Dlog4j.configuration=file:{JAVA_FOLDER / 'log4j.properties'}",
    )
    command = java_command(compiled(JAVA_FOLDER / "ToolRunner.java"), classpath, "ToolRunner", *flags)
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8")
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        yield Tools(process.stdin, process.stdout)
    finally:
        process.stdin.close()
        process.wait(30)
        process.stdout.close()


def rows(text: str) -> list[str]:
    """Return the non-empty lines, with single spaces between their columns."""
    return [" ".join(line.split()) for line in text.splitlines() if line.strip()]


@dataclass(frozen=True, slots=True)
class Pair:
    """The broker under test and a real one; each change is made on both."""

    tools: Tools
    tested: str
    real: str

    @property
    def addresses(self) -> tuple[str, str]:
        return self.tested, self.real

    def create_topic(self, topic: str, partitions: int) -> str:
        for address in self.addresses:
            admin.create_topic(address, topic, partitions)
        return topic

    def wait_topic(self, topic: str, partitions: int) -> None:
        for address in self.addresses:
            admin.wait_topic(address, topic, partitions)

    def commit(self, group: str, topic: str, offsets: Mapping[int, int]) -> str:
        for address in self.addresses:
            admin.commit(address, group, topic, offsets)
        return group

    def same(self, tool: str, *args: str, unordered: bool = False) -> ToolOutput:
        """Run a tool against both, assert that the outputs are equal, and return the output."""
        tested, real = (self.run(address, tool, *args) for address in self.addresses)
        if unordered:
            tested, real = tested.unordered(), real.unordered()
        command = " ".join((tool.rpartition(".")[2], *args))
        assert tested == real, f"{command}\n-- under test\n{tested}\n-- real\n{real}"
        return real

    def run(self, address: str, tool: str, *args: str, stdin: str = "") -> ToolOutput:
        """Run a tool against one broker; its address replaces ADDRESS in the arguments, or precedes them as a flag."""
        if any("ADDRESS" in word for word in args):
            args = tuple(word.replace("ADDRESS", address) for word in args)
        else:
            args = ("--broker-list" if tool == OLD_OFFSETS else "--bootstrap-server", address, *args)
        return self.tools.run(tool, *args, stdin=stdin).normalized(address)
