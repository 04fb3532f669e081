"""The records that a real Apache Kafka 4.3.0 wrote of real clients (see
`tests.insight.inference.test_recorded`), played again."""

from __future__ import annotations

import pytest

from ringleader.insight.advice import Past, Pattern, advise
from ringleader.insight.advice.replay import Replay
from ringleader.insight.model import Commit, Confidence, Kind, MemberSpan
from tests.insight.inference.test_recorded import TRUTH, concluded, rebalances

CLASSIC = [group for group in TRUTH if rebalances(group)[0].kind is Kind.CLASSIC]


def past(group: str) -> Past:
    found = rebalances(group)
    spans = {
        (one.member.member_id, one.since_ms): one
        for one in concluded()
        if isinstance(one, MemberSpan) and one.group == group
    }
    commits = [one for one in concluded() if isinstance(one, Commit) and one.group == group]
    first_ms, last_ms = found[0].at_ms, found[-1].at_ms
    return Past(group, first_ms - 60_000, last_ms + 1_000, found, list(spans.values()), commits)


@pytest.mark.parametrize("group", CLASSIC)
def test_what_real_clients_did_comes_out_again(group: str) -> None:
    player = Replay(past(group))
    assert player.confidence is Confidence.LIKELY
    assert len(player.script.rebalances) - player.reproduced <= 1
    assert len(player.as_it_was.rebalances) == player.reproduced


@pytest.mark.parametrize("group", TRUTH)
def test_findings_are_those_of_what_was_done(group: str) -> None:
    """d was killed and stopped, and came back each time; with the consumer protocol its successor came before
    its session was over, as c's had. A member that was busy once is no finding."""
    flapping = {Pattern.FLAPPING_MEMBER}
    done = {"librdkafka": flapping, "aiokafka": flapping, "cooperative": flapping}
    done["consumer-protocol"] = {Pattern.ZOMBIES}
    assert {one.pattern for one in advise(past(group)).findings} == done.get(group, set())
