"""Record the log of a share group and a streams group of a real 4.4.0 in `fixtures/offsets-logs/new-groups`.

    python -m tests.spark.record_new_groups

The members are those of scripts of `tests.share_groups` and `tests.streams_groups`. Then the broker is killed, its log
is copied, and the dump tool prints each segment.
"""

from __future__ import annotations

from kproto_server.releases.kafka_version import KafkaVersion
from tests.membership.socket_transport import RESPONSE_LIMIT_S, SocketTransport
from tests.oracle.cluster import NEWEST, kafka, real_kafka
from tests.share_groups.scripts import LOCK_MS, members_join_and_leave, records_are_acknowledged
from tests.share_groups.sharers import Sharers
from tests.share_groups.transcripts import REAL_SETTINGS, settings_with
from tests.spark.record_logs import KEPT, TARGET, copy
from tests.streams_groups.members import Application
from tests.streams_groups.record_transcripts import settings_of
from tests.streams_groups.scripts import tasks_move_between_members

FOLDER = TARGET / "new-groups" / NEWEST
DECODERS = {"__consumer_offsets-0": "--offsets-decoder", "__share_group_state-0": "--share-group-state-decoder"}


def main() -> None:
    with real_kafka(NEWEST, props=settings_of(NEWEST) | settings_with(LOCK_MS) | REAL_SETTINGS) as cluster:
        transport = SocketTransport(cluster.bootstrap, RESPONSE_LIMIT_S)
        version = KafkaVersion.named(NEWEST)
        Sharers(transport, version, "warm").warm_up()
        members_join_and_leave(Sharers(transport, version, "sharers"))
        records_are_acknowledged(Sharers(transport, version, "workers"))
        tasks_move_between_members(Application(transport, NEWEST, "counters", 0))
        transport.close()
        cluster.kill(1)
        data = cluster.folder / "node-1" / "data"
        topics = {path.name.rpartition("-")[0] for path in data.glob("*-[0-9]")} - {"__cluster_metadata"}
        copy(data, FOLDER, sorted(topics), KEPT)
    for name, decoder in DECODERS.items():
        (segment,) = (FOLDER / name).glob("*.log")
        printed = kafka("tool", NEWEST, "DumpLogSegments", "--files", str(segment), decoder)
        (FOLDER / f"dump-{name}.txt").write_text(printed.replace(str(FOLDER), ".") + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
