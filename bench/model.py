"""What a bench is: metrics, rows of figures, and the floors that kproto has to keep."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

KPROTO = "kproto"

Note = Callable[[str], None]
"""Takes one line that the reader has to see beside the table."""


class Missing(Exception):
    """A peer cannot be measured on this machine; the text says what is missing."""


class BenchError(Exception):
    """A peer that was there failed, or answered wrongly: no figure of this run can be trusted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """One figure of a row."""

    key: str
    """Its name in JSON, with the unit."""
    title: str
    """Its column in the table."""
    more_is_better: bool = False
    compared: bool = False
    """Whether the table has a column with kproto's lead in it."""
    digits: int = 1

    def best(self, figures: Sequence[float]) -> float:
        return max(figures) if self.more_is_better else min(figures)

    def lead(self, kproto: float, peer: float) -> float | None:
        """How many times better kproto is; None where a figure is zero."""
        over, under = (kproto, peer) if self.more_is_better else (peer, kproto)
        return over / under if under else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One case: for each that was measured, by name, its figures by their metric's key."""

    bench: str
    case: str
    figures: Mapping[str, Mapping[str, float]]

    def figure(self, name: str, metric: Metric) -> float | None:
        return self.figures.get(name, {}).get(metric.key)

    def lead(self, peer: str, metric: Metric) -> float | None:
        """How many times better kproto is than the peer; None where either was not measured."""
        ours, theirs = self.figure(KPROTO, metric), self.figure(peer, metric)
        return None if ours is None or theirs is None else metric.lead(ours, theirs)


@dataclass(frozen=True, slots=True)
class Verdict:
    """What became of one floor; ``held`` is None where it could not be measured."""

    text: str
    held: bool | None


class Floor(Protocol):
    """A figure, or a ratio, that kproto has to keep."""

    @property
    def case(self) -> str: ...

    @property
    def peer(self) -> str | None:
        """The peer that has to be measured for it, if any."""
        ...

    def judge(self, row: Row) -> Verdict: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Lead:
    """kproto is at least so many times as good as the peer."""

    case: str
    metric: Metric
    peer: str
    at_least: float

    def judge(self, row: Row) -> Verdict:
        text = f"{self.case}: {self.metric.title} at least {self.at_least:g} x as good as {self.peer}"
        lead = row.lead(self.peer, self.metric)
        return _verdict(text, lead, " x", lead is not None and lead >= self.at_least)


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """kproto's figure is at most so much, or at most so many times the peer's."""

    case: str
    metric: Metric
    at_most: float
    peer: str | None = None

    def judge(self, row: Row) -> Verdict:
        value = row.figure(KPROTO, self.metric)
        if self.peer is None:
            text, unit = f"{self.case}: {self.metric.title} at most {self.at_most:g}", ""
        else:
            text, unit = f"{self.case}: {self.metric.title} at most {self.at_most:g} x {self.peer}'s", " x"
            theirs = row.figure(self.peer, self.metric)
            value = value / theirs if value is not None and theirs else None
        return _verdict(text, value, unit, value is not None and value <= self.at_most)


def _verdict(text: str, value: float | None, unit: str, held: bool) -> Verdict:
    if value is None:
        return Verdict(f"{text} (a figure is missing)", None)
    return Verdict(f"{text} ({value:.2f}{unit})", held)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """One bench, as ``python -m bench`` offers it."""

    name: str
    summary: str
    metrics: Sequence[Metric]
    peers: Sequence[str]
    """Whom it measures, kproto first."""
    floors: Sequence[Floor]
    add_options: Callable[[ArgumentParser], None]
    run: Callable[[Namespace, Note], list[Row]]
    """Measures what the options ask for; ``options.only`` names whom. Raises BenchError."""
