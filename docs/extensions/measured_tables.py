"""Tables of the benchmarks page, from the records of the scripts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from docutils import nodes
from docutils.parsers.rst import Directive, directives

_RECORDS = Path(__file__).parents[1] / "benchmarks" / "records"
#: Chin and Suter 2006, table 1: exponents of the printed seconds over the printed rows.
_PAPER_EXPONENTS = {"batch": 3.04, "incremental": 0.99, "KHA": 1.58}


def setup(app: Any) -> dict[str, Any]:
    """Register ``measured`` (a table) and ``measured-where`` (date, versions, machine)."""
    app.add_directive("measured", Measured)
    app.add_directive("measured-where", Where)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def _record(directive: Directive) -> Any:
    path = _RECORDS / f"{directive.arguments[0]}.json"
    directive.state.document.settings.env.note_dependency(str(path))
    return json.loads(path.read_text(encoding="utf-8"))


def _ratios(record: Any) -> list[dict[str, Any]]:
    bare = record["block form over update of A alone"]
    rule = record["block form over rule"]
    return [{"method": name, "rule": rule[name], "bare": bare[name]} for name in rule]


def _exponents(record: Any) -> list[dict[str, Any]]:
    return [
        {
            "method": row["method"],
            "exponent": np.polyfit(np.log(row["rows"]), np.log(row["seconds"]), 1)[0],
            "paper": _PAPER_EXPONENTS[row["method"].partition(",")[0]],
        }
        for row in record["table"]
    ]


def _large_stream(record: Any) -> list[dict[str, Any]]:
    figures = record["table"]
    share = next(claim["value"] for claim in record["claims"] if "share" in claim["what"])
    return [
        {"what": "variance along the components, of that along exact ones", "seen": f"{share:.1%}"},
        {"what": "seconds", "seen": f"{figures['seconds']:.0f}"},
        {"what": "peak memory above the data, MB", "seen": f"{figures['peak_bytes'] / 1e6:.0f}"},
        {"what": "rows kept", "seen": f"{figures['library_rows']:,}"},
    ]


def _losses(record: Any) -> list[dict[str, Any]]:
    """Return the sets that other detectors win, the largest difference first."""
    lost = {
        row["name"]: sorted(row["lost"].items(), key=lambda pair: -pair[1])
        for row in record["table"]
        if row["lost"]
    }
    return [
        {
            "name": name,
            "sets": ", ".join(f"{part.partition('_')[2]} {by:.3f}" for part, by in sets),
        }
        for name, sets in lost.items()
    ]


#: Tables that a record holds in another shape.
_VIEWS = {
    "ratios": _ratios, "exponents": _exponents, "rows": _large_stream, "losses": _losses,
}  # fmt: skip


class Measured(Directive):
    """Columns of a record: ``key = heading = format``, one per line."""

    required_arguments = 1
    has_content = True
    option_spec: ClassVar = {"table": directives.unchanged}

    def run(self) -> list[nodes.Node]:
        name, record = self.options.get("table", "table"), _record(self)
        rows = _VIEWS[name](record) if name in _VIEWS else record[name]
        columns = [[part.strip() for part in line.split("=")] for line in self.content if line]
        table = nodes.table(classes=["measured"])
        group = nodes.tgroup(cols=len(columns))
        group += [nodes.colspec(colwidth=1) for _ in columns]
        head, body = nodes.thead(), nodes.tbody()
        head += _line([heading for _, heading, _ in columns], columns)
        for row in rows:
            values = dict(enumerate(row)) if isinstance(row, list) else row
            values = {str(key): value for key, value in values.items()}
            cells = [_cell(values.get(key), form) for key, _, form in columns]
            body += _line(cells, columns)
        group += [head, body]
        table += group
        return [table]


class Where(Directive):
    """Date, versions and machine of a record."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        made = _record(self)["made"]
        libraries = ", ".join(f"{name} {number}" for name, number in made["versions"].items())
        machine = f"{made['cores']} cores of {made['processor']}, {made['memory_gb']} GB"
        text = f"Measured on {made['date']} on {machine}, with {libraries}."
        return [nodes.paragraph(text, text, classes=["provenance"])]


def _cell(value: Any, form: str) -> str:
    if value is None:
        return "–"
    if form == "MB":
        return f"{value / 1e6:,.0f}"
    return format(value, form) if form else str(value)


def _line(cells: list[str], columns: list[list[str]]) -> nodes.row:
    line = nodes.row()
    for text, (_, _, form) in zip(cells, columns, strict=True):
        entry = nodes.entry(classes=["number"] if form else [])
        entry += nodes.paragraph(text, text)
        line += entry
    return line
