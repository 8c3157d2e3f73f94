"""What the tools for reassignments and log directories print with a real cluster of three brokers, and with kproto.

    python -m tests.clients.recorded_tools 2.8.2 4.4.0

Writes ``fixtures/tools/RELEASE.json``. A real cluster of three brokers starts for the recording only.
"""

from __future__ import annotations

import json
import re
import shlex
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

from kproto.messages.k19_create_topics import CreatableReplicaAssignment, CreatableTopic, CreateTopicsRequest
from tests.clients.tools import (
    CONFIGS,
    LOG_DIRS,
    OLD_CONFIGS,
    OLD_LOG_DIRS,
    REASSIGNMENTS,
    STACK_FRAME,
    ToolOutput,
    Tools,
    running_tools,
)
from tests.membership.socket_transport import SocketTransport

RECORDED = Path(__file__).parents[2] / "fixtures" / "tools"
OLD_REASSIGNMENTS = "kafka.admin.ReassignPartitionsCommand"
TOPICS = {"moved": ((1, 2), (2, 3)), "single": ((1,), (2,))}
"""The replicas of the partitions of each topic."""
FILES = {
    "topics.json": {"version": 1, "topics": [{"topic": "single"}]},
    "missing.json": {"version": 1, "topics": [{"topic": "missing"}]},
    "plan.json": [("moved", 0, [3, 1]), ("moved", 1, [2, 3])],
    "back.json": [("moved", 0, [1, 2]), ("moved", 1, [2, 1]), ("single", 0, [2])],
    "broker-9.json": [("moved", 0, [1, 9])],
    "unknown.json": [("moved", 0, [1, 2]), ("unknown", 0, [1]), ("moved", 7, [1])],
    "repeated.json": [("moved", 0, [1, 1])],
    "no-replicas.json": [("moved", 0, [])],
}
"""What the tools read: a list is a plan of topic, partition and replicas."""
DESCRIBED = "--describe --entity-type brokers --entity-name 1"
"""A run of the tool for configs: a move with a throttle sets some."""
PLAN, BACK = "--reassignment-json-file FOLDER/plan.json", "--reassignment-json-file FOLDER/back.json"
MOVES = (
    "--list",
    f"--verify {PLAN}",
    "--generate --topics-to-move-json-file FOLDER/topics.json --broker-list 3",
    "--generate --topics-to-move-json-file FOLDER/topics.json --broker-list 3,3",
    "--generate --topics-to-move-json-file FOLDER/missing.json --broker-list 3",
    f"--execute {PLAN}",
    f"--verify {PLAN}",
    f"--verify {PLAN} --preserve-throttles",
    f"--execute {BACK} --throttle 50000000",
    DESCRIBED,
    f"--verify {BACK} --preserve-throttles",
    f"--verify {BACK}",
    DESCRIBED,
    f"--verify {PLAN}",
    f"--cancel {PLAN}",
    f"--cancel {BACK} --preserve-throttles",
    *(
        f"--execute --reassignment-json-file FOLDER/{name}.json"
        for name in ("broker-9", "unknown", "repeated", "no-replicas")
    ),
    "--verify --reassignment-json-file FOLDER/unknown.json",
    "--list",
)
"""The runs of the tool for reassignments; one that verifies is repeated until nothing moves."""
DIRECTORIES = (
    "--describe --topic-list moved,single",
    "--describe --topic-list single --broker-list 2",
    "--describe --topic-list unknown",
    "--describe --broker-list 1,1 --topic-list single",
)
"""The runs of the tool for log directories."""
ATTEMPTS = 50
PAUSE_S = 1.5
DIRECTORY = re.compile(r'"(?:/[^"]*/data|memory)"')
PARTITIONS = re.compile(r'"partitions":\[(.*?)\]')
PARTITION = re.compile(r"\{.*?\}")


class Run(NamedTuple):
    """One run of a tool, and what it printed."""

    tool: str
    arguments: str
    exit_code: int
    out: list[str]
    err: list[str]


def run_all(tools: Tools, address: str, folder: Path, release: str, pause_s: float = 0.0) -> list[Run]:
    """Create topics in a new cluster; return what each run prints.

    ``pause_s``: how long the brokers take until all of them know a move.
    """
    _create_topics(address)
    for name, content in FILES.items():
        (folder / name).write_text(json.dumps(content if isinstance(content, dict) else _plan(content)))
    is_old = release.startswith("2.")
    moves, directories = (OLD_REASSIGNMENTS, OLD_LOG_DIRS) if is_old else (REASSIGNMENTS, LOG_DIRS)
    found = [_run(tools, directories, arguments, address, folder) for arguments in DIRECTORIES]
    for arguments in MOVES:
        tool = moves if arguments is not DESCRIBED else OLD_CONFIGS if is_old else CONFIGS
        found.append(_run(tools, tool, arguments, address, folder))
        if "--execute" in arguments:
            time.sleep(pause_s)
    return found


def _plan(moves: Any) -> Any:
    partitions = [{"topic": topic, "partition": index, "replicas": replicas} for topic, index, replicas in moves]
    return {"version": 1, "partitions": partitions}


def _create_topics(address: str) -> None:
    topics = tuple(
        CreatableTopic(
            name=name,
            num_partitions=-1,
            replication_factor=-1,
            assignments=tuple(
                CreatableReplicaAssignment(partition_index=index, broker_ids=replicas)
                for index, replicas in enumerate(partitions)
            ),
            configs=(),
        )
        for name, partitions in TOPICS.items()
    )
    for one in address.split(","):  # the controller accepts it
        transport = SocketTransport(one)
        transport.send("admin", CreateTopicsRequest(topics=topics, timeout_ms=10_000), 4)
        for _ in range(ATTEMPTS):
            if transport.responses():
                break
        transport.close()


def _run(tools: Tools, tool: str, arguments: str, address: str, folder: Path) -> Run:
    words = shlex.split(arguments.replace("FOLDER", str(folder)))
    for _ in range(ATTEMPTS):
        output = tools.run(tool, "--bootstrap-server", address.split(",", maxsplit=1)[0], *words)
        if "--verify" not in words or "still in progress" not in output.out:
            break
        time.sleep(0.2)
    shown = ToolOutput(output.exit_code, *(_same_ports(text, address) for text in (output.out, output.err)))
    shown = shown.normalized(address)
    out = DIRECTORY.sub('"DIRECTORY"', shown.out)
    if tool in (LOG_DIRS, OLD_LOG_DIRS):
        out = PARTITIONS.sub(_in_order, out)
    lines = [line for line in out.splitlines() if not STACK_FRAME.match(line)]
    return Run(tool, arguments, shown.exit_code, lines, shown.err.splitlines())


def _in_order(partitions: re.Match[str]) -> str:
    """Sort the partitions of a directory, which the tool prints in the order of a hash map."""
    return f'"partitions":[{",".join(sorted(PARTITION.findall(partitions[1])))}]'


def _same_ports(text: str, address: str) -> str:
    for number, one in enumerate(address.split(","), 1):
        text = text.replace(one, f"ADDRESS-{number}")
    return text


def main() -> None:
    from tests.oracle.cluster import real_kafka

    RECORDED.mkdir(exist_ok=True)
    for release in sys.argv[1:]:
        with (
            real_kafka(release, brokers=3) as cluster,
            running_tools(release) as tools,
            tempfile.TemporaryDirectory() as folder,
        ):
            time.sleep(2)
            runs = run_all(tools, cluster.bootstrap, Path(folder), release, PAUSE_S)
            texts = [json.dumps(one._asdict()).replace(folder, "FOLDER") for one in runs]
        (RECORDED / f"{release}.json").write_text("[\n" + ",\n".join(texts) + "\n]\n")


if __name__ == "__main__":
    main()
