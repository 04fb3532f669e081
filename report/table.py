"""The report as tables on the console."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table

from ringleader.report.numbers import Report


def show(report: Report, out: Console) -> None:
    """Print it."""
    for finding in report.findings:
        out.print(f"* {finding}", markup=False)
    for name, made in (
        ("Partitions", _partitions(report)),
        ("Hottest keys", _keys(report)),
        ("Share of the fullest partition under murmur2(key) mod n", _spread(report)),
        ("Members", _members(report)),
        ("What fits", _fits(report)),
    ):
        out.print()
        out.print(f"[bold]{name}[/]")
        out.print(made)


def _table(*columns: str, text: tuple[str, ...]) -> Table:
    made = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    for name in columns:
        made.add_column(name, justify="left" if name in text else "right", overflow="fold")
    return made


def _partitions(report: Report) -> Table:
    made = _table(
        *("TOPIC", "PARTITION", "RECORDS", "LEFT OUT", "SHARE", "PER S", "PEAK", "LAG", "OWNER"),
        text=("TOPIC", "OWNER"),
    )
    for one in report.partitions:
        place = one.place
        made.add_row(
            place.topic,
            str(place.partition),
            f"{one.records:,}",
            f"{place.left_out:,}",
            f"{one.share:.0%}",
            f"{one.rate_per_s:,.1f}",
            f"{one.peak_per_s:,.1f}",
            "-" if place.lag is None else f"{place.lag:,}",
            place.owner or "nobody",
        )
    return made


def _keys(report: Report) -> Table:
    made = _table("TOPIC", "KEY", "RECORDS", "SHARE", text=("TOPIC", "KEY"))
    for one in report.keys:
        made.add_row(one.topic, one.key, f"{one.records:,}", f"{one.share:.1%}")
    return made


def _spread(report: Report) -> Table:
    made = _table("TOPIC", "N", "SHARE", "EVEN WOULD BE", text=("TOPIC",))
    for one in report.spreads:
        made.add_row(one.topic, str(one.n), f"{one.share:.1%}", f"{1 / one.n:.1%}")
    return made


def _members(report: Report) -> Table:
    made = _table("CLIENT", "MEMBER", "PARTITIONS", "LAG", "CONSUMED PER S", text=("CLIENT", "MEMBER"))
    for one in report.group.members:
        rate = "-" if one.consumed_per_s is None else f"{one.consumed_per_s:,.1f}"
        share = "idle" if one.idle else str(one.partitions)
        made.add_row(one.client_id, one.member_id, share, f"{one.lag:,}", rate)
    return made


def _fits(report: Report) -> Table:
    made = _table("TOPIC", "TARGET PER S", "PARTITIONS", "NEEDED", "CONSUMERS", "NEEDED", text=("TOPIC",))
    for one in report.fits:
        made.add_row(
            one.topic,
            f"{one.target_per_s:,.0f}",
            str(one.partitions),
            str(one.partitions_needed),
            str(one.consumers),
            str(one.consumers_needed),
        )
    return made
