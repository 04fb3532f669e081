"""The records that a real Apache Kafka 4.3.0 wrote while real members came and went, each in a known way.

`recorded.jsonl.gz` was made by `python -m tests.interop.insight.record`; what the lines are stands there.
"""

from __future__ import annotations

import base64
import gzip
import json
from collections import Counter
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from ringleader.insight.inference.engine import Inference
from ringleader.insight.inference.facts import Output, SessionTimeouts, Topic, TopicsSeen
from ringleader.insight.inference.records import OFFSET_KEYS, decode
from ringleader.insight.model import (
    Cause,
    Confidence,
    Event,
    EventKind,
    GroupState,
    Kind,
    MemberSpan,
    Outcome,
    Ownership,
    Rebalance,
)
from ringleader.protocol.errors import MalformedError

RECORDED = Path(__file__).with_name("recorded.jsonl.gz")
SESSION_MS = 5_000
_SURE = (Confidence.EXACT, Confidence.CERTAIN, Confidence.LIKELY)

JOINED = {Cause.MEMBER_JOINED}
LEFT = {Cause.MEMBER_LEFT}
EXPIRED = {Cause.SESSION_EXPIRED}
RESTARTED = {Cause.MEMBER_RESTARTED}
BUSY = {Cause.POLL_INTERVAL_EXCEEDED}
WENT_ON = {Cause.REBALANCE_CONTINUED}
STATIC = {Cause.STATIC_MEMBER_REPLACED}
UNKNOWN = {Cause.UNKNOWN}

COMING_AND_GOING = [JOINED, JOINED, LEFT, JOINED, EXPIRED, JOINED, EXPIRED, JOINED, RESTARTED, LEFT, LEFT]
COOPERATIVE = [
    JOINED, JOINED, WENT_ON, LEFT, JOINED, WENT_ON, EXPIRED, JOINED, WENT_ON, EXPIRED, JOINED, WENT_ON,
    RESTARTED, LEFT, LEFT,
]  # fmt: skip

TRUTH = {
    "librdkafka": COMING_AND_GOING,
    "aiokafka": COMING_AND_GOING,
    "cooperative": COOPERATIVE,
    # The new process joins before the old one's session ends.
    "consumer-protocol": [*COMING_AND_GOING[:8], RESTARTED, EXPIRED, LEFT, LEFT],
    "slow-librdkafka": [JOINED, JOINED, BUSY, JOINED, EXPIRED],
    "slow-aiokafka": [JOINED, JOINED, BUSY, JOINED, EXPIRED],
    "slow-consumer-protocol": [JOINED, JOINED, BUSY, JOINED, EXPIRED, EXPIRED],
    # The second takeover was by another process, the first one still there: nothing shows that yet.
    "static": [JOINED, JOINED, STATIC, STATIC | {Cause.INSTANCE_FENCED}, EXPIRED, EXPIRED],
    # Nobody takes a living static member's place here.
    "static-consumer-protocol": [JOINED, JOINED, EXPIRED, JOINED, EXPIRED, EXPIRED],
    "subscriptions": [JOINED, JOINED, {Cause.MEMBER_CHANGED}, JOINED, EXPIRED],
    # c joins under the client id of b, which had left.
    "java": [JOINED, JOINED, LEFT, RESTARTED, EXPIRED, LEFT],
    # The second epoch of a share group is its topics' state being made, which its records do not say.
    "share": [JOINED, UNKNOWN, JOINED, UNKNOWN, UNKNOWN],
    # The broker was stopped and started before a clean stop.
    "changing": [JOINED, {Cause.TOPICS_CHANGED}, LEFT],
    "changing-py": [JOINED, {Cause.TOPICS_CHANGED}, LEFT],
}


def lines() -> list[dict[str, Any]]:
    with gzip.open(RECORDED, "rt") as file:
        return [json.loads(line) for line in file]


@cache
def concluded(commit_every_ms: int = 0) -> tuple[Output, ...]:
    """Everything, in order. Commits that come sooner after another one of the partition are left out."""
    committed: dict[bytes, int] = {}
    inference = Inference()
    inference.tell(SessionTimeouts(0, SESSION_MS, SESSION_MS))
    outputs: list[Output] = []
    now_ms = 0
    for line in lines():
        now_ms = line["at_ms"]
        if "topics" in line:
            topics = {
                name: Topic(count, bytes.fromhex(topic_id))
                for name, (count, topic_id) in line["topics"].items()
            }
            inference.tell(TopicsSeen(now_ms, topics))
        elif "record" in line:
            *_, at_ms, key, value = record = _record(line)
            if key[:2] in OFFSET_KEYS and value is not None:
                if at_ms - committed.get(key, 0) < commit_every_ms:
                    continue
                committed[key] = at_ms
            inference.record(*record)
        inference.tick(now_ms)
        outputs += inference.drain()
    inference.tick(now_ms + 60_000)
    assert inference.unreadable == 0, inference.last_unreadable
    return (*outputs, *inference.drain())


def _record(line: dict[str, Any]) -> tuple[int, int, int, bytes, bytes | None]:
    partition, offset, at_ms, key, value = line["record"]
    return partition, offset, at_ms, base64.b64decode(key), None if value is None else base64.b64decode(value)


def rebalances(group: str, commit_every_ms: int = 0) -> list[Rebalance]:
    outputs = concluded(commit_every_ms)
    found = {one.id: one for one in outputs if isinstance(one, Rebalance) and one.group == group}
    return list(found.values())


@pytest.mark.parametrize("group", TRUTH)
def test_causes(group: str) -> None:
    found = rebalances(group)
    story = [f"{one.generation} {one.cause} ({one.confidence}): {'; '.join(one.evidence)}" for one in found]
    assert len(found) == len(TRUTH[group]), story
    for one, truth, text in zip(found, TRUTH[group], story, strict=True):
        if one.confidence in _SURE:
            assert one.cause in truth, text
        else:
            assert one.cause in truth or one.confidence is Confidence.UNKNOWN, text


@pytest.mark.parametrize("commit_every_ms", [2_500, 4_000, 10**12])
@pytest.mark.parametrize("group", TRUTH)
def test_nothing_wrong_is_called_likely_where_commits_are_rare(group: str, commit_every_ms: int) -> None:
    for one, truth in zip(rebalances(group, commit_every_ms), TRUTH[group], strict=True):
        assert one.confidence not in _SURE or one.cause in truth, (one.generation, one.cause, one.evidence)


def test_most_causes_are_known() -> None:
    counts = Counter(one.cause is Cause.UNKNOWN for group in TRUTH for one in rebalances(group))
    knowable = sum(truth != UNKNOWN for of in TRUTH.values() for truth in of)
    assert counts[False] >= knowable - 2


@pytest.mark.parametrize("group", TRUTH)
def test_each_partition_has_one_owner_at_a_time(group: str) -> None:
    if group == "share":
        pytest.skip("share groups give a partition to several")
    found: dict[tuple[str, int, str, int], Ownership] = {}
    for one in concluded():
        if isinstance(one, Ownership) and one.group == group:
            found[one.topic, one.partition, one.member_id, one.since_ms] = one
    assert found
    for place in {(one.topic, one.partition) for one in found.values()}:
        held = sorted(
            (one for one in found.values() if (one.topic, one.partition) == place),
            key=lambda one: (one.since_ms, one.until_ms is None, one.until_ms),
        )
        for one, after in pairwise(held):
            assert one.until_ms is not None, (one, after)
            assert one.until_ms <= after.since_ms, (one, after)
        assert held[-1].until_ms is not None, "all members are gone at the end"


@pytest.mark.parametrize("group", TRUTH)
def test_nobody_is_left(group: str) -> None:
    *_, state = (one for one in concluded() if isinstance(one, GroupState) and one.group == group)
    assert (state.state, state.members) == ("Dead" if group == "changing" else "Empty", ())
    spans = {
        (one.member.member_id, one.since_ms): one
        for one in concluded()
        if isinstance(one, MemberSpan) and one.group == group
    }
    assert all(one.until_ms is not None and one.gone is not None for one in spans.values())
    assert rebalances(group)[-1].outcome is Outcome.EMPTY
    assert rebalances(group)[0].kind is {
        "share": Kind.SHARE,
        "consumer-protocol": Kind.CONSUMER,
        "slow-consumer-protocol": Kind.CONSUMER,
        "static-consumer-protocol": Kind.CONSUMER,
    }.get(group, Kind.CLASSIC)


def test_events() -> None:
    found = {one.id: (one.group, one.kind) for one in concluded() if isinstance(one, Event)}
    assert sorted(found.values()) == [
        ("", EventKind.PARTITIONS_ADDED),
        ("changing", EventKind.GROUP_DELETED),
        ("changing", EventKind.OFFSETS_DELETED),
        ("changing", EventKind.OFFSETS_RESET),
    ]


def test_every_key_type_that_says_something_was_there() -> None:
    kinds = Counter(_record(line)[3][:2] for line in lines() if "record" in line)
    assert {int.from_bytes(kind, "big") for kind in kinds} >= {1, 2, 3, 5, 6, 7, 8, 10, 11, 12, 13, 14}


def test_a_record_that_is_cut_is_malformed_and_none_stops_the_rest() -> None:
    inference = Inference()
    cut = 0
    for line in lines():
        if "record" not in line:
            continue
        partition, offset, at_ms, key, value = _record(line)
        if value is None or offset % 5:
            continue
        for length in range(min(len(value), 9)):
            with pytest.raises(MalformedError):
                decode(partition, offset, at_ms, key, value[:length])
            inference.record(partition, offset, at_ms, key, value[:length])
            cut += 1
    assert inference.unreadable == cut > 100
