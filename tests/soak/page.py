"""A soak on one page of HTML that needs nothing else: charts over time as SVG."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from html import escape
from typing import Any, NamedTuple

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 860, 190, 64, 12, 12, 26
POINTS_MAX = 600
COLORS = ("#2b6cb0", "#c05621", "#2f855a", "#805ad5", "#b83280", "#4a5568")
STYLE = """
:root { color-scheme: light dark; --ink: #1a202c; --dim: #718096; --rule: #e2e8f0; --bad: #c53030;
  --good: #2f855a }
@media (prefers-color-scheme: dark) { :root { --ink: #e2e8f0; --dim: #a0aec0; --rule: #2d3748 } }
body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink); max-width: 900px; margin: 2em auto;
  padding: 0 1em }
h1 { font-size: 1.5em; margin-bottom: 0 } h2 { font-size: 1.05em; margin: 1.6em 0 .3em }
p { margin: .2em 0 } .about { color: var(--dim) } .good { color: var(--good) }
.bad { color: var(--bad); font-weight: 600 }
table { border-collapse: collapse } svg { width: 100%; height: auto }
td, th { text-align: left; padding: .15em 1em .15em 0; vertical-align: top }
td.n { text-align: right; font-variant-numeric: tabular-nums }
text { fill: var(--dim); font-size: 11px } .grid { stroke: var(--rule) }
.fault { stroke: var(--bad); opacity: .35 }
"""


class Line(NamedTuple):
    """One line of a chart: `points` are seconds and values."""

    name: str
    points: Sequence[tuple[float, float]]


class Chart(NamedTuple):
    """A figure over time."""

    title: str
    unit: str
    lines: Sequence[Line]


def render(
    title: str,
    about: str,
    verdict: Sequence[tuple[bool, str]],
    tables: Sequence[tuple[str, Sequence[Sequence[Any]]]],
    charts: Iterable[Chart],
    faults: Sequence[tuple[float, str]],
) -> str:
    """The page. `verdict`: sentences, and whether they are good ones; `tables`: title, and rows of which the
    first is the head; `faults`: when, and what, drawn into every chart."""
    parts = [
        "<!doctype html>",
        '<html lang="en"><head><meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>{escape(title)}</title><style>{STYLE}</style></head><body>",
        f"<h1>{escape(title)}</h1><p class=about>{escape(about)}</p>",
        *(f'<p class="{"good" if good else "bad"}">{escape(text)}</p>' for good, text in verdict),
    ]
    for name, rows in tables:
        parts += [f"<h2>{escape(name)}</h2>", _table(rows)]
    for chart in charts:
        parts += [f"<h2>{escape(chart.title)}</h2>", _chart(chart, faults)]
    parts += [
        "<h2>What was done to the clients</h2>",
        _table([("at", "what"), *((_clock(at), what) for at, what in faults)]),
    ]
    return "\n".join([*parts, "</body></html>"]) + "\n"


def _table(rows: Sequence[Sequence[Any]]) -> str:
    head, *rest = rows
    lines = ["<table><tr>" + "".join(f"<th>{escape(str(one))}</th>" for one in head) + "</tr>"]
    lines += ["<tr>" + "".join(_cell(one) for one in row) + "</tr>" for row in rest]
    return "\n".join([*lines, "</table>"])


def _cell(value: Any) -> str:
    if isinstance(value, int | float):
        return f'<td class="n">{value:,}</td>'
    return f"<td>{escape(str(value))}</td>"


def _chart(chart: Chart, faults: Sequence[tuple[float, str]]) -> str:
    points = [point for line in chart.lines for point in line.points]
    if not points:
        return "<p class=about>Nothing was measured.</p>"
    last_s = max(at for at, _ in points) or 1.0
    step = _step(max(value for _, value in points))
    top = step * max(1, math.ceil(max(value for _, value in points) / step))

    def x(at_s: float) -> float:
        return LEFT + (WIDTH - LEFT - RIGHT) * at_s / last_s

    def y(value: float) -> float:
        return TOP + (HEIGHT - TOP - BOTTOM) * (1 - value / top)

    drawn = [f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(chart.title)}">']
    for number in range(round(top / step) + 1):
        value = number * step
        drawn.append(
            f'<line class=grid x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y(value):.1f}" y2="{y(value):.1f}"/>'
        )
        shown = f"{value:g} {escape(chart.unit)}"
        drawn.append(f'<text x="{LEFT - 6}" y="{y(value) + 4:.1f}" text-anchor=end>{shown}</text>')
    for share in range(5):
        at_s = last_s * share / 4
        drawn.append(f'<text x="{x(at_s):.1f}" y="{HEIGHT - 8}" text-anchor=middle>{_clock(at_s)}</text>')
    for at_s, what in faults:
        if 0 <= at_s <= last_s:
            drawn.append(
                f'<line class=fault x1="{x(at_s):.1f}" x2="{x(at_s):.1f}" y1="{TOP}" y2="{HEIGHT - BOTTOM}">'
                f"<title>{escape(what)}</title></line>"
            )
    for number, line in enumerate(chart.lines):
        color = COLORS[number % len(COLORS)]
        kept = _thinned(line.points)
        where = " ".join(f"{x(at):.1f},{y(value):.1f}" for at, value in kept)
        drawn.append(f'<polyline fill=none stroke="{color}" stroke-width=1.5 points="{where}"/>')
        drawn.append(
            f'<text x="{LEFT + 8 + 150 * number}" y="{TOP + 10}" style="fill:{color}">'
            f"{escape(line.name)}</text>"
        )
    return "\n".join([*drawn, "</svg>"])


def _thinned(points: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """Few enough for a screen; of each stretch its highest, so that no peak is lost."""
    size = math.ceil(len(points) / POINTS_MAX)
    if size <= 1:
        return list(points)
    return [max(points[at : at + size], key=lambda one: one[1]) for at in range(0, len(points), size)]


def _step(most: float) -> float:
    """Between two lines of a grid of about four."""
    if most <= 0:
        return 1.0
    rough = most / 4
    power = 10.0 ** math.floor(math.log10(rough))
    return next(power * one for one in (1, 2, 2.5, 5, 10) if power * one >= rough)


def _clock(at_s: float) -> str:
    minutes, seconds = divmod(round(at_s), 60)
    return f"{minutes // 60}:{minutes % 60:02}:{seconds:02}" if minutes >= 60 else f"{minutes}:{seconds:02}"
