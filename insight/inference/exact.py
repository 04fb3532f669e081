"""A group of Ringleader's own, whose journal has the causes: nothing is inferred."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from ringleader.insight.inference.commits import Commits
from ringleader.insight.inference.facts import (
    ClientReport,
    FirstCommit,
    InstanceFenced,
    LaterReport,
    Output,
    Source,
    StaticReturned,
)
from ringleader.insight.inference.heard import Heard, Went
from ringleader.insight.inference.hindsight import Hindsight, with_departure
from ringleader.insight.inference.holders import Holders
from ringleader.insight.inference.kept import Kept, Restorable
from ringleader.insight.inference.words import seconds
from ringleader.insight.model import (
    Cause,
    Confidence,
    Departure,
    DepartureFinding,
    GroupState,
    Kind,
    Move,
    Outcome,
    Rebalance,
)

_TAKEN_MAX = 20


class Exact(Restorable):
    """The journal's entries go to `out`, with the spans that follow from them."""

    kind = Kind.CLASSIC
    _holders: Kept[Holders]
    _last: Kept[Rebalance | None]
    _taken: Kept[dict[str, Rebalance]]
    """Static members whose place was taken: old member id -> where that stands."""
    _heard: Kept[Heard]
    _hindsight: Kept[Hindsight]

    def __init__(self, group: str, commits: Commits, out: list[Output]) -> None:
        self.group = group
        self._commits = commits
        self._out = out
        self._holders = Holders(group, out)
        self._last = None
        self._taken = {}
        self._heard, self._hindsight = Heard(group, out), Hindsight(out)

    def rebalance(
        self,
        rebalance: Rebalance,
        reports: Iterable[ClientReport] = (),
        left_ms: Mapping[str, int] | None = None,
    ) -> None:
        """A rebalance of the journal, with the last reports of the clients of departed members, and when
        those members left."""
        rebalance = self._with_reports(rebalance, {one.member_id: one for one in reports}, left_ms or {})
        self._commits.generation((one.topic, one.partition) for one in rebalance.moves)
        self._last = rebalance
        self._hindsight.add(rebalance)
        self._out.append(rebalance)
        # Members of the consumer protocol have what a superseded rebalance gave them so far.
        if rebalance.outcome is not Outcome.SUPERSEDED or rebalance.kind is Kind.CONSUMER:
            self._holders.hold(rebalance)
            self._out.append(
                GroupState(
                    self.group,
                    rebalance.kind,
                    "Stable" if rebalance.members else "Empty",
                    rebalance.generation,
                    rebalance.protocol_type,
                    rebalance.protocol,
                    rebalance.leader,
                    rebalance.members,
                    rebalance.at_ms,
                )
            )

    def committed(self, commit: FirstCommit) -> None:
        """The first commit after a rebalance. Those in `__consumer_offsets` say nothing of it here: the two
        topics are not read in the order of time."""
        last = self._last
        if last is not None and last.generation == commit.generation and last.first_commit_ms is None:
            self._last = replace(last, first_commit_ms=commit.at_ms)
            self._hindsight.add(self._last)
            self._out.append(self._last)

    def client_reported(self, report: ClientReport | LaterReport) -> None:
        """A client reported on itself."""
        if isinstance(report, ClientReport):
            found = self._heard.add(report)
        else:
            found = self._heard.later(report.member_id, report.report)
        corrected = self._hindsight.reported_later(found)
        if self._last is not None:
            self._last = corrected.get(self._last.id, self._last)

    def _with_reports(
        self, rebalance: Rebalance, reports: Mapping[str, ClientReport], left_ms: Mapping[str, int]
    ) -> Rebalance:
        members = {one.member_id: one for one in (*rebalance.before, *rebalance.members)}
        for member_id, departure in rebalance.left.items():
            at_ms = left_ms.get(member_id)
            if at_ms is None or member_id not in members:
                continue
            since_ms = self._holders.there_since_ms(member_id)
            # The journal knows which departure began it.
            went = Went(
                members[member_id],
                since_ms,
                at_ms,
                at_ms,
                departure,
                rebalance.id,
                rebalance.at_ms,
                alone=True,
            )
            now = self._heard.went(went, reports.get(member_id))
            if now != departure:
                rebalance = with_departure(rebalance, went, now)
        return rebalance

    def returned(self, source: Source, at_ms: int, returned: StaticReturned) -> None:
        """A static member came back: the same generation again, as it stands in `__consumer_offsets`."""
        last = self._last
        old = None if last is None else next(
            (one for one in last.members if one.member_id == returned.old_member_id), None
        )  # fmt: skip
        if last is None or old is None:
            return  # it stands in the journal before anything else of the group
        new = old._replace(
            member_id=returned.member.member_id,
            client_id=returned.member.client_id,
            host=returned.member.host,
        )
        silent_ms = None if returned.last_heard_ms is None else at_ms - returned.last_heard_ms
        heard = (
            () if silent_ms is None else (f"{old.name} sent its last request {seconds(silent_ms)} before",)
        )
        made = Rebalance(
            id=f"journal-{source.partition}-{source.offset}",
            group=self.group,
            kind=last.kind,
            generation=last.generation,
            at_ms=at_ms,
            cause=Cause.STATIC_MEMBER_REPLACED,
            confidence=Confidence.EXACT,
            evidence=(f"{new.name} came back, and generation {last.generation} went on as it was", *heard),
            cause_members=(new.member_id,),
            protocol_type=last.protocol_type,
            protocol=last.protocol,
            leader=new.member_id if last.leader == old.member_id else last.leader,
            members=tuple(new if one is old else one for one in last.members),
            joined=(new.member_id,),
            left={old.member_id: DepartureFinding(Departure.RESTARTED, Confidence.EXACT, silent_ms, heard)},
            before=last.members,
            began_ms=at_ms,
            moves=tuple(
                Move(topic, partition, old.member_id, new.member_id, silent_ms)
                for topic, partition in old.assigned
            ),
            unowned_ms=None if silent_ms is None else silent_ms * len(old.assigned),
            principals={
                **last.principals,
                **({new.member_id: returned.principal} if returned.principal else {}),
            },
        )
        self._taken[old.member_id] = made
        while len(self._taken) > _TAKEN_MAX:
            del self._taken[next(iter(self._taken))]
        self.rebalance(made)

    def fenced(self, fenced: InstanceFenced) -> None:
        """The member that lost its place is still there: it was no restart."""
        made = self._taken.pop(fenced.member.member_id, None)
        if made is None:
            return
        old = fenced.member
        text = f"{old.name} was still there after another process had taken its instance id: it was refused"
        departure = made.left[old.member_id]._replace(why=Departure.FENCED, evidence=(text,))
        again = replace(
            made,
            cause=Cause.INSTANCE_FENCED,
            evidence=(*made.evidence, text),
            left={old.member_id: departure},
        )
        if self._last is not None and self._last.id == again.id:
            again = replace(again, first_commit_ms=self._last.first_commit_ms)
            self._last = again
        self._out.append(again)

    def ended(self, at_ms: int) -> None:
        """The group is deleted."""
        self._holders.end(at_ms)
        last = self._last
        if last is not None:
            self._out.append(
                GroupState(
                    self.group, last.kind, "Dead", last.generation, last.protocol_type, "", "", (), at_ms
                )
            )
