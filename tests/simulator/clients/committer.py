"""A client that commits the offsets of a group without members."""

from __future__ import annotations

from kproto.codes import ErrorCode
from kproto.messages.k08_offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from tests.simulator.broker import TOPIC
from tests.simulator.clients.client import GROUP, MOVED, RETRY_MS, Client, Steps


class Committer(Client):
    """Commits an offset of one partition after the other, and repeats a commit that fails, once at most."""

    def main(self) -> Steps[None]:
        group = self.line.text("group")
        while not self.finishing:
            request = commit_request(group, {self.random_partition(): self.surroundings.next_offset()})
            for _ in range(self.chance.choice((1, 2))):
                response = yield from self.ask_coordinator(group, GROUP, request, 7)
                if response is not None and not commit_error(response):
                    break
                if response is not None and commit_error(response) in MOVED:
                    self.forget_coordinator(group, GROUP)
                yield RETRY_MS
            yield self.chance.randrange(20, 200)


def commit_request(
    group: str, offsets: dict[int, int], generation: int = -1, member_id: str = "", instance_id: str | None = None
) -> OffsetCommitRequest:
    """Return a request that commits an offset for each partition."""
    return OffsetCommitRequest(
        group_id=group,
        generation_id_or_member_epoch=generation,
        member_id=member_id,
        group_instance_id=instance_id,
        topics=(
            OffsetCommitRequestTopic(
                name=TOPIC,
                partitions=tuple(
                    OffsetCommitRequestPartition(
                        partition_index=index, committed_offset=offset, committed_metadata=None
                    )
                    for index, offset in offsets.items()
                ),
            ),
        ),
    )


def commit_error(response: object) -> ErrorCode:
    """Return the first error of a response to a commit; NONE if there is none."""
    codes = (one.error_code for topic in response.topics for one in topic.partitions)  # type: ignore[attr-defined]
    return ErrorCode(next((code for code in codes if code), 0))
