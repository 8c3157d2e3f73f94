"""Streams groups: list, describe, reset and delete offsets, delete."""

from tests.clients.tool_steps import Action, ScriptRun, committed, query, records, run, topic
from tests.clients.tools import ALL_GROUPS, GROUPS, STREAMS_GROUPS
from tests.membership.socket_transport import SocketTransport
from tests.streams_groups.members import Application, subtopology

NAME = "streamed"
GROUP, TOPIC = f"{NAME}-g", f"{NAME}-t"
TOPOLOGY = (subtopology(), subtopology("1"))
ROUNDS = 100
ROUND_MS = 100

_applications: dict[str, Application] = {}
"""The members of the group by the broker's address."""


def joined(*names: str) -> Action:
    """Join the group; send heartbeats until all members have tasks."""

    def join(script: ScriptRun) -> None:
        for address in script.pair.addresses:
            transport = SocketTransport(address)
            script.stack.callback(transport.close)
            app = _applications[address] = Application(transport, "latest", NAME, 1)
            for name in names:
                app.join(name, TOPOLOGY, client_tags=())
            for _ in range(ROUNDS):
                app.settle(*names, rounds=1)
                if all(app.members[name].owned.active for name in names):
                    break
                transport.pass_time(ROUND_MS)
            app.settle(*names)

    return join


def left(*names: str) -> Action:
    """Leave the group."""

    def leave(script: ScriptRun) -> None:
        for address in script.pair.addresses:
            for name in names:
                _applications[address].leave(name)

    return leave


STEPS = (
    topic(TOPIC, 2),
    records(TOPIC, 0, 10),
    records(TOPIC, 1, 5),
    query(STREAMS_GROUPS, "--describe --group unknown", "unknown"),
    joined("A", "B"),
    query(STREAMS_GROUPS, "--list", GROUP),
    query(STREAMS_GROUPS, "--list --state", GROUP, "Stable"),
    query(STREAMS_GROUPS, "--list --state Stable", GROUP),
    query(STREAMS_GROUPS, "--list --state NotReady", "STATE"),
    query(STREAMS_GROUPS, f"--describe --group {GROUP}", GROUP),
    query(STREAMS_GROUPS, f"--describe --group {GROUP} --state", "Stable"),
    query(STREAMS_GROUPS, f"--describe --group {GROUP} --state --verbose", "Stable"),
    query(STREAMS_GROUPS, f"--describe --group {GROUP} --members", "ACTIVE"),
    query(STREAMS_GROUPS, f"--describe --group {GROUP} --members --verbose", "ACTIVE"),
    query(STREAMS_GROUPS, f"--describe --group {GROUP} --offsets --verbose", TOPIC),
    query(STREAMS_GROUPS, "--describe --all-groups", GROUP),
    query(GROUPS, f"--describe --group {GROUP}", "not a consumer group"),
    query(ALL_GROUPS, "--list --streams", GROUP),
    run(STREAMS_GROUPS, f"--delete --group {GROUP}", GROUP),
    run(STREAMS_GROUPS, f"--reset-offsets --group {GROUP} --all-input-topics --to-earliest --execute", GROUP),
    left("A", "B"),
    query(STREAMS_GROUPS, "--list --state Empty", GROUP),
    committed(GROUP, TOPIC, {0: 3, 1: 4}),
    query(STREAMS_GROUPS, f"--describe --group {GROUP}"),
    run(STREAMS_GROUPS, f"--reset-offsets --group {GROUP} --all-input-topics --to-earliest --dry-run", TOPIC),
    run(STREAMS_GROUPS, f"--reset-offsets --group {GROUP} --input-topic {TOPIC}:1 --to-offset 2 --execute", TOPIC),
    run(STREAMS_GROUPS, f"--delete-offsets --group {GROUP} --input-topic {TOPIC}:0", TOPIC),
    query(STREAMS_GROUPS, f"--describe --group {GROUP} --offsets"),
    run(STREAMS_GROUPS, f"--delete --group {GROUP} --group unknown", GROUP),
    query(STREAMS_GROUPS, "--list"),
    run(STREAMS_GROUPS, "", "Command must include exactly one action"),
)
