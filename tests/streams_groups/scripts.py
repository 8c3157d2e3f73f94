"""The requests of members of streams groups, script by script: each runs against real brokers, and against kproto.

Sessions last 3 s, and the first member of a group waits for others for 400 ms.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

from kproto.messages.k88_streams_group_heartbeat import KeyValue
from tests.share_groups.other_requests import other_requests
from tests.streams_groups.members import (
    ASSIGNED,
    STATEFUL,
    STATELESS,
    Application,
    Owned,
    endpoint,
    offsets,
    subtopology,
    task_ids,
    topic_info,
)

Script = Callable[[Application], None]

SCRIPTS: dict[str, Script] = {}
DELAY_MS = 400
"""`group.streams.initial.rebalance.delay.ms` of the recorded brokers."""
SESSION_MS = 3_000
BUSY_MS = 3_000
"""How long a busy broker takes until its coordinator knows topics and configs."""
LONG_MS = 60_000
"""The timeouts of members of random scripts: longer than a busy broker takes for their requests."""


def script(run: Script) -> Script:
    SCRIPTS[run.__name__] = run
    return run


def _start(app: Application, *names: str) -> None:
    """Members of stateless tasks join, and get them."""
    app.create(partitions=4)
    for name in names or ("A",):
        app.join(name)
    app.pass_time(DELAY_MS + 300)
    app.settle(*(names or ("A",)))


@script
def requests_that_are_invalid(app: Application) -> None:
    app.create()
    app.join("", STATELESS)
    app.join(" ", STATELESS)
    app.join("A", group_id="")
    app.join("A", instance_id="")
    app.join("A", rack_id=" ")
    app.join("A", rebalance_timeout_ms=-1)
    app.join("A", active_tasks=None)
    app.join("A", standby_tasks=task_ids({"0": [0]}))
    app.join("A", warmup_tasks=task_ids({"0": [0]}))
    app.beat("A", 0, owned=Owned(), rebalance_timeout_ms=1_000)
    app.join("A", [subtopology(regex=["a.*"])])
    app.join("A", [subtopology(changelogs=[topic_info("log", partitions=3)])])
    app.join("A", [subtopology(sources=["__consumer_offsets"])])
    app.join("A", [subtopology(sinks=["__transaction_state", "__share_group_state"])])
    app.join("A", [subtopology(sources=["bad topic", ""])])
    app.join("A", [])
    app.join("A", [subtopology(sources=[])])
    app.beat("A", 1)
    app.beat("A", -1)
    app.beat("A", -2)
    app.beat("A", -3)
    app.beat("A", 1, owned=None, active_tasks=())
    app.join("A", STATELESS, member_epoch=1)
    app.describe()
    app.describe("")
    app.list_groups()


@script
def a_member_joins_and_leaves(app: Application) -> None:
    app.create()
    app.describe()
    app.join("A", rack_id="r", client_tags=(KeyValue(key="zone", value="z"),))
    app.describe()
    app.beat("A")
    app.describe()
    app.list_groups()
    app.pass_time(DELAY_MS + 300)
    app.describe()
    app.beat("A")
    app.describe()
    app.beat("A")
    app.beat("A", owned=None)
    app.describe(include_authorized_operations=True)
    app.describe(include_topology_description=True)
    app.join("A", rack_id="r")
    app.beat("A")
    app.leave("A")
    app.describe()
    app.leave("A")
    app.beat("A")
    app.list_groups()
    app.join("B")
    app.beat("B")
    app.pass_time(DELAY_MS + 300)
    app.beat("B")
    app.describe()


@script
def source_topics_are_missing(app: Application) -> None:
    app.warm_up()
    app.join("A", [subtopology(sources=["t", "u"]), subtopology("1", ["v", "w", "x"])])
    app.describe()
    app.list_groups(states=["NotReady"])
    app.list_groups(states=["not_ready"])
    app.pass_time(DELAY_MS + 300)
    app.beat("A")
    app.describe()
    for topic in "tuvwx":
        app.create(topic, waits=False)
    app.wait_for(*"tuvwx")
    app.beat("A")
    app.describe()
    app.beat("A")
    app.delete_topic("u")
    app.beat("A")
    app.beat("A")
    app.describe()
    app.create("u", 3)
    app.settle("A")
    app.describe()


WORDS = (
    subtopology(sources=["t"], sinks=["words"]),
    subtopology(
        "1",
        [],
        repartition=[topic_info("words", cleanup_policy="delete", retention_ms="-1")],
        changelogs=[topic_info("counts", cleanup_policy="compact"), topic_info("more", factor=1)],
    ),
)


@script
def internal_topics_are_created(app: Application) -> None:
    app.create(partitions=3)
    app.join("A", WORDS)
    app.describe()
    app.wait_for("words", "counts", "more")
    app.beat("A")
    app.pass_time(DELAY_MS + 300)
    app.settle("A")
    app.describe()
    app.delete_topic("counts")
    app.beat("A")
    app.wait_for("counts")
    app.settle("A")
    app.describe()


@script
def internal_topics_that_cannot_be_created(app: Application) -> None:
    app.create(partitions=2)
    app.join("A", [subtopology(changelogs=[topic_info("log", factor=5)])])
    app.pass_time(1_000)
    app.beat("A")
    app.beat("A")
    app.describe()


@script
def topics_with_wrong_partition_counts(app: Application) -> None:
    app.create("t", 2)
    app.create("u", 3)
    app.create("log", 5)
    app.join("A", [subtopology(changelogs=[topic_info("log")])])
    app.beat("A")
    app.describe()
    app.leave("A")
    app.delete()
    app.join("A", [subtopology(sources=["t", "u"], copartition=[([0, 1], [])])])
    app.leave("A")
    app.delete()
    fixed = [topic_info("r", partitions=4)]
    app.join("A", [subtopology(sinks=["r"]), subtopology("1", ["t"], repartition=fixed, copartition=[([0], [0])])])
    app.leave("A")
    app.delete()
    both = [topic_info("r", partitions=4), topic_info("s", partitions=6)]
    app.join("A", [subtopology(sinks=["r", "s"]), subtopology("1", [], repartition=both, copartition=[([], [0, 1])])])
    app.leave("A")
    app.delete()
    app.join("A", [subtopology("1", [], repartition=[topic_info("r")])])
    app.join("A", [subtopology("1", [], sinks=["r"], repartition=[topic_info("r")])])
    app.join("A", [subtopology(copartition=[([7], [])])])
    app.join("A", [subtopology(copartition=[([-1], [])])])
    app.join("A", [subtopology(sinks=["r"]), subtopology("1", [], repartition=[topic_info("r", partitions=-2)])])
    app.join("A", [subtopology(), subtopology()])
    app.join("A", topology_epoch=-1)
    app.describe()


@script
def partition_counts_follow_from_other_topics(app: Application) -> None:
    app.create("t", 2)
    app.create("u", 4)
    topology = [
        subtopology("0", ["t"], sinks=["a"]),
        subtopology("1", ["u"], sinks=["b"], repartition=[topic_info("a")], changelogs=[topic_info("c")]),
        subtopology("2", [], repartition=[topic_info("b"), topic_info("d", partitions=3)]),
        subtopology("3", ["t"], sinks=["e", "d"]),
        subtopology("4", ["u"], repartition=[topic_info("e")], copartition=[([0], [0])], changelogs=[topic_info("f")]),
    ]
    app.join("A", topology)
    app.wait_for(*"abcdef")
    app.pass_time(DELAY_MS)
    app.settle("A")
    app.describe()


@script
def tasks_move_between_members(app: Application) -> None:
    _start(app, "A")
    app.describe()
    app.join("B")
    app.beat("A")
    app.describe()
    app.beat("B")
    app.beat("A", owned=Owned({"0": [0, 1, 2, 3]}))
    app.beat("A")
    app.describe()
    app.beat("B")
    app.settle("A", "B")
    app.describe()
    app.join("C", process_id="process of A")
    app.settle("A", "B", "C", rounds=4)
    app.describe()
    app.leave("A")
    app.settle("B", "C", rounds=4)
    app.describe()
    app.leave("B")
    app.leave("C")
    app.describe()


@script
def members_of_one_process(app: Application) -> None:
    app.create(partitions=5)
    for name in ("A", "B", "C"):
        app.join(name, process_id="p" if name != "C" else "q")
    app.pass_time(DELAY_MS + 300)
    app.settle("A", "B", "C")
    app.describe()
    app.join("D", process_id="q")
    app.settle("A", "B", "C", "D", rounds=4)
    app.describe()
    app.leave("A")
    app.settle("B", "C", "D", rounds=4)
    app.describe()


@script
def static_members(app: Application) -> None:
    _start(app, "A")
    app.join("B", instance_id="i")
    app.settle("A", "B", rounds=4)
    app.join("C", instance_id="i")
    app.beat("B", instance_id="j")
    app.beat("C", instance_id="i", epoch=3)
    app.beat("B", instance_id="i")
    app.leave("B", -2, instance_id="i")
    app.describe()
    app.beat("B", instance_id="i")
    app.join("C", instance_id="i", process_id="process of B")
    app.describe()
    app.beat("C", instance_id="i")
    app.beat("A")
    app.leave("C", -2, instance_id="i")
    app.join("D", instance_id="i")
    app.settle("A", "D")
    app.leave("D", -1, instance_id="x")
    app.leave("A", -1, instance_id="i")
    app.leave("D", -1, instance_id="i")
    app.settle("A")
    app.describe()


@script
def a_static_member_leaves_before_it_has_revoked(app: Application) -> None:
    """The end of its revocation does not remove it: its epoch is another one."""
    app.create(partitions=4)
    app.join("A", instance_id="a", rebalance_timeout_ms=1_000)
    app.pass_time(DELAY_MS + 300)
    app.settle("A", rounds=2)
    app.join("B")
    app.beat("A", instance_id="a")
    app.leave("A", -2, instance_id="a")
    app.beat("B")
    app.pass_time(1_500)
    app.beat("B")
    app.describe()
    app.join("C", instance_id="a")
    app.settle("B", rounds=2)
    app.describe()


@script
def epochs_that_are_wrong(app: Application) -> None:
    _start(app, "A")
    epoch = app.members["A"].epoch
    app.beat("A", epoch + 1)
    app.beat("A", epoch - 1)
    app.beat("A", epoch - 1, owned=None)
    app.beat("A", epoch - 1, owned=Owned({"0": [0, 1]}))
    app.beat("A", epoch - 2, owned=Owned())
    app.beat("A", epoch, owned=Owned({"9": [0]}))
    app.beat("A", epoch, owned=Owned({"0": [4]}))
    app.beat("A", epoch, owned=Owned({}, {"0": [-1]}))
    app.beat("unknown", 1)
    app.join("A")
    app.beat("A")


@script
def sessions_and_revocations_end(app: Application) -> None:
    _start(app, "A", "B")
    app.pass_time(SESSION_MS // 2)
    app.beat("A")
    app.pass_time(SESSION_MS // 2 + 500)
    app.describe()
    app.settle("A")
    app.join("B")
    app.settle("A", "B", rounds=1)
    for _ in range(3):
        app.pass_time(1_000)
        app.beat("A", owned=None)
        app.beat("B")
    app.describe()
    app.pass_time(SESSION_MS + 500)
    app.describe()


@script
def topologies_that_differ(app: Application) -> None:
    app.create()
    app.create("u")
    app.join("A", STATELESS, topology_epoch=3)
    app.join("B", STATELESS, topology_epoch=2)
    app.join("C", [subtopology(sources=["u"])], topology_epoch=2)
    app.join("D", [subtopology(sources=["u"])], topology_epoch=3)
    app.join("D", STATELESS, topology_epoch=4)
    app.pass_time(DELAY_MS + 300)
    app.settle("A", "B", "C")
    app.describe()
    app.leave("A")
    app.leave("B")
    app.leave("C")
    app.join("D", [subtopology(sources=["u"])], topology_epoch=4)
    app.join("D", STATELESS, topology_epoch=3)
    app.describe()


@script
def an_application_shuts_down(app: Application) -> None:
    _start(app, "A", "B")
    app.beat("A", shutdown_application=True)
    app.beat("B")
    app.beat("B", shutdown_application=True)
    app.leave("A")
    app.beat("B")
    app.leave("B")
    app.join("C", shutdown_application=True)
    app.beat("C")
    app.join("D")
    app.leave("D", shutdown_application=True)
    app.beat("C")


@script
def endpoints_of_members(app: Application) -> None:
    app.create(partitions=2)
    app.create("u", 4)
    topology = [subtopology(sources=["t", "u"]), subtopology("1", ["t"])]
    app.join("A", topology, user_endpoint=endpoint(1))
    app.beat("A")
    app.pass_time(DELAY_MS + 300)
    app.settle("A")
    app.join("B", topology)
    app.settle("A", "B", rounds=4)
    app.beat("B", user_endpoint=endpoint(2))
    app.settle("A", "B", rounds=2)
    app.beat("B", user_endpoint=endpoint(3))
    app.beat("A")
    app.beat("A", endpoint_information_epoch=-1)
    app.join("B", topology)
    app.settle("A", "B", rounds=2)
    app.leave("B")
    app.settle("A", rounds=4)
    app.describe()


@script
def endpoints_of_members_without_tasks(app: Application) -> None:
    app.warm_up()
    app.join("A", user_endpoint=endpoint(1))
    app.describe()
    app.join("B")
    app.join("A", user_endpoint=endpoint(1))
    app.beat("B", user_endpoint=endpoint(2))
    app.create()
    app.pass_time(DELAY_MS)
    app.beat("B", user_endpoint=endpoint(2))
    app.beat("B")


@script
def stateful_tasks_and_offsets(app: Application) -> None:
    app.create(partitions=4)
    app.join("A", STATEFUL)
    app.wait_for("log")
    app.pass_time(DELAY_MS)
    app.settle("A")
    app.beat("A", task_offsets=offsets(_0_0=5, _0_1=7), task_end_offsets=offsets(_0_0=9))
    app.describe()
    app.beat("A", task_offsets=offsets(_0_0=8))
    app.describe()
    app.beat("A", task_offsets=())
    app.describe()
    app.beat("A", task_offsets=offsets(_0_0=1) + offsets(_0_0=1))
    app.join("B", STATEFUL, task_offsets=offsets(_0_3=100, _0_2=50))
    app.settle("A", "B", rounds=4)
    app.describe()
    app.leave("A")
    app.settle("B", rounds=4)
    app.describe()


@script
def offsets_are_committed(app: Application) -> None:
    _start(app, "A")
    epoch = app.members["A"].epoch
    app.commit("A")
    app.commit("A", epoch - 1)
    app.commit("A", epoch + 1)
    app.commit("A", version=8)
    app.commit("unknown", 1)
    app.commit("", -1)
    app.fetch("A")
    app.fetch("A", epoch - 1)
    app.fetch("unknown", epoch)
    app.fetch(None)
    app.join("B")
    app.settle("A", "B", rounds=4)
    app.commit("A", epoch)
    app.commit("A", epoch, partition=3)
    app.commit("A", epoch, topic="other")
    app.leave("A")
    app.leave("B")
    app.commit("", -1)
    app.fetch(None)


@script
def other_requests_name_a_streams_group(app: Application) -> None:
    _start(app, "A")
    for state in ("Stable", "Empty"):
        if state == "Empty":
            app.leave("A")
        for request, version in other_requests(app.full("g"), app.full("t")):
            app.send("other", request, version)
    app.describe()
    app.list_groups()
    app.join("A")


@script
def streams_requests_name_a_consumer_group(app: Application) -> None:
    app.create()
    _, consumer, *_ = (request for request, _ in other_requests(app.full("g"), app.full("t")))
    app.send("other", consumer, 1)
    app.join("A")
    app.beat("A", 1)
    app.leave("A")
    app.describe()


@script
def groups_are_listed_and_deleted(app: Application) -> None:
    _start(app, "A")
    app.list_groups("streams")
    app.list_groups("Streams")
    app.list_groups("consumer")
    app.list_groups(states=["Stable"])
    app.delete()
    app.leave("A")
    app.list_groups(states=["Empty"])
    app.delete("g", "other")
    app.describe()
    app.list_groups()
    app.join("A")
    app.describe()


@script
def a_topic_gets_more_partitions(app: Application) -> None:
    _start(app, "A")
    app.add_partitions("t", 6)
    app.settle("A")
    app.describe()


@script
def a_topic_is_made_again_with_fewer_partitions(app: Application) -> None:
    """A heartbeat with tasks that there are no more is refused; the next ones find the change of the topic, too."""
    _start(app, "A", "B")
    app.settle("A", "B")
    app.delete_topic("t", waits=False)
    app.create(partitions=2, waits=False)
    app.pass_time(1_500)
    app.beat("A")
    app.beat("B", owned=None)
    app.describe()
    app.beat("A", owned=Owned())
    app.beat("B", owned=Owned())
    app.settle("A", "B")
    app.describe()


def random_script(seed: int) -> Script:
    """Return a script of random heartbeats of a few members."""

    def run(app: Application) -> None:
        chance = Random(seed)  # noqa: S311 - a seed repeats the requests
        partition_count = chance.choice([1, 3, 4])
        app.create("t", partition_count)
        app.create("u", chance.choice([2, 5]))
        standbys = chance.choice([0, 0, 1, 2])
        logs = [topic_info("log")] if standbys else []
        if logs:
            app.create("log", partition_count)  # a real broker creates it once only, and never if that fails
        topology = [subtopology(changelogs=logs), subtopology("1", ["u"])][: chance.choice([1, 2])]
        app.configure(num_standby_replicas=str(standbys))
        app.pass_time(BUSY_MS)
        names = ["A", "B", "C", "D", "E"][: chance.choice([2, 3, 5])]
        processes = {name: f"p{chance.randrange(3)}" for name in names}
        instances = {name: f"i-{name}" if chance.random() < 0.2 else None for name in names}
        joined: set[str] = set()
        long = {"rebalance_timeout_ms": LONG_MS}
        app.join(names[0], topology, process_id=processes[names[0]], instance_id=instances[names[0]], **long)
        joined.add(names[0])
        app.pass_time(DELAY_MS + 300)
        for _ in range(40):
            name = chance.choice(names)
            instance = instances[name]
            given: dict[str, Any] = {} if instance is None else {"instance_id": instance}
            if name not in joined or chance.random() < 0.1:
                app.join(name, topology, process_id=processes[name], **given, **long)
                joined.add(name)
            elif chance.random() < 0.1:
                app.leave(name, -2 if instance and chance.random() < 0.7 else -1, **given)
                joined.discard(name)
            else:
                app.beat(name, owned=None if chance.random() < 0.1 else ASSIGNED, **given)
            app.describe()
            if not joined:
                app.join(name, topology, process_id=processes[name], **given, **long)
                joined.add(name)
                app.pass_time(DELAY_MS + 300)

    return run
