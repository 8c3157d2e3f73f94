"""Start and stop clusters of real Kafka, each in its own folder, and single brokers of a cluster.

A folder has `cluster.json` (version, ports), `node-1`, `node-2`, ... and, for old releases, `zookeeper`. Each of the
last three has the settings, data, output and pid of its process.
"""

import json
import shutil
import socket
import struct
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.oracle import class_archives
from tests.oracle.ports import HOST, free_port
from tests.oracle.processes import KILL, TERMINATE, alive, end, heap_size, java, log_level, spawn
from tests.oracle.releases import CACHE, JARS, OracleError, fetch, find_class, number

RUNNING = CACHE / "running"
START_LIMIT_S = 90.0
CLUSTER_ID = "a3Byb3RvLW9yYWNsZS0wMQ"
SMALL = {  # settings of a test broker
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "transaction.state.log.num.partitions": "4",
    "group.initial.rebalance.delay.ms": "0",
    "num.network.threads": "2",
    "num.io.threads": "4",
    "log.cleaner.dedupe.buffer.size": "4194304",
    "log.index.size.max.bytes": "262144",
    "controlled.shutdown.enable": "true",
    "auto.create.topics.enable": "true",
    "delete.topic.enable": "true",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """The content of cluster.json."""

    version: str
    ports: tuple[int, ...]
    side_port: int
    """The port of the controller or of ZooKeeper."""
    kept: bool
    """Whether `stop` keeps the folder."""
    folder: Path

    @property
    def bootstrap(self) -> str:
        return ",".join(f"{HOST}:{port}" for port in self.ports)

    def node(self, node_id: int) -> Path:
        return self.folder / f"node-{node_id}"

    def up(self) -> set[int]:
        """Return the ids of the running brokers."""
        return {i for i in range(1, len(self.ports) + 1) if alive(self.node(i))}

    def write(self) -> None:
        content = {"version": self.version, "ports": self.ports, "side_port": self.side_port, "kept": self.kept}
        self.folder.mkdir(parents=True, exist_ok=True)
        (self.folder / "cluster.json").write_text(json.dumps(content, indent=1))
        RUNNING.mkdir(parents=True, exist_ok=True)
        _note(self.folder).write_text(str(self.folder))

    @classmethod
    def read(cls, folder: Path) -> "State | None":
        try:
            content = json.loads((folder / "cluster.json").read_text())
        except FileNotFoundError:
            return None
        return cls(
            version=content["version"],
            ports=tuple(content["ports"]),
            side_port=content["side_port"],
            kept=content["kept"],
            folder=folder,
        )


def start(
    version: str,
    *,
    folder: Path | None = None,
    port: int | None = None,
    brokers: int | None = None,
    up: int | None = None,
    zookeeper: bool = False,
    props: Mapping[str, str] | None = None,
) -> State:
    """Start a cluster and wait until it responds; continue the cluster of an existing folder."""
    version, jars = fetch(version)
    kept = folder is not None
    if folder is None:
        (CACHE / "run").mkdir(parents=True, exist_ok=True)
        folder = Path(tempfile.mkdtemp(prefix=f"{version}-", dir=CACHE / "run"))
    folder = folder.resolve()
    before = State.read(folder)
    if before is not None and any(alive(process) for process in processes(folder)):
        raise OracleError(f"already running in {folder}")
    ports = before.ports if before else ()
    if port or len(ports) != (brokers or len(ports) or 1):
        ports = tuple(port + i if port else free_port() for i in range(brokers or 1))
    side_port = before.side_port if before else free_port()
    state = State(version=version, ports=ports, side_port=side_port, kept=kept, folder=folder)
    state.write()
    try:
        kraft = number(version) >= (3, 3) and not zookeeper
        _launch(state, jars, up or len(ports), props or {}, kraft)
    except BaseException:
        stop(folder)
        raise
    return state


def stop(folder: Path) -> None:
    folder = folder.resolve()
    state = State.read(folder)
    for process in processes(folder):
        if end(process, TERMINATE) and state is not None:
            class_archives.keep(JARS / state.version, process)
    _note(folder).unlink(missing_ok=True)
    if state is not None and not state.kept:
        shutil.rmtree(folder)


def start_node(folder: Path, node_id: int) -> None:
    """Start one broker of a cluster; wait until all running brokers know each other."""
    state, node = _state_and_node(folder, node_id)
    if alive(node):
        raise OracleError(f"broker {node_id} is already running")
    version, jars = fetch(state.version)
    process = spawn(node, _broker_command(state.folder, jars, node))
    ids = state.up()
    what = f"broker {node_id}"
    wait(lambda: all(complete(state.ports[i - 1], version, ids) for i in ids), {node: process}, what)


def stop_node(folder: Path, node_id: int) -> None:
    """Stop one broker by a controlled shutdown; wait until the metadata of the others does not name it."""
    state, node = _state_and_node(folder, node_id)
    if end(node, TERMINATE):
        class_archives.keep(JARS / state.version, node)
    if node_id == 1 and not (state.folder / "zookeeper").exists():
        return  # this node is the controller: the others get no metadata update
    ports = [state.ports[i - 1] for i in state.up()]
    condition = f"the removal of broker {node_id}"
    wait(lambda: all(node_id not in known(port, state.version)[0] for port in ports), {}, condition)


def kill_node(folder: Path, node_id: int) -> None:
    """Kill one broker; the others notice when its session times out."""
    end(_state_and_node(folder, node_id)[1], KILL)


def clusters() -> list[Path]:
    return [Path(f.read_text()) for f in sorted(RUNNING.glob("*"))] if RUNNING.is_dir() else []


def processes(folder: Path) -> list[Path]:
    """Return the folders of a cluster's processes, in the order in which they are stopped."""
    return [*sorted(folder.glob("node-*"), reverse=True), *folder.glob("zookeeper")]


def ask(port: int, api_key: int, api_version: int, body: bytes) -> bytes:
    """Send one request; return the body of the response."""
    with socket.create_connection((HOST, port), 2.0) as s:
        header = struct.pack(">hhih6s", api_key, api_version, 1, 6, b"oracle")
        s.sendall(struct.pack(">i", len(header) + len(body)) + header + body)
        stream = s.makefile("rb")
        size = struct.unpack(">i", stream.read(4))[0]
        response: bytes = stream.read(size)
        return response[4:]


def known(port: int, version: str) -> tuple[set[int], int | None]:
    """Return the brokers in a broker's Metadata (killed ones may still be there), and the controller id if present."""
    if number(version) < (0, 11):
        body, at, racks = ask(port, 3, 0, struct.pack(">i", 0)), 0, False
    else:  # v4: throttle, brokers with racks, cluster id, controller; an empty topic list requests no topic
        body, at, racks = ask(port, 3, 4, struct.pack(">i?", 0, False)), 4, True

    def after_string(position: int) -> int:
        size: int = struct.unpack_from(">h", body, position)[0]
        return position + 2 + max(0, size)

    ids = set()
    count, at = struct.unpack_from(">i", body, at)[0], at + 4
    for _ in range(count):
        ids.add(struct.unpack_from(">i", body, at)[0])
        at = after_string(at + 4) + 4
        at = after_string(at) if racks else at
    return ids, struct.unpack_from(">i", body, after_string(at))[0] if racks else None


def complete(port: int, version: str, ids: set[int]) -> bool:
    """Return whether the Metadata of a broker names these brokers and, if it has the field, a controller."""
    found, controller = known(port, version)
    if number(version) < (0, 9):  # 0.8 returns no broker before the first topic exists
        return True
    return found >= ids and controller != -1


def wait(ready: Callable[[], bool], starting: Mapping[Path, subprocess.Popen[bytes]], what: str) -> None:
    def outputs() -> str:
        return "\n".join((folder / "out.log").read_text(errors="replace")[-3000:] for folder in starting)

    limit = time.monotonic() + START_LIMIT_S
    while time.monotonic() < limit:
        for process in starting.values():
            if process.poll() is not None:
                raise OracleError(f"{what} ended with {process.returncode}:\n{outputs()}")
        try:
            if ready():
                return
        except (OSError, struct.error):
            pass  # the server does not listen yet, or has closed the connection
        time.sleep(0.05)
    raise OracleError(f"{what}: not reached within {START_LIMIT_S} s\n{outputs()}")


def _launch(state: State, jars: Path, up: int, props: Mapping[str, str], kraft: bool) -> None:
    starting: dict[Path, subprocess.Popen[bytes]] = {}
    if not kraft:
        zookeeper = state.folder / "zookeeper"
        starting[zookeeper] = _start_zookeeper(zookeeper, jars, state.side_port)

        def listens() -> bool:
            socket.create_connection((HOST, state.side_port), 1).close()
            return True

        wait(listens, starting, "ZooKeeper")
    for node_id in range(1, len(state.ports) + 1):
        node = state.node(node_id)
        node.mkdir(exist_ok=True)
        node_settings = _kraft_settings(state, node_id) if kraft else _zookeeper_settings(state, node_id)
        settings = with_props({"log.dirs": f"{node}/data", **SMALL, **node_settings}, props)
        lines = [f"{key}={value}\n" for key, value in settings.items() if value]
        (node / "server.properties").write_text("".join(lines))
        if kraft and not (node / "data/meta.properties").exists():
            _format(state.folder, jars, node)
        if node_id <= up:
            starting[node] = spawn(node, _broker_command(state.folder, jars, node))
    ids = set(range(1, up + 1))
    ports = state.ports[:up]
    what = f"Kafka {state.version}"
    wait(lambda: all(complete(port, state.version, ids) for port in ports), starting, what)


def with_props(settings: Mapping[str, str], props: Mapping[str, str]) -> dict[str, str]:
    """Return the settings with the user's, which replace them, or with a leading + extend a list."""
    given = {key: f"{settings[key]},{value[1:]}" if value.startswith("+") else value for key, value in props.items()}
    return {**settings, **given}


def _start_zookeeper(folder: Path, jars: Path, port: int) -> "subprocess.Popen[bytes]":
    folder.mkdir(exist_ok=True)
    (folder / "zoo.cfg").write_text(
        f"dataDir={folder}/data\nclientPort={port}\nclientPortAddress={HOST}\ntickTime=500\n"
        "maxClientCnxns=0\nadmin.enableServer=false\nadmin.serverPort=0\n"
    )
    run = java(jars, folder.parent / "conf", log_level(), "128m")
    return spawn(folder, [*run, "org.apache.zookeeper.server.quorum.QuorumPeerMain", f"{folder}/zoo.cfg"])


def _kraft_settings(state: State, node_id: int) -> dict[str, str]:
    listener, controller = f"PLAINTEXT://{HOST}:{state.ports[node_id - 1]}", f"{HOST}:{state.side_port}"
    return {
        "node.id": str(node_id),
        "process.roles": "broker,controller" if node_id == 1 else "broker",
        "controller.quorum.voters": f"1@{controller}",
        "controller.listener.names": "CONTROLLER",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
        "inter.broker.listener.name": "PLAINTEXT",
        "advertised.listeners": listener,
        "listeners": f"{listener},CONTROLLER://{controller}" if node_id == 1 else listener,
    }


def _zookeeper_settings(state: State, node_id: int) -> dict[str, str]:
    port = state.ports[node_id - 1]
    settings = {
        "broker.id": str(node_id),
        "zookeeper.connect": f"{HOST}:{state.side_port}",
        "zookeeper.connection.timeout.ms": "20000",
        "zookeeper.session.timeout.ms": "20000",
    }
    if number(state.version) >= (0, 9):
        listener = f"PLAINTEXT://{HOST}:{port}"
        return settings | {"listeners": listener, "advertised.listeners": listener}
    at = {"host.name": HOST, "port": str(port)}
    return settings | at | {f"advertised.{key}": value for key, value in at.items()}


def _format(folder: Path, jars: Path, node: Path) -> None:
    tool = find_class(jars, "StorageTool")
    command = [*java(jars, folder / "conf", log_level(), heap_size()), tool, "format", "-t", CLUSTER_ID]
    done = subprocess.run(
        [*command, "-c", f"{node}/server.properties"], capture_output=True, text=True, cwd=node, check=False
    )
    if done.returncode:
        raise OracleError(f"storage format failed:\n{(done.stdout + done.stderr)[-3000:]}")


def _broker_command(folder: Path, jars: Path, node: Path) -> list[str]:
    run = java(jars, folder / "conf", log_level(), heap_size(), class_archives.use_or_write(jars, node))
    return [*run, "kafka.Kafka", str(node / "server.properties")]


def _state_and_node(folder: Path, node_id: int) -> tuple[State, Path]:
    state = State.read(folder.resolve())
    if state is None or not state.node(node_id).is_dir():
        raise OracleError(f"no broker {node_id} in {folder}")
    return state, state.node(node_id)


def _note(folder: Path) -> Path:
    return RUNNING / folder.as_posix().strip("/").replace("/", "%")
