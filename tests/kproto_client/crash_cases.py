"""KIP-333 with members that are killed: real processes, SIGKILL.

A member notes each record before it commits, so what is in its file is all that it was given; see `member.py`. It is a
static one, so that its successor need not wait for its session to end.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import confluent_kafka

from kproto.client.core.ranges import OPEN, Range
from tests.kproto_client.kafka_side import LIMIT_S, Case, KafkaSide, read
from tests.kproto_client.parallel_cases import ON, behind, checkpoints
from tests.waiting import wait_until


def run_until_killed(
    kafka: KafkaSide, group: str, topic: str, count: int, commit_every: int, *, merge: bool
) -> list[int]:
    """Have a member take so many records, and kill it; return their offsets in partition 0."""
    settings = {**ON, "parallel_rebalance_merge": merge, "group_instance_id": "the one"}
    config = json.dumps(kafka.config(group, **settings))
    with tempfile.TemporaryDirectory() as folder:
        lines = Path(folder) / "records"
        lines.touch()
        arguments = [str(lines), str(count), str(commit_every), config, topic]
        member = subprocess.Popen([sys.executable, "-m", "tests.kproto_client.member", *arguments])
        try:
            wait_until(lambda: "waits" in lines.read_text() or member.poll() is not None, "the last record")
            assert member.poll() is None, f"the member ended with {member.returncode}"
        finally:
            member.kill()
            member.wait(LIMIT_S)
        return [int(line.split()[1]) for line in lines.read_text().splitlines() if line != "waits"]


def worked_example_with_crashes(kafka: KafkaSide) -> None:
    """CK-91, CK-80, CK-82: killed at committed 70 with E = 120, and again at 90 with E = 200."""
    for merge in (False, True):
        topic, group = behind(kafka, 0, 120)
        first = run_until_killed(kafka, group, topic, 75, 10, merge=merge)
        assert first == list(range(75))
        assert kafka.committed(group, topic) == 70
        second = run_until_killed(kafka, group, topic, 25, 10, merge=merge)
        assert second == list(range(70, 95))
        assert kafka.committed(group, topic) == 90
        kafka.write(topic, 80)
        third = run_until_killed(kafka, group, topic, 110, 1000, merge=merge)
        assert third == list(range(90, 200))
        ranges = [Range(90, 200)] if merge else [Range(90, 120), Range(120, 200)]
        assert checkpoints(kafka, group, topic) == dict(enumerate([*ranges, Range(200, OPEN)]))


def three_crashes_skip_nothing(kafka: KafkaSide) -> None:
    """CK-75, CK-63, CK-81: each run begins where the group was, is in order, and the runs together have everything."""
    topic, group = behind(kafka, 0, 500)
    seen: set[int] = set()
    for count, commit_every in ((100, 30), (400, 70), (333, 50)):
        committed = kafka.committed(group, topic) or 0
        run = run_until_killed(kafka, group, topic, count, commit_every, merge=count != 400)
        assert run == list(range(committed, committed + count))
        assert kafka.committed(group, topic) == committed + count - count % commit_every
        seen.update(run)
        kafka.write(topic, 300)
    plain = confluent_kafka.Consumer({**kafka.config(group, group_instance_id="the one"), "enable.auto.commit": False})
    plain.subscribe([topic])
    at = kafka.committed(group, topic)
    assert at is not None
    rest = read(plain, 1400 - at)
    plain.close()
    assert rest == list(range(at, 1400))
    assert seen | set(rest) == set(range(1400))


CASES: dict[str, Case] = {
    str(case.__name__).replace("_", " "): (case, ())
    for case in (worked_example_with_crashes, three_crashes_skip_nothing)
}
