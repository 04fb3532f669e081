"""The report as one HTML file: charts in SVG, nothing loaded from anywhere."""

from __future__ import annotations

import datetime
import html
from collections.abc import Iterable, Sequence

from ringleader.report.numbers import HotKey, PartitionTraffic, Report

WIDTH = 720
BAR_HEIGHT = 18
CHART_HEIGHT = 160
MOST_BARS = 64

_STYLE = """
:root { color-scheme: light dark; --ink: #1c2430; --soft: #5c6b7f; --line: #d8dee7; --paper: #fff;
  --bar: #2f6fde; --hot: #d1495b; --even: #8aa0b8; --card: #f5f7fa; }
@media (prefers-color-scheme: dark) { :root { --ink: #e8edf4; --soft: #9aa8ba; --line: #354152;
  --paper: #141a22; --bar: #6ea0ff; --hot: #ff7b8a; --even: #64768c; --card: #1c2430; } }
body { font: 15px/1.45 system-ui, sans-serif; color: var(--ink); background: var(--paper);
  max-width: 960px; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.5rem; margin-bottom: .2rem; } h2 { font-size: 1.15rem; margin-top: 2.2rem; }
p.soft, figcaption, .soft { color: var(--soft); }
ul.findings { background: var(--card); border-left: 4px solid var(--bar); padding: .8rem 1rem .8rem 2rem; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th, td { text-align: left; padding: .25rem .6rem .25rem 0; border-bottom: 1px solid var(--line); }
th.n, td.n { text-align: right; } tr.idle td { color: var(--hot); }
figure { margin: 1rem 0; overflow-x: auto; } svg text { fill: currentColor; font-size: 12px; }
""".strip()


def page(report: Report) -> str:
    """The whole page."""
    group = report.group
    made = datetime.datetime.fromtimestamp(report.made_ms / 1000, datetime.UTC)
    records = sum(one.records for one in report.partitions)
    of = f" of {records + group.left_out:,}" if group.left_out else ""
    parts = [
        f"<h1>Group {_text(group.group_id)}</h1>",
        f'<p class="soft">{made:%Y-%m-%d %H:%M} UTC · {_text(group.state)} · {len(group.members)} members · '
        f"{len(group.partitions)} partitions · {records:,}{of} records of the last "
        f"{_duration(report.wanted.window_s)}</p>",
        '<ul class="findings">' + "".join(f"<li>{_text(one)}</li>" for one in report.findings) + "</ul>",
    ]
    for topic in sorted(group.counts()):
        parts += _topic(report, topic)
    parts += ["<h2>Members</h2>", _members(report)]
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>Group {_text(group.group_id)}</title><style>{_STYLE}</style></head>\n<body>\n"
        + "\n".join(parts)
        + "\n</body></html>\n"
    )


def _topic(report: Report, topic: str) -> list[str]:
    partitions = [one for one in report.partitions if one.place.topic == topic]
    keys = [one for one in report.keys if one.topic == topic]
    (fit,) = [one for one in report.fits if one.topic == topic]
    return [
        f"<h2>Topic {_text(topic)}</h2>",
        f"<p>For {fit.target_per_s:,.0f} records a second (the busiest time, and head room): "
        f"<b>{fit.partitions_needed}</b> partitions (now {fit.partitions}) and <b>{fit.consumers_needed}</b> "
        f"consumers (now {fit.consumers}).</p>",
        _rates(report, topic),
        _bars(
            "Records in each partition",
            [(str(one.place.partition), one.records + one.place.left_out, _count(one)) for one in partitions],
            hot=_fullest(partitions),
        ),
        _partition_table(partitions),
        _bars(
            "Hottest keys",
            [(one.key, one.records, f"{one.records:,} · {one.share:.1%}") for one in keys],
            hot=0 if keys else None,
        ),
        _spread(report, topic),
        _key_table(keys),
    ]


def _fullest(partitions: Sequence[PartitionTraffic]) -> int | None:
    counts = [one.records + one.place.left_out for one in partitions]
    return counts.index(max(counts)) if any(counts) else None


def _count(one: PartitionTraffic) -> str:
    left_out = f", {one.place.left_out:,} left out" if one.place.left_out else ""
    return f"{one.records:,} · {one.share:.0%}{left_out}"


def _rates(report: Report, topic: str) -> str:
    points = report.times.get(topic, ())
    if not points:
        return '<p class="soft">No records in the window.</p>'
    slot_ms = report.wanted.slot_s * 1000
    first, last = points[0][0], points[-1][0] + slot_ms
    top = max(rate for _, rate in points)
    scale = WIDTH / (last - first)
    bars = "".join(
        f'<rect x="{(at - first) * scale:.1f}" width="{max(1.0, slot_ms * scale - 1):.1f}" '
        f'y="{CHART_HEIGHT - rate / top * CHART_HEIGHT:.1f}" height="{rate / top * CHART_HEIGHT:.1f}" '
        f'fill="var(--bar)"><title>{_clock(at)}: {rate:,.1f}/s</title></rect>'
        for at, rate in points
    )
    axis = (
        f'<text x="0" y="{CHART_HEIGHT + 16}">{_clock(first)}</text>'
        f'<text x="{WIDTH}" y="{CHART_HEIGHT + 16}" text-anchor="end">{_clock(last)}</text>'
    )
    return _figure(f"Records a second, at most {top:,.1f}", CHART_HEIGHT + 20, bars + axis)


def _spread(report: Report, topic: str) -> str:
    found = [one for one in report.spreads if one.topic == topic]
    rows = [
        (f"n = {one.n}", one.share, f"{one.share:.0%} in the fullest · even would be {1 / one.n:.0%}")
        for one in found
    ]
    return _bars("Share of the fullest partition under murmur2(key) mod n", rows)


def _bars(title: str, rows: Sequence[tuple[str, float, str]], hot: int | None = None) -> str:
    if not rows:
        return ""
    shown = rows[:MOST_BARS]
    top = max(value for _, value, _ in rows) or 1
    name_width, number_width = 150, 210
    room = WIDTH - name_width - number_width
    lines = []
    for index, (name, value, text) in enumerate(shown):
        y = index * (BAR_HEIGHT + 4)
        color = "var(--hot)" if index == hot else "var(--bar)"
        short = name if len(name) <= 22 else name[:21] + "…"
        lines.append(
            f'<text x="{name_width - 8}" y="{y + 13}" text-anchor="end">{_text(short)}</text>'
            f'<rect x="{name_width}" y="{y}" height="{BAR_HEIGHT}" '
            f'width="{max(1.0, value / top * room):.1f}" '
            f'fill="{color}"><title>{_text(name)}: {_text(text)}</title></rect>'
            f'<text x="{name_width + value / top * room + 8:.1f}" y="{y + 13}">{_text(text)}</text>'
        )
    left_out = f", the first {MOST_BARS} of {len(rows)}" if len(rows) > MOST_BARS else ""
    return _figure(title + left_out, len(shown) * (BAR_HEIGHT + 4), "".join(lines))


def _figure(caption: str, height: int, inside: str) -> str:
    return (
        f'<figure><figcaption>{_text(caption)}</figcaption><svg role="img" aria-label="{_text(caption)}" '
        f'viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}">{inside}</svg></figure>'
    )


def _partition_table(partitions: Iterable[PartitionTraffic]) -> str:
    rows = [
        (
            str(one.place.partition),
            f"{one.records:,}",
            f"{one.place.left_out:,}",
            f"{one.rate_per_s:,.1f}",
            f"{one.peak_per_s:,.1f}",
            _number(one.place.consumed_per_s),
            "-" if one.place.lag is None else f"{one.place.lag:,}",
            one.place.owner or "nobody",
        )
        for one in partitions
    ]
    return _table(
        ("Partition", "Records", "Left out", "Per s", "Peak per s", "Consumed per s", "Lag", "Owner"),
        rows,
        1,
        7,
    )


def _key_table(keys: Iterable[HotKey]) -> str:
    rows = [
        (
            one.key,
            f"{one.records:,}",
            f"{one.share:.1%}",
            f"{one.bytes:,}",
            ", ".join(map(str, one.partitions)),
        )
        for one in keys
    ]
    return _table(("Key", "Records", "Share", "Bytes", "Partitions"), rows, 1, 4)


def _members(report: Report) -> str:
    rows = [
        (
            one.client_id,
            one.member_id,
            one.client_host,
            "idle" if one.idle else str(one.partitions),
            f"{one.lag:,}",
            _number(one.consumed_per_s),
        )
        for one in report.group.members
    ]
    idle = {index for index, one in enumerate(report.group.members) if one.idle}
    return _table(("Client", "Member", "Host", "Partitions", "Lag", "Consumed per s"), rows, 3, 6, idle)


def _table(
    head: Sequence[str],
    rows: Sequence[Sequence[str]],
    first_number: int,
    end_numbers: int,
    idle: Iterable[int] = (),
) -> str:
    if not rows:
        return '<p class="soft">None.</p>'

    def cells(kind: str, row: Sequence[str]) -> str:
        return "".join(
            f"<{kind}{' class=n' if first_number <= at < end_numbers else ''}>{_text(text)}</{kind}>"
            for at, text in enumerate(row)
        )

    marked = set(idle)
    body = "".join(
        f"<tr{' class=idle' if at in marked else ''}>{cells('td', row)}</tr>" for at, row in enumerate(rows)
    )
    return f"<table><tr>{cells('th', head)}</tr>{body}</table>"


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:,.1f}"


def _clock(at_ms: int) -> str:
    return f"{datetime.datetime.fromtimestamp(at_ms / 1000, datetime.UTC):%H:%M:%S}"


def _duration(seconds: int) -> str:
    for size, name in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if seconds >= size and seconds % size == 0:
            return f"{seconds // size} {name}"
    return f"{seconds} s"


def _text(text: str) -> str:
    return html.escape(text)
