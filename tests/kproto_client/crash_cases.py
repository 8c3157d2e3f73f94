"""KIP-333 with members that crash: real processes, ended by SIGKILL.

A member writes each record to a file before it commits (`killed_member.py`), so the file shows all delivered records.
The member is static, so its successor does not wait for the session timeout.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import confluent_kafka

from kproto.client.decisions.catch_up_ranges import OPEN_END, OffsetRange
from tests.kproto_client.catch_up_cases import ON, behind, checkpoints
from tests.kproto_client.kafka_fixture import LIMIT_S, Case, KafkaFixture, cases, read
from tests.waiting import wait_until

INSTANCE_ID = "static-1"


def run_until_killed(
    kafka: KafkaFixture, group: str, topic: str, count: int, commit_every: int, *, merge: bool
) -> list[int]:
    """Kill a member after `count` records; return their offsets in partition 0."""
    settings = {**ON, "parallel_rebalance_merge": merge, "group_instance_id": INSTANCE_ID}
    config = json.dumps(kafka.config(group, **settings))
    with tempfile.TemporaryDirectory() as folder:
        lines = Path(folder) / "records"
        lines.touch()
        arguments = [str(lines), str(count), str(commit_every), config, topic]
        member = subprocess.Popen([sys.executable, "-m", "tests.kproto_client.killed_member", *arguments])
        try:
            wait_until(lambda: "waits" in lines.read_text() or member.poll() is not None, "the last record")
            assert member.poll() is None, f"the member ended with {member.returncode}"
        finally:
            member.kill()
            member.wait(LIMIT_S)
        return [int(line.split()[1]) for line in lines.read_text().splitlines() if line != "waits"]


def worked_example_with_crashes(kafka: KafkaFixture) -> None:
    """CK-91, CK-80, CK-82: the first member is killed at committed 70 with E = 120, the second at 90 with E = 200."""
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
        # Without merge, the range is divided after the first record.
        ranges = [OffsetRange(90, 200)] if merge else [OffsetRange(91, 120), OffsetRange(120, 200)]
        assert checkpoints(kafka, group, topic) == dict(enumerate([*ranges, OffsetRange(200, OPEN_END)]))


def three_crashes_skip_nothing(kafka: KafkaFixture) -> None:
    """CK-75, CK-63, CK-81: each run starts at the committed offset and is in order; together they have all records."""
    topic, group = behind(kafka, 0, 500)
    seen: set[int] = set()
    for count, commit_every in ((100, 30), (400, 70), (333, 50)):
        committed = kafka.committed(group, topic) or 0
        run = run_until_killed(kafka, group, topic, count, commit_every, merge=count != 400)
        assert run == list(range(committed, committed + count))
        assert kafka.committed(group, topic) == committed + count - count % commit_every
        seen.update(run)
        kafka.write(topic, 300)
    plain = confluent_kafka.Consumer(
        {**kafka.config(group, group_instance_id=INSTANCE_ID), "enable.auto.commit": False}
    )
    plain.subscribe([topic])
    committed_last = kafka.committed(group, topic)
    assert committed_last is not None
    rest = read(plain, 1400 - committed_last)
    plain.close()
    assert rest == list(range(committed_last, 1400))
    assert seen | set(rest) == set(range(1400))


CASES: dict[str, Case] = cases(worked_example_with_crashes, three_crashes_skip_nothing)
