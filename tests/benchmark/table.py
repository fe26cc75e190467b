"""The results as a Markdown table, and as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import Any

from tests.benchmark.rows import Row

_COLUMNS = ("what", "soulgit", "peer", "ratio (spread)", "bar", "met")


def markdown(heading: str, rows: Iterable[Row]) -> str:
    """Return the table under its heading."""
    cells = ((r.what, r.ours, r.peer, r.ratio, str(r.bar or "–"), r.met) for r in rows)
    lines = [_line(_COLUMNS), "|" + "---|" * len(_COLUMNS), *map(_line, cells)]
    return "\n".join([heading, "", *lines])


def as_json(machine: Mapping[str, Any], rows: Iterable[Row]) -> str:
    """Return all figures, each single value among them."""
    told = [asdict(row) | {"met": row.met} for row in rows]
    return json.dumps({"machine": dict(machine), "rows": told}, indent=1, ensure_ascii=False)


def _line(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
