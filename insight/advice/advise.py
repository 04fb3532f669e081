"""All patterns over one group's past, and what each change would have saved."""

from __future__ import annotations

from dataclasses import replace

from ringleader.insight.advice import comings, fall_backs, offsets, phases, refusals, work
from ringleader.insight.advice.draft import Draft
from ringleader.insight.advice.findings import Advice, Finding
from ringleader.insight.advice.past import PUT_OUT, Past
from ringleader.insight.advice.replay import NothingToReplayError, RanAwayError, Replay
from ringleader.insight.advice.thresholds import DEFAULT, Thresholds
from ringleader.insight.advice.words import count, length, partition_time
from ringleader.insight.model import Confidence

PATTERNS = (
    *comings.ALL,
    *refusals.ALL,
    *phases.ALL,
    *work.ALL,
    *offsets.ALL,
    fall_backs.assignor_fell_back,
)


def advise(past: Past, thresholds: Thresholds = DEFAULT, *, replay: bool = True) -> Advice:
    """The findings, the dearest first. `thresholds`: from when on something is a finding. `replay` False:
    without figures of what would have been saved, quicker (a replay takes up to some seconds for hundreds of
    rebalances)."""
    drafts = [draft for pattern in PATTERNS for draft in pattern(past, thresholds)]
    player: Replay | None = None
    why_not = "" if replay else "Not played again, as asked."
    if replay and any(draft.policy or draft.apart for draft in drafts):
        try:
            player = Replay(past)
        except NothingToReplayError as error:
            why_not = str(error)
        except RanAwayError:
            why_not = "Played again as it was, the record leads to rebalances without end."
    findings = [found for draft in drafts if (found := _with_saving(draft, player, why_not)) is not None]
    findings.sort(key=_worth, reverse=True)
    if past.left_out:
        findings = [replace(one, evidence=(*one.evidence, past.left_out)) for one in findings]
    return Advice(past.group, past.since_ms, past.until_ms, tuple(findings), _looked_at(past))


def _with_saving(draft: Draft, player: Replay | None, why_not: str) -> Finding | None:
    """None: without the saving it is no finding."""
    finding = draft.finding
    if player is None or not (draft.policy or draft.apart):
        if draft.by_saving:
            return None
        return replace(finding, no_saving=finding.no_saving or why_not)
    if draft.policy is not None:
        saving = player.saving(draft.policy, *draft.assumptions)
    else:
        saving = player.apart(draft.apart)
    if draft.counts is not None and not draft.counts(saving):
        return None
    return replace(finding, saving=saving, no_saving="" if saving.claimed else saving.why_not_claimed)


def _worth(finding: Finding) -> tuple[bool, float, int]:
    saving = finding.saving
    if saving is None or not saving.claimed:
        return finding.confidence in (Confidence.EXACT, Confidence.CERTAIN), 0, len(finding.rebalance_ids)
    return True, saving.saved_ms + 60_000 * saving.avoided, len(finding.rebalance_ids)


def _looked_at(past: Past) -> tuple[str, ...]:
    """The numbers, for people to see that they were looked at."""
    rebalances = past.counted
    lines = [f"{count(len(rebalances), 'rebalance')} in {length(past.until_ms - past.since_ms)}"]
    if past.goings:
        put_out = sum(one.departure.why in PUT_OUT for one in past.goings)
        lines.append(f"{count(len(past.goings), 'member')} went, {put_out} of them put out")
    joins = [one.join_ms for one in rebalances if one.join_ms is not None]
    if joins:
        lines.append(f"longest join phase {length(max(joins))}")
    leaders = [one.leader_ms for one in rebalances if one.leader_ms is not None]
    if leaders:
        lines.append(f"slowest leader {length(max(leaders))}")
    unowned = [one.unowned_ms for one in rebalances if one.unowned_ms is not None]
    if unowned:
        lines.append(f"{partition_time(sum(unowned))} without an owner")
    members = rebalances[-1].members if rebalances else past.state.members if past.state else ()
    if members:
        shares = [len(one.assigned) for one in members]
        least, most = min(shares), max(shares)
        each = str(least) if least == most else f"{least} to {most}"
        lines.append(f"{count(len(members), 'member')} with {each} partitions")
    if past.behind:
        lines.append(f"{past.records_behind:,} records behind")
    if past.left_out:
        lines.append(past.left_out.rstrip("."))
    return tuple(lines)
