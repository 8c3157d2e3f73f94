"""The parts of a bench: metrics, rows of figures, and the floors that kproto must keep."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

KPROTO = "kproto"

Note = Callable[[str], None]
"""Writes one line for the reader, beside the table."""


class Missing(Exception):
    """A peer cannot be measured on this machine; the text names what is missing."""


class BenchError(Exception):
    """A measured server failed or sent a wrong response, so no figure of this run can be trusted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """One figure of a row."""

    key: str
    """The name in JSON, with the unit."""
    title: str
    """The title of the column in the table."""
    more_is_better: bool = False
    compared: bool = False
    """Whether the table has a column with kproto's lead in this metric."""
    digits: int = 1

    def best(self, figures: Sequence[float]) -> float:
        """Return the greatest or the least figure, whichever is better."""
        return max(figures) if self.more_is_better else min(figures)

    def lead(self, kproto: float, peer: float) -> float | None:
        """Return how many times better kproto is; None if a figure is zero."""
        over, under = (kproto, peer) if self.more_is_better else (peer, kproto)
        return over / under if under else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One case: the figures of each measured subject, by the subject's name and the metric's key."""

    bench: str
    case: str
    figures: Mapping[str, Mapping[str, float]]
    rounds: Mapping[str, Sequence[Mapping[str, float]]] = field(default_factory=dict)
    """The figures of each round of the subjects that are compared round by round."""

    def figure(self, name: str, metric: Metric) -> float | None:
        return self.figures.get(name, {}).get(metric.key)

    def lead(self, peer: str, metric: Metric) -> float | None:
        """Return how many times better kproto is than the peer; None if either was not measured.

        Round by round, it is the median: what else the machine does affects both sides of a round alike, and single
        rounds little.
        """
        rounds = [self.rounds.get(name, ()) for name in (KPROTO, peer)]
        pairs = [[one.get(metric.key) for one in pair] for pair in zip(*rounds, strict=False)]
        leads = [metric.lead(ours, theirs) for ours, theirs in pairs if ours is not None and theirs is not None]
        known = [lead for lead in leads if lead is not None]
        if known:
            return median(known)
        ours, theirs = self.figure(KPROTO, metric), self.figure(peer, metric)
        return None if ours is None or theirs is None else metric.lead(ours, theirs)


def best_of(rounds: Sequence[Mapping[str, float]], metrics: Iterable[Metric]) -> dict[str, float]:
    """Return the best figure of each metric over all rounds."""
    return {metric.key: metric.best([figures[metric.key] for figures in rounds]) for metric in metrics}


@dataclass(frozen=True, slots=True)
class FloorResult:
    """The result of one floor; ``held`` is None if the floor could not be measured."""

    text: str
    held: bool | None


class Floor(Protocol):
    """A limit for a figure or a ratio of kproto."""

    @property
    def case(self) -> str: ...

    @property
    def peer(self) -> str | None:
        """The peer that the floor needs, if any."""
        ...

    def check(self, row: Row) -> FloorResult: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Lead:
    """kproto is at least ``at_least`` times as good as the peer."""

    case: str
    metric: Metric
    peer: str
    at_least: float

    def check(self, row: Row) -> FloorResult:
        text = f"{self.case}: {self.metric.title} at least {self.at_least:g} x as good as {self.peer}"
        lead = row.lead(self.peer, self.metric)
        return _result(text, lead, " x", lead is not None and lead >= self.at_least)


@dataclass(frozen=True, slots=True, kw_only=True)
class Near:
    """kproto is at most ``at_most`` times as good as the peer, which is kproto with more to do."""

    case: str
    metric: Metric
    peer: str
    at_most: float

    def check(self, row: Row) -> FloorResult:
        text = f"{self.case}: {self.metric.title} at most {self.at_most:g} x as good as {self.peer}"
        lead = row.lead(self.peer, self.metric)
        return _result(text, lead, " x", lead is not None and lead <= self.at_most)


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """kproto's figure is at most ``at_most``, or with a peer at most ``at_most`` times the peer's figure."""

    case: str
    metric: Metric
    at_most: float
    peer: str | None = None

    def check(self, row: Row) -> FloorResult:
        if self.peer is None:
            text, unit = f"{self.case}: {self.metric.title} at most {self.at_most:g}", ""
            value = row.figure(KPROTO, self.metric)
        else:
            text, unit = f"{self.case}: {self.metric.title} at most {self.at_most:g} x {self.peer}'s", " x"
            lead = row.lead(self.peer, self.metric)
            value = lead if self.metric.more_is_better or not lead else 1 / lead
        return _result(text, value, unit, value is not None and value <= self.at_most)


def _result(text: str, value: float | None, unit: str, held: bool) -> FloorResult:
    if value is None:
        return FloorResult(f"{text} (a figure is missing)", None)
    return FloorResult(f"{text} ({value:.2f}{unit})", held)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """A bench that ``python -m bench`` can run."""

    name: str
    summary: str
    metrics: Sequence[Metric]
    peers: Sequence[str]
    """Names of the measured subjects, kproto first."""
    floors: Sequence[Floor]
    add_options: Callable[[ArgumentParser], None]
    run: Callable[[Namespace, Note], list[Row]]
    """Measures the subjects named in ``options.only``. Raises BenchError."""


def counted(count: int, noun: str) -> str:
    """Return a count with its noun: ``1 member``, ``1,000 members``."""
    return f"{count:,} {noun}{'s' * (count > 1)}"
