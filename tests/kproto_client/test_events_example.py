"""The example of events in the client's page, and its table of them."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import get_args

from kproto.client import Event
from kproto_server import Broker
from tests.kproto_client.kafka_fixture import KafkaFixture
from tests.waiting import LIMIT_S

PAGE = Path(__file__).parents[2] / "kproto" / "client" / "README.md"


def test_the_example_prints_what_was_skipped_and_the_progress(tmp_path: Path) -> None:
    (example,) = re.findall(r"<!-- recipe: events -->\n```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    with Broker.running() as broker:
        kafka = KafkaFixture(broker.bootstrap_servers)
        kafka.create("orders")
        kafka.commit("billing", "orders", 1)
        kafka.write("orders", 10)
        kafka.delete_records_before("orders", 4)
        program = tmp_path / "example.py"
        program.write_text(example.replace("127.0.0.1:9092", broker.bootstrap_servers))
        done = subprocess.run(
            [sys.executable, str(program)], capture_output=True, text=True, timeout=LIMIT_S, check=True
        )
    lines = sorted(done.stdout.splitlines())
    assert lines == ["3 records of orders skipped: the log starts at 4 and ends at 10, the setting is nearest", "b'x'"]
    assert "catching up [--------------------]   0%  6 records left" in done.stderr
    assert "stopped after 1 record in " in done.stderr


def test_the_table_has_each_event_with_its_content() -> None:
    rows = dict(re.findall(r"^\| (`\w+`(?:, `\w+`)*) \| .*? \| (.*?`)[^`]*\|$", PAGE.read_text(), re.MULTILINE))
    for event in get_args(Event):
        (content,) = (text for names, text in rows.items() if f"`{event.__name__}`" in names)
        assert set(event.__dataclass_fields__) - {"topic", "partition"} <= set(re.findall(r"`(\w+)`", content))
