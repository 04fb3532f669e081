"""Each pattern is found in a history that has it, with its saving, and in no other."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from ringleader.insight.advice import Advice, Finding, Past, Pattern, advice_json, advise
from ringleader.insight.advice.past import Behind, Going
from ringleader.insight.history import History
from ringleader.insight.model import (
    Cause,
    Confidence,
    Departure,
    DepartureFinding,
    EventKind,
    Kind,
    Lag,
    Member,
    Rebalance,
)
from tests.insight.made import Made
from tests.insight.made_group import Group

NAMES = [f"app-{number}" for number in range(6)]
DAY_MS = 24 * 3_600_000


def orders(made: Made, partitions: int = 12, *, static: bool = False) -> Group:
    group = made.group("orders", {"orders": partitions}, NAMES, static=static)
    made.wait(900)
    return group


def comes_back(made: Made, group: Group, name: str, host: str, after_s: float = 30) -> None:
    made.wait(after_s)
    group._arrives(name, host)
    returned = group.members[name].member_id
    group._rebalance(Cause.MEMBER_JOINED, (returned,), ["a new member id"])
    made.wait(200)


def advised(path: Path, script: Callable[[Made], object], *, exact: bool = True) -> Advice:
    with Made(path / "one.sqlite", exact=exact) as made:
        script(made)
    with History.open(path / "one.sqlite", read_only=True) as history:
        return advise(Past.read(history, "orders", made.now_ms - DAY_MS, made.now_ms))


def healthy(made: Made) -> None:
    group = orders(made)
    group.restart("app-1")
    made.wait(3_000)
    group.join("app-6")
    made.wait(9_000)
    group.leave("app-6")
    made.wait(900)
    group.grow("orders", 14)
    made.wait(900)


def deploy(made: Made) -> None:
    orders(made).deploy(pause_s=20)
    made.wait(900)


def static_deploy(made: Made) -> None:
    orders(made, static=True).deploy(pause_s=20)
    made.wait(900)


def flapping(made: Made) -> None:
    group = orders(made)
    for _ in range(4):
        host = group.members["app-2"].host
        group.crash("app-2")
        comes_back(made, group, "app-2", host)


def flaps(made: Made) -> None:
    group = made.groups["orders"]
    for _ in range(3):
        host = group.members["app-2"].host
        group.crash("app-2")
        comes_back(made, group, "app-2", host)


def slow_poll(made: Made) -> None:
    group = orders(made)
    for _ in range(3):
        host = group.members["app-2"].host
        group.stall("app-2")
        comes_back(made, group, "app-2", host)


def slow_leader(made: Made) -> None:
    group = orders(made)
    for _ in range(5):
        group.leader_rejoins(leader_s=5)
        made.wait(600)


def slow_joiner(made: Made) -> None:
    group = orders(made)
    for number in range(4):
        group.join(f"new-{number}", join_s=40, slowest="app-3")
        made.wait(1_800)


def scaling(made: Made) -> None:
    group = orders(made)
    for _ in range(4):
        group.join("more-1", "more-2")
        made.wait(120)
        group.leave("more-1", "more-2")
        made.wait(120)


def restarts(made: Made) -> None:
    group = orders(made)
    for _ in range(6):
        group.restart("app-3")
        made.wait(90)


def idle(made: Made) -> None:
    orders(made, partitions=4)


def two_applications(made: Made) -> None:
    group = made.group("orders", {"orders": 4, "bills": 4}, NAMES)
    made.wait(900)
    for number, name in enumerate(NAMES):
        group.subscribe(name, "orders" if number < 3 else "bills")
        made.wait(900)


def fenced(made: Made) -> None:
    group = orders(made, static=True)
    for _ in range(5):
        group.fence("app-2")
        made.wait(20)


def zombies(made: Made) -> None:
    group = orders(made)
    for number in range(6):
        group.join(f"new-{number}")
        group.crash(f"app-{number}")
        made.wait(10)


def stopped(made: Made) -> None:
    orders(made)
    made.event(EventKind.COMMITS_STOPPED, "app-2 commits nothing any more", "orders")


def storm(made: Made) -> None:
    group = orders(made)
    for _ in range(6):
        group.leader_rejoins()
        made.wait(2)


def skew(made: Made) -> None:
    orders(made)
    for minute in range(20):
        made.wait(60)
        for partition in range(12):
            behind = 5_000 * minute if partition == 3 else 10
            end = 100_000 * (minute + 1)
            made.add(Lag("orders", "orders", partition, made.now_ms + 1, end, end - behind))


def capacity(made: Made) -> None:
    orders(made)
    for minute in range(20):
        made.wait(60)
        for partition in range(12):
            end = 30_000 * (minute + 1)
            made.add(Lag("orders", "orders", partition, made.now_ms + 1, end, 20_000 * (minute + 1)))


SCRIPTS: dict[Pattern, Callable[[Made], object]] = {
    Pattern.ROLLING_DEPLOY: deploy,
    Pattern.FLAPPING_MEMBER: flapping,
    Pattern.SLOW_POLL_LOOP: slow_poll,
    Pattern.SLOW_LEADER: slow_leader,
    Pattern.SLOW_JOINER: slow_joiner,
    Pattern.AUTOSCALER: scaling,
    Pattern.RESTART_LOOP: restarts,
    Pattern.IDLE_MEMBERS: idle,
    Pattern.TWO_APPLICATIONS: two_applications,
    Pattern.SAME_INSTANCE_TWICE: fenced,
    Pattern.ZOMBIES: zombies,
    Pattern.COMMITS_STOPPED: stopped,
    Pattern.STORM: storm,
    Pattern.LAG_IS_SKEW: skew,
    Pattern.LAG_IS_CAPACITY: capacity,
}


@pytest.mark.parametrize("exact", [True, False])
@pytest.mark.parametrize("pattern", SCRIPTS, ids=lambda one: one.name.lower())
def test_the_pattern_is_found_and_nothing_else(tmp_path: Path, pattern: Pattern, exact: bool) -> None:
    if pattern in (Pattern.SLOW_LEADER, Pattern.SLOW_JOINER) and not exact:
        pytest.skip("phases are not in the log")
    advice = advised(tmp_path, SCRIPTS[pattern], exact=exact)
    # With slow phases everybody stands still, which cooperative assignment would help against, too.
    found = [one.pattern for one in advice.findings if one.pattern is not Pattern.EAGER]
    assert found == [pattern]
    for one in advice.findings:
        assert one.evidence
        assert one.changes
        assert (one.saving is None) != (one.no_saving == "")
        assert one.since_ms <= one.until_ms


@pytest.mark.parametrize("pattern", SCRIPTS, ids=lambda one: one.name.lower())
def test_without_a_replay_counts_of_partitions_are_enough(tmp_path: Path, pattern: Pattern) -> None:
    with Made(tmp_path / "one.sqlite", exact=True) as made:
        SCRIPTS[pattern](made)
    with History.open(tmp_path / "one.sqlite", read_only=True) as history:
        whole, counted = (
            Past.read(history, "orders", made.now_ms - DAY_MS, made.now_ms, counted=counted)
            for counted in (False, True)
        )
    assert advise(counted, replay=False) == advise(whole, replay=False)


@pytest.mark.parametrize("counted", [False, True])
def test_findings_look_at_as_many_members_as_there_may_be_and_say_what_is_left_out(
    tmp_path: Path, counted: bool
) -> None:
    with Made(tmp_path / "one.sqlite", exact=True) as made:
        orders(made).deploy(pause_s=20)
        flaps(made)
    with History.open(tmp_path / "one.sqlite", read_only=True) as history:

        def read(parts_max: int | None) -> Past:
            window = (made.now_ms - DAY_MS, made.now_ms)
            return Past.read(history, "orders", *window, counted=counted, parts_max=parts_max)

        whole = read(None)
        newest = whole.rebalances[-1]
        parts = sum(len(one.members) for one in whole.rebalances)
        for one in (newest,) if counted else whole.rebalances:
            parts += sum(len(member.assigned) for member in one.members) + len(one.moves)
        assert read(parts) == whole
        assert whole.left_out == ""
        some, last = read(parts - 1), read(1)
    assert some.rebalances == whole.rebalances[1:]
    assert some.since_ms == whole.rebalances[1].at_ms
    assert last.rebalances == [newest]
    advice = advise(some, replay=False)
    assert advice.findings
    expected = f"are left out: {parts - 1} members and partitions in rebalances are looked at, at most."
    assert expected in some.left_out
    assert all(one["evidence"][-1] == some.left_out for one in advice_json(advice)["findings"])
    assert advice.looked_at[-1] == some.left_out.rstrip(".")


def test_the_newest_rebalances_are_looked_at_and_what_is_left_out_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = past_of(tmp_path, SCRIPTS[Pattern.ROLLING_DEPLOY])
    assert whole.left_out == ""
    for most in (len(whole.rebalances), 2):
        monkeypatch.setattr("ringleader.insight.advice.past.REBALANCES_MAX", most)
        again = tmp_path / str(most)
        again.mkdir()
        found = past_of(again, SCRIPTS[Pattern.ROLLING_DEPLOY])
        assert len(found.rebalances) == most
        assert ("left out: 2 rebalances are looked at, at most." in found.left_out) == (most == 2)


@pytest.mark.parametrize("script", [healthy, static_deploy], ids=lambda one: one.__name__)
def test_a_healthy_group_has_no_findings_but_numbers(
    tmp_path: Path, script: Callable[[Made], object]
) -> None:
    advice = advised(tmp_path, script)
    assert advice.healthy, [one.text for one in advice.findings]
    assert any("rebalance" in one for one in advice.looked_at)


def test_a_group_without_history_is_healthy() -> None:
    assert advise(Past("orders", 0, 1)).healthy


def test_a_lag_that_was_measured_before_the_last_commit_hides_no_other() -> None:
    behind = {
        ("orders", partition): Behind(0, Lag("orders", "orders", partition, 1, end, committed), 0, (), 0, 0)
        for partition, (end, committed) in enumerate([(100, 40), (100, 130), (100, None)])
    }
    past = Past("orders", 0, 1, behind=behind)
    assert past.records_behind == 60
    assert "60 records behind" in advise(past).looked_at


def finding(path: Path, pattern: Pattern) -> Finding:
    return next(one for one in advised(path, SCRIPTS[pattern]).findings if one.pattern is pattern)


def test_static_members_would_have_saved_a_deploys_rebalances(tmp_path: Path) -> None:
    saving = finding(tmp_path, Pattern.ROLLING_DEPLOY).saving
    assert saving is not None
    assert (saving.recorded, saving.reproduced, saving.invented) == (7, 7, 0)
    assert saving.confidence is Confidence.LIKELY
    assert (saving.avoided, saving.rebalances) == (6, 1)


def test_a_longer_session_saves_rebalances_but_not_the_silence(tmp_path: Path) -> None:
    found = finding(tmp_path, Pattern.FLAPPING_MEMBER)
    assert found.changes[0].setting == "session.timeout.ms"
    assert found.changes[0].value == "120000"  # it was silent for 45 + 30 s
    saving = found.saving
    assert saving is not None
    assert saving.avoided == 8
    assert saving.saved_ms < 0, "nobody else reads its partitions meanwhile"


def test_a_saving_has_one_sentence_also_where_it_is_none(tmp_path: Path) -> None:
    saving = finding(tmp_path, Pattern.FLAPPING_MEMBER).saving
    assert saving is not None
    assert (
        f"{saving.avoided} of {saving.rebalances_as_was} rebalances would not have happened, but"
        in saving.text
    )
    worse = replace(saving, rebalances=saving.rebalances_as_was + 3, unowned_ms=saving.unowned_as_was_ms)
    assert f"With {saving.policy}: 3 rebalances more would have happened (" in worse.text
    same = replace(worse, rebalances=saving.rebalances_as_was)
    assert f": the {saving.rebalances_as_was} rebalances would have happened as well (" in same.text


def test_a_slow_leader_costs_time_without_owner_not_rebalances(tmp_path: Path) -> None:
    saving = finding(tmp_path, Pattern.SLOW_LEADER).saving
    assert saving is not None
    assert saving.avoided == 0
    # 5 rebalances, 12 partitions, 4.9 s
    assert saving.saved_ms == pytest.approx(5 * 12 * 4_900, rel=0.05)


def test_an_eager_assignor_is_found_where_it_costs(tmp_path: Path) -> None:
    found = finding_of(advised(tmp_path, slow_joiner), Pattern.EAGER)
    assert found.saving is not None
    assert found.saving.saved_ms >= 60_000


def finding_of(advice: Advice, pattern: Pattern) -> Finding:
    return next(one for one in advice.findings if one.pattern is pattern)


def test_the_consumer_protocol_is_not_played_again(tmp_path: Path) -> None:
    def script(made: Made) -> None:
        group = made.group("orders", {"orders": 12}, NAMES, kind=Kind.CONSUMER)
        made.wait(900)
        group.deploy(pause_s=20)
        made.wait(900)

    (found,) = advised(tmp_path, script).findings
    assert found.pattern is Pattern.ROLLING_DEPLOY
    assert found.saving is None
    assert found.no_saving == "The replay speaks the classic protocol only."


def past_of(path: Path, script: Callable[[Made], object]) -> Past:
    with Made(path / "one.sqlite", exact=True) as made:
        script(made)
    with History.open(path / "one.sqlite", read_only=True) as history:
        return Past.read(history, "orders", made.now_ms - DAY_MS, made.now_ms)


SILENT = "no member has computed the assignment; it did not answer in time as the leader"
CANNOT = "no member can compute client:mine"


def falls_back(made: Made, *reasons: str) -> None:
    orders(made)
    for reason in reasons:
        text = "As the journal words it."
        made.event(EventKind.ASSIGNOR_FELL_BACK, text, "orders", "app-1@10.0.0.3", reason)
        made.wait(600)


def test_an_assignor_that_falls_back_again_and_again_is_found_with_its_reasons(tmp_path: Path) -> None:
    found = finding_of(
        advised(tmp_path, lambda made: falls_back(made, SILENT, CANNOT, SILENT)), Pattern.ASSIGNOR_FELL_BACK
    )
    assert "assigned 3 times in place of a member" in found.text
    assert found.members == ("app-1@10.0.0.3",)
    assert [one.partition(",")[0] for one in found.evidence] == ["twice", "once"]
    assert [one.setting for one in found.changes] == [
        "group.consumer.leader.timeout.ms",
        "clients.assignors.ASSIGNORS",
    ]


def test_an_assignor_that_fell_back_once_is_none(tmp_path: Path) -> None:
    found = advised(tmp_path, lambda made: falls_back(made, SILENT)).findings
    assert Pattern.ASSIGNOR_FELL_BACK not in {one.pattern for one in found}


def test_a_group_whose_broker_assigns_has_no_slow_leader(tmp_path: Path) -> None:
    def script(made: Made) -> None:
        group = made.group("orders", {"orders": 12}, NAMES, kind=Kind.CONSUMER)
        for number in range(3):
            made.wait(900)
            group.join(f"more-{number}", leader_s=5)

    assert Pattern.SLOW_LEADER not in {one.pattern for one in advised(tmp_path, script).findings}


@pytest.mark.parametrize(("age_s", "found"), [(3_000, True), (60, False)])
def test_a_member_that_has_just_come_did_not_stop_for_the_one_before_it(
    tmp_path: Path, age_s: int, found: bool
) -> None:
    with Made(tmp_path / "one.sqlite") as made:
        orders(made)
        made.wait(3_000)
    with History.open(tmp_path / "one.sqlite", read_only=True) as history:
        past = Past.read(history, "orders", made.now_ms - DAY_MS, made.now_ms)
    *earlier, last = past.rebalances
    silent_ms = past.until_ms - 2_400_000
    own = set(last.members[0].assigned)
    topic, partition = last.members[0].assigned[0]
    looked = replace(
        past,
        rebalances=(*earlier, replace(last, at_ms=past.until_ms - age_s * 1_000)),
        commits=[
            one for one in past.commits if one.at_ms < silent_ms or (one.topic, one.partition) not in own
        ],
        lags=[Lag("orders", topic, partition, past.until_ms, 100_000, 10)],
    )
    patterns = {one.pattern for one in advise(looked).findings}
    assert (Pattern.COMMITS_STOPPED in patterns) == found


def stopped_in_order(made: Made) -> None:
    group = orders(made)
    host = group.members["app-2"].host
    for _ in range(5):
        group.leave("app-2")
        comes_back(made, group, "app-2", host, 40)


def test_a_process_that_is_stopped_again_and_again_did_not_crash(tmp_path: Path) -> None:
    found = finding_of(advised(tmp_path, stopped_in_order), Pattern.RESTART_LOOP)
    assert found.confidence is Confidence.POSSIBLE
    assert "137" not in " ".join(one.value for one in found.changes)


def test_killed_processes_whose_successors_come_later_are_perhaps_no_redeploy(tmp_path: Path) -> None:
    def script(made: Made) -> None:
        group = orders(made)
        for number in (1, 2):
            host = group.members[f"app-{number}"].host
            group.crash(f"app-{number}")
            comes_back(made, group, f"new-{number}", host, 60)
            made.wait(900)

    sure = [one.confidence for one in advised(tmp_path, script).findings if one.pattern is Pattern.ZOMBIES]
    assert set(sure) <= {Confidence.POSSIBLE}


def test_a_deploy_is_found_after_its_members_are_gone(tmp_path: Path) -> None:
    def script(made: Made) -> None:
        group = orders(made)
        group.deploy(pause_s=20)
        for name in list(group.members):
            made.wait(5)
            group.leave(name)

    assert Pattern.ROLLING_DEPLOY in {one.pattern for one in advised(tmp_path, script).findings}


def test_a_member_whose_session_ended_was_silent_for_all_of_it() -> None:
    member = Member("a-1", "a", "/h", session_timeout_ms=6_000)
    rebalance = Rebalance("r", "g", Kind.CLASSIC, 2, 10_000, Cause.SESSION_EXPIRED, Confidence.LIKELY)
    departure = DepartureFinding(Departure.SESSION_EXPIRED, Confidence.LIKELY, 3_200)
    assert Going(member, departure, rebalance, 10_000, None).silent_since_ms == 4_000
