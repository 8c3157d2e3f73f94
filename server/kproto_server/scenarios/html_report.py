"""The results of failure scenarios as a self-contained HTML page with a picture of each log."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from kproto.html_page import banner, html_page, section
from kproto_server.scenarios.text_report import format_ending, format_start, format_verdict

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from kproto_server.scenarios.runner import PartitionResult, ScenarioResult

STYLE = """
.track { position: relative; height: 2.6rem; }
.track i { position: absolute; top: .6rem; height: 1.4rem; }
.track .log { background: var(--cell); border: 1px solid var(--line); border-radius: 3px; }
.track .skipped, .swatch.skipped { background: var(--bad); }
.track .again, .swatch.again { background: var(--warn); }
.track .expected, .track .actual { width: 0; top: 0; height: 2.6rem; border-left: 2px solid var(--ink); }
.track .expected { border-left-style: dashed; }
.positions { margin: 0 0 .5rem; padding: 0; list-style: none; }
.positions b { font-variant-numeric: tabular-nums; }
.swatch { display: inline-block; width: .8em; height: .8em; border-radius: 2px; }
figure { margin: .75rem 0; }
figcaption { font-weight: 600; }
"""


def render(all_results: Iterable[ScenarioResult]) -> str:
    """Return the page."""
    results = list(all_results)
    client = results[0].client if results else ""
    body = "\n".join(line for part in (_head(results, client), *map(_section, results)) for line in part)
    return html_page(f"Reset scenarios: {client}", STYLE, body)


def _head(results: list[ScenarioResult], client: str) -> Iterator[str]:
    skipped, read_again = sum(result.skipped for result in results), sum(result.read_again for result in results)
    crashed = sum(result.has_crashed for result in results)
    sentences = [f"{skipped:,} records skipped" if skipped else "No record skipped", f"{read_again:,} read again"]
    if crashed:
        sentences.insert(0, f"The client crashed in {crashed} of {len(results)} scenarios")
    yield f"""<header><h1>Reset scenarios: {escape(client)}</h1>
<p class="soft small">The start position of the consumer when its committed offset is missing or invalid, derived from
its requests. <span class="swatch skipped"></span> skipped <span class="swatch again"></span> read again</p></header>"""
    yield banner("; ".join(sentences), "bad" if skipped or crashed else "good")


def _section(result: ScenarioResult) -> Iterator[str]:
    lines = [f"<p>{escape(result.scenario.description)}</p>"]
    for partition in result.partitions:
        lines.append(_picture(partition))
        lines.append(f'<p class="soft small">{escape("; ".join(partition.steps)) or "no request"}</p>')
    ending = format_ending(result)
    if ending:
        lines.append(f'<p class="small">{escape(ending)}</p>')
    return section(result.scenario.name, lines)


def _picture(partition: PartitionResult) -> str:
    """Return a bar for the log, with marks at the expected and the actual start position."""
    expected, actual = partition.expected_start, partition.actual_start
    largest = max(1, partition.log_end, expected, actual or 0)

    def place(offset: int) -> str:
        return f"{100 * offset / largest:.2f}%"

    def bar(start: int, end: int, kind: str) -> str:
        return (
            f'<i class="{kind}" style="left: {place(start)}; width: {place(end - start)}"></i>' if end > start else ""
        )

    def mark(offset: int, kind: str) -> str:
        return f'<i class="{kind}" style="left: min({place(offset)}, 100% - 2px)"></i>'

    end = partition.log_end if actual is None else actual
    started = "no successful Fetch" if actual is None else format_start(partition)
    bars = (
        bar(partition.log_start, partition.log_end, "log"),
        *(bar(*each, "skipped") for each in partition.unread if partition.skipped),
        bar(end, expected, "again") if partition.read_again else "",
        mark(expected, "expected"),
        "" if actual is None else mark(actual, "actual"),
    )
    return f"""<figure><figcaption>Partition {partition.partition}: {escape(format_verdict(partition))}</figcaption>
<div class="track">{"".join(bars)}</div>
<ul class="positions small"><li>log: <b>{partition.log_start:,}</b> to <b>{partition.log_end:,}</b></li>
<li>expected start (dashed): <b>{expected:,}</b></li><li>actual start: <b>{escape(started)}</b></li>
<li>skipped: <b>{partition.skipped:,}</b>, read again: <b>{partition.read_again:,}</b></li></ul></figure>"""
