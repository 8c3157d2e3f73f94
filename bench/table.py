"""How rows and floors are printed: a Markdown table with ratios, or JSON."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence

from bench.model import KPROTO, Floor, Metric, Row, Verdict


def as_json(row: Row) -> str:
    """One row as one JSON object: ``bench``, ``case``, and by name the figures of each that was measured."""
    return json.dumps({"bench": row.bench, "case": row.case, **row.figures})


def as_table(rows: Sequence[Row], metrics: Sequence[Metric]) -> str:
    """All rows as one table; the columns ``kproto x`` say how many times better kproto is than that line."""
    compared = [metric for metric in metrics if metric.compared]
    head = ["case", "", *(m.title for m in metrics), *(f"kproto x: {m.title}" for m in compared)]
    lines = [head]
    for row in rows:
        for nth, name in enumerate(row.figures):
            figures = [_number(row.figure(name, metric), metric.digits) for metric in metrics]
            leads = ["" if name == KPROTO else _number(row.lead(name, metric), 2) for metric in compared]
            lines.append([row.case if nth == 0 else "", name, *figures, *leads])
    widths = [max(len(line[column]) for line in lines) for column in range(len(head))]
    rule = ["-" * width for width in widths]
    return "\n".join(_line(line, widths) for line in [head, rule, *lines[1:]])


def judge(floors: Iterable[Floor], rows: Sequence[Row], names: Sequence[str]) -> list[Verdict]:
    """What became of each floor whose case was run and whose peer was asked for."""
    by_case = {row.case: row for row in rows}
    asked = [f for f in floors if f.case in by_case and KPROTO in names and (f.peer is None or f.peer in names)]
    return [floor.judge(by_case[floor.case]) for floor in asked]


def as_line(verdict: Verdict) -> str:
    said = {True: "floor held", False: "floor MISSED", None: "floor NOT MEASURED"}[verdict.held]
    return f"{said}: {verdict.text}"


def _number(value: float | None, digits: int) -> str:
    return "-" if value is None else f"{value:,.{digits}f}"


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    texts = [cell.ljust(width) for cell, width in zip(cells[:2], widths[:2], strict=True)]
    numbers = [cell.rjust(width) for cell, width in zip(cells[2:], widths[2:], strict=True)]
    return f"| {' | '.join(texts + numbers)} |"
