"""A member that a test kills: `python -m tests.kproto_client.killed_member FILE LIMIT COMMIT_EVERY CONFIG TOPIC`.

CONFIG is JSON. The member appends a line "partition offset" to FILE for each record, before it commits: FILE contains
all committed records. After the first record it waits until the checkpoints are written. After LIMIT records it appends
"waits" and does not poll again.
"""

from __future__ import annotations

import json
import signal
import sys
from pathlib import Path

from kproto.client import Consumer


def main(path: str, limit: str, commit_every: str, config: str, topic: str) -> None:
    consumer = Consumer(json.loads(config))
    consumer.subscribe([topic])
    with Path(path).open("a", buffering=1) as lines:
        count = 0
        while count < int(limit):
            message = consumer.poll(0.5)
            if message is None or message.error() is not None:
                continue
            lines.write(f"{message.partition()} {message.offset()}\n")
            count += 1
            if count == 1:
                write_checkpoints(consumer)
            if count % int(commit_every) == 0:
                consumer.commit(asynchronous=False)
        lines.write("waits\n")
        signal.pause()


def write_checkpoints(consumer: Consumer) -> None:
    """Wait until the ranges are checkpointed, without a further record."""
    consumer.pause(consumer.assignment())
    assert consumer._delegate is not None
    assert consumer._delegate._parallel is not None
    while consumer._delegate._parallel.is_busy:
        assert consumer.poll(0.1) is None
    consumer.resume(consumer.assignment())


if __name__ == "__main__":
    main(*sys.argv[1:])
