"""Create and delete the topics, groups and committed offsets of tests, through kafka-python."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial

from kafka import KafkaAdminClient, KafkaConsumer, TopicPartition
from kafka.admin import MemberToRemove, NewTopic
from kafka.errors import KafkaError
from kafka.structs import OffsetAndMetadata

from tests.waiting import wait_until


@contextmanager
def admin_client(bootstrap: str) -> Iterator[KafkaAdminClient]:
    admin = KafkaAdminClient(bootstrap_servers=bootstrap)
    try:
        yield admin
    finally:
        admin.close()


def create_topic(bootstrap: str, topic: str, partitions: int, configs: Mapping[str, str] | None = None) -> None:
    """Create a topic and wait until the broker knows it, which may be later than the controller's response."""
    with admin_client(bootstrap) as admin:
        admin.create_topics([NewTopic(topic, partitions, 1, topic_configs=dict(configs or {}))])
    wait_topic(bootstrap, topic, partitions)


def wait_topic(bootstrap: str, topic: str, partitions: int) -> None:
    """Wait until the broker's metadata has the topic with this many partitions, or no topic for 0."""
    with admin_client(bootstrap) as admin:

        def is_known() -> bool:
            found = [t for t in admin.describe_topics() if t["name"] == topic]
            return len(found[0]["partitions"] if found else []) == partitions

        wait_until(is_known, f"{topic} with {partitions} partitions")


def wait_coordinators(bootstrap: str, groups: list[str]) -> None:
    """Wait for the coordinators of these groups: a new broker creates the offsets topic on the first request."""
    with admin_client(bootstrap) as admin:

        def have_coordinators() -> bool:
            try:
                admin.list_group_offsets(groups)
            except KafkaError as error:
                if not error.retriable:
                    raise
                return False
            return True

        wait_until(have_coordinators, f"a coordinator for {groups}")


def topic_names(bootstrap: str) -> set[str]:
    with admin_client(bootstrap) as admin:
        return set(admin.list_topics())


def group_names(bootstrap: str) -> set[str]:
    with admin_client(bootstrap) as admin:
        return {group["group_id"] for group in admin.list_groups()}


def delete_groups(bootstrap: str, groups: Iterable[str]) -> None:
    """Remove the members of groups and delete the groups."""
    with admin_client(bootstrap) as admin:
        for group in groups:
            wait_until(partial(_is_deleted, admin, group), f"the deletion of group {group}")


def _is_deleted(admin: KafkaAdminClient, group: str) -> bool:
    members = admin.describe_groups([group])[group]["members"]
    admin.remove_group_members(group, [MemberToRemove(member["member_id"]) for member in members])
    return admin.delete_groups([group])[group] in ("OK", "GroupIdNotFoundError")


def commit(bootstrap: str, group: str, topic: str, offsets: Mapping[int, int]) -> None:
    """Commit offsets by partition with a consumer that is not a group member."""
    consumer = KafkaConsumer(bootstrap_servers=bootstrap, group_id=group, enable_auto_commit=False)
    try:
        commits = {TopicPartition(topic, p): OffsetAndMetadata(o, f"note {p}", -1) for p, o in offsets.items()}
        consumer.assign(list(commits))
        consumer.commit(commits)
    finally:
        consumer.close()
