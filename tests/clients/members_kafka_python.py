"""`members.py` with kafka-python: BOOTSTRAP GROUP TOPIC VERB."""

import json
import sys
import threading
from collections.abc import Callable

from kafka import ConsumerRebalanceListener, KafkaConsumer


class Member(ConsumerRebalanceListener):  # type: ignore[misc]  # the library has no types
    def __init__(self, bootstrap: str, group: str, topic: str, instance: str | None) -> None:
        self.rebalances = 0
        self.assigned = threading.Condition()
        self.partitions: list[int] = []
        self._ends = False
        self._consumer = KafkaConsumer(
            bootstrap_servers=bootstrap,
            group_id=group,
            group_instance_id=instance,
            heartbeat_interval_ms=100,
            session_timeout_ms=6000,
            fetch_max_wait_ms=50,
        )
        self._consumer.subscribe([topic], listener=self)
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._ends:
            # A poll that ends while its rebalance does loses the assignment, in 3.0.12 and with real brokers too.
            self._consumer.poll(timeout_ms=1000)
        self._consumer.close()

    def on_partitions_revoked(self, revoked: object) -> None:
        pass

    def on_partitions_assigned(self, assigned: set[object]) -> None:
        with self.assigned:
            self.rebalances += 1
            self.partitions = sorted(p.partition for p in self._consumer.assignment())
            self.assigned.notify_all()

    def wait(self, is_done: Callable[[list[int]], bool]) -> list[int]:
        with self.assigned:
            if not self.assigned.wait_for(lambda: is_done(self.partitions), 30):
                raise SystemExit(f"it has {self.partitions}")
            return self.partitions

    def close(self) -> None:
        self._ends = True
        self._thread.join()


def main(bootstrap: str, group: str, topic: str, verb: str) -> dict[str, object]:
    instances = ("one", "two") if verb == "static" else (None, None)
    first, second = (Member(bootstrap, group, topic, instance) for instance in instances)
    both = [member.wait(lambda partitions: len(partitions) == 2) for member in (first, second)]
    before = second.rebalances
    first.close()
    if verb == "static":
        again = Member(bootstrap, group, topic, "one")
        told = {"both": both, "again": again.wait(bool), "rebalances": second.rebalances - before}
        again.close()
    else:
        told = {"both": both, "alone": second.wait(lambda partitions: len(partitions) == 4)}
    second.close()
    return told


print(json.dumps(main(*sys.argv[1:])))
