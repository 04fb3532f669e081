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
        self._said: OrderedDict[str, None] = OrderedDict()

    def knows(self, ids: Iterable[str]) -> None:
        """These are in the history: given again, they revise."""
        for one in ids:
            self._said[one] = None
        while len(self._said) > REMEMBERED:
            self._said.popitem(last=False)

    def __call__(self, one: Any) -> str:
        said = entry(one)
        if self._cluster:
            said["cluster_name"] = self._cluster
        if "id" in said:
            said["revises"] = said["id"] in self._said
            self.knows([said["id"]])
        return json.dumps(said, ensure_ascii=False)


class AsText:
    """Lines for people: each rebalance and event once, and again where more is known than its line says."""

    def __init__(self, utc: bool, cluster: str = "") -> None:
        """`cluster`: the name of one of several."""
        self._utc = utc
        self._cluster = f"{printable(cluster)}  " if cluster else ""
        self._said: OrderedDict[str, str] = OrderedDict()

    def __call__(self, one: Any) -> str | None:
        kind = type(one).__name__
        if kind == "GroupState" or getattr(one, "kind", "") == "client told":
            return None
        told = _rebalance(one) if kind == "Rebalance" else _event(one)
        line = f"{_clock(one.at_ms, self._utc)}  {self._cluster}{told}"
        before = self._said.get(one.id)
        self._said[one.id] = line
        if len(self._said) > REMEMBERED:
            self._said.popitem(last=False)
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
    who = [names.get(member_id, member_id) for member_id in one.cause_members]
    sure = "" if one.confidence in ("exact", "certain") else f" ({one.confidence})"
    said = [f"{printable(one.group)}: {one.cause}{sure}{_some(who)}"]
    said.append(f"members {len(one.before)} -> {len(one.members)}")
    if one.moves:
        said.append(f"{len(one.moves)} partition{'' if len(one.moves) == 1 else 's'} moved")
    if one.duration_ms is not None:
        said.append(f"took {_length(one.duration_ms)}")
    if one.unowned_ms:
        said.append(f"{one.unowned_ms / 1000:,.1f} partition-seconds without owner")
    return f"{'; '.join(said)} (generation {one.generation})"


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
