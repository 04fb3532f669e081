"""Entries of a history as lines of ``ringleader watch``: for people, and as JSON."""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from ringleader.host.printable import printable
from ringleader.insight.plain import entry

if TYPE_CHECKING:
    from ringleader.insight.model import Event, Rebalance

NAMES_IN_LINE = 3
REMEMBERED = 10_000
"""Lines of a cluster that are not printed twice."""


class AsJson:
    """All that is known, also what was printed before and is known better now: the same id again, which
    revises."""

    def __init__(self, cluster: str = "") -> None:
        """`cluster`: the name of one of several."""
        self._cluster = cluster
        self._printed: OrderedDict[str, None] = OrderedDict()

    def knows(self, ids: Iterable[str]) -> None:
        """These are in the history: given again, they revise."""
        for one in ids:
            self._printed[one] = None
        while len(self._printed) > REMEMBERED:
            self._printed.popitem(last=False)

    def __call__(self, one: Any) -> str:
        line = entry(one)
        if self._cluster:
            line["cluster_name"] = self._cluster
        if "id" in line:
            line["revises"] = line["id"] in self._printed
            self.knows([line["id"]])
        return json.dumps(line, ensure_ascii=False)


class AsText:
    """Lines for people: each rebalance and event once, and again where more is known than its line says."""

    def __init__(self, utc: bool, cluster: str = "") -> None:
        """`cluster`: the name of one of several."""
        self._utc = utc
        self._cluster = f"{printable(cluster)}  " if cluster else ""
        self._printed: OrderedDict[str, str] = OrderedDict()

    def __call__(self, one: Any) -> str | None:
        kind = type(one).__name__
        if kind == "GroupState" or getattr(one, "kind", "") == "client told":
            return None
        text = _rebalance(one) if kind == "Rebalance" else _event(one)
        line = f"{_clock(one.at_ms, self._utc)}  {self._cluster}{text}"
        before = self._printed.get(one.id)
        self._printed[one.id] = line
        if len(self._printed) > REMEMBERED:
            self._printed.popitem(last=False)
        if before == line:
            return None
        return line if before is None else f"{line} (said again: more is known)"


def _clock(at_ms: int, utc: bool) -> str:
    at = datetime.fromtimestamp(at_ms / 1000, UTC)
    if utc:
        return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return at.astimezone().strftime("%H:%M:%S")


def _rebalance(one: Rebalance) -> str:
    names = {member.member_id: member.name for member in (*one.before, *one.members)}
    members = [names.get(member_id, member_id) for member_id in one.cause_members]
    sure = "" if one.confidence in ("exact", "certain") else f" ({one.confidence})"
    parts = [f"{printable(one.group)}: {one.cause}{sure}{_some(members)}"]
    parts.append(f"members {len(one.before)} -> {len(one.members)}")
    if one.moves:
        parts.append(f"{len(one.moves)} partition{'' if len(one.moves) == 1 else 's'} moved")
    if one.duration_ms is not None:
        parts.append(f"took {_length(one.duration_ms)}")
    if one.unowned_ms:
        parts.append(f"{one.unowned_ms / 1000:,.1f} partition-seconds without owner")
    return f"{'; '.join(parts)} (generation {one.generation})"


def _event(one: Event) -> str:
    about = f"{printable(one.group)}: " if one.group else ""
    return f"{about}{one.kind}: {printable(one.text)}"


def _some(names: Sequence[str]) -> str:
    if not names:
        return ""
    more = len(names) - NAMES_IN_LINE
    return f": {', '.join(map(printable, names[:NAMES_IN_LINE]))}{f' and {more} more' if more > 0 else ''}"


def _length(ms: int) -> str:
    return f"{ms} ms" if ms < 1_000 else f"{ms / 1000:.1f} s"
