"""What a client did about accidents, as a page with a picture of each log; it needs nothing else."""

from __future__ import annotations

from html import escape
from importlib.resources import files
from typing import TYPE_CHECKING

from kproto_server.scenarios.text import how_it_ended, went_to

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from kproto_server.scenarios.lab import Findings, Outcome

WIDTH, MARGIN, BAR_TOP, BAR_HEIGHT, HEIGHT = 640, 30, 34, 22, 84

STYLE = """
svg text { font: 12px system-ui, sans-serif; fill: var(--ink); }
.log { fill: var(--cell); stroke: var(--line); }
.skipped { fill: var(--bad); }
.again { fill: var(--warn); }
.mark { stroke: var(--ink); stroke-width: 1.5; }
.swatch { display: inline-block; width: .8em; height: .8em; border-radius: 2px; }
"""


def render(all_findings: Iterable[Findings]) -> str:
    """Return the page."""
    found = list(all_findings)
    client = escape(found[0].client) if found else ""
    style = files("kproto_server.report").joinpath("report.css").read_text(encoding="utf-8") + STYLE
    skipped = sum(outcome.skipped for findings in found for outcome in findings.outcomes)
    repeated = sum(outcome.repeated for findings in found for outcome in findings.outcomes)
    kind, words = ("bad", f"{skipped} records skipped") if skipped else ("good", "No record skipped")
    body = "\n".join(line for findings in found for line in _section(findings))
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Reset accidents: {client}</title>
<style>
{style}</style>
</head>
<body>
<main>
<header><h1>Reset accidents: {client}</h1>
<p class="soft small">Where the client went when its committed offset was of no use, by what it asked the broker.
<span class="swatch" style="background: var(--bad)"></span> skipped
<span class="swatch" style="background: var(--warn)"></span> read again</p></header>
<div class="banner {kind}" role="status">{words}; {repeated} read again</div>
{body}
</main>
</body>
</html>
"""


def _section(findings: Findings) -> Iterator[str]:
    yield f"<section><h2>{escape(findings.accident.name)}</h2><p>{escape(findings.accident.what)}</p>"
    for outcome in findings.outcomes:
        yield _picture(outcome)
        yield f'<p class="soft small">{escape("; ".join(outcome.steps)) or "nothing was asked"}</p>'
    ending = how_it_ended(findings)
    if ending:
        yield f'<p class="small">{escape(ending)}</p>'
    yield "</section>"


def _picture(outcome: Outcome) -> str:
    """One log as a bar, and on it where the client went."""
    places = (0, outcome.log_end, outcome.resume_at, outcome.went_to or 0)
    scale = (WIDTH - 2 * MARGIN) / max(1, *places)

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

    end = outcome.log_end if outcome.went_to is None else outcome.went_to
    title = f"partition {outcome.partition}: {outcome.skipped} skipped, {outcome.repeated} read again"
    parts = [
        bar(outcome.log_start, outcome.log_end, "log"),
        bar(outcome.resume_at, end, "skipped") if outcome.skipped else "",
        bar(end, outcome.resume_at, "again") if outcome.repeated else "",
        mark(outcome.resume_at, BAR_TOP - 12, f"should go on at {outcome.resume_at}"),
    ]
    below = BAR_TOP + BAR_HEIGHT + 22
    if outcome.went_to is None:
        parts.append(f'<text x="{MARGIN}" y="{below}">went nowhere</text>')
    else:
        parts.append(mark(outcome.went_to, below, f"went to {went_to(outcome)}"))
    return (
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" width="100%" style="max-width: {WIDTH}px" role="img" '
        f'aria-label="{escape(title)}"><title>{escape(title)}</title>{"".join(parts)}</svg>'
    )
