"""The report as one self-contained page of HTML, for screen and print."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from html import escape
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from kproto.html_page import Cell, Column, Markup, banner, cards, html_page, section, share_bar, table
from kproto.spark import words
from kproto.spark.advice import sentence
from kproto.spark.commands import JOBS
from kproto.spark.output import EMPTY, printable
from kproto.spark.report import charts

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import datetime

    from kproto.spark.report.model import Report, Row, Rows

MINUTE_MS = 60_000

Field = tuple[str, Callable[["Row"], str | Cell], bool]
"""A column: its heading, a function that returns a row's cell, and whether that is a number."""


def render(report: Report) -> str:
    """Return the page as HTML."""
    style = files(__package__).joinpath("report.css").read_text(encoding="utf-8")
    title = f"Consumer offsets in {report.coverage.path}"
    parts = (_head(report), _banner(report), _cards(report), _coverage(report), _sections(report), _foot(report))
    body = "\n".join(line for part in parts for line in part)
    return html_page(printable(title), style, body)


def _head(report: Report) -> Iterator[str]:
    yield "<header>\n<h1>Consumer offsets</h1>"
    yield f'<p class="soft small"><code>{_text(report.coverage.path)}</code></p>'
    yield f'<p class="soft small">as of {_time(report.at)}, the {_name_of_time(report)}; all times UTC</p>\n</header>'


def _banner(report: Report) -> Iterator[str]:
    text, is_enough = sentence(report.advice, report.coverage)
    yield banner(text, "good" if is_enough else "warn")


def _cards(report: Report) -> Iterator[str]:
    lag = sum(row["lag"] for row in report.lags.first[:1])
    soon = f"offsets lost in the day after the {_name_of_time(report)}"
    yield from cards(
        (
            (f"{report.groups:,}", "groups with offsets", ""),
            (f"{report.offsets:,}", "offsets", ""),
            (f"{report.commits:,}", "commits in the log", ""),
            (f"{report.lost_soon:,}", soon, "bad" if report.lost_soon else "good"),
            (f"{lag:,}", "highest lag of a group", "") if report.lag else ("\N{EN DASH}", "lag is unknown", ""),
            (f"{report.stalled.count:,}", "offsets stalled", "warn" if report.stalled.count else ""),
            (f"{report.rewinds.count:,}", "rewinds", "warn" if report.rewinds.count else ""),
        )
    )


def _coverage(report: Report) -> Iterator[str]:
    read = report.coverage
    lines = ['<ul class="plain">', *(f"<li>{_text(line)}</li>" for line in words.coverage(read))]
    hidden = "a compacted segment has only the last commit of each key. Rates, rewinds, events and lag before the end "
    for line in words.caveats(read, hidden + "are lower bounds; latest offsets and deadlines are exact"):
        lines.append(f'<li class="caveat">{_text(line)}</li>')
    if not any(words.gaps(read)):
        lines.append("<li>No offset is missing: the log is not compacted, and all counts are complete.</li>")
    yield from section("Input", [*lines, "</ul>"])


def _sections(report: Report) -> Iterator[str]:
    yield from _rates(report)
    yield from _expiry(report)
    yield from _audit(report)
    yield from _lag(report)
    yield from _hot(report)
    yield from _anomalies(report)


def _rates(report: Report) -> Iterator[str]:
    subtitle, lines = "by group, all partitions", ["<p>There are no commits.</p>"]
    if report.rates is not None:
        subtitle = f"per {charts.length(report.rates.step)}, {subtitle}"
        lines = [charts.bars(report.rates, "Commits over time, by group")]
    yield from section("Commits over time", lines, subtitle)


def _expiry(report: Report) -> Iterator[str]:
    subtitle = f"without further commits or joins, under offsets.retention.minutes = {report.retention_minutes:,}"
    lines = []
    if report.losses is not None:
        named = {BASES[basis]: counts for basis, counts in report.losses.series.items()}
        losses = replace(report.losses, series=named)
        lines.append(charts.bars(losses, "Offsets lost over time", mark=(report.at, _name_of_time(report))))
    if report.kept:
        kept = words.plural(report.kept, "offset")
        lines.append(f"<p>{kept} without a deadline: members or an open transaction keep them.</p>")
    fields: list[Field] = [
        ("Group", _name("group_id"), False),
        ("Expires at", _moment("expires_ts"), False),
        (f"Time left at {_time(report.at)}", lambda row: _until(report.at, row["expires_ts"]), True),
        ("Offsets", _number("offsets_lost"), True),
        ("Left after", _number("offsets_left"), True),
        ("Empty since", _moment("became_empty_ts"), False),
        ("Counted from", lambda row: BASES[row["basis"]], False),
    ]
    lines += _table(fields, report.expiry, "expiry")
    yield from section("Expiring offsets", lines, subtitle)


def _name_of_time(report: Report) -> str:
    """Return the name of the report's time: an old copy of a log ends long before now."""
    return "end of the log" if report.is_end else "time of the question"


BASES = {"group_metadata": "the group becoming empty", "last_commit": "the commit", "override": "a requested retention"}
"""The event from which a deadline is counted, by `basis`."""


def _audit(report: Report) -> Iterator[str]:
    fields: list[Field] = [
        ("Group", _name("group_id"), False),
        ("Needs minutes", lambda row: _needs(row, report.retention_minutes), True),
        ("Longest requested", lambda row: _requested(row["max_override_ms"]), False),
        ("Requests", _number("n_overrides"), True),
        ("Commits", _number("n_commits"), True),
        ("First seen", _moment("first_seen"), False),
        ("Last seen", _moment("last_seen"), False),
        ("Has offsets", lambda row: "yes" if row["has_offsets"] else "no", False),
    ]
    subtitle = "KIP-211: clients since 2.1 cannot request a retention, so the broker's has to be enough for every group"
    yield from section("Retention audit", _table(fields, report.audit, "retention-audit"), subtitle)


def _requested(max_override_ms: int | None) -> Cell:
    if max_override_ms is None:
        return Cell(Markup('<span class="soft">the broker\'s own</span>'), -1)
    return Cell(words.duration(max_override_ms), max_override_ms)


def _needs(row: Row, current: int) -> str:
    text = f"{row['recommended_minutes']:,}"
    return Markup(f'<b class="over">{text}</b>') if row["recommended_minutes"] > current else text


def _lag(report: Report) -> Iterator[str]:
    lines = []
    if report.lag is not None:
        elsewhere = charts.colors(report.rates.series) if report.rates is not None else {}
        lines.append(charts.lines(report.lag, "Lag over time, by group", elsewhere))
    if report.lag_unknown:
        unknown = words.plural(report.lag_unknown, "offset")
        lines.append(f"<p>{unknown} of topics whose logs are not in this directory: their lag is unknown.</p>")
    fields: list[Field] = [
        ("Group", _name("group_id"), False),
        ("Lag", _number("lag"), True),
        ("Partitions", _number("partitions"), True),
        ("Worst partition", _name("worst"), False),
        ("Its lag", _number("worst_lag"), True),
    ]
    lines += _table(fields, report.lags, "lag")
    yield from section("Lag", lines, "in offsets, summed over the partitions of a group, at the end of the log")


def _hot(report: Report) -> Iterator[str]:
    fields: list[Field] = [
        ("Partition", _number("log_partition"), True),
        ("Commits", _number("commits"), True),
        ("Share", lambda row: _bar(row["share"] or 0), True),
        ("Bytes", _number("bytes"), True),
        ("Groups", _number("groups"), True),
        ("Top group", _name("top_group"), False),
        ("Its share", lambda row: Cell(words.percent(row["top_share"] or 0), row["top_share"] or 0), True),
    ]
    yield from section("Hot partitions", _table(fields, report.hot, "hot-partitions"), "of __consumer_offsets")


def _bar(share: float) -> Cell:
    return share_bar(share, words.percent(share))


def _anomalies(report: Report) -> Iterator[str]:
    partition: Field = ("Partition", _partition, False)
    stalled: list[Field] = [
        ("Group", _name("group_id"), False),
        partition,
        ("Offset", _number("committed_offset"), True),
        ("Since", _moment("since_ts"), False),
        ("Last commit", _moment("last_commit_ts"), False),
        ("Commits", _number("commits"), True),
        ("Lag", _number("lag"), True),
    ]
    subtitle = f"not moved for {report.stalled_minutes:,} minutes or longer, with records to read"
    yield from section("Stalled", _table(stalled, report.stalled, "stalled"), subtitle)
    rewinds: list[Field] = [
        ("Group", _name("group_id"), False),
        partition,
        ("When", _moment("ts"), False),
        ("From", _number("from_offset"), True),
        ("To", _number("to_offset"), True),
        ("By", _number("rewound"), True),
        ("Cause", lambda row: "offset was lost" if row["after_loss"] else "a lower commit", False),
    ]
    yield from section("Rewinds", _table(rewinds, report.rewinds, "rewinds"), "the largest first")
    events: list[Field] = [
        ("Group", _name("group_id"), False),
        ("Rebalances", _number("rebalanced"), True),
        ("Most members", _number("members_max"), True),
        ("Emptied", _number("emptied"), True),
        ("Removed", _number("removed"), True),
        ("Last event", _moment("last_ts"), False),
    ]
    yield from section("Rebalances", _table(events, report.rebalances, "rebalances"), "of groups with members")


def _foot(report: Report) -> Iterator[str]:
    caveats = [f"{name}: {job.compaction}" for name, job in JOBS.items() if job.compaction]
    yield "<footer><p>Offsets stay until the first expiration task after their deadline. In a compacted log:</p><ul>"
    yield from (f"<li>{_text(line)}</li>" for line in caveats)
    yield "</ul></footer>"


def _table(fields: Sequence[Field], rows: Rows, job: str) -> Iterator[str]:
    """Yield the first rows, a link that opens more of them, and how many more the job returns."""
    if not rows.first:
        yield "<p>None.</p>"
        return
    columns = [Column(heading, is_number) for heading, _, is_number in fields]
    yield from table(columns, ([cell(row) for _, cell, _ in fields] for row in rows.first))
    if rows.more:
        yield f'<details class="more"><summary>{words.plural(len(rows.more), "more row")}</summary>'
        yield from table(columns, ([cell(row) for _, cell, _ in fields] for row in rows.more))
        yield "</details>"
    left = rows.count - len(rows.first) - len(rows.more)
    if left > 0:
        more = f"and {left:,} more: <code>python -m kproto.spark {job}</code> prints all"
        yield f'<p class="soft small">{more}</p>'


def _name(column: str) -> Callable[[Row], str]:
    def cell(row: Row) -> str:
        if row[column] is None:
            return ""
        return Markup(f'<span class="name">{_text(row[column] or EMPTY)}</span>')

    return cell


def _partition(row: Row) -> str:
    return f"{printable(row['topic'])}-{row['partition']}"


def _number(column: str) -> Callable[[Row], str]:
    return lambda row: "" if row[column] is None else f"{row[column]:,}"


def _moment(column: str) -> Callable[[Row], str]:
    return lambda row: "" if row[column] is None else Markup(f'<span class="time">{_time(row[column])}</span>')


def _until(now: datetime, moment: datetime) -> Cell:
    milliseconds = round((moment - now).total_seconds() * 1000)
    return Cell("over" if milliseconds <= 0 else words.duration(milliseconds), milliseconds)


def _time(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%d %H:%M:%S")


def _text(text: Any) -> str:
    return escape(printable(str(text)))
