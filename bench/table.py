"""Formats rows and floors: a Markdown table with ratios, or JSON."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence

from bench.model import KPROTO, Floor, FloorResult, Metric, Row


def as_json(row: Row) -> str:
    """Return a row as one JSON object: ``bench``, ``case``, and the figures of each subject by its name."""
    return json.dumps({"bench": row.bench, "case": row.case, **row.figures})


def as_table(rows: Sequence[Row], metrics: Sequence[Metric]) -> str:
    """Return all rows as one table; the columns ``kproto x`` show how many times better kproto is than that line."""
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


def check_floors(floors: Iterable[Floor], rows: Sequence[Row], names: Sequence[str]) -> list[FloorResult]:
    """Return the result of each floor whose case was run and whose peer was selected."""
    by_case = {row.case: row for row in rows}
    selected = [f for f in floors if f.case in by_case and KPROTO in names and (f.peer is None or f.peer in names)]
    return [floor.check(by_case[floor.case]) for floor in selected]


def as_line(result: FloorResult) -> str:
    outcome = {True: "floor held", False: "floor MISSED", None: "floor NOT MEASURED"}[result.held]
    return f"{outcome}: {result.text}"


def _number(value: float | None, digits: int) -> str:
    return "-" if value is None else f"{value:,.{digits}f}"


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    texts = [cell.ljust(width) for cell, width in zip(cells[:2], widths[:2], strict=True)]
    numbers = [cell.rjust(width) for cell, width in zip(cells[2:], widths[2:], strict=True)]
    return f"| {' | '.join(texts + numbers)} |"
