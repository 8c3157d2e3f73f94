"""The configs of share groups, script by script: where a group begins, and which records it reads."""

from __future__ import annotations

from kproto_server.share_groups.share_partition import ACCEPT, REJECT, RELEASE, RENEW
from tests.share_groups.scripts import Scripts
from tests.share_groups.sharers import Sharers

CONFIG_SCRIPTS = Scripts()
APPEND_TIME = "LogAppendTime"


def _write_transactions(sharers: Sharers) -> None:
    """Write records, committed ones and aborted ones."""
    sharers.produce(2)
    sharers.begin_transaction("aborted", 2, 1)
    sharers.begin_transaction("committed", 3)
    sharers.end_transaction("aborted", committed=False)
    sharers.end_transaction("committed", committed=True)
    sharers.begin_transaction("open", 2)
    sharers.produce(1)


@CONFIG_SCRIPTS.add
def committed_records_are_read(sharers: Sharers) -> None:
    sharers.create()
    sharers.configure(share_isolation_level="read_committed", share_auto_offset_reset="earliest")
    _write_transactions(sharers)
    sharers.join("A")
    sharers.fetch("A", 0, wait_ms=300)
    sharers.fetch("A", wait_ms=300)
    sharers.describe_offsets()
    sharers.acknowledge("A", {0: [(0, 1, [ACCEPT]), (2, 4, [ACCEPT])]})
    sharers.acknowledge("A", {0: [(0, 1, [ACCEPT])]})
    sharers.acknowledge("A", {0: [(5, 7, [RELEASE])]})
    sharers.describe_offsets()
    sharers.pass_time(1_500)
    sharers.fetch("A", wait_ms=300)
    sharers.end_transaction("open", committed=False)
    sharers.fetch("A", wait_ms=300)
    sharers.acknowledge("A", {0: [(12, 12, [ACCEPT])]})
    sharers.describe_offsets()


@CONFIG_SCRIPTS.add
def uncommitted_records_are_read(sharers: Sharers) -> None:
    sharers.create()
    sharers.configure(share_auto_offset_reset="earliest")
    _write_transactions(sharers)
    sharers.join("A")
    sharers.fetch("A", 0, wait_ms=300)
    sharers.end_transaction("open", committed=False)
    sharers.fetch("A", wait_ms=300)
    sharers.acknowledge("A", {0: [(0, 8, [ACCEPT])]})
    sharers.describe_offsets()


@CONFIG_SCRIPTS.add
def groups_begin_where_their_config_says(sharers: Sharers) -> None:
    sharers.create(message_timestamp_type=APPEND_TIME)
    sharers.produce(3)
    sharers.pass_time(8_000)
    sharers.produce(2, 2)
    resets = {
        "early": "earliest",
        "late": "latest",
        "newest": "by_duration:PT1S",
        "recent": "by_duration:PT7S",
        "old": "by_duration:PT1H",
    }
    for group, reset in resets.items():
        sharers.configure(group, share_auto_offset_reset=reset)
    sharers.pass_time(500)
    for group in resets:
        sharers.heartbeat(group, epoch=0, topics=["t"], group=group)
        sharers.heartbeat(group, group=group)
        sharers.fetch(group, 0, group=group, epoch=0, wait_ms=300)
    sharers.produce(1)
    for group in resets:
        sharers.fetch(group, group=group, wait_ms=300)


@CONFIG_SCRIPTS.add
def limits_of_a_group_are_configured(sharers: Sharers) -> None:
    sharers.create()
    sharers.configure(share_auto_offset_reset="earliest", share_delivery_count_limit="2")
    sharers.produce(2, 3)
    sharers.join("A")
    for _ in range(4):
        sharers.fetch("A", 0, epoch=0, wait_ms=200)
        sharers.acknowledge("A", {0: [(0, 4, [RELEASE])]})
    sharers.describe_offsets()


@CONFIG_SCRIPTS.add
def locks_of_a_group_are_not_renewed(sharers: Sharers) -> None:
    sharers.create()
    sharers.configure(share_auto_offset_reset="earliest", share_renew_acknowledge_enable="false")
    sharers.produce(4)
    sharers.join("A")
    sharers.fetch("A", 0, wait_ms=300)
    sharers.acknowledge("A", {0: [(0, 3, [RENEW])]}, renews=True)
    sharers.acknowledge("A", {0: [(0, 0, [ACCEPT]), (1, 1, [RENEW])]}, renews=True)
    sharers.acknowledge("A", {0: [(0, 0, [ACCEPT])]})
    sharers.acknowledge("A", {0: [(1, 1, [RENEW])]}, renews=True)
    sharers.configure(share_renew_acknowledge_enable="true")
    sharers.acknowledge("A", {0: [(1, 1, [RENEW])]}, renews=True)
    sharers.acknowledge("A", {0: [(1, 3, [ACCEPT, REJECT, RELEASE])]})
    sharers.fetch("A", wait_ms=300)


@CONFIG_SCRIPTS.add
def limits_change_while_records_are_acquired(sharers: Sharers) -> None:
    sharers.create()
    sharers.configure(share_auto_offset_reset="earliest", share_delivery_count_limit="5")
    sharers.produce(2)
    sharers.join("A")
    for _ in range(2):
        sharers.fetch("A", 0, epoch=0, wait_ms=300)
        sharers.acknowledge("A", {0: [(0, 1, [RELEASE])]})
    sharers.fetch("A", 0, epoch=0, wait_ms=300)
    sharers.configure(share_delivery_count_limit="3")
    sharers.acknowledge("A", {0: [(0, 0, [RELEASE])]})
    sharers.pass_time(1_500)
    sharers.fetch("A", wait_ms=300)
    sharers.describe_offsets()


def _set_queue(sharers: Sharers, topic: str = "q", *, copies: bool = False) -> None:
    """Give the group a dead letter queue, whose name is the script's with the prefix that brokers want."""
    sharers.configure(
        share_auto_offset_reset="earliest",
        share_delivery_count_limit="2",
        errors_deadletterqueue_topic_name=f"dlq.{sharers.full(topic)}",
        errors_deadletterqueue_copy_record_enable=str(copies).lower(),
    )


@CONFIG_SCRIPTS.add
def dead_letters_are_written(sharers: Sharers) -> None:
    sharers.create()
    sharers.create("q", prefix="dlq.", errors_deadletterqueue_group_enable="true")
    _set_queue(sharers)
    sharers.produce(6)
    sharers.join("A")
    sharers.fetch("A", 0, wait_ms=300)
    sharers.acknowledge("A", {0: [(0, 5, [REJECT, ACCEPT, RELEASE, REJECT, REJECT, RELEASE])]})
    sharers.pass_time(500)
    sharers.read_letters("dlq.", "q")
    sharers.fetch("A", wait_ms=300)
    sharers.acknowledge("A", {0: [(2, 2, [RELEASE])]})
    sharers.pass_time(2_000)
    sharers.read_letters("dlq.", "q")
    sharers.describe_offsets()
    sharers.fetch("A", wait_ms=300)


@CONFIG_SCRIPTS.add
def dead_letters_have_the_records(sharers: Sharers) -> None:
    sharers.create()
    sharers.create("q", prefix="dlq.", errors_deadletterqueue_group_enable="true")
    _set_queue(sharers, copies=True)
    sharers.produce(3, 2)
    sharers.join("A")
    sharers.fetch("A", 0, wait_ms=300)
    sharers.acknowledge("A", {0: [(1, 4, [REJECT])]})
    sharers.pass_time(500)
    sharers.read_letters("dlq.", "q")
    sharers.describe_offsets()


@CONFIG_SCRIPTS.add
def dead_letters_fill_batches(sharers: Sharers) -> None:
    """Up to `max.message.bytes`; a record that is larger is written without its contents."""
    sharers.create()
    sharers.create("q", prefix="dlq.", errors_deadletterqueue_group_enable="true", max_message_bytes="2000")
    _set_queue(sharers, copies=True)
    sharers.produce_values(700, 700, 3_000, 100, 100, 1_500, 700)
    sharers.join("A")
    sharers.fetch("A", 0, wait_ms=300)
    sharers.acknowledge("A", {0: [(0, 6, [REJECT])]})
    sharers.pass_time(500)
    sharers.read_letter_sizes("dlq.", "q")
    sharers.describe_offsets()


@CONFIG_SCRIPTS.add
def dead_letters_without_a_topic(sharers: Sharers) -> None:
    sharers.create()
    _set_queue(sharers)
    sharers.produce(2)
    sharers.join("A")
    sharers.fetch("A", 0, wait_ms=300)
    sharers.acknowledge("A", {0: [(0, 0, [REJECT])]})
    sharers.pass_time(500)
    sharers.create("q", prefix="dlq.")
    sharers.acknowledge("A", {0: [(1, 1, [REJECT])]})
    sharers.pass_time(500)
    sharers.read_letters("dlq.", "q")
    sharers.describe_offsets()
