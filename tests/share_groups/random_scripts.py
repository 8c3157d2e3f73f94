"""Random scripts: what the members of a share group do with the records of one topic.

Locks last `LOCK_MS`; time passes in steps of a little more than half of that. The requests between two steps take a
small part of a step with a real broker, too, so that a lock ends with both brokers between the same two requests.
"""

from __future__ import annotations

from collections.abc import Mapping
from random import Random

from kproto_server.share_groups.share_partition import ACCEPT, GAP, REJECT, RELEASE, RENEW
from tests.share_groups.scripts import Script
from tests.share_groups.sharers import Sharers

LOCK_MS = 8_000
STEP_MS = 4_400
"""How long one step takes."""
LOADING_MS = 2_000
"""How long a busy broker takes to load a share partition."""
RELEASE_MS = 500
"""How long a busy broker takes to release the records of a session that has ended (DEVIATIONS)."""
ACTIONS = 60
ACTIONS_BETWEEN_STEPS = 7
PARTITIONS = 1
"""With several, the order in which a broker reads them depends on the hash of the topic id."""
MEMBERS = ("A", "B", "C")

Range = tuple[int, int]


class RandomMembers:
    """Members that know which records they were given, and forget or mistake them sometimes."""

    def __init__(self, sharers: Sharers, seed: int) -> None:
        self._sharers = sharers
        self._random = Random(seed)  # noqa: S311 - a seed repeats the requests
        self._given: dict[tuple[str, int], list[Range]] = {}
        self._written: dict[int, int] = dict.fromkeys(range(PARTITIONS), 0)
        self._actions = {
            self._produce: 16,
            self._fetch: 36,
            self._acknowledge: 22,
            self._renew: 4,
            self._mistake: 3,
            self._end_session: 3,
            self._describe_offsets: 4,
            self._delete_records: 2,
            self._administer: 2,
            self._heartbeat: 3,
        }

    def run(self) -> None:
        share = self._sharers
        share.create(partitions=PARTITIONS)
        for member in MEMBERS:
            share.heartbeat(member, epoch=0, topics=["t"], waits=_wait_ms(member))
            share.heartbeat(member, waits=0)
            share.fetch(member, *range(PARTITIONS), wait_ms=_wait_ms(member))
        for number in range(ACTIONS):
            if number % ACTIONS_BETWEEN_STEPS == 0:
                share.pass_time(STEP_MS)
            [action] = self._random.choices(list(self._actions), list(self._actions.values()))
            action()
        share.describe_offsets()

    # Requests.

    def _produce(self) -> None:
        partition = self._random.randrange(PARTITIONS)
        counts = [self._random.choice((1, 1, 2, 5, 12)) for _ in range(self._random.choice((1, 1, 2, 3)))]
        self._written[partition] += sum(counts)
        self._sharers.produce(*counts, partition=partition)

    def _fetch(self) -> None:
        random, member = self._random, self._member()
        # What is released is available once the broker has stored that, which the same request does not wait for.
        acks = self._acks(member, (ACCEPT, ACCEPT, REJECT, GAP)) if random.random() < 0.4 else {}
        self._sharers.fetch(
            member,
            *random.sample(range(PARTITIONS), random.choice((0, 0, 1))),
            acks=acks,
            forget=random.sample(range(PARTITIONS), 1) if random.random() < 0.08 else (),
            wait_ms=200,
            min_bytes=random.choice((0, 1, 1, 1, 500)),
            max_bytes=random.choice((1 << 20, 1 << 20, 300, 100, 1)),
            max_records=random.choice((500, 500, 1, 2, 7, 20)),
            batch_size=random.choice((500, 1, 3, 10)),
            mode=random.choice((0, 0, 0, 1)),
        )
        self._note(member)

    def _acknowledge(self) -> None:
        member = self._member()
        self._sharers.acknowledge(member, self._acks(member))

    def _renew(self) -> None:
        member = self._member()
        self._sharers.acknowledge(member, self._acks(member, (RENEW, RENEW, RENEW, ACCEPT)), renews=True)

    def _mistake(self) -> None:
        member, random = self._member(), self._random
        epoch = self._sharers.session_epochs.get(member, 0) + random.choice((-1, 1, 5))
        if random.random() < 0.5:
            self._sharers.fetch(member, epoch=epoch, wait_ms=0)
        else:
            self._sharers.acknowledge(member, self._acks(member), epoch=epoch)

    def _end_session(self) -> None:
        member = self._member()
        if self._random.random() < 0.5:
            self._sharers.fetch(member, epoch=-1, acks=self._acks(member), wait_ms=0)
        else:
            self._sharers.acknowledge(member, self._acks(member), epoch=-1)
        self._sharers.pass_time(RELEASE_MS)
        if self._random.random() < 0.8:
            self._open(member)

    def _open(self, member: str) -> None:
        self._sharers.fetch(member, *range(PARTITIONS), epoch=0, wait_ms=200)
        self._note(member)

    def _describe_offsets(self) -> None:
        self._sharers.describe_offsets("t", partitions=range(PARTITIONS))

    def _delete_records(self) -> None:
        partition = self._random.randrange(PARTITIONS)
        self._sharers.delete_records(partition, self._random.randint(0, self._written[partition]))

    def _heartbeat(self) -> None:
        self._sharers.heartbeat(self._member(), waits=0)

    def _administer(self) -> None:
        """All members leave, and the start offsets are set or deleted."""
        share = self._sharers
        for member in MEMBERS:
            share.fetch(member, epoch=-1, wait_ms=0)
            share.heartbeat(member, epoch=-1, waits=0)
        share.pass_time(RELEASE_MS)
        partition = self._random.randrange(PARTITIONS)
        if self._random.random() < 0.7:
            share.alter_offsets({"t": {partition: self._random.randint(0, self._written[partition])}})
        else:
            share.delete_offsets("t")
        for member in MEMBERS:
            share.heartbeat(member, epoch=0, topics=["t"], waits=100)
            share.fetch(member, *range(PARTITIONS), epoch=0, wait_ms=_wait_ms(member))
            self._note(member)

    # What the members know.

    def _member(self) -> str:
        return self._random.choice(MEMBERS)

    def _note(self, member: str) -> None:
        """Note the records that the last response gives a member."""
        for response in self._sharers.steps[-1].responses.get(member, ()):
            for topic in response.get("responses", ()):
                for part in topic.get("partitions", ()):
                    given = self._given.setdefault((member, part["partition_index"]), [])
                    given += [(one["first_offset"], one["last_offset"]) for one in part.get("acquired_records", ())]

    def _acks(self, member: str, types: tuple[int, ...] = ()) -> dict[int, list[tuple[int, int, list[int]]]]:
        """Return acknowledgements of what the member was given, or, rarely, of what another one was."""
        random = self._random
        partitions = random.sample(range(PARTITIONS), 1)
        of = random.choice(MEMBERS) if random.random() < 0.06 else member
        found: Mapping[int, list[tuple[int, int, list[int]]]] = {
            partition: self._batches(self._given.get((of, partition), []), types) for partition in partitions
        }
        return {partition: batches for partition, batches in found.items() if batches}

    def _batches(self, given: list[Range], types: tuple[int, ...]) -> list[tuple[int, int, list[int]]]:
        random, batches = self._random, []
        chosen = sorted(random.sample(given, min(len(given), random.choice((1, 1, 2)))))
        for first, last in chosen:
            if random.random() < 0.85:
                given.remove((first, last))
            if random.random() < 0.3 and last > first:
                middle = random.randint(first, last - 1)
                given.append((middle + 1, last))
                last = middle
            kinds = types or (ACCEPT,) * 6 + (RELEASE,) * 5 + (REJECT, GAP)
            count = 1 if random.random() < 0.6 else last - first + 1
            batches.append((first, last, [random.choice(kinds) for _ in range(count)]))
        return batches


def _wait_ms(member: str) -> int:
    """Return how long a member waits after its first requests: the first one until the broker has loaded all states."""
    return LOADING_MS if member == MEMBERS[0] else 100


def random_script(seed: int) -> Script:
    """Return a script of random requests."""

    def run(sharers: Sharers) -> None:
        RandomMembers(sharers, seed).run()

    return run
