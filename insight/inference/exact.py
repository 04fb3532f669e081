"""A group of Ringleader's own, whose journal knows: nothing is inferred."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ringleader.insight.history.values import packed, rebalance_data, rebalance_of, unpacked
from ringleader.insight.inference.commits import Commits
from ringleader.insight.inference.facts import Output
from ringleader.insight.inference.holders import Holders
from ringleader.insight.model import GroupState, Kind, Outcome, Rebalance


class Exact:
    """What the journal says goes to `out`, with the spans that follow from it."""

    kind = Kind.CLASSIC

    def __init__(self, group: str, commits: Commits, out: list[Output]) -> None:
        self.group = group
        self._commits = commits
        self._out = out
        self._holders = Holders(group, out)
        self._last: Rebalance | None = None
        commits.on_first = self._first_commit

    def told(self, said: Rebalance) -> None:
        """An entry."""
        self._commits.generation((one.topic, one.partition) for one in said.moves)
        self._last = said
        self._out.append(said)
        if said.outcome is not Outcome.SUPERSEDED:
            self._holders.hold(said)
            self._out.append(
                GroupState(
                    self.group,
                    Kind.CLASSIC,
                    "Stable" if said.members else "Empty",
                    said.generation,
                    said.protocol_type,
                    said.protocol,
                    said.leader,
                    said.members,
                    said.at_ms,
                )
            )

    def _first_commit(self, at_ms: int) -> bool:
        last = self._last
        if last is not None and last.first_commit_ms is None and last.members and at_ms >= last.at_ms:
            self._last = replace(last, first_commit_ms=at_ms)
            self._out.append(self._last)
            return True
        return False

    def ended(self, at_ms: int) -> None:
        """The group is deleted."""
        self._holders.end(at_ms)
        last = self._last
        if last is not None:
            self._out.append(
                GroupState(
                    self.group, Kind.CLASSIC, "Dead", last.generation, last.protocol_type, "", "", (), at_ms
                )
            )

    def dump(self) -> dict[str, Any]:
        """JSON."""
        last = None if self._last is None else unpacked(rebalance_data(self._last))
        return {"holders": self._holders.dump(), "last": last}

    def load(self, said: dict[str, Any]) -> None:
        """What `dump` made."""
        self._holders.load(said["holders"])
        self._last = None if said["last"] is None else rebalance_of(packed(said["last"]))
