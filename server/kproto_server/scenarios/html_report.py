"""The results of failure scenarios as a self-contained HTML page with a picture of each log."""

from __future__ import annotations

from html import escape
from importlib.resources import files
from typing import TYPE_CHECKING

from kproto_server.scenarios.text_report import format_ending, format_start

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from kproto_server.scenarios.runner import PartitionResult, ScenarioResult

WIDTH, MARGIN, BAR_TOP, BAR_HEIGHT, HEIGHT = 640, 30, 34, 22, 84

STYLE = """
svg text { font: 12px system-ui, sans-serif; fill: var(--ink); }
.log { fill: var(--cell); stroke: var(--line); }
.skipped { fill: var(--bad); }
.again { fill: var(--warn); }
.mark { stroke: var(--ink); stroke-width: 1.5; }
.swatch { display: inline-block; width: .8em; height: .8em; border-radius: 2px; }
"""


def render(all_results: Iterable[ScenarioResult]) -> str:
    """Return the page."""
    results = list(all_results)
    client = escape(results[0].client) if results else ""
    style = files("kproto_server.report").joinpath("report.css").read_text(encoding="utf-8") + STYLE
    skipped = sum(partition.skipped for result in results for partition in result.partitions)
    read_again = sum(partition.read_again for result in results for partition in result.partitions)
    kind, text = ("bad", f"{skipped} records skipped") if skipped else ("good", "No record skipped")
    body = "\n".join(line for result in results for line in _section(result))
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Reset scenarios: {client}</title>
<style>
{style}</style>
</head>
<body>
<main>
<header><h1>Reset scenarios: {client}</h1>
<p class="soft small">The start position of the consumer when its committed offset is missing or invalid, derived from
its requests. <span class="swatch" style="background: var(--bad)"></span> skipped
<span class="swatch" style="background: var(--warn)"></span> read again</p></header>
<div class="banner {kind}" role="status">{text}; {read_again} read again</div>
{body}
</main>
</body>
</html>
"""


def _section(result: ScenarioResult) -> Iterator[str]:
    yield f"<section><h2>{escape(result.scenario.name)}</h2><p>{escape(result.scenario.description)}</p>"
    for partition in result.partitions:
        yield _picture(partition)
        yield f'<p class="soft small">{escape("; ".join(partition.steps)) or "no request"}</p>'
    ending = format_ending(result)
    if ending:
        yield f'<p class="small">{escape(ending)}</p>'
    yield "</section>"


def _picture(partition: PartitionResult) -> str:
    """Return a bar for the log, with marks at the expected and the actual start position."""
    expected, actual = partition.expected_start, partition.actual_start
    scale = (WIDTH - 2 * MARGIN) / max(1, partition.log_end, expected, actual or 0)

    def x(offset: int) -> float:
        return round(MARGIN + offset * scale, 1)

    def bar(start: int, end: int, kind: str) -> str:
        size = f'width="{round(x(end) - x(start), 1)}" height="{BAR_HEIGHT}"'
        return f'<rect x="{x(start)}" y="{BAR_TOP}" {size} class="{kind}"/>' if end > start else ""

    def mark(offset: int, y: int, label: str) -> str:
        anchor = "end" if x(offset) > WIDTH * 0.6 else "start"
        line = (
            f'<line x1="{x(offset)}" x2="{x(offset)}" y1="{BAR_TOP - 6}" y2="{BAR_TOP + BAR_HEIGHT + 6}" class="mark"/>'
        )
        return f'{line}<text x="{x(offset)}" y="{y}" text-anchor="{anchor}">{escape(label)}</text>'

    end = partition.log_end if actual is None else actual
    title = f"partition {partition.partition}: {partition.skipped} skipped, {partition.read_again} read again"
    parts = [
        bar(partition.log_start, partition.log_end, "log"),
        bar(expected, end, "skipped"),
        bar(end, expected, "again") if partition.read_again else "",
        mark(expected, BAR_TOP - 12, f"expected start: {expected}"),
    ]
    below = BAR_TOP + BAR_HEIGHT + 22
    if actual is None:
        parts.append(f'<text x="{MARGIN}" y="{below}">no successful fetch</text>')
    else:
        parts.append(mark(actual, below, f"actual start: {format_start(partition)}"))
    return (
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" width="100%" style="max-width: {WIDTH}px" role="img" '
        f'aria-label="{escape(title)}"><title>{escape(title)}</title>{"".join(parts)}</svg>'
    )
