"""history, explain, owners, report, advise and top, asked of a history file as users ask them."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import subprocess
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from ringleader.cli.looking_back import Times, moment_of
from ringleader.insight.advice.words import length, partition_time, rounded_up_ms, short
from ringleader.insight.model import Cause, EventKind
from ringleader.insight.names import nearest
from tests.insight.made import Made
from tests.support.command import PATIENCE_S, Done, command_line, run_here

HOUR_MS = 3_600_000
NAMES = [f"app-{number}" for number in range(6)]


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> Made:
    """Three hours: a deploy, a flapping member, a reset, a coordinator away; and a group that is well."""
    path = tmp_path_factory.mktemp("insight") / "prod.sqlite"
    now_ms = time.time_ns() // 1_000_000
    with Made(path, start_ms=now_ms - 3 * HOUR_MS) as made:
        billing = made.group("billing", {"orders": 12}, NAMES)
        made.group("shipping", {"orders": 12}, ["ship-1", "ship-2"])
        made.wait(1_800)
        billing.deploy(pause_s=20)
        made.wait(900)
        for _ in range(2):
            host = billing.members["app-2"].host
            billing.crash("app-2")
            made.wait(30)
            billing._arrives("app-2", host)
            billing._rebalance(Cause.MEMBER_JOINED, (billing.members["app-2"].member_id,), ["it is back"])
            made.wait(300)
        billing.puzzle()
        made.wait(100)
        billing.reset(1_000)
        made.wait(100)
        billing.coordinator_restarts()
        reason = "no member can compute client:mine"
        text = f"The coordinator assigned in place of a member (ship-1@10.0.0.9): {reason}."
        made.event(EventKind.ASSIGNOR_FELL_BACK, text, "shipping", "ship-1@10.0.0.9", reason)
    return made


@pytest.fixture
def made(history: Made) -> Path:
    """As `ringleader watch` keeps it: up to now, however long the tests before took."""
    history.wait((time.time_ns() // 1_000_000 - history.now_ms) / 1000)
    history.write()
    return history.path


def run_on(path: Path, *arguments: str) -> Done:
    return run_here(None, *arguments, "--history", str(path))


def answered(path: Path, *arguments: str) -> Any:
    done = run_on(path, *arguments, "--json")
    assert (done.code, done.err) == (0, "")
    return json.loads(done.out)


# ---- history ----


def test_history_has_a_line_for_each_rebalance(made: Path) -> None:
    done = run_on(made, "history", "billing", "--since", "170m")
    assert (done.code, done.err) == (0, "")
    lines = done.out.splitlines()
    assert " ".join(lines[0].split()) == "WHEN CAUSE WHO MEMBERS JOIN LEADER SYNC MOVED UNOWNED"
    expired = [line for line in lines if "session expired" in line]
    assert len(expired) == 2
    assert all(re.search(r"min ago +session expired +app-2@10\.\S+ +6→5 .* 93 s", line) for line in expired)
    assert "unknown" in done.out
    assert "offsets reset: 12 partitions went back to offset 1000" in done.out
    assert re.search(r"12 rebalances since 2 h 50 min ago, .* without an owner\.", lines[-1])


def test_history_says_what_tells_the_cause_and_exact_times(made: Path) -> None:
    done = run_on(made, "history", "billing", "--since", "170m", "--evidence", "--utc")
    assert "its partitions stood still for 45.3 s, its session timeout is 45.0 s" in done.out
    assert re.search(r"20\d\d-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3}Z", done.out)
    assert " ago" not in done.out


def test_history_as_json_has_times_both_ways(made: Path) -> None:
    shown = answered(made, "history", "billing", "--since", "170m")
    assert (shown["group"], shown["more"], len(shown["rebalances"])) == ("billing", False, 12)
    first = shown["rebalances"][0]
    assert (first["cause"], first["confidence"]) == ("member restarted", "likely")
    assert first["at"].endswith("Z")
    assert first["at_ms"] - first["began_ms"] == first["duration_ms"]
    assert first["names"][first["cause_members"][0]].startswith("app-0@")
    assert first["members"][0]["name"].startswith("app-")
    assert shown["events"][0]["kind"] == "offsets reset"


def test_history_shows_the_last_of_many(made: Path) -> None:
    done = run_on(made, "history", "billing", "--limit", "2")
    assert "there are more than 2: the last 2 are shown" in done.err
    assert "coordinator changed" in done.out
    assert answered(made, "history", "billing", "--limit", "2")["more"]


def test_nothing_in_the_window_says_what_there_is(made: Path) -> None:
    done = run_on(made, "history", "billing", "--since", "1m")
    assert (done.code, done.out) == (0, "")
    assert re.search(
        r"No rebalance of billing between 1 min ago and now; its last one was .* ago\.", done.err
    )


# ---- what is wrong with a question ----


@pytest.mark.parametrize("command", ["history", "explain", "cost", "advise"])
def test_a_group_that_is_not_there_is_one_sentence_with_the_nearest(made: Path, command: str) -> None:
    done = run_on(made, command, "biling")
    assert (done.code, done.out) == (1, "")
    assert done.err == "ringleader: There is no group biling in the history; did you mean billing?\n"


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["history", "billing", "--since", "yesterday"], "--since: a time is 2h, for two hours ago"),
        (["history", "billing", "--since", "2999-01-01"], "still to come"),
        (["history", "billing", "--since", "1h", "--until", "2h"], "--since has to be before --until"),
        (["cost", "billing", "--from", "1h", "--to", "2h"], "--from has to be before --to"),
        (["cost", "billing", "--max-rebalances", "-1"], "--max-rebalances"),
        (["owners", "orders"], "TOPIC:PARTITION, for example orders:17, not 'orders'"),
        (["owners", "orders:x"], "TOPIC:PARTITION"),
        (["advise", "billing", "--command-config", "/nonexistent"], "give --bootstrap-server, too"),
        (["top", "--json"], "--json is for --once"),
        (["top"], "needs a terminal"),
    ],
)
def test_wrong_input_is_one_sentence(made: Path, arguments: list[str], says: str) -> None:
    done = run_on(made, *arguments)
    assert done.code == 2
    assert says in done.err
    assert done.err.count("\n") == 1


def test_without_a_history_it_says_how_to_begin(tmp_path: Path) -> None:
    done = run_on(tmp_path / "none.sqlite", "history", "billing")
    assert done.code == 1
    assert "`ringleader watch` begins one" in done.err


# ---- explain ----


def test_explain_says_when_why_and_what_to_change(made: Path) -> None:
    done = run_on(made, "explain", "billing", "app-2", "--since", "140m")
    assert (done.code, done.err) == (0, "")
    assert re.search(r"app-2@10\S+ went .* ago: session expired, likely", done.out)
    assert "it was silent for 45.3 s (session timeout 45 s)" in done.out
    assert "back 30.2 s later" in done.out
    assert "→ session.timeout.ms: 120000 (now 45000)" in done.out
    assert "is in the group since" in done.out


def test_explain_finds_members_by_what_people_call_them(made: Path) -> None:
    everything = answered(made, "explain", "billing", "--since", "3h")["incidents"]
    one = next(one for one in everything if one["why"] == "session expired")["member"]
    for word in (
        one["name"],
        one["member_id"],
        one["client_id"],
        one["host"].lstrip("/"),
        one["member_id"][:12],
    ):
        found = answered(made, "explain", "billing", word, "--since", "3h")["incidents"]
        assert "session expired" in [each["why"] for each in found], word
        assert len(found) < len(everything)


@pytest.mark.parametrize("name", ["25", "UNKNOWN_MEMBER_ID", "org.apache.kafka.UnknownMemberIdException"])
def test_explain_knows_errors_and_what_brought_them(made: Path, name: str) -> None:
    done = run_on(made, "explain", "billing", name)
    assert done.code == 0
    assert done.out.startswith("UNKNOWN_MEMBER_ID (25)\n")
    assert "The coordinator does not know the member" in done.out
    assert "2 members of billing may have met it" in done.out


def test_explain_counts_the_rebalances_that_bring_an_error(made: Path) -> None:
    shown = answered(made, "explain", "billing", "REBALANCE_IN_PROGRESS")
    assert len(shown["rebalances"]) == 13
    assert shown["error"]["code"] == 27
    done = run_on(made, "explain", "billing", "FencedInstanceIdException")
    assert "Nothing in the history of billing since 24 h ago brings it." in done.out.replace(
        "1 d ago", "24 h ago"
    )


def test_explain_of_nobody_says_who_there_was(made: Path) -> None:
    done = run_on(made, "explain", "billing", "ap-2")
    assert done.code == 1
    assert re.search(r"No member ap-2 was in billing .*did you mean app-2", done.err)
    done = run_on(made, "explain", "billing", "NO_SUCH_ERROR")
    assert (done.code, done.err) == (
        1,
        "ringleader: NO_SUCH_ERROR is no error that members of groups meet.\n",
    )
    assert "No member of shipping went" in run_on(made, "explain", "shipping").out


def test_explain_says_how_often_and_why_the_coordinator_assigned_in_place_of_a_member(made: Path) -> None:
    output = run_on(made, "explain", "shipping").out
    assert "The coordinator assigned once in place of a member, last " in output
    assert "no member can compute client:mine (ship-1@10.0.0.9)" in output
    assert "→ clients.assignors.ASSIGNORS: " in output
    (found,) = answered(made, "explain", "shipping")["fall_backs"]
    assert (len(found["times"]), found["members"]) == (1, ["ship-1@10.0.0.9"])
    assert answered(made, "explain", "billing")["fall_backs"] == []


# ---- owners ----


def test_owners_then_and_the_way_back(made: Path) -> None:
    now = answered(made, "owners", "orders:3")["owners"]
    assert [one["group"] for one in now] == ["billing", "shipping"]
    (then,) = answered(made, "owners", "orders:3", "--at", "2h", "--group", "billing")["owners"]
    assert then["owner"].startswith("app-")
    assert then["offset"] > 1_000  # the reset came later
    done = run_on(made, "owners", "orders:3", "--at", "2h", "--group", "billing")
    assert f"ringleader groups reset billing --topic orders:3 --to-offset {then['offset']}" in done.out


def test_nobody_owns_a_partition_from_the_end_of_its_owner_to_the_beginning_of_the_next(made: Path) -> None:
    changes = answered(made, "owners", "orders:3", "--group", "billing")["changes"]["billing"]
    ended, next_one = next(pair for pair in pairwise(changes) if pair[0]["until_ms"] < pair[1]["since_ms"])

    def then(at: str) -> Any:
        [found] = answered(made, "owners", "orders:3", "--at", at, "--group", "billing")["owners"]
        return found

    assert (then(ended["until"])["member_id"], then(ended["until"])["since_ms"]) == (None, ended["until_ms"])
    assert then(ended["since"])["member_id"] == ended["member_id"]
    assert then(next_one["since"])["member_id"] == next_one["member_id"]


def test_owners_without_a_time_shows_the_last_changes(made: Path) -> None:
    done = run_on(made, "owners", "orders:3", "--group", "billing")
    assert "The last owners in billing:" in done.out
    rows = done.out.split("OWNER")[2].split("\n")[1:]
    owners = [row.split()[-1] for row in rows if row]
    assert len(owners) > 3
    assert all(one != other for one, other in pairwise(owners))
    assert rows[-2].split()[-2] == "now"


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["orders:99"], "No group in the history has ever had orders:99; of orders the partitions 0 to 11"),
        (["ordrs:3"], "did you mean orders?"),
        (["orders:3", "--group", "biling"], "did you mean billing?"),
        (["orders:3", "--at", "7d"], "The history begins"),
    ],
)
def test_owners_of_what_is_not_known(made: Path, arguments: list[str], says: str) -> None:
    done = run_on(made, "owners", *arguments)
    assert (done.code, done.out) == (1, "")
    assert says in done.err


# ---- report ----


def test_report_by_cause_and_pod(made: Path) -> None:
    shown = answered(made, "cost", "billing", "--from", "170m")
    assert shown["rebalances"] == 12
    assert sum(number for _, number, _ in shown["by_cause"]) == 12
    assert shown["by_cause"][0][0] == "session expired"
    worst = shown["pods"][0]
    assert (worst["client_id"], worst["gone"]["session expired"]) == ("app-2", 2)
    assert worst["read_again"] > 0
    done = run_on(made, "cost", "billing", "--from", "170m")
    assert done.code == 0
    assert "12 rebalances" in done.out
    assert re.search(r"app-2@\S+ +2 × session expired, restarted", done.out)


def test_report_is_a_gate(made: Path) -> None:
    free = ["cost", "billing", "--from", "170m"]
    within = ["--max-rebalances", "12", "--max-unowned-seconds", "10000", "--max-rebalance-seconds", "60"]
    assert run_on(made, *free, *within).code == 0
    above = run_on(made, *free, "--max-rebalances", "11", "--max-unowned-seconds", "5")
    assert above.code == 3
    assert above.err.splitlines()[0] == "ringleader: 12 rebalances are more than --max-rebalances 11."
    assert "partition-seconds without an owner are more than --max-unowned-seconds 5." in above.err
    assert run_on(made, *free, "--max-read-again", "0").code == 3
    shown = json.loads(run_on(made, *free, "--max-rebalances", "11", "--json").out)
    assert (shown["ok"], len(shown["above"])) == (False, 1)


def test_a_gate_does_not_pass_for_what_nobody_saw(made: Path) -> None:
    done = run_on(made, "cost", "billing", "--from", "9h", "--max-rebalances", "1000")
    assert done.code == 1
    assert "cannot be judged: the history begins" in done.err


def test_the_deprecated_name_warns_and_answers_the_same(made: Path) -> None:
    window = ["billing", "--from", "2026-01-01T00:00Z", "--to", "2100-01-01T00:00Z"]
    old, new = run_on(made, "report", *window[:3]), run_on(made, "cost", *window[:3])
    assert (old.code, old.out.count("\n")) == (new.code, new.out.count("\n"))
    assert "`ringleader report` is deprecated: it is called `ringleader cost` now." in old.err


# ---- advise ----


def test_advise_has_findings_with_figures(made: Path) -> None:
    done = run_on(made, "advise", "billing")
    assert done.code == 0
    assert "Rolling deploy without static members, likely" in done.out
    assert "Flapping member" in done.out
    assert re.search(r"= With session timeout 2 min: 4 of \d+ rebalances would not have happened", done.out)
    assert "Looked at: 13 rebalances" in done.out
    shown = answered(made, "advise", "billing", "--since", "170m")
    assert not shown["healthy"]
    by_pattern = {one["pattern"]: one for one in shown["findings"]}
    saving = by_pattern["rolling deploy without static members"]["saving"]
    assert (saving["claimed"], saving["avoided"]) == (True, 6)
    assert re.match(r"With static members, .*: 6 of \d+ rebalances would not have happened", saving["text"])


def test_a_healthy_group_says_so_in_one_line(made: Path) -> None:
    done = run_on(made, "advise", "shipping")
    assert done.out.count("\n") == 1
    assert done.out.startswith("Healthy: nothing to change in shipping. Looked at: 1 rebalance")


def test_advise_has_thresholds_as_flags_and_in_a_file(made: Path, tmp_path: Path) -> None:
    def flapping(*arguments: str) -> bool:
        return "Flapping member" in run_on(made, "advise", "billing", "--no-replay", *arguments).out

    file = tmp_path / "advise.toml"
    file.write_text("advice.flaps.min = 99\n")
    assert flapping()
    assert not flapping("--advice-flaps-min", "99")
    assert not flapping("--config", str(file))
    assert flapping("--config", str(file), "--advice-flaps-min", "2")
    wrong = run_on(made, "advise", "billing", "--advice-flaps-min", "0")
    assert (wrong.code, wrong.out) == (2, "")
    assert wrong.err.startswith("ringleader: --advice-flaps-min: should be greater than or equal to 1")


def test_advise_without_replay_has_no_figures(made: Path) -> None:
    findings = answered(made, "advise", "billing", "--no-replay", "--since", "170m")["findings"]
    assert findings
    assert all(one["saving"] is None and one["no_saving"] for one in findings)


# ---- top ----


def test_top_once(made: Path) -> None:
    done = run_on(made, "top", "--once", "--sort", "rebalances")
    assert done.code == 0
    header, *rows = done.out.splitlines()
    assert header.split()[:6] == ["GROUP", "STATE", "MEMBERS", "LAG", "RECORDS/S", "REBALANCES/H"]
    assert [row.split()[:3] for row in rows] == [["billing", "Stable", "6"], ["shipping", "Stable", "2"]]
    (row,) = [one for one in answered(made, "top", "--once")["groups"] if one["group"] == "shipping"]
    assert row["lag"] > 0
    assert row["rate"] == pytest.approx(12 * 50, rel=0.1)


def test_top_on_a_terminal_ends_with_q(made: Path) -> None:
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        command_line("top", "--history", str(made), "--interval", "0.2"),
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env={**os.environ, "TERM": "xterm", "COLUMNS": "120", "LINES": "30"},
        close_fds=True,
    )
    os.close(theirs)
    seen = b""
    deadline_s = time.monotonic() + PATIENCE_S
    try:
        for key, until in ((b"", b"by lag"), (b"n", b"by name"), (b"q", b"\x1b[?1049l")):
            os.write(ours, key)
            while until not in seen:
                assert time.monotonic() < deadline_s, seen
                if select.select([ours], [], [], 0.2)[0]:
                    seen += os.read(ours, 65_536)
        assert process.wait(PATIENCE_S) == 0
    finally:
        process.kill()
        process.wait()
        os.close(ours)
    assert b"billing" in seen


# ---- words ----


def test_lengths_and_times_in_words() -> None:
    assert [length(ms) for ms in (0, 320, 1_200, 61_000, 7_500_000, 360_000_000)] == [
        "0 ms",
        "320 ms",
        "1.2 s",
        "1 min 1 s",
        "2 h 5 min",
        "4 d 4 h",
    ]
    assert [short(ms) for ms in (0, 320, 1_240, 93_300, 411_000, 9_000_000)] == [
        "0 ms",
        "320 ms",
        "1.2 s",
        "93 s",
        "6.8 min",
        "2.5 h",
    ]
    assert partition_time(812 * 60_000) == "812 partition-minutes"
    assert partition_time(4_200) == "4.2 partition-seconds"
    assert [rounded_up_ms(ms) for ms in (9_999, 10_000, 45_000, 91_000)] == [10_000, 15_000, 60_000, 120_000]
    times = Times(1_000_000_000, utc=False)
    assert [times.point(at) for at in (None, 999_999_500, 999_880_000, 1_000_005_000)] == [
        "-",
        "now",
        "2 min ago",
        "in 5 s",
    ]
    assert Times(0, utc=True).point(1_769_817_605_250) == "2026-01-31 00:00:05.250Z"


def test_moments_as_they_are_typed() -> None:
    now = 1_769_817_605_250
    assert moment_of("2h", now, "--since") == moment_of("-2h", now, "--since") == now - 2 * HOUR_MS
    assert moment_of("2026-01-31", now, "--since") == 1_769_817_600_000
    assert nearest("Biling", ["shipping", "billing"]) == "billing"
    assert nearest("zzz", ["shipping", "billing"]) == ""


# ---- advise --protocol consumer ----


def test_advice_on_a_move_to_the_consumer_protocol_for_one_group_and_for_all(made: Path) -> None:
    (billing,) = answered(made, "advise", "billing", "--protocol", "consumer")["groups"]
    assert (billing["way"], billing["saving"]["claimed"]) == ("online", True)
    assert {one["about"] for one in billing["points"]} >= {"cluster", "assignor", "clients", "timeouts"}
    found = answered(made, "advise", "--protocol", "consumer", "--no-replay")
    assert (found["protocol"], [one["group"] for one in found["groups"]]) == (
        "consumer",
        ["billing", "shipping"],
    )
    assert found["groups"][0]["no_saving"] == "Not played again, as asked."
    done = run_on(made, "advise", "--protocol", "consumer")
    assert (done.code, done.err) == (0, "")
    assert "billing: It can move while it works" in done.out
    assert "→ group.remote.assignor: range" in done.out
    assert "= With the consumer protocol: " in done.out


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (["advise", "billing", "--protocol", "classic"], 2, "--protocol: it is consumer, not 'classic'."),
        (["advise"], 2, "Name a group; without one there is advice with --protocol consumer only."),
        (
            ["advise", "biling", "--protocol", "consumer"],
            1,
            "did you mean billing?",
        ),
    ],
)
def test_what_advice_on_a_move_does_not_take(made: Path, arguments: list[str], code: int, says: str) -> None:
    done = run_on(made, *arguments)
    assert (done.code, done.out) == (code, "")
    assert says in done.err
