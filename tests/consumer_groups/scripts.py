"""The requests of members of consumer groups, script by script: each runs against real brokers, and against kproto.

The broker has the topics "t" (3 partitions), "u" (1), "w" (7) and "x" (6), and the settings of `transcripts`.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

from kproto.records.consumer_protocol import ConsumerProtocolAssignment, encode_member_data
from tests.consumer_groups.members import ASSIGNED, Conversation

MATCH_MS = 100
"""A real broker has matched a regular expression a moment after the heartbeat (DEVIATIONS)."""
WITH_USER_DATA = encode_member_data(ConsumerProtocolAssignment(assigned_partitions=(), user_data=b"u"), 1)
"""An assignment of a custom assignor."""

Script = Callable[[Conversation], None]
SCRIPTS: dict[str, Script] = {}


def script(run: Script) -> Script:
    SCRIPTS[run.__name__] = run
    return run


@script
def a_member_alone(group: Conversation) -> None:
    group.describe()
    group.beat("A", 1)
    group.leave("A")
    group.join("A")
    group.describe()
    group.describe_classic()
    group.list_groups()
    group.beat("A")
    group.beat("A", owned=None)
    group.describe()
    group.beat("A", 7)
    group.beat("A", 1)
    group.beat("A", 0)
    group.join("A")
    group.join("A", ("t", "u"))
    group.beat("A")
    group.beat("ghost", 3)
    group.commit("A")
    group.commit("A", version=8)
    group.commit("A", 0)
    group.commit("A", 99)
    group.commit("A", -1, member_id="")
    group.commit("A", 2, member_id="ghost")
    if group.serves(8, 10):
        group.commit("A", version=10)
    group.fetch("A")
    group.fetch("A", 0)
    group.fetch("A", -1, member_id=None)
    group.fetch("A", -1, member_id="ghost")
    if group.serves(9, 10):
        group.fetch("A", version=10)
    group.delete()
    group.leave("ghost")
    group.leave("A")
    group.leave("A")
    group.describe()
    group.list_groups()
    group.commit("A", -1, member_id="")
    group.commit("A", 3)
    group.fetch("A", -1, member_id=None)
    group.join("A")
    group.leave("A")
    group.delete()
    group.describe()
    group.beat("A", 1)


@script
def invalid_heartbeats(group: Conversation) -> None:
    group.join("A", instance_id="")
    group.join("A", instance_id=" ")
    group.join("A", rack_id="")
    group.join("", ("t",))
    group.join("A", rebalance_timeout_ms=-1)
    group.join("A", rebalance_timeout_ms=0)
    group.leave("A")
    group.join("B", topic_partitions=None)
    group.beat("B", 0, {"t": (1,)}, rebalance_timeout_ms=1, subscribed_topic_names=("t",))
    group.join("B", None)
    group.join("B", ())
    group.beat("B")
    group.leave("B")
    group.beat("B", -3)
    group.leave("B", -2)
    group.leave("B", -2, instance_id="i")
    group.join("B", server_assignor="none")
    group.join("B", server_assignor="")
    group.join("B", server_assignor="Uniform")
    group.join("B", ("missing",))
    group.describe()
    group.join("B", ("missing", "t", "t"))
    group.join("B", ("not a name!",))
    group.describe()
    group.group_id, name = "", group.group_id
    group.join("A")
    group.beat("A", 3)
    group.leave("A")
    group.group_id = name


@script
def two_members(group: Conversation) -> None:
    group.join("A", ("w",))
    group.beat("A")
    group.join("B", ("w",))
    group.beat("B")
    group.describe()
    group.beat("A")
    group.describe()
    group.beat("A", owned=None)
    group.beat("B")
    group.beat("A")
    group.describe()
    group.beat("B")
    group.beat("A")
    group.describe()
    group.commit("A")
    group.leave("A")
    group.describe()
    group.beat("B")
    group.beat("B")
    group.describe()


@script
def three_members_change_topics(group: Conversation) -> None:
    for name in "ABC":
        group.join(name, ("w", "t"))
    group.settle("A", "B", "C")
    group.describe()
    group.beat("A", subscribed_topic_names=("w",))
    group.settle("A", "B", "C")
    group.describe()
    group.beat("B", subscribed_topic_names=("t", "u"))
    group.settle("A", "B", "C")
    group.describe()
    group.beat("C", subscribed_topic_names=())
    group.settle("A", "B", "C")
    group.describe()
    group.leave("B")
    group.settle("A", "C")
    group.describe()


@script
def ranges(group: Conversation) -> None:
    group.join("A", ("w", "t"), server_assignor="range")
    group.join("B", ("w", "t"), server_assignor="range")
    group.join("C", ("w", "u"), server_assignor="range")
    group.settle("A", "B", "C")
    group.describe()
    group.beat("B", server_assignor="uniform")
    group.beat("C", server_assignor="uniform")
    group.describe()
    group.join("D", ("w", "t"), server_assignor="uniform")
    group.settle("A", "B", "C", "D")
    group.describe()


@script
def lost_responses(group: Conversation) -> None:
    group.join("A", ("w",))
    before = group.members["A"]
    group.join("B", ("w",))
    group.beat("A")
    group.beat("A")
    now = group.members["A"]
    group.beat("A", before.epoch, before.assigned)
    group.beat("A", before.epoch, now.assigned)
    group.beat("A", before.epoch, None)
    group.beat("A", before.epoch, {})
    group.beat("A", now.epoch + 1, {})
    group.beat("A", now.epoch, now.assigned, rebalance_timeout_ms=60_000, subscribed_topic_names=("w",))
    group.join("A", ("w",))


@script
def static_members(group: Conversation) -> None:
    group.join("A", ("w",), instance_id="i")
    group.join("B", ("w",), instance_id="j")
    group.settle("A", "B", rounds=2)
    group.beat("A", instance_id="i")
    group.beat("A", instance_id="j")
    group.beat("A", instance_id="k")
    group.join("A2", ("w",), instance_id="i")
    group.beat("B", instance_id="i")
    group.leave("A", -2, instance_id="k")
    group.leave("A2", -2, instance_id="i")
    group.leave("A", -2, instance_id="i")
    group.describe()
    group.beat("A", instance_id="i")
    group.join("A2", ("w",), instance_id="i")
    group.describe()
    group.beat("A")
    group.beat("A2")
    group.leave("A2", -2, instance_id="i")
    group.join("A3", ("w", "t"), instance_id="i")
    group.settle("A3", "B", rounds=3)
    group.describe()
    group.leave("A3", instance_id="i")
    group.leave("B", instance_id="j")
    group.describe()


@script
def generated_ids(group: Conversation) -> None:
    group.version = 0
    group.join("newA")
    group.beat("newA")
    group.leave("newA")
    group.join("newB", instance_id="i")
    group.beat("newB", instance_id="i")
    group.leave("newB", instance_id="i")


@script
def sessions_that_end(group: Conversation) -> None:
    group.join("A", ("w",))
    group.join("B", ("w",), rebalance_timeout_ms=1500)
    group.settle("A", "B", rounds=3)
    group.join("C", ("w",))
    group.settle("A", "B", "C", rounds=1)
    group.describe()
    for _ in range(6):
        group.pass_time(500)
        group.beat("A")
        group.beat("C")
        group.beat("B", owned=None)
    group.describe()
    group.settle("A", "C")
    group.describe()
    for _ in range(9):
        group.pass_time(500)
        group.beat("A")
    group.describe()
    group.pass_time(4000)
    group.describe()


@script
def a_full_group(group: Conversation) -> None:
    for name in "ABCDE":
        group.join(name)
    group.join("A")
    group.describe()


@script
def regular_expressions(group: Conversation) -> None:
    for text in ("(", "a**", "\\1", "(?=a)", "[z-a]", "a{1001}", "\\Z", "(?P<n>t", "[[:foo:]]", "x{2,1}", "*", "\\pX"):
        group.join("A", None, subscribed_topic_regex=text)
    group.join("A", None, subscribed_topic_regex="")
    group.beat("A")
    group.leave("A")
    group.join("A", None, subscribed_topic_regex="t|w")
    group.pass_time(1000)
    group.beat("A")
    group.beat("A")
    group.describe()
    group.join("B", ("u",), subscribed_topic_regex="t|w")
    group.settle("A", "B")
    group.describe()
    group.beat("A", subscribed_topic_regex="")
    group.settle("A", "B")
    group.describe()
    group.beat("A", subscribed_topic_regex="(")
    group.beat("A", subscribed_topic_regex="u")
    group.pass_time(1000)
    group.settle("A", "B")
    group.describe()
    group.leave("A")
    group.settle("B")
    group.describe()


@script
def classic_groups_are_upgraded(group: Conversation) -> None:
    group.join_classic("A", ("x",))
    group.sync("A", assigns={"x": range(6)})
    group.describe_classic()
    group.join("B", ("x",))
    group.pass_time(1100)
    group.describe()
    group.describe_classic()
    group.list_groups()
    group.beat_classic("A")
    group.sync("A")
    group.join_classic("A", ("x",))
    group.sync("A")
    group.beat_classic("A")
    group.join_classic("A", ("x",))
    group.sync("A")
    group.settle("B")
    group.describe()
    group.beat_classic("A")
    group.beat_classic("A", 99)
    group.commit("A")
    group.commit("A", 0)
    group.beat("A")
    group.beat_classic("B")
    group.leave_classic("B")
    group.join_classic("C", ("x",), protocol="other")
    group.join_classic("C", ("x",), metadata=b"")
    group.pass_time(1100)
    group.join_classic("C", ("x",))
    group.sync("C")
    group.beat_classic("A")
    group.settle("B")
    group.pass_time(1100)
    group.leave_classic("C")
    group.beat_classic("A")
    group.describe()
    group.leave("B")
    group.describe()
    group.describe_classic()
    group.beat_classic("A")
    group.join_classic("A", ("x",))
    group.describe_classic()


@script
def upgrades_are_refused(group: Conversation) -> None:
    group.join_classic("A", ("x",), protocol_type="connect")
    group.join("B", ("x",))
    group.sync("A", assignment=b"anything", protocol_type="connect")
    group.join("B", ("x",))
    group.beat("B", 1)
    group.leave_classic("A")
    group.join_classic("C", ("x",))
    group.sync("C", assignment=WITH_USER_DATA)
    group.join("B", ("x",))
    group.describe_classic()
    group.beat_classic("C")
    group.leave_classic("C")
    group.join_classic("D", ("x",))
    group.sync("D", assignment=b"\0")
    group.join("B", ("x",))
    group.beat_classic("D")
    group.leave_classic("D")
    group.join_classic("E", metadata=b"\0\0\0")
    group.sync("E", assigns={"x": range(6)})
    group.join("B", ("x",))
    group.describe_classic()


@script
def empty_groups_change_their_kind(group: Conversation) -> None:
    group.commit("A", -1, member_id="")
    group.join("A")
    group.describe()
    group.leave("A")
    group.join_classic("B", member_id="ghost")
    group.join_classic("B")
    group.describe()
    group.describe_classic()
    group.leave_classic("B")
    group.fetch("A", -1, member_id=None)
    group.join("A")
    group.describe()
    group.fetch("A", -1, member_id=None)


@script
def a_static_classic_member_replaces_the_last_other(group: Conversation) -> None:
    group.join("A", ("x",), instance_id="i")
    group.join_classic("B", ("x",))
    group.sync("B")
    group.settle("A", rounds=2)
    group.beat_classic("B")
    group.join_classic("B", ("x",))
    group.sync("B")
    group.join_classic("A2", ("x",), instance="i")
    group.describe()
    group.describe_classic()
    group.sync("A2")
    group.beat_classic("B")


@script
def a_static_classic_member_replaces_one_that_another_waits_for(group: Conversation) -> None:
    group.join("A", ("x",), instance_id="i")
    group.join_classic("B", ("x",))
    group.sync("B")
    group.pass_time(1100)
    group.beat_classic("B")
    group.join_classic("B", ("x",))
    group.sync("B")
    group.beat_classic("B")
    group.describe()
    group.join_classic("A2", ("x",), instance="i")
    group.describe_classic()
    group.sync("A2")
    for _ in range(2):
        group.beat_classic("B")
        group.beat_classic("A2")
        group.pass_time(600)
    group.sync("B")
    group.describe_classic()


@script
def a_static_classic_member_replaces_the_last_other_before_a_revocation(group: Conversation) -> None:
    group.join_classic("B", ("x",))
    group.sync("B", assigns={"x": range(6)})
    group.join("A", ("x",), instance_id="i")
    group.pass_time(1100)
    group.beat("A")
    group.beat_classic("B")
    group.join_classic("A2", ("x",), instance="i")
    group.sync("A2")
    group.describe_classic()
    group.beat_classic("B")
    group.join_classic("B", ("x",))
    group.sync("B")
    group.describe_classic()


def random_script(seed: int) -> Script:
    """Return a script of random requests."""

    def run(group: Conversation) -> None:
        random = Random(seed)  # noqa: S311 - a seed repeats the requests
        names = [f"m{number}" for number in range(random.choice((2, 3, 4)))]
        topics = ["t", "u", "w", "missing"]
        assignors = [None, None, random.choice(("uniform", "range"))]
        for step in range(60):
            if step % 12 == 11:
                group.pass_time(1200)  # the assignment interval
            name = random.choice(names)
            match random.choices(
                ("join", "beat", "topics", "stale", "leave", "describe", "lazy"), (3, 12, 2, 1, 1, 1, 2)
            )[0]:
                case "join":
                    group.join(
                        name,
                        sorted(random.sample(topics, random.randint(1, 3))),
                        server_assignor=random.choice(assignors),
                        rack_id=random.choice((None, "r")),
                    )
                case "beat":
                    group.beat(name)
                case "lazy":
                    group.beat(name, owned=None)
                case "topics":
                    group.beat(name, subscribed_topic_names=tuple(sorted(random.sample(topics, random.randint(0, 3)))))
                case "stale":
                    known = group.members.get(name)
                    epoch = 1 if known is None else max(1, known.epoch + random.choice((-2, -1, 1)))
                    group.beat(name, epoch, random.choice((ASSIGNED, {}, None)))
                case "leave":
                    group.leave(name)
                case "describe":
                    group.describe()

    return run


def mixed_script(seed: int) -> Script:
    """Return a script of random requests of static members, members with regular expressions, commits and fetches."""

    def run(group: Conversation) -> None:
        random = Random(seed)  # noqa: S311 - a seed repeats the requests
        names = [f"m{number}" for number in range(random.choice((2, 3, 5)))]
        has_expressions = False
        instances = {name: random.choice((None, "i", "j")) for name in names}
        topics = ["t", "u", "w", "missing"]
        kinds = ("join", "beat", "expression", "commit", "fetch", "leave", "stale", "instance", "describe", "admin")
        for step in range(60):
            if step % 12 == 11:
                group.pass_time(1200)  # the assignment interval
            name = random.choice(names)
            given: dict[str, Any] = {} if instances[name] is None else {"instance_id": instances[name]}
            epoch = random.choice((None, None, None, 0, 1, -1, 99))
            version = random.choice([one for one in (8, 9, 10) if group.serves(8, one) and group.serves(9, one)])
            match random.choices(kinds, (5, 14, 2, 4, 3, 2, 1, 1, 2, 1))[0]:
                case "join":
                    group.join(name, sorted(random.sample(topics, random.randint(1, 3))), **given)
                case "beat":
                    group.beat(name, **given)
                case "expression":
                    text = random.choice(("t|w", "u", "[t-u]", "", "none", "("))
                    if random.random() < 0.5:
                        group.join(name, random.choice((None, ("t",))), subscribed_topic_regex=text, **given)
                    else:
                        group.beat(name, subscribed_topic_regex=text, **given)
                    group.pass_time(1000)
                    has_expressions = True
                case "commit":
                    group.commit(name, epoch, member_id=random.choice((None, None, "", "ghost")), version=version)
                case "fetch":
                    group.fetch(name, epoch, member_id=random.choice(("", "", None, "ghost")), version=version)
                case "leave":
                    group.leave(name, random.choice((-1, -2)), **given)
                case "stale":
                    known = group.members.get(name)
                    epoch = 1 if known is None else max(1, known.epoch + random.choice((-2, -1, 1)))
                    group.beat(name, epoch, random.choice((ASSIGNED, {}, None)), **given)
                case "instance":
                    group.beat(name, instance_id=random.choice(("i", "j", "k")))
                case "describe":
                    group.describe()
                case "admin":
                    random.choice((group.describe_classic, group.list_groups, group.delete))()
            if has_expressions:
                group.pass_time(MATCH_MS)  # each heartbeat may begin a match

    return run
