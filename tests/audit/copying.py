"""Run a program that copies records with a client library, until it has copied them, and end it.

    KAFKA_BOOTSTRAP_SERVERS=... python -m tests.audit.copying COMMAND ...

The topics and the records are made here, under the client id "driver". A program that cannot work with the broker is
ended after `BROKEN_S`. The exit code is 0 in any case.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time

from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

DRIVER = "driver"
SERVERS = {"bootstrap.servers": os.environ.get("KAFKA_BOOTSTRAP_SERVERS", ""), "client.id": DRIVER}
TOPIC, OUTPUT = "orders", "copies"
RECORDS = 3
COPIED, NOT_COPIED = "copied", "not copied"
"""The last line on standard output."""
LIMIT_S = 30
BROKEN_S = 15
GROUP = "copier"
LAST_REQUESTS_S = 3
"""Time for the commit behind the copies, and for requests that a client sends every few seconds."""


def prepare() -> None:
    """Make the topics, and their records."""
    admin = AdminClient({**SERVERS})
    for created in admin.create_topics([NewTopic(TOPIC, 1, 1), NewTopic(OUTPUT, 1, 1)]).values():
        created.result(LIMIT_S)
    producer = Producer(SERVERS)
    for number in range(RECORDS):
        producer.produce(TOPIC, b"%d" % number)
    assert producer.flush(LIMIT_S) == 0


def copy(command: list[str]) -> bool:
    """Return whether the program has copied the records."""
    names = {"KPROTO_TOPIC": TOPIC, "KPROTO_OUTPUT_TOPIC": OUTPUT, "KPROTO_GROUP": GROUP}
    reader = Consumer(SERVERS | {"group.id": DRIVER, "auto.offset.reset": "earliest", "enable.auto.commit": False})
    reader.subscribe([OUTPUT])
    with subprocess.Popen(command, env=os.environ | names, stdout=subprocess.DEVNULL) as process:
        try:
            end, count = time.monotonic() + BROKEN_S, 0
            while count < RECORDS and time.monotonic() < end:
                record = reader.poll(0.5)
                count += record is not None and record.error() is None
            time.sleep(LAST_REQUESTS_S)
        finally:
            process.terminate()
            try:
                process.wait(LIMIT_S)
            except subprocess.TimeoutExpired:
                process.kill()
    reader.close()
    return count == RECORDS


if __name__ == "__main__":
    prepare()
    print(COPIED if copy(sys.argv[1:]) else NOT_COPIED)
