"""A member that is killed: `python -m tests.kproto_client.member FILE LIMIT COMMIT_EVERY CONFIG_AS_JSON TOPIC`.

It appends a line "partition offset" to FILE for each record, before it commits: what is committed is in there. After
LIMIT records it appends "waits", polls no more, and waits for its end.
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
        done = 0
        while done < int(limit):
            message = consumer.poll(0.5)
            if message is None or message.error() is not None:
                continue
            lines.write(f"{message.partition()} {message.offset()}\n")
            done += 1
            if done % int(commit_every) == 0:
                consumer.commit(asynchronous=False)
        lines.write("waits\n")
        signal.pause()


if __name__ == "__main__":
    main(*sys.argv[1:])
