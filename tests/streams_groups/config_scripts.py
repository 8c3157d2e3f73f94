"""Scripts about the configs of streams groups, and what the assignor does with standby tasks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from kproto.messages.k88_streams_group_heartbeat import KeyValue, Subtopology
from tests.streams_groups.members import STATEFUL, STATELESS, Application, Owned, offsets, subtopology, topic_info
from tests.streams_groups.scripts import DELAY_MS, SESSION_MS, Script

Topology = Sequence[Subtopology]
CONFIG_SCRIPTS: dict[str, Script] = {}
INTERVAL_MS = 2_000


def script(run: Script) -> Script:
    CONFIG_SCRIPTS[run.__name__] = run
    return run


def _start(app: Application, *names: str, partitions: int = 4, **configs: str) -> None:
    """Members of stateful tasks join a group with configs, and get their tasks."""
    app.create(partitions=partitions)
    app.configure(**configs)
    _join_all(app, {name: {} for name in names})
    app.settle(*names, rounds=4)
    app.describe()


def _join_all(app: Application, members: Mapping[str, Mapping[str, Any]], topology: Topology = STATEFUL) -> None:
    """Members join, each with these fields; the first one's request creates the internal topics."""
    (first, fields), *others = members.items()
    app.join(first, topology, **fields)
    app.wait_for(*[topic.name for one in topology for topic in one.state_changelog_topics])
    for name, given in others:
        app.join(name, topology, **given)
    app.pass_time(DELAY_MS)


def _tags(**tags: str) -> tuple[KeyValue, ...]:
    return tuple(KeyValue(key=key, value=value) for key, value in tags.items())


@script
def standby_tasks_are_assigned(app: Application) -> None:
    _start(app, "A", "B", num_standby_replicas="1")
    app.join("C", STATEFUL)
    app.settle("A", "B", "C", rounds=5)
    app.describe()
    app.leave("A")
    app.settle("B", "C", rounds=5)
    app.describe()
    app.join("A", STATEFUL, process_id="process of B")
    app.settle("A", "B", "C", rounds=5)
    app.describe()


@script
def standby_tasks_become_active(app: Application) -> None:
    _start(app, "A", "B", "C", partitions=6, num_standby_replicas="1")
    app.beat("B", task_offsets=offsets(_0_0=50, _0_1=10))
    app.beat("C", task_offsets=offsets(_0_0=90, _0_1=70))
    app.leave("A")
    app.settle("B", "C", rounds=5)
    app.describe()
    app.leave("B")
    app.settle("C", rounds=4)
    app.describe()


@script
def numbers_of_standby_replicas_change(app: Application) -> None:
    _start(app, "A", "B", "C")
    for count in ("1", "2", "3", "-1", "1", "0"):
        app.configure(num_standby_replicas=count)
        app.settle("A", "B", "C", rounds=4)
        app.describe()


@script
def standby_tasks_of_several_subtopologies(app: Application) -> None:
    app.create(partitions=3)
    app.create("u", partitions=2)
    app.configure(num_standby_replicas="2")
    topology = [
        subtopology(changelogs=[topic_info("log")]),
        subtopology("1", ["u"]),
        subtopology("2", ["u"], changelogs=[topic_info("more")]),
    ]
    _join_all(app, {name: {"process_id": "p" if name in "AB" else name} for name in "ABCD"}, topology)
    app.settle("A", "B", "C", "D", rounds=5)
    app.describe()
    app.leave("C")
    app.settle("A", "B", "D", rounds=5)
    app.describe()


@script
def tags_of_members(app: Application) -> None:
    app.create(partitions=4)
    app.configure(num_standby_replicas="1")
    app.configure(rack_aware_assignment_tags="zone,cluster")
    tags = {
        "A": _tags(zone="z1", cluster="c1"),
        "B": _tags(zone="z1"),
        "C": _tags(zone="z2", cluster="c1", other="o"),
        "D": (),
    }
    _join_all(app, {name: {"client_tags": given} for name, given in tags.items()})
    app.settle(*"ABCD", rounds=5)
    app.describe()
    app.beat("B", client_tags=_tags(zone="z3", cluster="c2"))
    app.settle(*"ABCD", rounds=5)
    app.describe()
    app.configure(rack_aware_assignment_tags="zone")
    app.settle(*"ABCD")
    app.configure(rack_aware_assignment_tags=None)
    app.settle(*"ABCD")
    app.describe()


@script
def rack_ids_of_members(app: Application) -> None:
    app.create(partitions=4)
    app.configure(num_standby_replicas="1")
    _join_all(app, {name: {"rack_id": rack} for name, rack in {"A": "r", "B": "r", "C": "s"}.items()})
    app.settle(*"ABC", rounds=5)
    app.beat("A", rack_id="other")
    app.settle(*"ABC")
    app.describe()


@script
def assignments_have_an_interval(app: Application) -> None:
    app.create(partitions=4)
    app.configure(assignment_interval_ms=str(INTERVAL_MS))
    app.join("A")
    app.pass_time(DELAY_MS + 300)
    app.settle("A")
    app.join("B")
    app.settle("A", "B", rounds=2)
    app.describe()
    app.pass_time(INTERVAL_MS)
    app.settle("A", "B", rounds=4)
    app.describe()
    app.leave("A")
    app.beat("B")
    app.join("C")
    app.describe()
    app.pass_time(INTERVAL_MS)
    app.settle("B", "C", rounds=4)
    app.describe()
    app.join("D")
    app.configure(assignment_interval_ms="0")
    app.settle("B", "C", "D", rounds=4)
    app.describe()


@script
def sessions_last_as_configured(app: Application) -> None:
    app.create()
    app.configure(session_timeout_ms="1500", heartbeat_interval_ms="700")
    app.join("A")
    app.join("B")
    app.pass_time(DELAY_MS + 300)
    app.settle("A", "B")
    app.pass_time(1_000)
    app.beat("A")
    app.pass_time(1_000)
    app.describe()
    app.configure(session_timeout_ms=None, heartbeat_interval_ms=None)
    app.beat("A")
    app.pass_time(SESSION_MS - 1_000)
    app.beat("A")
    app.configure(session_timeout_ms="1")
    app.configure(heartbeat_interval_ms="100000")
    app.pass_time(SESSION_MS)
    app.describe()


@script
def groups_begin_with_a_delay_of_their_own(app: Application) -> None:
    app.create()
    app.configure(initial_rebalance_delay_ms="2000")
    app.join("A")
    app.pass_time(DELAY_MS + 300)
    app.join("B")
    app.beat("A")
    app.describe()
    app.pass_time(1_700)
    app.settle("A", "B")
    app.describe()
    app.leave("A")
    app.leave("B")
    app.configure(initial_rebalance_delay_ms="0")
    app.join("A")
    app.settle("A")
    app.describe()


@script
def intervals_of_offsets_are_configured(app: Application) -> None:
    app.create()
    app.configure(task_offset_interval_ms="20000")
    app.configure(acceptable_recovery_lag="5")
    app.configure(num_warmup_replicas="0")
    app.configure(assignor_offload_enable="false")
    app.join("A", STATELESS)
    app.pass_time(DELAY_MS + 300)
    app.settle("A")
    app.beat("A", owned=Owned())
    app.describe()
