"""The matrix of APIs and versions: which were sent, and which the target serves."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kproto_server.releases.kafka_version import KafkaVersion
from kproto_server.report.model import api_name
from kproto_server.report.verdict import Releases, Verdict, releases

if TYPE_CHECKING:
    from kproto_server.report.model import Report


class State(enum.Enum):
    """Whether the target serves a version, sent or not."""

    SERVED = "served"
    REMOVED = "removed"
    """An older release serves it."""
    FUTURE = "future"
    """Only newer releases serve it."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One version of one API."""

    api_version: int
    count: int
    """Requests of all clients; 0: not sent."""
    state: State
    verdict: Verdict | None
    """The worst verdict of any client that sent the version; None: not sent."""
    releases: Releases


@dataclass(frozen=True, slots=True)
class Row:
    """All versions of one API that any release or any client knows."""

    api: str
    cells: tuple[Cell, ...]


WORST_FIRST = (Verdict.BREAKS, Verdict.UNDECIDED, Verdict.NEWER, Verdict.SERVED)


def rows(report: Report) -> list[Row]:
    """Return one row for each API that was sent, sorted by API key."""
    counts: dict[tuple[int, int], int] = {}
    verdicts: dict[tuple[int, int], set[Verdict]] = {}
    for sent in (sent for client in report.clients for sent in client.sent):
        key = (sent.api_key, sent.api_version)
        counts[key] = counts.get(key, 0) + sent.count
        verdicts.setdefault(key, set()).add(sent.verdict)
    everything = KafkaVersion.named().api_versions

    def cell(api_key: int, api_version: int) -> Cell:
        key = (api_key, api_version)
        return Cell(
            api_version,
            counts.get(key, 0),
            _state(api_key, api_version, report.target),
            next((verdict for verdict in WORST_FIRST if verdict in verdicts.get(key, ())), None),
            releases(api_key, api_version, report.target),
        )

    found = []
    for api_key in sorted({api_key for api_key, _ in counts}):
        low, high = everything.get(api_key, (0, -1))
        sent_versions = [api_version for key, api_version in counts if key == api_key]
        versions = sorted({*range(low, high + 1), *sent_versions})
        found.append(Row(api_name(api_key), tuple(cell(api_key, api_version) for api_version in versions)))
    return found


def _state(api_key: int, api_version: int, target: KafkaVersion) -> State:
    if target.serves(api_key, api_version):
        return State.SERVED
    older = releases(api_key, api_version, target).last_before_target
    return State.REMOVED if older is not None else State.FUTURE
