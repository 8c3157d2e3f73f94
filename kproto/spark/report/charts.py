"""Charts as inline SVG: stacked bars and lines over time. Colors are CSS classes of the page (s0, s1, ...)."""

from __future__ import annotations

from datetime import timedelta
from html import escape
from itertools import count as numbers
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from kproto.html_page import short_count
from kproto.spark.output import printable
from kproto.spark.report.model import MONDAY
from kproto.spark.times import shifted

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping
    from datetime import datetime

    from kproto.spark.report.model import Histogram, Lines

LEFT, RIGHT, TOP, BOTTOM = 66, 14, 12, 30
HEIGHT = 250
BAR_WIDTH_MAX = 46
MOMENT = timedelta(milliseconds=1)
"""The shortest span of a chart."""
LABEL_WIDTH = 56
"""Width of the widest label below an axis, a time of day with seconds."""
TICKS = [
    (timedelta(**{unit: count}), form)
    for unit, counts, form in (
        ("seconds", (1, 2, 5, 10, 15, 30), "%H:%M:%S"),
        ("minutes", (1, 2, 5, 10, 15, 30), "%H:%M"),
        ("hours", (1, 2, 3, 6, 12), "%H:%M"),
        ("days", (1, 2, 7, 14, 28, 91, 182, 364), "%-d %b"),
    )
    for count in counts
]


class Size(NamedTuple):
    """The width of a picture in its own units, which are pixels on a screen that wide."""

    width: int
    ticks_max: int
    kind: str
    """The class of the picture, by which the page shows the one that fits its width."""


WIDE, NARROW = Size(1000, 10, "chart"), Size(400, 4, "chart narrow")
TICKS_MAX = WIDE.ticks_max


class Scale:
    """Converts times and values to coordinates in the picture."""

    def __init__(self, size: Size, start: datetime, end: datetime, highest: float) -> None:
        self.size: Size = size
        self.end: datetime = max(end, shifted(start, MOMENT))
        self.start: datetime = min(start, self.end - MOMENT)
        self.step: int = nice_step(highest)
        self.top: float = max(self.step, -(-highest // self.step) * self.step)

    def x(self, moment: datetime) -> float:
        return LEFT + (self.size.width - LEFT - RIGHT) * ((moment - self.start) / (self.end - self.start))

    def y(self, value: float) -> float:
        return TOP + (HEIGHT - TOP - BOTTOM) * (1 - value / self.top)


def colors(names: Collection[str], elsewhere: Mapping[str, int] | None = None) -> dict[str, int]:
    """Return a color number for each name. Names with a color in another chart keep it; the others get free ones."""
    kept = {name: number for name, number in (elsewhere or {}).items() if name in set(names)}
    free = (number for number in numbers() if number not in kept.values())
    return {name: kept[name] if name in kept else next(free) for name in names}


def bars(counts: Histogram, label: str, mark: tuple[datetime, str] | None = None) -> str:
    """Return a chart of stacked bars, with a labeled vertical line at one time if given."""
    pictures = (_picture(size, _bars(size, counts, mark), label) for size in (WIDE, NARROW))
    return "".join(pictures) + _keys(colors(counts.series))


def _bars(size: Size, counts: Histogram, mark: tuple[datetime, str] | None) -> Iterator[str]:
    sums = [sum(values) for values in zip(*counts.series.values(), strict=True)]
    start = min(counts.start, mark[0]) if mark else counts.start
    scale = Scale(size, start, counts.end, max(sums))
    yield from _axes(scale)
    width = scale.x(shifted(counts.start, counts.step)) - scale.x(counts.start)
    drawn = min(BAR_WIDTH_MAX, max(1.0, width * 0.86))
    for bar in range(counts.size):
        moment = counts.start + counts.step * bar
        left = scale.x(moment) + (width - drawn) / 2
        below = 0
        for number, (name, values) in enumerate(counts.series.items()):
            if values[bar]:
                top, bottom = scale.y(below + values[bar]), scale.y(below)
                title = f"{name}: {values[bar]:,} from {_exact(moment)} for {length(counts.step)}"
                yield (
                    f'<rect class="s{number}" x="{left:.1f}" y="{top:.1f}" width="{drawn:.1f}"'
                    f' height="{max(bottom - top, 0.7):.1f}"><title>{_text(title)}</title></rect>'
                )
                below += values[bar]
    if mark is not None:
        x = scale.x(mark[0])
        anchor = "start" if x < size.width / 2 else "end"
        shift = 5 if anchor == "start" else -5
        yield f'<line class="mark" x1="{x:.1f}" x2="{x:.1f}" y1="{TOP}" y2="{HEIGHT - BOTTOM}"/>'
        yield f'<text x="{x + shift:.1f}" y="{TOP + 9}" text-anchor="{anchor}">{_text(mark[1])}</text>'


def lines(values: Lines, label: str, elsewhere: Mapping[str, int] | None = None) -> str:
    """Return a chart with a line for each name, interrupted where it has no value.

    ``elsewhere`` has the colors of another chart.
    """
    color = colors(values.series, elsewhere)
    pictures = (_picture(size, _lines(size, values, color), label) for size in (WIDE, NARROW))
    return "".join(pictures) + _keys(color)


def _lines(size: Size, values: Lines, color: Mapping[str, int]) -> Iterator[str]:
    known = [value for line in values.series.values() for value in line if value is not None]
    scale = Scale(size, values.moments[0], values.moments[-1], max(known))
    yield from _axes(scale)
    for name, line in values.series.items():
        number = color[name]
        points = [
            None if value is None else (scale.x(moment), scale.y(value))
            for moment, value in zip(values.moments, line, strict=True)
        ]
        path = []
        for before, point in pairwise([None, *points]):
            if point is not None:
                path.append(f"{'M' if before is None else 'L'}{point[0]:.1f} {point[1]:.1f}")
        yield f'<path class="l{number}" d="{" ".join(path)}"><title>{_text(name)}</title></path>'
        if points[-1] is not None:
            yield f'<circle class="s{number}" cx="{points[-1][0]:.1f}" cy="{points[-1][1]:.1f}" r="3.5"/>'


def nice_step(highest: float) -> int:
    """Return 1, 2 or 5 times a power of ten such that at most five steps reach a value."""
    size = 1
    while True:
        for count in (1, 2, 5):
            if highest <= 5 * count * size:
                return count * size
        size *= 10


def time_ticks(start: datetime, end: datetime, ticks_max: int = TICKS_MAX) -> Iterator[tuple[datetime, str]]:
    """Yield round times in a span with their labels; midnights have a date."""
    step, form = next((tick for tick in TICKS if (end - start) / tick[0] <= ticks_max), TICKS[-1])
    moment = shifted(start, (MONDAY - start) % step)
    while moment <= end:
        midnight = (moment - MONDAY) % timedelta(days=1) == timedelta(0)
        yield moment, moment.strftime("%-d %b" if midnight else form)
        if end - moment < step:
            return
        moment += step


def _axes(scale: Scale) -> Iterator[str]:
    value = 0.0
    while value <= scale.top:
        y = scale.y(value)
        yield f'<line class="grid" x1="{LEFT}" x2="{scale.size.width - RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>'
        yield f'<text x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{short_count(value)}</text>'
        value += scale.step
    for moment, text in time_ticks(scale.start, scale.end, scale.size.ticks_max):
        x = scale.x(moment)
        yield f'<line class="tick" x1="{x:.1f}" x2="{x:.1f}" y1="{HEIGHT - BOTTOM}" y2="{HEIGHT - BOTTOM + 5}"/>'
        width = scale.size.width
        anchor = "middle" if x < width - LABEL_WIDTH / 2 else "end"  # the last label must not exceed the picture
        yield f'<text x="{min(x, width - 1.0):.1f}" y="{HEIGHT - 9}" text-anchor="{anchor}">{text}</text>'


def _picture(size: Size, parts: Iterable[str], label: str) -> str:
    inside = "\n".join(parts)
    view = f'viewBox="0 0 {size.width} {HEIGHT}"'
    return f'<svg class="{size.kind}" {view} role="img" aria-label="{_text(label)}">\n{inside}\n</svg>\n'


def _keys(color: Mapping[str, int]) -> str:
    items = "".join(f'<li><span class="key s{number}"></span>{_text(name)}</li>' for name, number in color.items())
    return f'<ul class="keys">{items}</ul>'


def _text(text: str) -> str:
    return escape(printable(text))


def _exact(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%d %H:%M:%S")


def length(step: timedelta) -> str:
    """Return a length of time in the largest unit of which it is a whole number."""
    seconds = round(step.total_seconds())
    for unit, size in (("d", 86_400), ("h", 3600), ("min", 60)):
        if seconds % size == 0:
            return f"{seconds // size} {unit}"
    return f"{seconds} s"
